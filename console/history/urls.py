"""URLs of the history of entities."""

from django.urls import path

from console.history.views import changed, entity, travel

app_name = "history"
urlpatterns = [
    path("a/<account>/t/<table>/entity/history/", entity.history, name="entity"),
    path("a/<account>/t/<table>/entity/changed/", changed.show, name="changed"),
    path("a/<account>/t/<table>/past/", travel.go, name="past"),
    path("a/<account>/t/<table>/past/histogram/", travel.histogram, name="histogram"),
]
