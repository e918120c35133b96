"""Error pages; those for server errors do not use the database."""

import logging
import sys
from collections.abc import Mapping
from typing import Final

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import DisallowedRedirect, RequestDataTooBig
from django.db import DataError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.urls import Resolver404, resolve, reverse

from console.site import appearance, rate_limits
from console.site.access import AccountNotShown, RoleNeeded, account_context, user_of, users_with_role
from console.site.log_fields import describe_address, log_fields
from console.site.responses import is_script
from storage.accounts import quotas
from storage.core.quotas import DOWNLOADS
from storage.domain.errors import OperationTimedOut, ServerBusy
from storage.domain.requests.cleaning import clean_method
from storage.health import release
from storage.history import last_change
from storage.history.last_change import TableDeletion
from storage.people import members

logger = logging.getLogger(__name__)

UNAVAILABLE = (OperationalError, InterfaceError, OperationTimedOut, ServerBusy)  # the database
PAUSE = 5  # seconds until the page reloads itself


PROBLEM: Final = "X-Tablero-Problem"  # tells a script that the answer is a message, not a part of its page
RENEWAL: Final = "X-Tablero-Token"  # tells a script to fetch a new CSRF token


@login_not_required
def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if isinstance(exception, RequestDataTooBig):
        size = int(request.headers.get("Content-Length") or 0)
        context = {"limit": settings.DATA_UPLOAD_MAX_MEMORY_SIZE, "size": size}
        return _render(request, "413.html", context, status=413)
    return _render(request, "400.html", {}, status=400)


@login_not_required
def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Render the page for a missing role, with the people who have it."""
    context: dict[str, object] = {"reason": str(exception)}
    if isinstance(exception, RoleNeeded):
        context["people"] = users_with_role(exception)
    return _render(request, "403.html", context, status=403)


@login_not_required
def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Render the page for a missing resource, with the reason if known: a deleted table or lost membership."""
    if isinstance(exception, AccountNotShown) and members.was_removed(user_of(request), exception.account):
        return _render(request, "404_account.html", {"lost": exception.account.name}, status=404)
    if (address := _find_renamed(request)) is not None:
        # forms and parts of a page that was opened before go on under the new name
        is_kept = request.method != "GET" or is_script(request)
        try:
            return HttpResponseRedirect(address, preserve_request=is_kept)
        except DisallowedRedirect as error:  # too long
            return bad_request(request, error)
    deletion = _find_deletion(request)
    if deletion is None:
        return _render(request, "404.html", {}, status=404)
    context = {"deletion": deletion, "next": _table_address(request)}
    return _render(request, "404_table.html", context, status=404)


def _find_renamed(request: HttpRequest) -> str | None:
    """Return the same address of a table that was renamed, for users with access to its account."""
    current, match = account_context(request), request.resolver_match
    if current is None or match is None or "table" not in match.kwargs:
        return None
    name = last_change.renamed_to(current.account, match.kwargs["table"])
    if name is None:
        return None
    names = match.kwargs | {"account": current.account.name, "table": name}
    return reverse(match.view_name, kwargs=names, query=request.GET)


def _find_deletion(request: HttpRequest) -> TableDeletion | None:
    """Return the deletion of the table in the address, for users with access to its account."""
    current, match = account_context(request), request.resolver_match
    if current is None or match is None or "table" not in match.kwargs:
        return None
    return last_change.of_table(current.account, match.kwargs["table"])


def _table_address(request: HttpRequest) -> str:
    """Return the address to show after restoring the table: this page, or the grid for partial requests."""
    if request.method == "GET" and not is_script(request):
        return request.get_full_path()
    current, match = account_context(request), request.resolver_match
    assert current is not None
    assert match is not None
    return reverse("entities:index", args=(current.account.name, match.kwargs["table"]))


def not_allowed(request: HttpRequest) -> HttpResponse:
    """Render a link to the parent page for a GET on an address that only takes forms, as after a reload."""
    path = request.path
    while (path := path.rstrip("/").rpartition("/")[0] + "/") and not _is_address(path):
        pass
    return _render(request, "405.html", {"parent": path}, status=405)


def _is_address(path: str) -> bool:
    try:
        resolve(path)
    except Resolver404:
        return False
    return True


@login_not_required
def too_many(request: HttpRequest) -> HttpResponse:
    seconds = rate_limits.longest_wait(request)
    response = _render(request, "429.html", {"seconds": seconds}, status=429)
    if seconds:
        response["Retry-After"] = str(seconds)
    return response


def too_many_downloads(request: HttpRequest) -> HttpResponse:
    response = _render(request, "429_downloads.html", {"limit": quotas.limit(DOWNLOADS)}, status=429)
    response["Retry-After"] = "30"
    return response


@login_not_required
def failed(request: HttpRequest) -> HttpResponse:
    number = getattr(request, "number", "")
    error = sys.exception()
    if isinstance(error, UNAVAILABLE):
        response = _render_bare(request, "503.html", {"pause": PAUSE}, status=503)
        response["Retry-After"] = str(PAUSE)
        return response
    if isinstance(error, DataError) and "NUL" in str(error):
        # clients send malformed data in any part of a request; a cookie may break the session, so its user
        # stays unread
        return _render_bare(request, "400.html", {}, status=400)
    logger.error(
        "%s %s failed: request %s",
        clean_method(request.method or ""),
        describe_address(request),
        number,
        exc_info=error,
        extra=log_fields(request),
    )
    response = _render_bare(request, "500.html", {"number": number}, status=500)
    response._has_been_logged = True  # type: ignore[attr-defined]  # by Django, without the fields
    return response


def outdated(request: HttpRequest) -> HttpResponse:
    """Respond that a newer version has upgraded the database."""
    return _render_bare(request, "outdated.html", {"version": release.version()}, status=503)


@login_not_required
def untrusted(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Respond to a form with an invalid or expired CSRF token."""
    response = _render(request, "403_csrf.html", {}, status=403)
    if is_script(request):
        response[RENEWAL] = "expired"
    return response


def _render(request: HttpRequest, template: str, context: Mapping[str, object], status: int) -> HttpResponse:
    """Render an error page, or a toast for scripts, whose page stays."""
    layout = "framed_error.html" if _has_frame(request) else _layout(request)
    return _respond(request, render_to_string(template, {"layout": layout, **context}, request), status)


def _has_frame(request: HttpRequest) -> bool:
    """Return whether to render the error within the layout of signed-in users."""
    user = getattr(request, "user", None)  # a request that fails early has none yet
    return user is not None and user.is_authenticated and not is_script(request)


def _render_bare(
    request: HttpRequest, template: str, context: Mapping[str, object], status: int
) -> HttpResponse:
    """Render without context processors, as one reads the user from the database."""
    seen = {"request": request, "appearance": appearance.read(request), "languages": settings.LANGUAGES}
    return _respond(
        request, render_to_string(template, {"layout": _layout(request), **seen, **context}), status
    )


def _layout(request: HttpRequest) -> str:
    return "problem.html" if is_script(request) else "error.html"


def _respond(request: HttpRequest, text: str, status: int) -> HttpResponse:
    return HttpResponse(text, status=status, headers={PROBLEM: str(status)} if is_script(request) else {})
