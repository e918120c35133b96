"""What the server's log says of a request to the console or the management API, beside its message."""

from typing import Any

from django.http import HttpRequest
from django.utils.functional import LazyObject


def log_fields(request: HttpRequest) -> dict[str, str]:
    """Return the fields of `storage.server.logs.REQUEST_FIELDS`; an unknown one is empty."""
    match = request.resolver_match
    return {
        "request_id": getattr(request, "number", ""),
        "user": _known_user(request),
        "account": str(match.kwargs.get("account", "")) if match else "",
        "operation": match.view_name or "" if match else "",
    }


def _known_user(request: HttpRequest) -> str:
    """The name of the user, if something has asked who it is: asking now may fail as the request did."""
    user: Any = getattr(request, "_cached_user", None) or getattr(request, "_acached_user", None)
    if user is None and not isinstance(assigned := getattr(request, "user", None), LazyObject):
        user = assigned  # by the authentication of the API
    return str(user) if user is not None and user.is_authenticated else ""
