"""Jobs and their files."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from storage.api.paging import PageParameters
from storage.api.serializers.fields import InstantField
from storage.domain.service.jobs import JobStatus, Unit, Wish
from storage.models import Job
from storage.operations.jobs import files, jobs
from storage.runtime import job_runner


class JobParameters(PageParameters):
    account = serializers.CharField(default="", max_length=24, help_text="Only those of this account.")
    status = serializers.ChoiceField(
        choices=[it.value for it in JobStatus], default="", help_text="Only those with this status."
    )
    user = serializers.CharField(default="", max_length=150, help_text="Only those that this user started.")


class JobFailureSerializer(serializers.Serializer[Any]):
    subject = serializers.CharField(help_text="A line of a file, or the keys of an entity.")
    reason = serializers.CharField(source="refusal")


class JobFileSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    size = serializers.IntegerField(help_text="Bytes.")
    expires_at = InstantField()


class JobSerializer(serializers.Serializer[Any]):
    # of a Job

    id = serializers.IntegerField()
    kind = serializers.CharField(help_text="What it does, such as `table.index`.")
    account = serializers.SerializerMethodField(help_text="Empty for a job of the whole server.")
    table = serializers.CharField(source="table_name", help_text="Empty for a job of a whole account.")
    status = serializers.ChoiceField(choices=[it.value for it in JobStatus])
    wish = serializers.ChoiceField(
        choices=[it.value for it in Wish], help_text="What becomes of it after its present step; else empty."
    )
    started_by = serializers.SerializerMethodField(help_text="Empty for the server.")
    request_id = serializers.UUIDField(help_text="Of all its changes in the history.")
    done = serializers.IntegerField()
    total = serializers.IntegerField(allow_null=True, help_text="Null as long as it is unknown.")
    unit = serializers.SerializerMethodField(help_text="What `done` and `total` count.")
    percentage = serializers.SerializerMethodField()
    per_second = serializers.FloatField(source="rate")
    seconds_left = serializers.SerializerMethodField(help_text="An estimate; null as long as there is none.")
    counts = serializers.DictField(
        child=serializers.IntegerField(), help_text="Numbers by name, such as `inserted`."
    )
    failed = serializers.IntegerField(help_text="Lines or entities that could not be done.")
    failures = serializers.SerializerMethodField(help_text="The first of them.")
    result = serializers.DictField()
    error = serializers.SerializerMethodField(help_text="Why the job failed; else empty.")
    files = serializers.SerializerMethodField(help_text="What can be downloaded.")
    created_at = InstantField()
    started_at = InstantField(allow_null=True)
    ended_at = InstantField(allow_null=True)

    def get_account(self, job: Job) -> str:
        return "" if job.account is None else job.account.name

    def get_started_by(self, job: Job) -> str:
        return jobs.started_by(job).name

    @extend_schema_field(serializers.ChoiceField(choices=[it.value for it in Unit]))
    def get_unit(self, job: Job) -> str:
        return job_runner.unit_of(job)

    @extend_schema_field(serializers.IntegerField(allow_null=True))
    def get_percentage(self, job: Job) -> int | None:
        return jobs.percentage(job)

    @extend_schema_field(serializers.FloatField(allow_null=True))
    def get_seconds_left(self, job: Job) -> float | None:
        left = jobs.time_left(job)
        return None if left is None else left.total_seconds()

    @extend_schema_field(JobFailureSerializer(many=True))
    def get_failures(self, job: Job) -> Any:
        return JobFailureSerializer(jobs.failures_of(job), many=True).data

    def get_error(self, job: Job) -> str:
        return str(jobs.error_of(job) or "")

    @extend_schema_field(JobFileSerializer(many=True))
    def get_files(self, job: Job) -> Any:
        return JobFileSerializer(files.to_download(job), many=True).data
