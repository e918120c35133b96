"""What can be done to entities in the grid of a table."""

from django.urls import path

from console.views import cell, deletion, value

urlpatterns = [
    path("cell/", cell.edit, name="entities_cell"),
    path("cell/check/", cell.check, name="entities_check"),
    path("delete/", deletion.delete, name="entities_delete"),
    path("value/", value.show, name="entities_value"),
]
