"""URLs of the history of entities."""

from django.urls import path

from console.history.views import entity

app_name = "history"
urlpatterns = [
    path("a/<account>/t/<table>/entity/history/", entity.history, name="entity"),
]
