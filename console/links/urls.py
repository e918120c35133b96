"""URLs of short links."""

from django.urls import path, re_path

from console.links import views

app_name = "links"
urlpatterns = [
    path("links/new/", views.new, name="new"),
    re_path(r"^s/(?P<key>[0-9a-z]{1,32})/?$", views.follow, name="follow"),
]
