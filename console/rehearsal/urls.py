"""URLs of rehearsal."""

from django.urls import URLPattern

app_name = "rehearsal"
urlpatterns: list[URLPattern] = []
