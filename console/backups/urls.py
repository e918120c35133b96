"""URLs of backups."""

from django.urls import path

from console.backups import views

app_name = "backups"
urlpatterns = [path("backups/", views.show, name="index")]
