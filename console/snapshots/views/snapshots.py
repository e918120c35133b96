"""The snapshots of an account: list, take, change, schedule, and restore after a preview."""

from collections import Counter
from datetime import timedelta
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from console.people.reauthentication import recently_authenticated
from console.site import waiting
from console.site.access import account_required, actor_of, role_of
from console.site.refusals import describe_refusal
from console.site.toasts import count_text, notify_error, notify_success
from console.snapshots.forms import ScheduleForm, SnapshotForm
from console.snapshots.previews import Choices, preview
from storage.branches import branches, snapshot_restores
from storage.domain.access.roles import Capability, may
from storage.domain.errors import OperationTimedOut, StorageError
from storage.history import changes, past
from storage.history.changes import ChangeFilter
from storage.jobs import jobs
from storage.jobs.states import JobStatus
from storage.models import Account, Branch, Snapshot
from storage.rest.lookups import or_404
from storage.snapshots import snapshots
from storage.snapshots.snapshots import SnapshotError
from storage.tables import tables
from storage.undo.outcome_jobs import outcome_of

MOST_CHANGES: Final = 1_000  # counted changes of a branch
RECENT: Final = timedelta(minutes=5)  # writers before a restore
_MOST_WRITERS: Final = 5


@require_safe
@account_required(Capability.READ)
def index(request: HttpRequest, account: Account) -> HttpResponse:
    """List snapshots and branches, with a preview of the one in the address."""
    return _page(request, account)


def _page(
    request: HttpRequest, account: Account, *, schedule_form: ScheduleForm | None = None, status: int = 200
) -> HttpResponse:
    listed = snapshots.listed(account)
    chosen_name = request.GET.get("snapshot", "")
    chosen = next((it for it in listed if it.name == chosen_name), None)
    scheduled = snapshots.scheduled(account)
    being_made = [(it, jobs.percentage(it)) for it in branches.unfinished(account)]
    incomplete = {it.account_id for it, _ in being_made}
    made = [it for it in branches.listed(account) if it.pk not in incomplete]
    context: dict[str, Any] = {
        "snapshots": listed,
        "storage": snapshots.storage_used(account),
        "branches_of": Counter(it.snapshot_name for it in made),
        "counted": snapshots.COUNTED,
        "chosen": chosen,
        "branches": [(it, _changes_since(it)) for it in made],
        "branch": branches.find(account),
        "most_changes": MOST_CHANGES,
        "being_made": being_made,
        "may_settings": may(role_of(request), Capability.MANAGE_ACCESS),
        "schedule": scheduled,
        "schedule_form": schedule_form or ScheduleForm(initial=ScheduleForm.initial_of(scheduled)),
        "lines": _reset_lines(request, account, chosen),
    }
    if chosen is not None:
        context["preview"] = preview(chosen, Choices.read(request.GET))
        context["writers"] = changes.recent_callers(account, timezone.now() - RECENT, _MOST_WRITERS)
    return render(request, "console/snapshots/index.html", context, status=status)


def _changes_since(branch: Branch) -> int | None:
    """Return the number of changes since the branch began, at most MOST_CHANGES; None if unknown."""
    if past.kept_since(branch.account) is None:
        return None
    since = branch.reset_at or branch.created_at
    try:
        return changes.count_up_to(branch.account, ChangeFilter(since=since), MOST_CHANGES)
    except OperationTimedOut:
        return None


@account_required(Capability.MANAGE_TABLES)
def new(request: HttpRequest, account: Account) -> HttpResponse:
    """Show the form, or take a snapshot."""
    proposal = f"snapshot-{timezone.now():%Y-%m-%d}"
    form = SnapshotForm(_posted(request), account=account, initial={"name": proposal, "days": "always"})
    if request.method == "POST" and form.is_valid():
        try:
            taken = snapshots.take(
                account,
                form.cleaned_data["name"],
                by=actor_of(request),
                tables=request.POST.getlist("table") or None,
                expires_at=form.expires_at,
            )
        except SnapshotError as error:  # since the form was checked
            form.add_error("name", describe_refusal(error))
        else:
            notify_success(request, _("Took the snapshot %(name)s.") % {"name": taken.name})
            return redirect("snapshots:index", account.name)
    status = 422 if form.is_bound else 200
    context = {
        "form": form,
        "quota": snapshots.allowance(account),
        "tables": tables.names(account),
        "chosen": request.POST.getlist("table"),
    }
    return render(request, "console/snapshots/new.html", context, status=status)


