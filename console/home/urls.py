"""The home page, the search, the stars and the backups."""

from django.urls import path

from console.home.views import backups, home, search

app_name = "home"
urlpatterns = [
    path("", home.home, name="index"),
    path("backups/", backups.show, name="backups"),
    path("search/", search.index, name="search"),
    path("palette/", search.palette, name="palette"),
    path("a/<account>/t/<table>/star/", home.star, name="star"),
]
