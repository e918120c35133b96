"""Page that edits or deletes all entities of a query: form, preview and start of the job."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from console import snippets
from console.bulk_edit.draft import BulkEditDraft, read_draft, write_keys
from console.bulk_edit.preview import KINDS, PreviewView
from console.entities.typed_input import TYPES
from console.grid import tokens
from console.grid.tokens import Scope
from console.queries.values import property_types
from console.site.access import RoleNeeded, actor_of, role_of, table_page, user_of
from console.site.refusals import describe_refusal, mark_characters
from console.site.responses import see_other, wants_part
from console.site.toasts import notify_error, notify_success
from console.snippets.connections import api_address
from storage.bulk_edit import bulk_edit_jobs, bulk_edit_previews, bulk_edits
from storage.bulk_edit.bulk_edit_previews import BulkEditPreview
from storage.bulk_edit.bulk_edits import BulkEditRefused
from storage.domain.access.roles import Capability, may
from storage.domain.errors import StorageError
from storage.domain.refusals import Refused
from storage.domain.values.numbers import read_number
from storage.editing.bulk_edit import InvalidOperation, Presence
from storage.editing.expressions.functions import FUNCTIONS
from storage.entities import entities
from storage.jobs import jobs
from storage.models import Table
from storage.tables import tables

_TABLES_OFFERED: Final = 1000
_WHILE_TYPING: Final = timedelta(seconds=1.5)
_newest: Final[dict[tuple[int, int], object]] = {}  # previews that are computed, by user and table
PRESENCES: Final = (
    ("", gettext_lazy("All")),
    (Presence.ABSENT.value, gettext_lazy("Where it is missing")),
    (Presence.PRESENT.value, gettext_lazy("Where it is present")),
)


@require_http_methods(["GET", "HEAD", "POST"])
@table_page(Capability.WRITE)
def show(request: HttpRequest, table: Table) -> HttpResponse:
    """Show the form or handle its pressed button; only "run" starts the edit."""
    if request.method != "POST":
        return _show(request, table, read_draft(request.GET, table), {})
    if "scope" in request.POST:
        return _begin(request, table)
    draft = read_draft(request.POST, table)
    action = request.POST.get("do", "")
    match action:
        case "run":
            return _run(request, table, draft)
        case "examine":
            return _examine(request, table, draft)
        case "follow":
            return _follow(request, table, draft)
        case "preview" | "count":
            return _preview(request, table, draft, action)
    return _arrange(request, table, draft, action)


def _begin(request: HttpRequest, table: Table) -> HttpResponse:
    """Redirect from a grid selection to the page with its query."""
    draft = read_draft(request.POST, table)
    try:
        selection = tokens.read_selection(request.POST)
    except StorageError as error:
        notify_error(request, describe_refusal(error))
        return see_other(draft.grid_address(table))
    if selection.scope is Scope.ROWS:
        if not selection.keys:
            notify_error(request, _("Select at least one row."))
            return see_other(draft.grid_address(table))
        draft = replace(draft, state=replace(draft.state, filter=write_keys(selection.keys)))
    return redirect(draft.address(table))


def _arrange(request: HttpRequest, table: Table, draft: BulkEditDraft, action: str) -> HttpResponse:
    draft, focus = draft.act(action)
    if not wants_part(request):
        return see_other(draft.address(table))
    context = _context(request, table, draft, {"focus": focus})
    return _at_address(render(request, "console/bulk_edit/_operations.html", context), table, draft)


def _at_address(response: HttpResponse, table: Table, draft: BulkEditDraft) -> HttpResponse:
    response.headers["HX-Replace-Url"] = draft.address(table)
    return response


# the preview


def _preview(request: HttpRequest, table: Table, draft: BulkEditDraft, action: str) -> HttpResponse:
    with _superseding(request, table) as clock:
        found = _foresee(table, draft, action, clock)
    return _answer(request, table, draft, found | {"is_asked": action != "preview"})


def _answer(request: HttpRequest, table: Table, draft: BulkEditDraft, found: dict[str, Any]) -> HttpResponse:
    if not wants_part(request):
        return _show(request, table, draft, found)
    context = _context(request, table, draft, found | {"beside": True})
    return _at_address(render(request, "console/bulk_edit/_answer.html", context), table, draft)


@contextmanager
def _superseding(request: HttpRequest, table: Table) -> Iterator[Callable[[], float]]:
    """Yield a clock that expires when the same user requests another preview of the table."""
    place, mine = (user_of(request).pk, table.pk), object()
    _newest[place] = mine
    try:
        yield lambda: time.monotonic() if _newest.get(place) is mine else math.inf
    finally:
        if _newest.get(place) is mine:
            del _newest[place]


def _foresee(table: Table, draft: BulkEditDraft, action: str, clock: Callable[[], float]) -> dict[str, Any]:
    """Return the preview of the edit, or the error that prevents it."""
    try:
        try:
            preview = bulk_edit_previews.preview(table, draft.request, limit=_WHILE_TYPING, clock=clock)
        except InvalidOperation as error:
            total = bulk_edits.expect(table, draft.request, bulk_edit_previews.COUNT_MOMENT)
            return _explain(draft, error) | {"total": total}
        if action == "count" and not preview.is_exact:
            preview.matches, preview.is_exact = bulk_edits.count(table, draft.request), True
    except (StorageError, Refused) as error:  # also of the filter beside an operation that cannot be read
        return _explain(draft, error)
    return _show_preview(preview)


def _show_preview(found: BulkEditPreview) -> dict[str, Any]:
    total = entities.Total(found.matches, found.is_exact)
    return {"preview": PreviewView(found), "total": total, "read_at": found.read_at}


def _explain(draft: BulkEditDraft, error: StorageError | Refused) -> dict[str, Any]:
    if not isinstance(error, InvalidOperation):
        return {"error": describe_refusal(error)}
    if draft.operations[error.index].is_begun:
        return {"is_begun": True}
    problem: dict[str, Any] = {"index": error.index, "member": error.member, "text": describe_refusal(error)}
    if error.span is not None:
        written = draft.operations[error.index].members[error.member]
        problem["start"], problem["end"] = mark_characters(written, *error.span)
    return {"problem": problem}


def _examine(request: HttpRequest, table: Table, draft: BulkEditDraft) -> HttpResponse:
    """Start a job that examines all entities, which the page follows."""
    try:
        job = bulk_edit_jobs.start_preview(table, draft.request, by=actor_of(request))
    except (StorageError, Refused) as error:
        response = _answer(request, table, draft, _explain(draft, error))
        response.headers["HX-Retarget"] = "#bulk-preview"
        return response
    if not wants_part(request):
        return redirect("jobs:show", job.pk)
    return render(request, "console/bulk_edit/_more.html", {"table": table, "job": job})


def _follow(request: HttpRequest, table: Table, draft: BulkEditDraft) -> HttpResponse:
    """Show the current preview of a job; when it ends, also the parts that depend on it."""
    job = jobs.get(read_number(request.POST.get("job", "")) or 0)
    preview = None if job is None else bulk_edit_jobs.preview_of(job, table, draft.request)
    if job is None or preview is None:
        return HttpResponse(status=204)
    shown = _show_preview(preview)
    if job.ended_at is None:
        context = shown | {"table": table, "draft": draft, "job": job}
        return render(request, "console/bulk_edit/_preview.html", context)
    if (error := jobs.error_of(job)) is not None:
        shown["error"] = describe_refusal(Refused(error))
    return _answer(request, table, draft, shown | {"is_asked": True})


# the run


def _run(request: HttpRequest, table: Table, draft: BulkEditDraft) -> HttpResponse:
    number = request.POST.get("number", "")
    bulk_edit_jobs.end_previews(table, by=actor_of(request))
    try:
        for capability in bulk_edits.needed_capabilities(table, draft.request):
            if not may(role_of(request), capability):
                raise RoleNeeded(capability, table.account)
        job = bulk_edit_jobs.start(
            table,
            draft.request,
            by=actor_of(request),
            number=read_number("".join(filter(str.isdecimal, number))),
            read_at=read_number(request.POST.get("read_at", "")),
        )
    except BulkEditRefused as error:
        problem = {"refusal": describe_refusal(error), "number": number}
        return _show(request, table, draft, problem, status=422)
    except (StorageError, Refused) as error:
        problem = _explain(draft, error) | {"number": number}
        # a toast, which outlasts the preview that the page asks for
        if "is_begun" in problem:
            notify_error(request, _("Complete the operations first."))
        elif "error" in problem:
            notify_error(request, problem["error"])
        return _show(request, table, draft, problem, status=422)
    notify_success(request, _("Editing entities of %(table)s.") % {"table": table.name})
    return redirect("jobs:show", job.pk)


# the page


def _context(
    request: HttpRequest, table: Table, draft: BulkEditDraft, extra: dict[str, Any]
) -> dict[str, Any]:
    body, view = draft.request.dump(), extra.get("preview")
    if table.account.protected and view is not None and view.found.is_exact:
        body["number"] = view.found.matches
    address = api_address(request, "bulk-edit", table.account.name, table.name)
    return extra | {
        "table": table,
        "draft": draft,
        "kinds": KINDS,
        "presences": PRESENCES,
        "types": TYPES,
        "grid_address": draft.grid_address(table),
        "api_calls": snippets.write_api_calls(address, body),
    }


def _show(
    request: HttpRequest, table: Table, draft: BulkEditDraft, extra: dict[str, Any], status: int = 200
) -> HttpResponse:
    context = _context(request, table, draft, extra) | {
        "names": list(property_types(table)),
        "tables": tables.names(table.account, top=_TABLES_OFFERED),
        "functions": "\n".join(it.usage for it in FUNCTIONS.values()),
    }
    return render(request, "console/bulk_edit/show.html", context, status=status)
