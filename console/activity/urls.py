"""The addresses of the record of activity."""

from django.urls import path

from console.activity.views import activity, undo

app_name = "activity"
urlpatterns = [
    path("a/<account>/activity/", activity.of_account, name="index"),
    path("a/<account>/activity/<int:number>/", activity.entry, name="entry"),
    path("a/<account>/activity/export/", activity.export, name="export"),
    path("activity/", activity.of_server, name="server_index"),
    path("activity/<int:number>/", activity.server_entry, name="server_entry"),
    path("activity/export/", activity.server_export, name="server_export"),
    path("undo/<numbers>/", undo.undo, name="undo"),
]
