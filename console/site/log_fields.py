"""Log fields for requests to the console or management API."""

import re
from typing import Any, Final

from django.http import HttpRequest
from django.utils.functional import LazyObject

from storage.domain.requests.cleaning import addressed_names

_ARGUMENT: Final = re.compile(r"<(?:\w+:)?(\w+)>")  # in a route


def log_fields(request: HttpRequest) -> dict[str, str]:
    """Return the fields of `storage.server.logs.REQUEST_FIELDS`; an unknown one is empty."""
    match = request.resolver_match
    return {
        "request_id": getattr(request, "number", ""),
        "user": _known_user(request),
        "account": addressed_names(match.kwargs).get("account", "") if match else "",
        "operation": match.view_name or "" if match else "",
    }


def describe_address(request: HttpRequest) -> str:
    """Return the address of a page for logs, with account and table but without keys and tokens."""
    match = request.resolver_match
    if match is None:
        return "an unknown address"
    names = addressed_names(match.kwargs)
    return "/" + _ARGUMENT.sub(lambda argument: names.get(argument[1], argument[0]), match.route)


def _known_user(request: HttpRequest) -> str:
    """Return the user's name if it is loaded already, as loading it now may fail."""
    user: Any = getattr(request, "user", None)  # the API has assigned the user of its token
    if isinstance(user, LazyObject):
        user = getattr(request, "_cached_user", None) or getattr(request, "_acached_user", None)
    return str(user) if user is not None and user.is_authenticated else ""
