"""The addresses of the record of activity."""

from django.urls import path

from console.views import activity, undo

urlpatterns = [
    path("a/<account>/activity/", activity.of_account, name="activity"),
    path("a/<account>/activity/<int:number>/", activity.entry, name="activity_entry"),
    path("a/<account>/activity/export/", activity.export, name="activity_export"),
    path("activity/", activity.of_server, name="server_activity"),
    path("activity/<int:number>/", activity.server_entry, name="server_activity_entry"),
    path("activity/export/", activity.server_export, name="server_activity_export"),
    path("undo/<numbers>/", undo.undo, name="undo"),
]
