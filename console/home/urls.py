"""The home page, the search, the stars, the replicas and the backups."""

from django.urls import path

from console.home.views import backups, home, replicas, search

app_name = "home"
urlpatterns = [
    path("", home.home, name="index"),
    path("replicas/", replicas.show, name="replicas"),
    path("backups/", backups.show, name="backups"),
    path("search/", search.index, name="search"),
    path("palette/", search.palette, name="palette"),
    path("a/<account>/t/<table>/star/", home.star, name="star"),
]
