"""URLs of the activity log."""

from django.urls import path

from console.activity.views import changes, revert, timeline, undo

app_name = "activity"
urlpatterns = [
    path("a/<account>/activity/", timeline.show_account_log, name="index"),
    path("a/<account>/activity/<int:number>/", timeline.show_account_entry, name="entry"),
    path("a/<account>/activity/changes/", changes.show, name="changes"),
    path("a/<account>/activity/histogram/", changes.show_histogram, name="histogram"),
    path("a/<account>/activity/revert/", revert.show, name="revert"),
    path("a/<account>/activity/export/", timeline.export_account_log, name="export"),
    path("a/<account>/t/<table>/history/", timeline.show_table_log, name="table"),
    path("activity/", timeline.show_server_log, name="server_index"),
    path("activity/<int:number>/", timeline.show_server_entry, name="server_entry"),
    path("activity/export/", timeline.export_server_log, name="server_export"),
    path("undo/<numbers>/", undo.undo, name="undo"),
]
