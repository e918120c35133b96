"""Pages of jobs: the list, a job with its progress, its actions and files, and the tray."""

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from console.jobs.presentation import STATUS_CHOICES, JobView
from console.jobs.tray import Tray
from console.site import errors
from console.site.access import AccountContext, actor_of, user_of
from console.site.log_page import LogQuery, QueryPart, is_one_of, take_newest, url_field
from console.site.refusals import notify_refusals
from console.site.responses import render_page, render_part
from console.site.toasts import notify_success
from storage.domain.access.roles import Capability, may
from storage.domain.values.numbers import read_number
from storage.jobs import files, jobs
from storage.jobs.jobs import JobFilter
from storage.jobs.states import JobStatus
from storage.models import Job
from storage.people import members
from storage.rest import downloads
from storage.rest.lookups import or_404
from storage.runtime import job_runner
from storage.runtime.threads import TooManyDownloads


@dataclass(frozen=True, slots=True)
class JobQuery(LogQuery):
    status: str = url_field(is_one_of(set(JobStatus)))
    mine: str = url_field()
    before: str = url_field(read_number, part=QueryPart.PAGE)


@login_required
@never_cache
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """List jobs in the user's accounts, newest first."""
    user, query = user_of(request), JobQuery.read(request.GET)
    condition = JobFilter(
        account_ids=members.visible_accounts(user).values("pk"),
        is_server=user.is_admin,
        reader=user,
        user=user.get_username() if query.mine else "",
        statuses=[JobStatus(query.status)] if query.status else (),
        hides_previews=True,
    )
    newest, older = take_newest(jobs.find(condition), query.before)
    shown = [_view(request, job) for job in newest]
    context = {
        "jobs": shown,
        "older": "" if older is None else query.query_string(before=older),
        "statuses": STATUS_CHOICES,
        "query": query,
        "goes_on": any(it.goes_on for it in shown),
    }
    return render_page(request, "console/jobs/index.html", context)


@login_required
@never_cache
@require_safe
def show(request: HttpRequest, number: int) -> HttpResponse:
    """Show a job; the page refreshes its part while the job runs, and has the sidebar of its account."""
    job = _find(request, number)
    role = None if job.account is None else members.role_in(user_of(request), job.account)
    if job.account is not None and role is not None:
        request.account_context = AccountContext(job.account, role)  # type: ignore[attr-defined]
    shown = _view(request, job)
    return render_part(request, "console/jobs/show.html", "_job.html", {"it": shown})


def _view(request: HttpRequest, job: Job) -> JobView:
    return JobView(job, _may_change(request, job))


def _may_change(request: HttpRequest, job: Job) -> bool:
    user = user_of(request)
    if jobs.is_of_starter(job, user):
        return True
    if job.account is None:
        return user.is_admin
    role = members.role_in(user, job.account)
    return role is not None and may(role, job_runner.capability_to_change(job, user))


def _find(request: HttpRequest, number: int) -> Job:
    """Return a job that the user may see; raises Http404."""
    job, user = jobs.get(number), user_of(request)
    if job is None:
        raise Http404
    if job.account is None:
        is_visible = user.is_admin or jobs.is_started_by(job, user)
    else:
        role = members.role_in(user, job.account)
        is_visible = jobs.is_of_starter(job, user) or (role is not None and may(role, Capability.READ))
    if not is_visible:
        raise Http404
    return job


def _changing(change: jobs.Change, text: Callable[[Job], str]) -> Callable[..., HttpResponseBase]:
    """Return a view that changes a job, such as pausing it."""

    @login_required
    @require_POST
    def view(request: HttpRequest, number: int) -> HttpResponseBase:
        job = _find(request, number)
        if not _may_change(request, job):
            raise PermissionDenied
        with notify_refusals(request):
            change(job, by=actor_of(request))
            notify_success(request, text(job))
        return redirect("jobs:show", number)

    return view


cancel = _changing(
    jobs.cancel,
    lambda job: (
        _("The job ends, and the incomplete account is removed.")
        if jobs.makes_account(job)
        else _("The job ends after its present step. What it has done stays.")
    ),
)
pause = _changing(jobs.pause, lambda job: _("The job waits after its present step until you resume it."))
resume = _changing(
    job_runner.resume,
    lambda job: (
        _("The job starts over.") if jobs.makes_account(job) else _("The job continues where it stopped.")
    ),
)


@login_required
@require_safe
def download(request: HttpRequest, number: int, file: int) -> HttpResponseBase:
    job = _find(request, number)
    role = None if job.account is None else members.role_in(user_of(request), job.account)
    if role is not None and not may(role, job_runner.capability_to_download(job)):
        raise PermissionDenied
    job_file = or_404(next((it for it in files.to_download(job) if it.pk == file), None))
    try:
        return downloads.respond(request, job_file, reader=f"user {user_of(request).pk}")
    except TooManyDownloads:
        return errors.too_many_downloads(request)


@login_required
@never_cache
@require_safe
def show_tray(request: HttpRequest) -> HttpResponse:
    return render(request, "console/jobs/_tray.html")


@login_required
@require_POST
def clear_tray(request: HttpRequest) -> HttpResponseBase:
    """Remove ended jobs from the tray."""
    user = user_of(request)
    jobs.mark_seen(user, upto=timezone.now())
    if request.headers.get("HX-Request"):
        return render(request, "console/jobs/_tray.html", {"job_tray": Tray(user)})
    return redirect("jobs:index")
