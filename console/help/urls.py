"""Paths of the documentation, the API reference, and the page about this server."""

from django.urls import path

from console.help.views import about

app_name = "help"
urlpatterns = [
    path("about/", about.about, name="about"),
    path("help/", about.index, name="index"),
    path("help/shortcuts/", about.shortcuts, name="shortcuts"),
    path("help/limits/", about.limits, name="limits"),
    path("help/<slug:page>/", about.document, name="document"),
    path("api/docs/", about.api, name="api"),
]
