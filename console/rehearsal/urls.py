"""URLs of rehearsals."""

from django.urls import path

from console.rehearsal.views import rehearsals, sets

app_name = "rehearsal"
urlpatterns = [
    path("a/<account>/rehearsals/", rehearsals.index, name="index"),
    path("a/<account>/rehearsals/start/", rehearsals.start, name="start"),
    path("a/<account>/rehearsals/allow/", rehearsals.allow, name="allow"),
    path("a/<account>/rehearsals/new-set/", sets.new, name="new_set"),
    path("a/<account>/rehearsals/sets/<name>/", sets.show, name="set"),
    path("a/<account>/rehearsals/sets/<name>/delete/", sets.delete, name="delete_set"),
    path("a/<account>/rehearsals/<int:number>/", rehearsals.show, name="show"),
    path("a/<account>/rehearsals/<int:number>/stop/", rehearsals.stop, name="stop"),
    path("a/<account>/rehearsals/<int:number>/requests/", rehearsals.requests, name="requests"),
]
