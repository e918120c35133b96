"""Jobs in the management API."""

from typing import cast

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from storage.accounts import quotas
from storage.core.quotas import DOWNLOADS
from storage.domain.access.roles import Capability
from storage.jobs import files, jobs
from storage.jobs.jobs import JobError, JobFilter
from storage.jobs.states import JobStatus
from storage.models import ApiToken, Job
from storage.people import api_tokens, members
from storage.people.members import Person
from storage.rest import access, downloads, problems, streams
from storage.rest import jobs as serializers
from storage.rest.answers import page_of
from storage.rest.documentation import LAST_EVENT_ID, operation
from storage.rest.lookups import or_404
from storage.rest.problems import Problem
from storage.rest.routing import api_path
from storage.rest.streams import JobStream
from storage.rest.views import ApiViewSet
from storage.runtime import job_runner
from storage.runtime.threads import TooManyDownloads


class JobListViewSet(ApiViewSet):
    tag = "Jobs"
    capabilities = {"index": Capability.READ}

    @operation(
        "list_jobs",
        "List jobs",
        "Returns the jobs of the accounts that the token's user can see, newest first; also own ones of no account, as"
        " that of its deletion, and for admins of the server all of these. A job that ended is kept for seven days.",
        answer=page_of(serializers.JobSerializer),
        query=serializers.JobParameters,
    )
    def index(self, request: Request) -> Response:
        parameters, token = self.read_query(), self.token
        shown = members.visible_accounts(token.user)
        if token.account_id is not None:
            shown = shown.filter(pk=token.account_id)
        if parameters["account"]:
            shown = shown.filter(name=parameters["account"])
        is_of_server = token.account_id is None and not parameters["account"]
        matching = jobs.find(
            JobFilter(
                account_ids=shown.values("pk"),
                is_server=token.user.is_admin and is_of_server,
                reader=token.user if is_of_server else None,
                user=parameters["user"],
                statuses=[JobStatus(parameters["status"])] if parameters["status"] else (),
            )
        )
        return self.answer_newest(matching)


class JobViewSet(ApiViewSet):
    tag = "Jobs"
    capabilities = {
        "retrieve": Capability.READ,
        "download": Capability.READ,
        "cancel": Capability.READ,
        "pause": Capability.READ,
        "resume": Capability.READ,
    }
    job: Job

    def resolve_target(self, token: ApiToken, capability: Capability) -> None:
        job = or_404(jobs.get(self.kwargs["job"]))
        self.job = job
        self._check(token, Capability.READ)  # before it tells anything about the job
        if self.action == "retrieve":
            return
        if self.action == "download":
            needed = job_runner.capability_to_download(job)
        else:
            needed = job_runner.capability_to_change(job, token.user)
        access.check_scope(token, needed)
        self._check(token, needed)

    def _check(self, token: ApiToken, capability: Capability) -> None:
        if token.account_id is None and jobs.is_of_starter(self.job, token.user):
            return
        if self.job.account is not None:
            access.find_account(token, self.job.account.name, capability)
            return
        is_own = self._is_started_by(token.user) and capability is Capability.READ
        if not (token.user.is_admin or is_own) or token.account_id is not None:
            raise Http404

    def _is_started_by(self, user: Person) -> bool:
        return jobs.is_started_by(self.job, user)

    @operation(
        "get_job",
        "Get a job",
        "With `Accept: text/event-stream` it goes on as server-sent events, one each time that the job has got further:"
        " the `data` of an event is the job. The stream ends with the job; a client that connects again then gets 204.",
        answer=serializers.JobSerializer,
        headers=[LAST_EVENT_ID],
        other_responses={
            (200, streams.MEDIA_TYPE): OpenApiTypes.STR,
            204: OpenApiResponse(description="The stream has ended."),
        },
    )
    def retrieve(self, request: Request, job: int) -> HttpResponse:
        if not request.headers.get("Accept", "").startswith(streams.MEDIA_TYPE):
            return cast("HttpResponse", self.answer(self.job))
        if self.job.ended_at is not None and request.headers.get("Last-Event-ID") == jobs.version(self.job):
            return HttpResponse(status=204)
        return self._stream()

    def _stream(self) -> HttpResponse:
        token, account = self.token, self.job.account

        def is_allowed() -> bool:
            if account is not None:
                return api_tokens.may_still(token, account, Capability.READ)
            user = api_tokens.user_of_valid(token)
            return user is not None and (user.is_admin or self._is_started_by(user))

        def write(job: Job) -> bytes:
            return cast("bytes", JSONRenderer().render(serializers.JobSerializer(job).data))

        account_id = None if account is None else account.pk
        stream = JobStream(self.job.pk, account_id, write, f"token {token.pk}", is_allowed)
        return self.answer_stream(stream)

    @operation(
        "download_job_file",
        "Download a file that a job has made",
        "`Range` asks for a part, so that an interrupted download can go on; 416 if the file has no such part. A file"
        " is kept for a day.",
        other_responses={
            (200, "application/octet-stream"): OpenApiTypes.BINARY,
            (206, "application/octet-stream"): OpenApiTypes.BINARY,
        },
    )
    def download(self, request: Request, job: int, file: int) -> HttpResponse | StreamingHttpResponse:
        job_file = or_404(next((it for it in files.to_download(self.job) if it.pk == file), None))
        try:
            reader = f"user {self.token.user_id}"
            return downloads.respond(cast("HttpRequest", request._request), job_file, reader=reader)
        except TooManyDownloads:
            detail = f"A user can have {quotas.limit(DOWNLOADS)} unfinished downloads."
            raise Problem(problems.TOO_MANY, detail, headers={"Retry-After": "30"}) from None

    @operation(
        "cancel_job",
        "Cancel a job",
        "The job ends after its present step, usually within a second; what it has done stays. Its own user needs what"
        " starting it takes, another one the role maintainer.",
        answer=serializers.JobSerializer,
        problems=[problems.CONFLICT],
    )
    def cancel(self, request: Request, job: int) -> Response:
        return self._change(jobs.cancel)

    @operation(
        "pause_job",
        "Pause a job",
        "The job waits after its present step until it is resumed.",
        answer=serializers.JobSerializer,
        problems=[problems.CONFLICT],
    )
    def pause(self, request: Request, job: int) -> Response:
        return self._change(jobs.pause)

    @operation(
        "resume_job",
        "Resume a job",
        "A job that is paused, was cancelled or has failed goes on where it was.",
        answer=serializers.JobSerializer,
        problems=[problems.CONFLICT],
    )
    def resume(self, request: Request, job: int) -> Response:
        return self._change(job_runner.resume)

    def _change(self, change: jobs.Change) -> Response:
        try:
            return self.answer(change(self.job, by=self.by))
        except JobError as error:
            raise Problem(problems.CONFLICT, str(error)) from None


urlpatterns = [
    api_path("jobs", JobListViewSet, "jobs", get="index"),
    api_path("jobs/<int:job>", JobViewSet, "job", get="retrieve"),
    api_path("jobs/<int:job>/cancel", JobViewSet, "job-cancel", post="cancel"),
    api_path("jobs/<int:job>/pause", JobViewSet, "job-pause", post="pause"),
    api_path("jobs/<int:job>/resume", JobViewSet, "job-resume", post="resume"),
    api_path("jobs/<int:job>/files/<int:file>", JobViewSet, "job-file", get="download"),
]
