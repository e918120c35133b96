"""URLs of jobs."""

from django.urls import path

from console.jobs import views

app_name = "jobs"
urlpatterns = [
    path("jobs/", views.index, name="index"),
    path("jobs/tray/", views.show_tray, name="tray"),
    path("jobs/tray/clear/", views.clear_tray, name="clear_tray"),
    path("jobs/<int:number>/", views.show, name="show"),
    path("jobs/<int:number>/cancel/", views.cancel, name="cancel"),
    path("jobs/<int:number>/pause/", views.pause, name="pause"),
    path("jobs/<int:number>/resume/", views.resume, name="resume"),
    path("jobs/<int:number>/files/<int:file>/", views.download, name="file"),
]
