"""URL paths of the management API."""

from typing import Any, Final

from django.urls import URLPattern, path

ACCOUNT: Final = "accounts/<str:account>"
TABLE: Final = f"{ACCOUNT}/tables/<str:table>"


def api_path(route: str, view_set: Any, name: str, **actions: str) -> URLPattern:
    """Route the methods of a path to the ``actions`` of a view set."""
    pattern: URLPattern = path(route, view_set.as_view(actions), name=f"api-{name}")
    return pattern
