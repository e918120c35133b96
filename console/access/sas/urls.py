"""URLs of the SAS tokens of an account, and of the inspector."""

from django.urls import path

from console.access.sas.views import inspector, new, registry

app_name = "sas"
urlpatterns = [
    path("inspect/", inspector.index, name="inspector"),
    path("a/<account>/sas/", registry.index, name="index"),
    path("a/<account>/sas/export/", registry.export, name="export"),
    path("a/<account>/sas/new/", new.new, name="new"),
    path("a/<account>/sas/new/preview/", new.preview, name="preview"),
    path("a/<account>/sas/<fingerprint>/", registry.show, name="show"),
    path("a/<account>/sas/<fingerprint>/notes/", registry.describe, name="describe"),
    path("a/<account>/sas/<fingerprint>/block/", registry.block, name="block"),
    path("a/<account>/t/<table>/sas/", new.from_selection, name="range"),
]
