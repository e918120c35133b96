"""URLs of copies from and to other services."""

from django.urls import path

from console.copies import views

app_name = "copies"
urlpatterns = [
    path("a/<account>/copy/", views.start, name="start"),
    path("a/<account>/copy/file/", views.start_from_file, name="file"),
    path("a/<account>/copy/file/<int:file>/<int:size>/", views.upload, name="upload"),
]
