"""Reviews and saves staged cells."""

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from console.entities import staged
from console.entities.staged import StagedChange
from console.grid.cells import draw_or_absent
from console.site import notices
from console.site.access import actor_of, table_required
from console.site.refusals import describe_refusal
from console.site.responses import render_part, wants_part
from console.site.typed_text import local_now
from storage.domain.access.roles import Capability
from storage.domain.entities.entity import EntityKey
from storage.domain.errors import ChangeSetError, StorageError
from storage.models import Table
from storage.operations.entities import edits

SAVED = 204  # the page drops its staged changes and reloads


@require_POST
@table_required(Capability.WRITE)
def review(request: HttpRequest, table: Table) -> HttpResponse:
    """Show the staged changes, or apply all of them or none with ``apply``."""
    try:
        kept = staged.read(request.POST.get("changes", ""), local_now())
    except staged.Unreadable:
        raise BadRequest from None
    if "apply" not in request.POST or not kept:
        return _show(request, table, kept, {})
    return _apply(request, table, kept)


def _apply(request: HttpRequest, table: Table, kept: list[StagedChange]) -> HttpResponse:
    changes = staged.changes(table, kept)
    try:
        applied = edits.apply(table, changes, by=actor_of(request))
    except ChangeSetError as failure:
        return _show(
            request, table, kept, {changes[failure.index].key: describe_refusal(failure.error)}, status=409
        )
    except StorageError as error:
        return _show(
            request,
            table,
            kept,
            dict.fromkeys((one.key for one in kept), describe_refusal(error)),
            status=409,
        )
    text = ngettext("Saved %(shown)s change", "Saved %(shown)s changes", len(kept))
    notices.notify_success(request, notices.count_text(text, len(kept)), undo=applied.activity)
    if wants_part(request):
        return HttpResponse(status=SAVED)
    return HttpResponseRedirect(reverse("entities:index", args=(table.account.name, table.name)))


def _show(
    request: HttpRequest,
    table: Table,
    kept: list[StagedChange],
    errors: dict[EntityKey, str],
    status: int = 200,
) -> HttpResponse:
    lines = staged.lines(table, kept, errors)
    context = {
        "table": table,
        "lines": [(line, draw_or_absent(line.now), draw_or_absent(line.staged.value)) for line in lines],
        "failed": sum(bool(line.error) for line in lines),
        "changes": request.POST.get("changes", ""),
    }
    return render_part(request, "console/entities/staged/review.html", "_review.html", context, status=status)
