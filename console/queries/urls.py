"""The addresses of saved queries."""

from django.urls import path

from console.views import queries, saved, saved_edit, saved_versions

urlpatterns = [
    path("queries/", queries.index, name="queries"),
    path("queries/forget/", queries.forget, name="queries_forget"),
    path("t/<table>/queries/menu/", saved.menu, name="query_menu"),
    path("t/<table>/queries/new/", saved_edit.new, name="query_new"),
    path("t/<table>/q/<slug>/", saved.apply, name="query"),
    path("t/<table>/q/<slug>/edit/", saved_edit.edit, name="query_edit"),
    path("t/<table>/q/<slug>/update/", saved_edit.update, name="query_update"),
    path("t/<table>/q/<slug>/delete/", saved_versions.delete, name="query_delete"),
    path("t/<table>/q/<slug>/versions/", saved_versions.versions, name="query_versions"),
    path("t/<table>/q/<slug>/versions/<int:number>/restore/", saved_versions.restore, name="query_restore"),
]
