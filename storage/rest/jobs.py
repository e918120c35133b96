"""Jobs and their files in the management API."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from rest_framework import serializers

from storage.jobs import files, jobs
from storage.jobs.kinds import Failure
from storage.jobs.states import JobStatus, Unit, Wish
from storage.models import Job, JobFile
from storage.rest.answers import TypedSerializer
from storage.rest.paging import PageParameters
from storage.runtime import job_runner


class JobParameters(PageParameters):
    account = serializers.CharField(default="", max_length=24, help_text="Only those of this account.")
    status = serializers.ChoiceField(
        choices=[it.value for it in JobStatus], default="", help_text="Only those with this status."
    )
    user = serializers.CharField(default="", max_length=150, help_text="Only those that this user started.")


class JobFailureSerializer(TypedSerializer):
    subject: Annotated[str, "A line of a file, or the keys of an entity."]
    reason: Annotated[str, {"source": "refusal"}]


class JobFileSerializer(TypedSerializer):
    id: int
    name: str
    size: Annotated[int, "Bytes."]
    expires_at: datetime


class JobSerializer(TypedSerializer):
    # fields of a Job

    id: int
    kind: Annotated[str, "What it does, such as `table.index`."]
    account: Annotated[str, "Empty for a job of the whole server."]
    table: Annotated[str, {"source": "table_name"}, "Empty for a job of a whole account."]
    status: JobStatus
    wish: Annotated[Wish, "What becomes of it after its present step; else empty."]
    started_by: Annotated[str, "Empty for the server."]
    request_id: Annotated[UUID, "Of all its changes in the history."]
    done: int
    total: Annotated[int | None, "Null as long as it is unknown."]
    unit: Annotated[Unit, "What `done` and `total` count."]
    percentage: int | None
    per_second: Annotated[float, {"source": "rate"}]
    seconds_left: Annotated[float | None, "An estimate; null as long as there is none."]
    counts: Annotated[dict[str, int], "Numbers by name, such as `inserted`."]
    failed: Annotated[int, "Lines or entities that could not be done."]
    failures: Annotated[list[JobFailureSerializer], "The first of them."]
    result: dict[str, Any]
    error: Annotated[str, "Why the job failed; else empty."]
    files: Annotated[list[JobFileSerializer], "What can be downloaded."]
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None

    def get_account(self, job: Job) -> str:
        return "" if job.account is None else job.account.name

    def get_started_by(self, job: Job) -> str:
        return jobs.started_by(job).name

    def get_unit(self, job: Job) -> str:
        return job_runner.unit_of(job)

    def get_percentage(self, job: Job) -> int | None:
        return jobs.percentage(job)

    def get_seconds_left(self, job: Job) -> float | None:
        left = jobs.time_left(job)
        return None if left is None else left.total_seconds()

    def get_failures(self, job: Job) -> list[Failure]:
        return jobs.failures_of(job)

    def get_error(self, job: Job) -> str:
        return str(jobs.error_of(job) or "")

    def get_files(self, job: Job) -> list[JobFile]:
        return files.to_download(job)
