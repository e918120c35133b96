"""Undo of one activity, or several done together."""

from collections.abc import Sequence
from typing import Final

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from console.activity import sentences
from console.activity.undo import gives_power, may_see, may_undo, needed_capability, undo_several
from console.people import reauthentication
from console.site import waiting
from console.site.access import RoleNeeded, actor_of, user_of
from console.site.addresses import is_console_path
from console.site.refusals import describe_refusal
from console.site.responses import wants_part
from console.site.toasts import find_unrecorded, notify_error, notify_success
from storage.accounts.quotas import QuotaReached
from storage.activity import activity
from storage.activity.undoing import CannotUndo, Reason
from storage.domain.errors import StorageError
from storage.domain.values.numbers import read_numbers
from storage.jobs.jobs import JobError
from storage.jobs.states import JobStatus
from storage.models import Activity, Job
from storage.people import members
from storage.tables.subject import TableVerb
from storage.undo import undo as operations
from storage.undo.undo import undone_by

_MOST: Final = 1000  # activities that are undone together


@require_POST
@login_required
def undo(request: HttpRequest, numbers: str) -> HttpResponse:
    """Undo all the numbered activities or none."""
    several = _find_undoable(request, numbers)
    if any(map(gives_power, several)) and not reauthentication.is_recent(request):
        return reauthentication.ask(request)
    find_unrecorded(request, several)
    undone: Sequence[Activity] = []
    try:
        job = _undo_by_job(request, several)
        if job is None:
            undone = undo_several(several, actor_of(request))
        elif job.status == JobStatus.DONE:
            undone = [undone_by(job, several[0])]
    except CannotUndo as cannot:
        notify_error(request, sentences.explain_refusal(cannot), link=_conflict_address(cannot))
    except OperationalError:
        notify_error(request, _("Not undone: a server or the database did not respond in time. Try again."))
    except (StorageError, QuotaReached, JobError) as error:
        notify_error(request, describe_refusal(error))
    else:
        if undone:
            notify_success(request, sentences.report_undo(undone), undo=undone)
        elif job is not None:
            address = reverse("jobs:show", args=(job.pk,))
            notify_success(request, _("The undo takes longer and continues as a job."), link=address)
    if wants_part(request):
        return HttpResponse(render_to_string("components/toasts_beside.html", {}, request))
    return redirect(_next_address(request, several[0], undone))


def _undo_by_job(request: HttpRequest, several: Sequence[Activity]) -> Job | None:
    """Undo an activity with many changes by a job, waiting briefly; None if no job is needed."""
    wanted = operations.request(several[0]) if len(several) == 1 else None
    rows = several[0].detail.get("rows", 0)
    return None if wanted is None else waiting.complete(request, wanted, entities=int(rows))


def _find_undoable(request: HttpRequest, numbers: str) -> list[Activity]:
    chosen = set(read_numbers(numbers.split(",")))
    user, roles = user_of(request), members.roles(user_of(request))
    several = [done for done in activity.of_numbers(chosen) if may_see(user, done, roles)]
    if not chosen or len(several) != len(chosen) or len(several) > _MOST:
        raise Http404
    for done in several:
        if not may_undo(user, done, roles):
            needed = needed_capability(user, done)
            raise PermissionDenied if needed is None else RoleNeeded(needed, done.account)
    return several


def _conflict_address(cannot: CannotUndo) -> str:
    """Return the address of the entity in conflict."""
    if cannot.key is None or cannot.reason is Reason.GONE:
        return ""
    return sentences.entity_address(cannot.done, *cannot.key)


def _next_address(request: HttpRequest, first: Activity, undone: Sequence[Activity]) -> str:
    """Return the page to return to, or a parent page if the undo deleted its table."""
    address = request.POST.get("next", "")
    if not is_console_path(address):
        name = first.account_name
        address = reverse("activity:index", args=(name,)) if name else reverse("home:index")
    if any(done.effective_verb is TableVerb.DELETE for done in undone):
        deleted = reverse("entities:index", args=(first.account_name, first.table_name))
        if address.startswith(deleted):
            return reverse("tables:index", args=(first.account_name,))
    return address
