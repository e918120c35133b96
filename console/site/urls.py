"""URLs used by every page."""

from django.urls import path

from console.site import appearance

app_name = "site"
urlpatterns = [
    path("appearance/", appearance.change, name="appearance"),
]
