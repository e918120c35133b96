"""Comparison of two accounts or tables, present or past, with the option to apply differences to the right side."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST, require_safe

from console.compare import rows
from console.compare.effects import ApplyButton
from console.compare.request import (
    LEFT,
    PARAMETERS,
    RIGHT,
    SIDES,
    CompareRequest,
    FoundSide,
    find_side,
    read_choice,
    read_request,
    with_short_names,
)
from console.grid import tokens
from console.grid.differences import Difference, compare_settings, flatten_policies, flatten_settings
from console.people import reauthentication
from console.site import waiting
from console.site.access import account_required, user_of
from console.site.downloads import stream_file
from console.site.refusals import describe_refusal
from console.site.responses import see_other
from console.site.toasts import count_text, notify_error, notify_success
from storage.compare import applying, comparing
from storage.compare.applying import Selection, Target
from storage.compare.comparing import ComparedTable, Comparison, Counts
from storage.compare.side_names import SideName
from storage.compare.sides import SideNotFound
from storage.domain.access.roles import Capability
from storage.domain.entities.differences import DifferenceKind
from storage.domain.entities.moments import read_moment_token
from storage.domain.entities.restoring import Skip, Skipped
from storage.domain.errors import OperationTimedOut, StorageError
from storage.jobs.states import JobStatus
from storage.models import Account
from storage.people.members import visible_accounts
from storage.rest.lookups import or_404
from storage.snapshots import snapshots
from storage.tables import tables
from storage.undo.outcome_jobs import outcome_of
from storage.undo.outcomes import Outcome

_PAGE: Final = 50  # entities
_BUDGET: Final = 4.0  # seconds for counting
_SNAPSHOTS: Final = 200
_KINDS: Final = (
    (None, gettext_lazy("All")),
    (DifferenceKind.ONLY_RIGHT, gettext_lazy("Only right")),
    (DifferenceKind.CHANGED, gettext_lazy("Changed")),
    (DifferenceKind.TYPE_ONLY, gettext_lazy("Type only")),
    (DifferenceKind.ONLY_LEFT, gettext_lazy("Only left")),
)


@dataclass(frozen=True, slots=True)
class ShownTable:
    """Table in the list; ``counts`` is None if counting timed out."""

    table: ComparedTable
    counts: Counts | None
    address: str
    is_current: bool

    @property
    def changed(self) -> int:
        return 0 if self.counts is None else self.counts.changed + self.counts.type_only

    @property
    def is_one_sided(self) -> bool:
        return self.table.left is None or self.table.right is None

    @property
    def differs(self) -> bool:
        return self.is_one_sided or self.counts is None or self.counts.differing > 0


@dataclass(frozen=True, slots=True)
class Picker:
    """Side with its selectable alternatives."""

    side: str
    label: str | Promise
    name: SideName
    account: Account | None
    accounts: Sequence[Account]
    tables: Sequence[str]
    snapshots: Sequence[str]
    error: str = ""

    @property
    def is_time(self) -> bool:
        return bool(self.name.at) and self.name.at not in self.snapshots


@account_required(Capability.READ)
@require_safe
def show(request: HttpRequest, account: Account) -> HttpResponse:
    unknown = sorted(request.GET.keys() - PARAMETERS)
    if unknown:
        notify_error(request, _("Unknown parameters: %(names)s") % {"names": ", ".join(unknown)[:200]})
        return see_other(request.path + read_request(with_short_names(request.GET), account).query())
    requested = read_request(request.GET, account)
    chosen = [read_choice(request.GET, side) for side in SIDES]
    if chosen[0] is not None and chosen[1] is not None:
        picked = CompareRequest(chosen[0], chosen[1], timestamps=requested.timestamps)
        return see_other(request.path + picked.query())
    context: dict[str, Any] = {"wanted": requested, "path": request.path}
    sides, errors = _find_sides(request, requested)
    accounts = _accounts(request)
    context["pickers"] = [
        _picker(accounts, side, name, errors.get(side, ""))
        for side, name in zip(SIDES, (requested.left, requested.right), strict=True)
    ]
    context["swap"] = (
        request.path
        + CompareRequest(
            requested.right, requested.left, requested.table, timestamps=requested.timestamps
        ).query()
    )
    if not errors and requested.left != requested.right:
        context |= _compare(request, account, requested, sides)
    return render(request, "console/compare/index.html", context, status=404 if errors else 200)


def _find_sides(
    request: HttpRequest, requested: CompareRequest
) -> tuple[dict[str, FoundSide], dict[str, str]]:
    sides, errors = {}, {}
    for side, name in ((LEFT, requested.left), (RIGHT, requested.right)):
        try:
            sides[side] = find_side(name, user_of(request))
        except SideNotFound as error:
            errors[side] = describe_refusal(error)
    return sides, errors


def _accounts(request: HttpRequest) -> list[Account]:
    return list(visible_accounts(user_of(request)))


def _picker(accounts: Sequence[Account], side: str, name: SideName, error: str = "") -> Picker:
    account = next((it for it in accounts if it.name == name.account), None)
    names = [] if account is None else tables.names(account)
    taken = [] if account is None else snapshots.names(account, _SNAPSHOTS)
    if name.table and name.table not in names:  # a table of the past
        names.append(name.table)
    label = gettext_lazy("Left side") if side == LEFT else gettext_lazy("Right side")
    return Picker(side, label, name, account, accounts, names, taken, error)


@account_required(Capability.READ)
@require_safe
def picker(request: HttpRequest, account: Account) -> HttpResponse:
    """Render the fields of a side after its account was changed."""
    for side in SIDES:
        name = read_choice(request.GET, side)
        if name is not None:
            context = {"it": _picker(_accounts(request), side, SideName(name.account))}
            return render(request, "console/compare/_fields.html", context)
    raise Http404


def _compare(
    request: HttpRequest, account: Account, requested: CompareRequest, sides: dict[str, FoundSide]
) -> dict[str, Any]:
    left, right = sides[LEFT], sides[RIGHT]
    comparison = comparing.compare(left.side, right.side, with_timestamps=requested.timestamps)
    shown = _tables(comparison, requested, request.path)
    settings = _settings(comparison)
    context: dict[str, Any] = {
        "comparison": comparison,
        "tables": shown,
        "differing": sum(it.differs for it in shown),
        "settings": settings,
        "settings_address": request.path + replace(_without_place(requested), settings=True).query(),
        "read_at": timezone.now(),
        "patch": reverse("compare:patch", args=(account.name,)) + _without_place(requested).query(),
        "may_apply": right.allows(Capability.WRITE),
        "may_manage": right.allows(Capability.MANAGE_TABLES),
        "may_manage_access": right.allows(Capability.MANAGE_ACCESS),
    }
    current = next((it for it in shown if it.is_current), None)
    if current is not None and not requested.settings:
        context |= {"current": current} | _entities(request, requested, current)
    return context


def _without_place(wanted: CompareRequest) -> CompareRequest:
    return CompareRequest(wanted.left, wanted.right, timestamps=wanted.timestamps)


def _tables(comparison: Comparison, requested: CompareRequest, path: str) -> list[ShownTable]:
    """Count the differences of each table within a time budget, the current table first."""
    deadline = time.monotonic() + _BUDGET
    counted: dict[str, Counts | None] = {}
    for table in sorted(comparison.tables, key=lambda it: it.name != requested.table):
        left = deadline - time.monotonic()
        try:
            counted[table.name] = comparing.count(table, limit=timedelta(seconds=left)) if left > 0 else None
        except OperationTimedOut:
            counted[table.name] = None
    names = [table.name for table in comparison.tables]
    differing = [it for it in names if (counts := counted[it]) is None or counts.differing]
    current = requested.table if requested.table in names else next(iter(differing or names), "")
    place = _without_place(requested)
    return [
        ShownTable(
            table,
            counted[table.name],
            path + replace(place, table=table.name).query(),
            table.name == current and not requested.settings,
        )
        for table in comparison.tables
    ]


def _entities(request: HttpRequest, requested: CompareRequest, current: ShownTable) -> dict[str, Any]:
    table = current.table
    page = comparing.page(table, requested.kinds, after=requested.after, top=_PAGE + 1)
    here = replace(requested, table=table.name, after=None)
    more = len(page) > _PAGE
    following = replace(here, after=page[_PAGE - 1].key, is_all=requested.is_all) if more else None
    counts = current.counts
    everything = Selection([table.name], kinds=requested.kinds)
    deleted = table.name if everything.deletes(table, Target.RIGHT) else ""
    return {
        "apply_button": ApplyButton(requested.right.account, requested.kind, counts, deleted),
        "rows": [rows.show(entity) for entity in page[:_PAGE]],
        "kinds": [
            (
                label,
                None if counts is None else counts.number(kind),
                request.path + replace(here, kind=kind, is_all=False).query(),
                kind is requested.kind,
            )
            for kind, label in _KINDS
        ],
        "total": None if counts is None else counts.number(requested.kind),
        "compared": None
        if counts is None
        else (
            counts.differing + counts.identical - counts.only_right,
            counts.differing + counts.identical - counts.only_left,
        ),
        "next": request.path + following.query() if following is not None else "",
        "first": request.path + here.query() if requested.after is not None else "",
        "all_address": request.path + replace(here, after=requested.after, is_all=True).query(),
        "none_address": request.path + replace(here, after=requested.after, is_all=False).query(),
        "timestamps_address": request.path
        + replace(here, timestamps=not requested.timestamps, is_all=False).query(),
    }


def _settings(comparison: Comparison) -> list[tuple[str | Promise, list[Difference]]]:
    """Return the differences other than entities: policies and descriptions by table, and service properties."""
    settings: list[tuple[str | Promise, list[Difference]]] = []
    for table in comparison.tables:
        differences = []
        if table.descriptions is not None:
            differences += compare_settings(*table.descriptions)
        if table.policies is not None:
            differences += compare_settings(*map(flatten_policies, table.policies))
        if differences:
            settings.append((table.name, differences))
    if comparison.service_properties is not None:
        flat = map(flatten_settings, comparison.service_properties)
        settings.append((gettext_lazy("Service properties"), compare_settings(*flat)))
    return settings


@account_required(Capability.READ)
@require_safe
def patch(request: HttpRequest, account: Account) -> HttpResponseBase:
    """Send all differing entities as NDJSON."""
    if not set(SIDES) <= request.GET.keys():
        raise Http404
    requested = read_request(request.GET, account)
    sides, errors = _find_sides(request, requested)
    if errors:
        raise Http404
    left, right = sides[LEFT].side, sides[RIGHT].side
    comparison = comparing.compare(left, right, with_timestamps=requested.timestamps)
    lines = (comparing.write_difference(*it).decode() + "\n" for it in comparing.walk(comparison))
    name = f"{requested.left.account}-{requested.right.account}.ndjson"
    return stream_file(request, lines, content_type="application/x-ndjson", filename=name)


@account_required(Capability.READ)
@require_POST
def apply(request: HttpRequest, account: Account) -> HttpResponse:
    """Apply the selected differences to the right side."""
    requested = read_request(request.POST, account)
    page = reverse("compare:index", args=(account.name,)) + replace(requested, is_all=False).query()
    sides, errors = _find_sides(request, requested)
    if errors:
        raise Http404
    left, right = sides[LEFT], sides[RIGHT]
    comparison = comparing.compare(left.side, right.side, with_timestamps=requested.timestamps)
    selection = _selection(request, requested, comparison)
    if selection is None:
        notify_error(request, _("Select the entities to apply."))
        return see_other(page)
    if not all(map(right.allows, applying.capabilities(comparison, Target.RIGHT, selection))):
        notify_error(
            request, _("You may not make this change in %(name)s.") % {"name": requested.right.account}
        )
        return see_other(page)
    read_at = or_404(read_moment_token(request.POST.get("read_at", "")))
    if not reauthentication.is_recent(request):
        return reauthentication.ask(request)
    try:
        job = waiting.complete(
            request, applying.request(comparison, Target.RIGHT, selection, read_at=read_at)
        )
    except (SideNotFound, StorageError) as error:
        notify_error(request, describe_refusal(error))
    else:
        if job.status != JobStatus.DONE:
            return see_other(reverse("jobs:show", args=(job.pk,)))
        _report(request, outcome_of(job), requested.right)
    return see_other(page)


def _selection(request: HttpRequest, requested: CompareRequest, comparison: Comparison) -> Selection | None:
    if requested.settings:
        chosen = request.POST.getlist("settings-of")
        return (
            Selection(
                kinds=(), policies="policies" in chosen, service_properties="service-properties" in chosen
            )
            if chosen
            else None
        )
    if comparison.table(requested.table) is None:
        return None
    if requested.is_all:
        return Selection([requested.table], kinds=requested.kinds)
    keys = [key for token in request.POST.getlist("key") if (key := tokens.decode_key(token)) is not None]
    return Selection([requested.table], {requested.table: keys}) if keys else None


def _report(request: HttpRequest, done: Outcome, target: SideName) -> None:
    settings = done.service_properties or any(table.policies for table in done.tables)
    if settings:
        notify_success(request, _("Applied the settings to %(name)s.") % {"name": target.account})
    for table in done.tables:
        if table.is_deleted:
            notify_success(request, _("Deleted %(name)s.") % {"name": table.name}, undo=table.deletion)
        if table.is_created and not table.written:
            notify_success(request, _("Created %(table)s.") % {"table": table.name})
        if Skipped(None, Skip.CHANGED) in table.examples:
            text = _("Did not delete %(name)s because it was changed since you opened the comparison.")
            notify_error(request, text % {"name": table.name})
    if done.written:
        text = ngettext("Applied %(shown)s entity", "Applied %(shown)s entities", done.written)
        notify_success(request, count_text(text, done.written), undo=done.activity)
    if done.skipped:
        examples = [it for table in done.tables for it in table.examples if it.key is not None]
        is_newer = any(it.reason is Skip.CHANGED for it in examples)
        text = (
            ngettext(
                "Skipped %(shown)s entity that was changed since you opened the comparison.",
                "Skipped %(shown)s entities that were changed since you opened the comparison.",
                done.skipped,
            )
            if is_newer
            else ngettext(
                "Skipped %(shown)s entity that does not fit into an account of this kind.",
                "Skipped %(shown)s entities that do not fit into an account of this kind.",
                done.skipped,
            )
        )
        notify_error(request, count_text(text, done.skipped))
