"""Page of the server's backups, and the warning about them, for operators."""

from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from console.models import User
from console.site.access import admin_required, user_of
from storage.backups import archive, backups
from storage.backups.archive import Problem
from storage.backups.last_backup import Kind

_KINDS: Final = {
    Kind.FILES: _("full"),
    Kind.INCREMENTAL: _("incremental"),
    Kind.DUMP: _("dump of the external database"),
}

_PROBLEMS: Final = {
    Problem.UNREADABLE: _("The archive cannot be read."),
    Problem.FAILING: _(
        "The log cannot be archived. The database keeps it until that succeeds, up to a limit."
    ),
    Problem.LAGGING: _("Some of the log has waited for more than five minutes."),
    Problem.INTERRUPTED: _("Part of the log is missing. The server is creating a new base backup."),
    Problem.NO_BASE: _("There is no base backup yet. The server is creating one."),
    Problem.OVERDUE: _("The last base backup is older than twice the interval."),
    Problem.TOO_LARGE: _("The archive is larger than its limit."),
    Problem.STALE: _("The server has not looked at the archive for more than five minutes."),
}
# an alarm on the home page, unlike what passes by itself
_ALARMS: Final = frozenset(Problem) - {Problem.NO_BASE, Problem.INTERRUPTED}


@require_safe
@never_cache
@admin_required
def show(request: HttpRequest) -> HttpResponse:
    context = {
        **alarm(user_of(request)),
        "kinds": _KINDS,
        "archive_problems": _PROBLEMS,
        "schedule": settings.OPTIONS.backups,
        "now": timezone.now(),
    }
    return render(request, "console/backups/index.html", context)


def alarm_values(page: Mapping[str, Any]) -> dict[str, Any]:
    """Return the template context of the warning on the home page."""
    return {"on_home": True, **alarm(user_of(page["request"]))}


def alarm(user: User) -> dict[str, Any]:
    """Return the template context of the warning, empty unless the user is an admin."""
    if not user.is_admin:
        return {}
    state, archived = backups.state(), archive.summary()
    problems = () if archived is None else archived.problems
    return {
        "backups": state,
        "is_backup_missing": archived is None and backups.is_missing(state),
        "archive": archived,
        "is_archive_failing": any(it.problem in _ALARMS for it in problems),
    }
