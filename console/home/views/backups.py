"""The backups of the server, and the alarm about them, for those who look after the server."""

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
from storage.operations.health import backups
from storage.operations.health.last_backup import Kind

_KINDS: Final = {
    Kind.FILES: _("full"),
    Kind.INCREMENTAL: _("incremental"),
    Kind.DUMP: _("dump of the external database"),
}


@require_safe
@never_cache
@admin_required
def show(request: HttpRequest) -> HttpResponse:
    context = {
        **alarm(user_of(request)),
        "kinds": _KINDS,
        "schedule": settings.OPTIONS.backups,
        "now": timezone.now(),
    }
    return render(request, "console/home/backups.html", context)


def alarm(user: User) -> dict[str, Any]:
    """Return what the alarm needs, which only admins see."""
    if not user.is_admin:
        return {}
    found = backups.state()
    return {"backups": found, "is_backup_missing": backups.is_missing(found)}
