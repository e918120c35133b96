"""URLs of design."""

from django.urls import URLPattern

app_name = "design"
urlpatterns: list[URLPattern] = []
