"""URLs of imports: the file, its columns, the check, and the import itself."""

from django.urls import path

from console.transfer import views

app_name = "transfer"
urlpatterns = [
    path("a/<account>/import/", views.start_new, name="start_new"),
    path("a/<account>/t/<table>/import/", views.start, name="start"),
    path("a/<account>/imports/<int:draft>/file/", views.upload, name="upload"),
    path("a/<account>/imports/<int:draft>/discard/", views.discard, name="discard"),
    path("a/<account>/imports/<int:draft>/columns/", views.map_columns, name="map"),
    path("a/<account>/imports/<int:draft>/check/", views.check, name="check"),
    path("a/<account>/imports/<int:draft>/repair/", views.repair, name="repair"),
    path("a/<account>/imports/<int:draft>/run/", views.run, name="run"),
]
