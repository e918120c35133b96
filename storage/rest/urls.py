"""URL paths of the management API, included by the console under /ui/api/v1/."""

from django.urls import path

from storage.core import registry
from storage.rest import documentation

urlpatterns = [
    path("schema", documentation.show, name="api-schema"),
    *(pattern for module in registry.api_modules() for pattern in module.urlpatterns),
]
