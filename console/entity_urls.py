"""What can be done to the entities of a table, in their grid and one by one."""

from django.urls import path

from console.views import (
    cell,
    code,
    columns,
    comparison,
    copies,
    deletion,
    entities,
    entity,
    entity_key,
    entity_new,
    exports,
    paste,
    query,
    staged,
    value,
)

urlpatterns = [
    path("entity/", entity.entity, name="entity"),
    path("entity/new/", entity_new.new, name="entity_new"),
    path("entity/key/", entity_key.change, name="entity_key"),
    path("entity/row/", entity.row, name="entity_row"),
    path("cell/", cell.edit, name="entities_cell"),
    path("cell/check/", cell.check, name="entities_check"),
    path("delete/", deletion.delete, name="entities_delete"),
    path("paste/", paste.index, name="entities_paste"),
    path("staged/", staged.review, name="entities_staged"),
    path("value/", value.show, name="entities_value"),
    path("count/", entities.count, name="entities_count"),
    path("code/", code.show, name="query_code"),
    path("query/check/", query.check, name="query_check"),
    path("query/rows/", query.rows, name="query_rows"),
    path("query/select/", query.select, name="query_select"),
    path("query/known/", query.known, name="query_known"),
    path("query/values/", query.values, name="query_values"),
    path("query/cell/", query.cell, name="query_cell"),
    path("columns/", columns.choose, name="entities_columns"),
    path("layouts/", columns.save_layout, name="layouts"),
    path("layouts/<int:layout>/delete/", columns.delete_layout, name="layout_delete"),
    path("copy/", copies.copy, name="entities_copy"),
    path("compare/", comparison.compare, name="entities_compare"),
    path("export/", exports.export, name="entities_export"),
]
