"""URLs of the stored access policies of a table."""

from django.urls import path

from console.access.policies import views

app_name = "policies"
urlpatterns = [
    path("a/<account>/t/<table>/acl/", views.show, name="show"),
    path("a/<account>/t/<table>/acl/save/", views.save, name="save"),
]
