"""URLs of the comparison page."""

from django.urls import path

from console.compare.views import compare

app_name = "compare"
urlpatterns = [
    path("a/<account>/compare/", compare.show, name="index"),
    path("a/<account>/compare/side/", compare.picker, name="side"),
    path("a/<account>/compare/patch/", compare.patch, name="patch"),
    path("a/<account>/compare/apply/", compare.apply, name="apply"),
]
