"""Undo of recorded entity changes: the preview and its execution."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods

from console.activity.filters import ActivityQuery, read_caller, read_requests
from console.activity.presentation import OP_LABELS
from console.grid import differences
from console.grid.differences import Difference
from console.site import waiting
from console.site.access import account_required
from console.site.actors import DOOR_LABELS, label_door
from console.site.addresses import is_console_path
from console.site.refusals import describe_refusal
from console.site.responses import render_page
from console.site.toasts import notify_error, notify_success
from storage.domain.access.roles import Capability
from storage.domain.entities.entity import EntityKey
from storage.domain.entities.restoring import Effect, Sample, Skip
from storage.domain.errors import OperationTimedOut, StorageError
from storage.domain.history.recorded import RecordedChange
from storage.domain.values.numbers import read_number, read_numbers
from storage.domain.values.ticks import to_datetime
from storage.history import changes, past, versions
from storage.history.changes import Caller, ChangeFilter
from storage.jobs.states import JobStatus
from storage.models import Account, Table
from storage.undo import data_undo
from storage.undo.data_undo import UndoPreview
from storage.undo.outcome_jobs import outcome_of
from storage.undo.outcomes import Outcome

_SAMPLE: Final = 20  # entities of each kind
_PROPERTIES: Final = 5  # shown properties of an entity
_SELECTING: Final = ("what", "how", "since", "until")  # fields of a query that may be invalid
_LABELS: Final = {
    Effect.CHANGED: gettext_lazy("reverted"),
    Effect.INSERTED: gettext_lazy("re-inserted"),
    Effect.DELETED: gettext_lazy("deleted"),
    Effect.SKIPPED: gettext_lazy("skipped"),
}


@dataclass(frozen=True, slots=True)
class SampleEntity:
    """Entity after the previewed undo."""

    table: str
    key: EntityKey
    effect: Effect
    differences: Sequence[Difference]
    others: int
    newer: RecordedChange | None  # the later change that makes the undo skip the entity, if known
    is_moved: bool  # whether it is skipped because the entity with its other key is


@account_required(Capability.MANAGE_TABLES)
@require_http_methods(["GET", "POST"])
def show(request: HttpRequest, account: Account) -> HttpResponse:
    """Show the preview of undoing the selected changes, or undo them on POST."""
    query = ActivityQuery.read(request.GET)
    selection = _read_selection(request, query)
    back = _back(request, account)
    if any(_is_dropped(request, query, name) for name in ("since", "until")):
        notify_error(request, _("Enter a date and a time."))
        return redirect(back)
    if selection is None:
        notify_error(request, _("Filter or select the changes to undo."))
        return redirect(back)
    if request.method == "POST":
        return _undo(request, account, selection, back)
    if selection.until is None:
        selection = replace(
            selection, until=to_datetime(past.closed_present().ticks) + timedelta(microseconds=1)
        )
    context: dict[str, Any] = {"query": query, "back": back, "address": _address(request, selection)}
    context |= {"door": DOOR_LABELS.get(query.how, ""), "what": OP_LABELS.get(query.what, "")}
    try:
        preview = data_undo.preview(account, selection, sample=_SAMPLE)
        context |= _preview_context(preview) | {
            "callers": _callers(account, selection),
            "caller": request.GET.get("by", ""),
            "fields": [(name, it) for name, values in request.GET.lists() if name != "by" for it in values],
            "preview": preview,
            "is_read_only": account.read_only,
        }
    except OperationTimedOut:
        context["is_too_slow"] = True
    except StorageError as error:  # a table has no images
        notify_error(request, describe_refusal(error))
        return redirect(back)
    return render_page(request, "console/activity/revert.html", context)


def _read_selection(request: HttpRequest, query: ActivityQuery) -> ChangeFilter | None:
    """Return the selected changes; None without a selection, or for something without changes."""
    requests = read_requests(request.GET.getlist("request"))
    numbers = read_numbers(request.GET.getlist("number"))
    selection = query.to_changes()
    if selection is None or not (requests or numbers or query.selects_changes):
        return None
    caller, actor_id = read_caller(request.GET.get("by", "")), read_number(request.GET.get("actor", ""))
    read = {"request": requests, "number": numbers, "by": caller, "actor": actor_id}
    if any(request.GET.get(name) and not value for name, value in read.items()):
        return None
    if any(_is_dropped(request, query, name) for name in _SELECTING):
        return None
    return replace(
        selection,
        requests=tuple(requests),
        numbers=tuple(numbers),
        actors=() if caller is None else (caller,),
        actor_id=actor_id,
    )


def _is_dropped(request: HttpRequest, query: ActivityQuery, name: str) -> bool:
    """Return whether the query string has a value for a field, which was invalid and therefore ignored."""
    return bool(request.GET.get(name, "").strip()) and not getattr(query, name)


def _address(request: HttpRequest, selection: ChangeFilter) -> str:
    """Return the address of the undo, which excludes changes after its preview."""
    fields = request.GET.copy()
    if selection.until is not None and not fields.get("until", "").strip():
        fields["until"] = selection.until.isoformat()
    return f"{request.path}?{fields.urlencode()}"


def _callers(account: Account, wanted: ChangeFilter) -> list[tuple[str, str]]:
    """Return the callers of the selected changes as choices, if there are several."""
    found = changes.callers(account, replace(wanted, actors=()))
    return [(f"{it.actor.kind}:{it.actor.name}", _name(it)) for it in found] if len(found) > 1 else []


def _name(caller: Caller) -> str:
    name, door = caller.actor.short_name, label_door(caller.actor.kind)
    return f"{name} ({door})" if name else str(door)


def _preview_context(preview: UndoPreview) -> dict[str, Any]:
    groups = [
        (effect.value, label, preview.number(effect), _samples(preview, effect))
        for effect, label in _LABELS.items()
    ]
    first = next((effect for effect, _label, number, _samples in groups if number), "")
    return {
        "groups": groups,
        "first": first,
        "skipped": preview.number(Effect.SKIPPED),
        "has_tables": len(preview.tables) > 1,
    }


def _samples(preview: UndoPreview, effect: Effect) -> list[SampleEntity]:
    samples = [
        (it.table, sample)
        for it in preview.tables
        for sample in it.samples
        if it.table is not None and sample.effect is effect
    ]
    shown = samples[:_SAMPLE]
    skipped = {(table.pk, sample.key) for table, sample in shown if effect is Effect.SKIPPED}
    newer = versions.newest_of(shown[0][0].account_id, skipped) if skipped else {}
    return [_sample(table, sample, newer.get((table.pk, sample.key))) for table, sample in shown]


def _sample(table: Table, sample: Sample, newer: RecordedChange | None) -> SampleEntity:
    compared = differences.compare_entities(sample.key, sample.now, sample.then)
    shown = compared.differences if sample.effect is Effect.CHANGED else ()
    others = max(0, len(shown) - _PROPERTIES)
    is_moved = sample.reason is Skip.MOVED
    return SampleEntity(table.name, sample.key, sample.effect, shown[:_PROPERTIES], others, newer, is_moved)


def _undo(request: HttpRequest, account: Account, selection: ChangeFilter, back: str) -> HttpResponse:
    try:
        job = waiting.complete(request, data_undo.request(account, selection))
    except StorageError as error:
        notify_error(request, describe_refusal(error))
        return redirect(back)
    if job.status != JobStatus.DONE:
        return redirect("jobs:show", job.pk)
    undone = outcome_of(job)
    if undone.activity is None:
        notify_error(
            request, _("Nothing was undone: everything you selected was changed again or needs no undo.")
        )
    else:
        notify_success(request, _report(undone), undo=undone.activity)
    return redirect(back)


def _report(total: Outcome) -> str:
    """Describe the number of undone and skipped entities."""
    done = ngettext(
        "Undid changes to %(number)s entity.", "Undid changes to %(number)s entities.", total.written
    ) % {"number": number_format(total.written, force_grouping=True)}
    if not total.skipped:
        return done
    skipped = ngettext(
        "%(number)s entity was skipped because it was changed again.",
        "%(number)s entities were skipped because they were changed again.",
        total.skipped,
    ) % {"number": number_format(total.skipped, force_grouping=True)}
    return f"{done} {skipped}"


def _back(request: HttpRequest, account: Account) -> str:
    """Return the address of the list where the undo was started."""
    address = request.POST.get("next") or request.GET.get("next", "")
    return address if is_console_path(address) else reverse("activity:index", args=(account.name,))
