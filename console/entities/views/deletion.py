"""Deletion of selected rows, with undo; whole queries are deleted on a hook's page."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from console.entities.saving import Refusal, attempt, back_address
from console.grid import tokens
from console.grid.tokens import Scope, Selection
from console.site import toasts
from console.site.access import actor_of, table_required
from console.site.responses import render_page, render_part, wants_part
from storage.core import registry
from storage.core.subject import Hook
from storage.domain.access.roles import Capability
from storage.domain.errors import StorageError
from storage.entities import edits
from storage.models import Table


@require_POST
@table_required(Capability.WRITE)
def delete(request: HttpRequest, table: Table) -> HttpResponse:
    """Delete the selected entities, all or none; redirect to the deletion page for a whole query."""
    selection = _selection(request)
    is_done = False
    if selection is None or selection.scope is Scope.TABLE:
        toasts.notify_error(request, _("Select the entities to delete."))
    elif selection.scope is Scope.QUERY:
        if pages := registry.hooks(Hook.DELETION_PAGE):
            return redirect(pages[0](table, selection.text))
        toasts.notify_error(request, _("Select the entities to delete."))
    elif not selection.keys:
        toasts.notify_error(request, _("Select at least one row."))
    elif table.account.protected and "confirmed" not in request.POST:
        return _ask(request, table, selection)
    else:
        is_done = _delete(request, table, selection)
    return _answer(request, table, is_done=is_done)


def _answer(request: HttpRequest, table: Table, *, is_done: bool) -> HttpResponse:
    if wants_part(request):
        return render_part(
            request, "console/entities/deletion/confirm.html", "_done.html", {"is_done": is_done}
        )
    return HttpResponseRedirect(back_address(request, table))


def _selection(request: HttpRequest) -> Selection | None:
    try:
        return tokens.read_selection(request.POST)
    except StorageError:
        return None


def _delete(request: HttpRequest, table: Table, selection: Selection) -> bool:
    """Delete the selected entities; return whether that succeeded."""
    done = attempt(lambda: edits.delete(table, selection.keys, by=actor_of(request)))
    if isinstance(done, Refusal):
        toasts.notify_error(request, done.text)
        return False
    if done is None:
        toasts.notify_success(request, _("These entities were already deleted"))
    else:
        count = len(done.edits)
        text = ngettext("Deleted %(shown)s entity", "Deleted %(shown)s entities", count)
        text = toasts.count_text(text, count)
        toasts.notify_success(request, _add_undo_days(text, table) if count > 1 else text, undo=done.activity)
    return True


def _add_undo_days(text: str, table: Table) -> str:
    days = table.account.history_days
    if not days:
        return text
    sentence = ngettext(
        "%(text)s. You can undo this for %(days)s day.",
        "%(text)s. You can undo this for %(days)s days.",
        days,
    )
    return sentence % {"text": text, "days": days}


def _ask(request: HttpRequest, table: Table, selection: Selection) -> HttpResponse:
    context = {
        "table": table,
        "keys": selection.keys,
        "tokens": [tokens.encode_key(key) for key in selection.keys],
        "next": back_address(request, table),
    }
    return render_page(request, "console/entities/deletion/confirm.html", context)
