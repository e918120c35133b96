"""The tables of an account, and the settings of one."""

from django.urls import path

from console.tables import views

app_name = "tables"
urlpatterns = [
    path("a/<account>/", views.index, name="index"),
    path("a/<account>/tables/sizes/", views.sizes, name="sizes"),
    path("a/<account>/tables/new/", views.new, name="new"),
    path("a/<account>/tables/sample/", views.sample, name="sample"),
    path("a/<account>/tables/delete/", views.delete, name="delete"),
    path("a/<account>/tables/tags/", views.tag, name="tag"),
    path("a/<account>/tables/restore/", views.restore, name="restore"),
    path("a/<account>/t/<table>/settings/", views.settings, name="settings"),
    path("a/<account>/t/<table>/settings/notes/", views.note, name="notes"),
]
