"""Deletes the selected rows of the grid, or everything that its query matches, with Undo."""

from typing import Final

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from console.entities.query_deletion import QueryDeletion, read_deletion
from console.entities.saving import Refusal, attempt, back_address
from console.grid import tokens
from console.grid.tokens import Scope, Selection
from console.site import notices
from console.site.access import actor_of, table_required
from console.site.responses import render_part, wants_part
from storage.domain.access.roles import Capability
from storage.domain.errors import StorageError
from storage.domain.filters.query import EntityQuery
from storage.domain.values.numbers import read_number
from storage.models import Table
from storage.operations.activity import activity
from storage.operations.entities import edits, entities

ASKED_ABOVE: Final = 10_000  # entities of a query, also where an account is not protected


@require_POST
@table_required(Capability.WRITE)
def delete(request: HttpRequest, table: Table) -> HttpResponse:
    """Delete the selected entities, all or none, or step by step everything that a query matches."""
    wanted = _selection(request)
    is_done = False
    if wanted is None or wanted.scope is Scope.TABLE:
        notices.notify_error(request, _("Select the entities to delete."))
    elif wanted.scope is Scope.QUERY:
        return _delete_query(request, table, wanted)
    elif not wanted.keys:
        notices.notify_error(request, _("Select at least one row."))
    elif table.account.protected and "confirmed" not in request.POST:
        return _ask(request, table, wanted, len(wanted.keys))
    else:
        is_done = _delete(request, table, wanted)
    return _answer(request, table, is_done=is_done)


def _answer(request: HttpRequest, table: Table, *, is_done: bool) -> HttpResponse:
    if wants_part(request):
        return render_part(
            request, "console/entities/deletion/confirm.html", "_done.html", {"is_done": is_done}
        )
    return HttpResponseRedirect(back_address(request, table))


# everything that a query matches


def _delete_query(request: HttpRequest, table: Table, wanted: Selection) -> HttpResponse:
    """Delete the next step, unless the user has to confirm it first, or stopped it."""
    deletion = read_deletion(request.POST, wanted.filter)
    total = read_number(request.POST.get("total", ""))
    if "confirmed" not in request.POST:
        total = entities.total(table, EntityQuery(filter=wanted.filter)).number
        if table.account.protected or total is None or total > ASKED_ABOVE:
            return _ask(request, table, wanted, total)
    if request.POST.get("action") == "stop":
        return _finish(request, table, deletion)
    done = attempt(lambda: deletion.step(table, actor_of(request)))
    if isinstance(done, Refusal):
        notices.notify_error(request, done.text)
        return _finish(request, table, deletion)
    deletion = done
    if deletion.is_finished:
        return _finish(request, table, deletion)
    context = {
        "table": table,
        "deletion": deletion,
        "filter": wanted.text,
        # an estimate may be too small
        "total": None if total is None else max(total, deletion.deleted),
        "next": back_address(request, table),
    }
    return render_part(request, "console/entities/deletion/confirm.html", "_progress.html", context)


def _finish(request: HttpRequest, table: Table, deletion: QueryDeletion) -> HttpResponse:
    text = ngettext("Deleted %(shown)s entity", "Deleted %(shown)s entities", deletion.deleted)
    text = notices.count_text(text, deletion.deleted)
    if deletion.can_undo:
        notices.notify_success(request, text, undo=activity.of_numbers(deletion.activities))
    elif deletion.activities:
        more = _("Undo it step by step in Activity.")
        notices.notify_success(request, f"{text}. {more}")
    elif deletion.is_finished:
        notices.notify_success(request, _("No entity matched, so nothing was deleted."))
    return _answer(request, table, is_done=True)


def _selection(request: HttpRequest) -> Selection | None:
    try:
        return tokens.read_selection(request.POST)
    except StorageError:
        return None


def _delete(request: HttpRequest, table: Table, wanted: Selection) -> bool:
    """Return whether the entities are deleted now."""
    done = attempt(lambda: edits.delete(table, wanted.keys, by=actor_of(request)))
    if isinstance(done, Refusal):
        notices.notify_error(request, done.text)
        return False
    if done is None:
        notices.notify_success(request, _("These entities were already deleted"))
    else:
        count = len(done.timestamps)
        text = ngettext("Deleted %(shown)s entity", "Deleted %(shown)s entities", count)
        notices.notify_success(request, notices.count_text(text, count), undo=done.activity)
    return True


def _ask(request: HttpRequest, table: Table, wanted: Selection, number: int | None) -> HttpResponse:
    """``number``: how many entities it is about, None if that is unknown."""
    context = {
        "table": table,
        "selection": wanted,
        "number": number,
        "keys": wanted.keys,
        "tokens": [tokens.encode_key(key) for key in wanted.keys],
        "next": back_address(request, table),
    }
    return render_part(request, "console/entities/deletion/confirm.html", "_ask.html", context)
