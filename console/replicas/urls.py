"""URLs of replicas."""

from django.urls import path

from console.replicas import views

app_name = "replicas"
urlpatterns = [path("replicas/", views.show, name="index")]
