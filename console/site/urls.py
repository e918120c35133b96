"""URLs that every page uses."""

from django.urls import path

from console.site import views

app_name = "site"
urlpatterns = [
    path("appearance/", views.change, name="appearance"),
]
