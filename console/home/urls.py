"""URLs of the home page, the search and stars."""

from django.urls import path

from console.home.views import home, search

app_name = "home"
urlpatterns = [
    path("", home.home, name="index"),
    path("search/", search.index, name="search"),
    path("palette/", search.palette, name="palette"),
    path("a/<account>/t/<table>/star/", home.star, name="star"),
]
