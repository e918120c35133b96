"""URLs of table design."""

from django.urls import path

from console.design import views

app_name = "design"
urlpatterns = [
    path("a/<account>/design/", views.show_account, name="account"),
    path("a/<account>/t/<table>/design/", views.show, name="table"),
]
