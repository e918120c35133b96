"""URLs of the distribution of tables."""

from django.urls import path

from console.cluster import views

app_name = "cluster"
urlpatterns = [
    path("a/<account>/t/<table>/settings/distribution/", views.show, name="show"),
    path("a/<account>/t/<table>/settings/distribution/start/", views.start, name="start"),
    path("a/<account>/t/<table>/settings/distribution/dismiss/", views.dismiss, name="dismiss"),
]