@account_required(Capability.MANAGE_TABLES)
def change(request: HttpRequest, account: Account, snapshot: str) -> HttpResponse:
    """Rename a snapshot, or change its retention."""
    chosen = or_404(snapshots.find_listed(account, snapshot))
    initial = {"name": chosen.name, "days": "as-it-is" if chosen.expires_at else "always"}
    form = SnapshotForm(_posted(request), account=account, snapshot=chosen, initial=initial)
    if request.method == "POST" and form.is_valid():
        by = actor_of(request)
        snapshots.rename(chosen, form.cleaned_data["name"], by=by)
        if form.changes_expiry:
            snapshots.keep_until(chosen, form.expires_at, by=by)
        notify_success(request, _("Saved the snapshot %(name)s.") % {"name": chosen.name})
        return redirect("snapshots:index", account.name)
    status = 422 if form.is_bound else 200
    return render(request, "console/snapshots/change.html", {"form": form, "snapshot": chosen}, status=status)


@require_POST
@account_required(Capability.MANAGE_TABLES)
def delete(request: HttpRequest, account: Account, snapshot: str) -> HttpResponse:
    found = or_404(snapshots.find_listed(account, snapshot))
    snapshots.delete(found, by=actor_of(request))
    notify_success(request, _("Deleted the snapshot %(name)s.") % {"name": snapshot})
    return redirect("snapshots:index", account.name)


@require_POST
@account_required(Capability.MANAGE_TABLES)
def schedule(request: HttpRequest, account: Account) -> HttpResponse:
    form = ScheduleForm(request.POST)
    if not form.is_valid():
        return _page(request, account, schedule_form=form, status=422)
    snapshots.schedule(account, form.schedule(), by=actor_of(request))
    notify_success(request, _("Saved the schedule."))
    return redirect("snapshots:index", account.name)


@require_POST
@account_required(Capability.MANAGE_TABLES)
@recently_authenticated
def restore(request: HttpRequest, account: Account, snapshot: str) -> HttpResponse:
    """Restore the previewed snapshot; the toast offers to undo it."""
    chosen, choices = or_404(snapshots.find_listed(account, snapshot)), Choices.read(request.POST)
    try:
        job = waiting.complete(request, snapshot_restores.request(chosen, choices.request(chosen)))
    except (SnapshotError, StorageError) as error:
        notify_error(request, describe_refusal(error))
        return redirect("snapshots:index", account.name)
    if job.status != JobStatus.DONE:
        return redirect("jobs:show", job.pk)
    restored = outcome_of(job)
    text = ngettext(
        "Restored %(shown)s entity from %(name)s.",
        "Restored %(shown)s entities from %(name)s.",
        restored.written,
    ).replace("%(name)s", chosen.name)
    notify_success(request, count_text(text, restored.written), undo=restored.activity)
    if restored.skipped:
        skipped = ngettext(
            "%(shown)s entity changed during the restore and was left as it is.",
            "%(shown)s entities changed during the restore and were left as they are.",
            restored.skipped,
        )
        notify_error(request, count_text(skipped, restored.skipped))
    return redirect("snapshots:index", account.name)


def _posted(request: HttpRequest) -> QueryDict | None:
    """Return the form data of a POST, even if empty, otherwise None."""
    return request.POST if request.method == "POST" else None


def _reset_lines(request: HttpRequest, account: Account, snapshot: Snapshot | None) -> str:
    """Return the curl command that resets a branch to its origin, or an account to a snapshot."""
    is_branch = branches.find(account) is not None
    name = snapshot.name if snapshot is not None else "ci-baseline"
    body = "{}" if is_branch and snapshot is None else f'{{"snapshot": "{name}"}}'
    address = request.build_absolute_uri(reverse("api-reset", args=[account.name]))
    return (
        f"curl -fsS -X POST \\\n  {address} \\\n"
        '  -H "Authorization: Bearer $TABLERO_TOKEN" \\\n'
        '  -H "Content-Type: application/json" \\\n'
        f"  -d '{body}'"
    )
