"""Creation of branches, optionally masked, and their reset."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST, require_safe

from console.grid.formats import escape_surrogates
from console.people.reauthentication import is_post, recently_authenticated, recently_authenticated_if
from console.site import waiting
from console.site.access import account_required, user_of
from console.site.refusals import describe_refusal
from console.site.toasts import count_text, notify_error, notify_success
from console.snapshots.forms import NOW, BranchForm
from console.snapshots.originals import describe_original
from storage.account_files.account_building import BuiltAccount, built_by
from storage.accounts.quotas import QuotaReached
from storage.accounts.refusals import AccountError
from storage.branches import branches, snapshot_restores
from storage.branches.branches import BranchRequest
from storage.domain.access.roles import Capability
from storage.domain.entities.masking import Mask, MaskingError, MaskingRule, read_rules
from storage.domain.errors import StorageError
from storage.domain.filters.ast import Filter
from storage.domain.values import dialects
from storage.domain.values.edm import EdmValue
from storage.editing.filters.diagnosis import parse_filter
from storage.entities import masking
from storage.jobs.states import JobStatus
from storage.metrics import totals
from storage.metrics.totals import Contents
from storage.models import Account, Table
from storage.rest.lookups import or_404
from storage.snapshots import snapshots
from storage.snapshots.snapshots import SnapshotError
from storage.tables import tables
from storage.tabular.writing import value_text
from storage.undo.outcome_jobs import outcome_of

MASKED_TABLES: Final = 50  # tables whose properties are shown
CONSTANT: Final = "(masked)"
MASK_LABELS: Final = (
    (Mask.KEEP, gettext_lazy("Keep")),
    (Mask.NAME, gettext_lazy("Fake name")),
    (Mask.EMAIL, gettext_lazy("Fake e-mail address")),
    (Mask.PHONE, gettext_lazy("Fake phone number")),
    (Mask.HASH, gettext_lazy("Hash, keeps references")),
    (Mask.BLANK, gettext_lazy("Blank")),
    (Mask.CONSTANT, gettext_lazy("Constant text")),
    (Mask.REMOVE, gettext_lazy("Remove")),
)


@dataclass(frozen=True, slots=True)
class MaskedProperty:
    """Property on the masking page, with a sample value before and after; ``after`` is None if it is removed."""

    name: str
    field: str
    mask: str
    masks: Sequence[tuple[Mask, object]]
    looks_personal: bool
    before: str
    after: str | None
    query: str  # the query of the address that answers with ``after``


@dataclass(frozen=True, slots=True)
class BranchTable:
    """Table on the branch page, with the user's choices."""

    table: Table
    is_chosen: bool
    filter: str
    error: str
    properties: Sequence[MaskedProperty]

    @property
    def personal(self) -> Sequence[MaskedProperty]:
        """Return the properties shown at first: personal-looking ones, and ones with a rule."""
        return [it for it in self.properties if it.looks_personal or it.mask != Mask.KEEP]

    @property
    def others(self) -> Sequence[MaskedProperty]:
        shown = self.personal
        return [it for it in self.properties if it not in shown]


@account_required(Capability.GRANT)
@recently_authenticated_if(is_post)
def new(request: HttpRequest, account: Account) -> HttpResponse:
    """Show the form with suggestions, or create the branch."""
    initial = {"snapshot": request.GET.get("snapshot", NOW)}
    form = BranchForm(request.POST if request.method == "POST" else None, account=account, initial=initial)
    listed = tables.listed(account)
    errors: dict[str, str] = {}
    if request.method == "POST" and form.is_valid():
        filters = _read_filters(request, listed, errors)
        if not filters:
            form.add_error(None, _("Choose at least one table."))
        if not errors and form.is_valid():
            try:
                is_limited = not user_of(request).is_admin
                branch_request = _wanted(request, account, form, filters)
                job_request = branches.request(account, branch_request, is_limited=is_limited)
                entities = totals.contents([account.pk]).get(account.pk, Contents()).entities
                job = waiting.complete(request, job_request, entities=entities)
            except (AccountError, MaskingError, QuotaReached, SnapshotError) as error:
                form.add_error(None, describe_refusal(error))
            else:
                if job.status != JobStatus.DONE:
                    return redirect("jobs:show", job.pk)
                return _answer(request, account, built_by(job))
    shown = [_branch_table(request, it, errors, place) for place, it in enumerate(listed)]
    context = {
        "form": form,
        "tables": shown,
        "personal": sum(len(it.personal) for it in shown),
        "others": sum(len(it.others) for it in shown),
    }
    status = 422 if form.is_bound else 200
    return render(request, "console/snapshots/new_branch.html", context, status=status)


def _wanted(
    request: HttpRequest, account: Account, form: BranchForm, filters: Mapping[str, Filter | None]
) -> BranchRequest:
    data = form.cleaned_data
    snapshot = snapshots.get(account, data["snapshot"]) if data["snapshot"] != NOW else None
    if snapshot is not None:
        there = {it.name for it in snapshots.tables(snapshot)}
        filters = {name: filter_ for name, filter_ in filters.items() if name in there}
    return BranchRequest(
        data["name"],
        snapshot=snapshot,
        filters=filters,
        rules={name: read_rules(_masks(request, name)) for name in filters},
        with_policies=data["policies"],
        with_settings=data["settings"],
        expires_at=form.expires_at,
    )


