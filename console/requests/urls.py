"""URLs of the request log."""

from django.urls import path

from console.requests import views

app_name = "requests"
urlpatterns = [
    path("a/<account>/requests/", views.index, name="index"),
    path("a/<account>/requests/export/", views.export, name="export"),
    path("a/<account>/requests/<uuid:request_id>/", views.show, name="show"),
    path("a/<account>/requests/<uuid:request_id>/entity/", views.entity, name="entity"),
]
