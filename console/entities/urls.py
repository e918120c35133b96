"""URLs of the entities of a table."""

from django.urls import path

from console.entities.views import browse, cell, cells, deletion, entity, key, new, paste, value

app_name = "entities"
urlpatterns = [
    path("a/<account>/t/<table>/", browse.show, name="index"),
    path("a/<account>/t/<table>/entity/", entity.entity, name="show"),
    path("a/<account>/t/<table>/entity/new/", new.new, name="new"),
    path("a/<account>/t/<table>/entity/key/", key.change, name="key"),
    path("a/<account>/t/<table>/entity/row/", entity.row, name="row"),
    path("a/<account>/t/<table>/cell/", cell.edit, name="cell"),
    path("a/<account>/t/<table>/cells/", cells.change, name="cells"),
    path("a/<account>/t/<table>/cell/check/", cell.check, name="check_cell"),
    path("a/<account>/t/<table>/delete/", deletion.delete, name="delete"),
    path("a/<account>/t/<table>/paste/", paste.index, name="paste"),
    path("a/<account>/t/<table>/staged/", cells.review, name="staged"),
    path("a/<account>/t/<table>/value/", value.show, name="value"),
    path("a/<account>/t/<table>/count/", browse.count, name="count"),
    path("a/<account>/t/<table>/why-empty/", browse.explain_empty, name="why_empty"),
]
