"""URLs of the query bar and of saved queries."""

from django.urls import path

from console.queries.views import code, editor, facets, library, saved

app_name = "queries"
urlpatterns = [
    path("a/<account>/t/<table>/facets/", facets.show, name="facets"),
    path("a/<account>/t/<table>/code/", code.show, name="code"),
    path("a/<account>/t/<table>/query/check/", editor.check, name="check"),
    path("a/<account>/t/<table>/query/rows/", editor.edit_conditions, name="rows"),
    path("a/<account>/t/<table>/query/known/", editor.names, name="known"),
    path("a/<account>/t/<table>/query/values/", editor.values, name="values"),
    path("a/<account>/t/<table>/query/cell/", editor.cell, name="cell"),
    path("a/<account>/queries/", library.index, name="index"),
    path("a/<account>/queries/forget/", library.clear_recent, name="forget"),
    path("a/<account>/t/<table>/queries/menu/", library.menu, name="menu"),
    path("a/<account>/t/<table>/queries/new/", saved.new, name="new"),
    path("a/<account>/t/<table>/q/<slug>/", saved.run, name="run"),
    path("a/<account>/t/<table>/q/<slug>/edit/", saved.edit, name="edit"),
    path("a/<account>/t/<table>/q/<slug>/update/", saved.update, name="update"),
    path("a/<account>/t/<table>/q/<slug>/delete/", saved.delete, name="delete"),
    path("a/<account>/t/<table>/q/<slug>/versions/", saved.versions, name="versions"),
]
