"""Replica status page, for operators."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from console.accounts.forms.settings import LEVELS
from console.site.access import admin_required
from console.site.responses import render_page
from console.site.tags import grouped
from storage.accounts import accounts
from storage.replicas import replicas
from storage.replicas.replicas import ReplicaProblem, ReplicaState, ReplicaStatus

_PROBLEMS: Final = {
    ReplicaProblem.NO_ANSWER: gettext_lazy("It does not answer. It is used again once it does."),
    ReplicaProblem.ACCEPTS_WRITES: gettext_lazy(
        "It accepts writes, so it is a primary. It is left out until it follows the other."
    ),
    ReplicaProblem.OTHER_DATABASE: gettext_lazy(
        "It is a replica of another database. Correct TABLERO_REPLICAS."
    ),
    ReplicaProblem.NOT_RECEIVING: gettext_lazy(
        "It receives nothing from the primary. See primary_conninfo and its log."
    ),
    ReplicaProblem.OTHER_TIMELINE: gettext_lazy(
        "It follows a former primary. Use pg_rewind, or copy the current primary."
    ),
}


@require_safe
@never_cache
@admin_required
def show(request: HttpRequest) -> HttpResponse:
    context = {
        "replicas": [
            (status, _synchronized_at(status), _PROBLEMS[status.problem] if status.problem else "")
            for status in replicas.states()
        ],
        "limit": settings.DECLARED_OPTIONS["REPLICA_LAG"],
        "levels": list(_accounts_by_level()),
    }
    return render_page(request, "console/replicas/index.html", context)


def _synchronized_at(status: ReplicaStatus) -> datetime | None:
    at = status.synchronized_at
    return None if at is None else datetime.fromtimestamp(at, UTC)


def _accounts_by_level() -> Iterator[tuple[Promise, int]]:
    """Yield the consistency levels in use, strongest first, with the number of accounts."""
    counts = accounts.count_by_consistency()
    for level, label in LEVELS:
        if level in counts:
            yield label, counts[level]


def find_warnings(*, is_admin: bool) -> Iterator[tuple[str, str, str]]:
    """Yield warnings about unused replicas, with a link for admins."""
    states = replicas.states()
    left_out = sum(status.state is not ReplicaState.IN_USE for status in states)
    if left_out:
        text = ngettext(
            "%(number)s replica of %(total)s is not in use. Other servers answer its reads.",
            "%(number)s replicas of %(total)s are not in use. Other servers answer their reads.",
            left_out,
        )
        page = (reverse("replicas:index"), _("Replicas")) if is_admin else ("", "")
        yield text % {"number": grouped(left_out), "total": grouped(len(states))}, *page
