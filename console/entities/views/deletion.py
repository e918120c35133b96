"""Deletes the selected rows of the grid at once, with Undo."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from console.grid import tokens
from console.grid.tokens import Scope, Selection
from console.site import notices
from console.site.access import actor_of, table_required
from console.site.addresses import is_console_path
from console.site.responses import render_part, wants_part
from storage.domain.access.roles import Capability
from storage.domain.errors import ChangeSetError, StorageError
from storage.models import Table
from storage.operations import edits


@require_POST
@table_required(Capability.WRITE)
def delete(request: HttpRequest, table: Table) -> HttpResponse:
    """Delete all selected entities or none; a protected account asks first."""
    wanted = _selection(request)
    is_done = False
    if wanted is None or wanted.scope is not Scope.ROWS:
        notices.notify_error(
            request, _("Select the rows to delete. All query results cannot be deleted at once.")
        )
    elif not wanted.keys:
        notices.notify_error(request, _("Select at least one row."))
    elif table.account.protected and "confirmed" not in request.POST:
        return _ask(request, table, wanted)
    else:
        is_done = _delete(request, table, wanted)
    if wants_part(request):
        return render_part(
            request, "console/entities/deletion/confirm.html", "_done.html", {"is_done": is_done}
        )
    return HttpResponseRedirect(_back(request, table))


def _selection(request: HttpRequest) -> Selection | None:
    try:
        return tokens.read_selection(request.POST)
    except StorageError:
        return None


def _delete(request: HttpRequest, table: Table, wanted: Selection) -> bool:
    """Return whether the entities are deleted now."""
    try:
        applied = edits.delete(table, wanted.keys, by=actor_of(request))
    except ChangeSetError as failure:
        notices.notify_error(request, failure.error.text)
    except StorageError as error:
        notices.notify_error(request, error.text)
    else:
        if applied is None:
            notices.notify_success(request, _("These entities were already deleted"))
        else:
            count = len(applied.timestamps)
            text = ngettext("Deleted %(shown)s entity", "Deleted %(shown)s entities", count)
            notices.notify_success(request, notices.count_text(text, count), undo=applied.activity)
        return True
    return False


def _ask(request: HttpRequest, table: Table, wanted: Selection) -> HttpResponse:
    context = {
        "table": table,
        "keys": wanted.keys,
        "tokens": [tokens.encode_key(key) for key in wanted.keys],
        "next": _back(request, table),
    }
    return render_part(request, "console/entities/deletion/confirm.html", "_ask.html", context)


def _back(request: HttpRequest, table: Table) -> str:
    wanted = request.POST.get("next", "")
    return (
        wanted
        if is_console_path(wanted)
        else reverse("entities:index", args=(table.account.name, table.name))
    )
