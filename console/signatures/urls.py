"""Shared access signatures of an account."""

from django.urls import path

from console.views import sas, sas_new

urlpatterns = [
    path("sas/", sas.index, name="sas"),
    path("sas/export/", sas.export, name="sas_export"),
    path("sas/new/", sas_new.new, name="sas_new"),
    path("sas/new/preview/", sas_new.preview, name="sas_preview"),
    path("sas/<fingerprint>/", sas.show, name="sas_token"),
    path("sas/<fingerprint>/notes/", sas.describe, name="sas_describe"),
    path("sas/<fingerprint>/block/", sas.block, name="sas_block"),
    path("t/<table>/sas/", sas_new.of_selection, name="sas_range"),
]
