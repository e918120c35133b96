"""URLs of an account's tables and their settings."""

from django.urls import path

from console.tables.views import changes, exports, indexes, listing, schema, settings

app_name = "tables"
urlpatterns = [
    path("a/<account>/", listing.index, name="index"),
    path("a/<account>/tables/sizes/", listing.sizes, name="sizes"),
    path("a/<account>/tables/new/", changes.new, name="new"),
    path("a/<account>/tables/sample/", changes.sample, name="sample"),
    path("a/<account>/tables/delete/", changes.delete, name="delete"),
    path("a/<account>/tables/tags/", changes.add_tags, name="tag"),
    path("a/<account>/tables/tags/remove/", changes.remove_tags, name="untag"),
    path("a/<account>/tables/export/", exports.export, name="export"),
    path("a/<account>/tables/restore/", changes.restore, name="restore"),
    path("a/<account>/t/<table>/schema/", schema.show, name="schema"),
    path("a/<account>/t/<table>/schema/index/", indexes.show, name="index_state"),
    path("a/<account>/t/<table>/schema/index/add/", indexes.add, name="add_index"),
    path("a/<account>/t/<table>/schema/index/drop/", indexes.drop, name="drop_index"),
    path("a/<account>/t/<table>/settings/", settings.show, name="settings"),
    path("a/<account>/t/<table>/settings/notes/", settings.save_notes, name="notes"),
    path("a/<account>/t/<table>/settings/rename/", settings.rename, name="rename"),
    path("a/<account>/t/<table>/settings/copy/", settings.copy, name="copy"),
]
