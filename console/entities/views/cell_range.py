"""Changes several cells at once: pastes, fills down, clears."""

from itertools import islice

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from console.entities import cell_range, problems, staged
from console.entities.cell_range import CellRange, InvalidRange, UnreadableRange
from console.entities.staged import StagedChange
from console.entities.value_field import typed_input
from console.grid.cells import draw_or_absent
from console.grid.tokens import encode_key
from console.site import notices
from console.site.access import actor_of, table_required
from console.site.refusals import describe_refusal
from console.site.responses import render_part
from console.site.typed_text import field_text, local_now
from storage.domain.access.roles import Capability
from storage.domain.errors import ChangeSetError, ResourceNotFound, StorageError, UpdateConditionNotSatisfied
from storage.domain.values.edm import Edm
from storage.models import Table
from storage.operations.entities import edits


@require_POST
@table_required(Capability.WRITE)
def change(request: HttpRequest, table: Table) -> HttpResponse:
    """Change the ``cells`` by the ``action`` fill, clear or paste (of ``text``): all of them or none."""
    try:
        cells = cell_range.read_range(table, request.POST.get("cells", ""))
    except UnreadableRange:
        raise BadRequest from None
    try:
        changes = _changes(request, cells)
    except InvalidRange as refusal:
        return _refuse(request, str(refusal))
    if "stage" not in request.POST and changes:
        return _apply(request, table, changes)
    return _answer(request, changes)


def _changes(request: HttpRequest, cells: CellRange) -> list[StagedChange]:
    match request.POST.get("action"):
        case "fill":
            found = cells.fill()
        case "clear":
            found = cells.clear()
        case _:
            found = cells.paste(field_text(request.POST.get("text", "")), local_now())
    changes = list(islice(found, cell_range.LIMIT + 1))
    if len(changes) > cell_range.LIMIT:
        text = _("Up to %(shown)s cells can be changed at once. Nothing was changed.")
        raise InvalidRange(notices.count_text(text, cell_range.LIMIT))
    return changes


def _apply(request: HttpRequest, table: Table, changes: list[StagedChange]) -> HttpResponse:
    wanted = staged.changes(table, changes)
    try:
        applied = edits.apply(table, wanted, by=actor_of(request))
    except ChangeSetError as failure:
        if isinstance(failure.error, ResourceNotFound):
            return _refuse(request, problems.describe_deletion(table, wanted[failure.index].key), status=412)
        if isinstance(failure.error, UpdateConditionNotSatisfied):
            text = _(
                "Someone else changed these entities. Nothing was changed. Check the new values and try again."
            )
            return _refuse(request, text, status=412)
        return _refuse(request, describe_refusal(failure.error))
    except StorageError as error:
        return _refuse(request, describe_refusal(error))
    notices.notify_success(request, _text(changes), undo=applied.activity)
    return _answer(request, [])


def _text(changes: list[StagedChange]) -> str:
    if len(changes) == 1:
        text = _("%(property)s saved") if changes[0].value is not None else _("%(property)s removed")
        return text % {"property": changes[0].name}
    text = ngettext("Changed %(shown)s cell", "Changed %(shown)s cells", len(changes))
    return notices.count_text(text, len(changes))


def _refuse(request: HttpRequest, text: str, status: int = 422) -> HttpResponse:
    notices.notify_error(request, text)
    return _answer(request, [], status=status)


def _answer(request: HttpRequest, changes: list[StagedChange], status: int = 200) -> HttpResponse:
    """The toasts, and the changes that the page keeps until they are saved."""
    cells = [
        {
            "markup": draw_or_absent(change.value).markup,
            "key": encode_key(change.key),
            "property": change.name,
            "etag": change.etag,
            "typed": typed_input(change.value, Edm.STRING),
            "is_removed": change.value is None,
        }
        for change in changes
    ]
    part = "console/entities/cell/_staged_cells.html"
    return render_part(request, part, part, {"cells": cells}, status=status)
