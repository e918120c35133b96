"""What can be done to the entities of a table, in their grid and one by one."""

from django.urls import path

from console.views import cell, deletion, entity, entity_new, paste, staged, value

urlpatterns = [
    path("entity/", entity.entity, name="entity"),
    path("entity/new/", entity_new.new, name="entity_new"),
    path("entity/key/", entity_new.key, name="entity_key"),
    path("entity/row/", entity.row, name="entity_row"),
    path("cell/", cell.edit, name="entities_cell"),
    path("cell/check/", cell.check, name="entities_check"),
    path("delete/", deletion.delete, name="entities_delete"),
    path("paste/", paste.index, name="entities_paste"),
    path("staged/", staged.review, name="entities_staged"),
    path("value/", value.show, name="entities_value"),
]
