"""Views that change several cells at once: paste, fill, clear, or save staged changes."""

from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from console.entities import cell_changes, problems
from console.entities.cell_changes import CellChange
from console.entities.saving import Refusal, back_address, save
from console.grid.cells import draw_or_absent
from console.site import toasts
from console.site.access import table_required
from console.site.responses import render_page, render_part, wants_part
from console.site.typed_text import field_text, input_context
from storage.domain.access.roles import Capability
from storage.domain.entities.changes import Change
from storage.domain.entities.entity import EntityKey
from storage.models import Table

SAVED = 204  # the page drops its staged changes and reloads


# a rectangle


@require_POST
@table_required(Capability.WRITE)
def change(request: HttpRequest, table: Table) -> HttpResponse:
    """Change the ``cells`` by the ``action`` fill, clear or paste (of ``text``), all or none."""
    cells = cell_changes.read_range(table, request.POST.get("cells", ""))
    text = field_text(request.POST.get("text", ""))
    try:
        changes = cells.change(request.POST.get("action", ""), text, input_context(table.account))
    except ValidationError as refusal:
        return _refuse(request, str(refusal.message))
    if "stage" in request.POST or not changes:
        return _answer(request, changes)
    entity_changes = cell_changes.changes_of(table, changes)
    done = save(request, table, entity_changes)
    if isinstance(done, Refusal):
        return _refuse(request, _reason(table, entity_changes, done), status=412 if done.is_conflict else 422)
    toasts.notify_success(request, _text(changes), undo=done.activity)
    return _answer(request, [])


def _reason(table: Table, entity_changes: list[Change], refusal: Refusal) -> str:
    if refusal.index is not None and refusal.is_of_deleted:
        return problems.describe_deletion(table, entity_changes[refusal.index].key)
    if refusal.is_conflict:
        return _(
            "Someone else changed these entities. Nothing was changed. Check the new values and try again."
        )
    return refusal.text


def _text(changes: list[CellChange]) -> str:
    if len(changes) == 1:
        text = _("%(property)s saved") if changes[0].value is not None else _("%(property)s removed")
        return text % {"property": changes[0].name}
    text = ngettext("Changed %(shown)s cell", "Changed %(shown)s cells", len(changes))
    return toasts.count_text(text, len(changes))


def _refuse(request: HttpRequest, text: str, status: int = 422) -> HttpResponse:
    toasts.notify_error(request, text)
    return _answer(request, [], status=status)


def _answer(request: HttpRequest, changes: list[CellChange], status: int = 200) -> HttpResponse:
    """Respond with toasts and changes to stage in the page."""
    part = "console/entities/cell/_staged_cells.html"
    return render_part(request, part, part, {"cells": [one.kept for one in changes]}, status=status)


# collected changes


@require_POST
@table_required(Capability.WRITE)
def review(request: HttpRequest, table: Table) -> HttpResponse:
    """Show the staged changes, or apply them with ``apply``, all or none."""
    kept = cell_changes.read_kept(request.POST.get("changes", ""), input_context(table.account))
    if "apply" not in request.POST or not kept:
        return _show(request, table, kept, {})
    changes = cell_changes.changes_of(table, kept)
    done = save(request, table, changes)
    if isinstance(done, Refusal):
        refused = changes if done.index is None else [changes[done.index]]
        return _show(request, table, kept, {one.key: done.text for one in refused}, status=409)
    text = ngettext("Saved %(shown)s change", "Saved %(shown)s changes", len(kept))
    toasts.notify_success(request, toasts.count_text(text, len(kept)), undo=done.activity)
    if wants_part(request):
        return HttpResponse(status=SAVED)
    return HttpResponseRedirect(back_address(request, table))


def _show(
    request: HttpRequest,
    table: Table,
    kept: list[CellChange],
    errors: dict[EntityKey, str],
    status: int = 200,
) -> HttpResponse:
    lines = cell_changes.review(table, kept, errors)
    context = {
        "table": table,
        "lines": [(line, draw_or_absent(line.now), draw_or_absent(line.staged.value)) for line in lines],
        "failed": sum(bool(line.error) for line in lines),
        "changes": request.POST.get("changes", ""),
    }
    return render_page(request, "console/entities/staged/review.html", context, status=status)
