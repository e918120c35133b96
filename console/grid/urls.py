"""URLs of a grid's columns, layouts, copies, comparison and export."""

from django.urls import path

from console.grid.views import columns, comparison, copies, exports, live

app_name = "grid"
urlpatterns = [
    path("a/<account>/t/<table>/columns/", columns.choose, name="columns"),
    path("a/<account>/t/<table>/layouts/", columns.save_layout, name="layouts"),
    path("a/<account>/t/<table>/layouts/<int:layout>/delete/", columns.delete_layout, name="layout_delete"),
    path("a/<account>/t/<table>/copy/", copies.copy, name="copy"),
    path("a/<account>/t/<table>/compare/", comparison.compare, name="compare"),
    path("a/<account>/t/<table>/live/", live.stream, name="live"),
    path("a/<account>/t/<table>/export/", exports.export, name="export"),
]
