"""URLs of presence."""

from django.urls import path

from console.presence import views

app_name = "presence"
urlpatterns = [path("a/<account>/t/<table>/presence/", views.move, name="move")]
