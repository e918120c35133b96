"""The home page, the search, the stars, the replicas and the backups."""

from django.urls import path, re_path

from console.home.views import backups, home, links, replicas, search

app_name = "home"
urlpatterns = [
    path("", home.home, name="index"),
    path("replicas/", replicas.show, name="replicas"),
    path("backups/", backups.show, name="backups"),
    path("search/", search.index, name="search"),
    path("palette/", search.palette, name="palette"),
    path("links/new/", links.new, name="link_new"),
    re_path(r"^s/(?P<key>[0-9a-z]{1,32})/?$", links.follow, name="link"),
    path("a/<account>/t/<table>/star/", home.star, name="star"),
]