def _masks(request: HttpRequest, table: str) -> dict[str, str]:
    prefix = f"mask-{table}-"
    return {
        field.removeprefix(prefix): _rule(str(mask))
        for field, mask in request.POST.items()
        if field.startswith(prefix)
    }


def _rule(mask: str) -> str:
    return f"{mask}:{CONSTANT}" if mask == Mask.CONSTANT else mask


def _read_filters(
    request: HttpRequest, listed: Sequence[Table], errors: dict[str, str]
) -> dict[str, Filter | None]:
    chosen = set(request.POST.getlist("table"))
    filters: dict[str, Filter | None] = {}
    for table in listed:
        if table.name not in chosen:
            continue
        text = request.POST.get(f"filter-{table.name}", "").strip()
        try:
            filters[table.name] = parse_filter(text, None, dialects.STORAGE) if text else None
        except StorageError as error:
            errors[table.name] = describe_refusal(error)
    return filters


def _answer(request: HttpRequest, account: Account, made: BuiltAccount) -> HttpResponse:
    text = ngettext(
        "Created the branch %(name)s with %(shown)s entity.",
        "Created the branch %(name)s with %(shown)s entities.",
        made.entities,
    ).replace("%(name)s", made.account.name)
    notify_success(request, count_text(text, made.entities))
    for it in made.originals:
        notify_error(request, describe_original(it))
    return redirect("snapshots:index", account.name)


# the tables of the page


def _branch_table(request: HttpRequest, table: Table, errors: Mapping[str, str], place: int) -> BranchTable:
    is_sent = request.method == "POST"
    return BranchTable(
        table,
        table.name in request.POST.getlist("table") if is_sent else True,
        request.POST.get(f"filter-{table.name}", ""),
        errors.get(table.name, ""),
        _properties(request, table) if place < MASKED_TABLES else (),
    )


def _properties(request: HttpRequest, table: Table) -> list[MaskedProperty]:
    samples = masking.samples(table)
    chosen = {
        it.name: request.POST.get(f"mask-{table.name}-{it.name}", it.proposal or Mask.KEEP) for it in samples
    }
    values = {it.name: it.value for it in samples}
    after = masking.masked(values, _safe_rules(chosen)) if samples else {}
    return [
        MaskedProperty(
            it.name,
            f"mask-{table.name}-{it.name}",
            chosen[it.name],
            _key_masks() if it.is_key else MASK_LABELS,
            it.proposal is not None,
            _shown(it.value),
            _shown(after[it.name]) if it.name in after else None,
            urlencode({"table": table.name, "property": it.name}),
        )
        for it in samples
    ]


def _key_masks() -> list[tuple[Mask, object]]:
    return [(mask, label) for mask, label in MASK_LABELS if mask in (Mask.KEEP, Mask.HASH)]


def _safe_rules(chosen: Mapping[str, str]) -> dict[str, MaskingRule]:
    try:
        return read_rules({name: _rule(mask) for name, mask in chosen.items()})
    except MaskingError:
        return {}


def _shown(value: EdmValue) -> str:
    text = escape_surrogates(value_text(value))
    return text if len(text) <= 60 else text[:59] + "…"


@require_safe
@account_required(Capability.GRANT)
def sample(request: HttpRequest, account: Account) -> HttpResponse:
    """Respond with a sample value as masked by the chosen rule."""
    try:
        table = tables.get(account, request.GET.get("table", ""))
        name = request.GET.get("property", "")
        rules = read_rules({name: _rule(request.GET.get(f"mask-{table.name}-{name}", ""))})
    except (StorageError, MaskingError):
        raise Http404 from None
    sampled = or_404(next((it for it in masking.samples(table) if it.name == name), None))
    value = masking.masked({name: sampled.value}, rules).get(name)
    context: dict[str, Any] = {"after": None if value is None else _shown(value)}
    return render(request, "console/snapshots/_sample.html", context)


@require_POST
@account_required(Capability.MANAGE_ACCESS)
@recently_authenticated
def reset(request: HttpRequest, account: Account) -> HttpResponse:
    """Reset a branch to its state at creation."""
    branch = or_404(branches.find(account))
    try:
        job = waiting.complete(request, snapshot_restores.request_reset(branch))
    except (SnapshotError, StorageError) as error:
        notify_error(request, describe_refusal(error))
    else:
        if job.status != JobStatus.DONE:
            return redirect("jobs:show", job.pk)
        restored = outcome_of(job)
        text = ngettext(
            "Reset %(shown)s entity of %(name)s.", "Reset %(shown)s entities of %(name)s.", restored.written
        ).replace("%(name)s", account.name)
        notify_success(request, count_text(text, restored.written))
    back = request.POST.get("from", "")
    source = branch.source if branch.source is not None and branch.source.name == back else account
    return redirect("snapshots:index", source.name)
