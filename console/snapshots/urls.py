"""The pages of snapshots and branches."""

from django.urls import path

from console.snapshots.views import branches, snapshots

app_name = "snapshots"
urlpatterns = [
    path("a/<account>/snapshots/", snapshots.index, name="index"),
    path("a/<account>/snapshots/new/", snapshots.new, name="new"),
    path("a/<account>/snapshots/schedule/", snapshots.schedule, name="schedule"),
    path("a/<account>/snapshots/named/<snapshot>/", snapshots.change, name="change"),
    path("a/<account>/snapshots/named/<snapshot>/delete/", snapshots.delete, name="delete"),
    path("a/<account>/snapshots/named/<snapshot>/restore/", snapshots.restore, name="restore"),
    path("a/<account>/snapshots/branch/", branches.new, name="new_branch"),
    path("a/<account>/snapshots/branch/sample/", branches.sample, name="sample"),
    path("a/<account>/snapshots/reset/", branches.reset, name="reset"),
]
