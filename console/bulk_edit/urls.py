"""URLs of bulk edits."""

from django.urls import path

from console.bulk_edit import views

app_name = "bulk_edit"
urlpatterns = [path("a/<account>/t/<table>/bulk/", views.show, name="show")]
