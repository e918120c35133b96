"""Imports into tables and exports of tables in the management API."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.db import transaction
from django.http import StreamingHttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from storage.accounts import accounts, quotas
from storage.core.quotas import DOWNLOADS
from storage.domain.access.roles import Capability
from storage.domain.refusals import Reason
from storage.domain.values.numbers import counted, were
from storage.editing.filters.diagnosis import parse_filter
from storage.entities.writing import WriteMode
from storage.jobs import jobs
from storage.jobs.states import JobStatus
from storage.models import Job, JobFile, Table
from storage.people import idempotency_keys
from storage.people.idempotency_keys import ConcurrentRequest
from storage.rest import access, idempotency, problems
from storage.rest.documentation import IDEMPOTENCY_KEY, operation
from storage.rest.jobs import JobSerializer
from storage.rest.negotiation import EscapingRenderer
from storage.rest.problems import Problem
from storage.rest.routing import TABLE, api_path
from storage.rest.uploading import UploadViewSet, discarding
from storage.rest.views import AccountScopedViewSet
from storage.runtime import job_runner
from storage.runtime.threads import Download, TooManyDownloads
from storage.tables import tables
from storage.tabular import proposals
from storage.tabular.encoding_guess import language_of_zone
from storage.tabular.layout import FileFormat, FileRefused, Wishes
from storage.tabular.mapping import ColumnMapping, MappingRefused
from storage.tabular.proposals import ProposedColumn
from storage.transfer import export_jobs, exports, file_work, import_jobs, samples, serializers
from storage.transfer.exports import Export, Scope
from storage.transfer.imports import ImportOutcome


class ImportViewSet(UploadViewSet):
    renderer_classes = (EscapingRenderer,)
    tag = "Import and export"
    capabilities = {"run": Capability.WRITE}

    @operation(
        "import_table",
        "Import a file into a table",
        "The body is the file, of any size: CSV of any dialect, JSON, NDJSON, Excel or Parquet, also as gzip or in a"
        " ZIP file; its media type does not matter. It is received only after the request is authorized. What fits is"
        " imported by a job, which goes on if the client does not wait or the server is stopped; with `dry_run` nothing"
        " is written."
        " The import is one activity that can be undone. A request that is repeated with the same `Idempotency-Key`"
        " answers the job of the first one.",
        query=serializers.ImportParameters,
        answer=serializers.ImportResultSerializer,
        headers=[IDEMPOTENCY_KEY],
        problems=[problems.CONFLICT, problems.KEY_REUSED],
        is_job=True,
        file_examples={
            "text/csv": "country,id,age\nse,1,36\ntr,2,41\n",
            "application/x-ndjson": '{"PartitionKey": "se", "RowKey": "1", "Age": 36}\n',
            "application/octet-stream": "country,id,age\nse,1,36\n",
        },
    )
    def run(self, request: Request, account: str, table: str) -> Response:
        data = self.read_query()
        target = self._find_table(create=data["create"])
        accounts.check_writable(self.account)
        job = self._job_of_same_request()
        if job is not None:
            return self._answer(job)
        file_work.require_room(self.account, by=self.by)
        file = self.receive(data["name"])
        if file is None:
            return self.ask_for_body()
        try:
            with discarding(file):
                job, columns = self._start(target, file, data)
        except ConcurrentRequest:
            job, columns = self._job_of_same_request(), []
            assert job is not None
        except (FileRefused, MappingRefused) as refused:
            raise Problem(problems.INVALID, str(refused)) from None
        return self._answer(job, columns)

    def _find_table(self, *, create: bool) -> Table:
        """Return the table, unsaved if it does not exist and may be created."""
        if not create:
            return self.table()
        table = tables.get_or_new(self.account, self.kwargs["table"])
        if table.pk is None:
            access.check_scope(self.token, Capability.MANAGE_TABLES)
            access.find_account(self.token, self.account.name, Capability.MANAGE_TABLES)
        return table

    def _job_of_same_request(self) -> Job | None:
        key = idempotency.read_key(self.request)
        found = idempotency.find(self.token, key, self._digest, timezone.now()) if key else None
        return None if found is None else jobs.get(int(found.fingerprint))

    @property
    def _digest(self) -> str:
        return idempotency.upload_digest(self.request, self.upload.size)

    def _start(
        self, table: Table, file: JobFile, data: dict[str, Any]
    ) -> tuple[Job, Sequence[ProposedColumn]]:
        """Start the import; return its job and the proposed mapping."""
        format_ = FileFormat(data["format"]) if data["format"] else None
        wishes = Wishes(
            format_,
            encoding=data["encoding"],
            delimiter=data["delimiter"],
            sheet=data["sheet"],
            has_header=data["header"],
            name=data["name"],
            language=language_of_zone(data["zone"]),
        )
        taken = samples.take(file, wishes)
        mapping: ColumnMapping | None = data.get("mapping")
        names: Sequence[str] = taken.rows.layout.columns
        if mapping is None:
            proposal = taken.proposal
            mapping = proposals.complete(proposal, data["partition_key"], data["row_key"])
            mapping, names = proposals.in_zone(proposal, mapping, data["zone"]), proposal.names
        else:
            given = {name: data[name] for name in ("partition_key", "row_key", "zone") if data[name]}
            mapping = replace(mapping, **given)
        mapping.check(names)
        rows, mode = taken.rows, WriteMode(data["mode"])
        with transaction.atomic():
            if data["dry_run"]:
                job = import_jobs.start_check(table, file, rows, mapping, mode, by=self.by, takes_file=True)
            else:
                if table.pk is None:
                    table = tables.create(self.account, table.name, by=self.by)
                job = import_jobs.start(table, file, rows, mapping, mode, by=self.by)
            key = idempotency.read_key(self.request)
            if key:
                idempotency_keys.save(self.token, key, self._digest, self.account, str(job.pk))
        return job, taken.proposal.columns

    def _answer(self, job: Job, columns: Sequence[ProposedColumn] = ()) -> Response:
        if self.is_async:
            return self.answer_job(job)
        job = job_runner.finish(job)
        outcome, error = import_jobs.outcome_of(job), jobs.error_of(job)
        if job.status != JobStatus.DONE:
            error = error or Reason.JOB_STOPPED.of(job=job.pk)
            number = outcome.written
            written = f" {counted(number, 'entity', 'entities')} {were(number)} written by the job {job.pk}."
            done = written if number else ""
            raise Problem(problems.CONFLICT, f"{error}{done}")
        return self.answer(_describe(job, outcome, columns))


def _describe(job: Job, outcome: ImportOutcome, columns: Sequence[ProposedColumn]) -> dict[str, Any]:
    arguments = import_jobs.arguments_of(job)
    names = ("rows", "inserted", "changed", "skipped", "rejected", "repeated")
    return {
        **{name: getattr(outcome, name) for name in names},
        "dry_run": job.kind == import_jobs.IMPORT_CHECK_JOB.name,
        "rejects": outcome.groups.listed(),
        "repeated_keys": [{"first": first, "line": line} for first, line in outcome.repeated_lines],
        "report": outcome.report,
        "layout": json.loads(arguments.layout),
        "mapping": json.loads(arguments.mapping),
        "columns": columns,
        "activity": outcome.activity,
        "job": job,
    }


_JSON = "application/json"


_ENTITIES = {"type": "array", "items": {"type": "object"}}


class ExportViewSet(AccountScopedViewSet):
    tag = "Import and export"
    capabilities = {"export": Capability.READ, "start": Capability.READ}

    @operation(
        "export_table",
        "Export a table",
        "Streams all entities, or those that a filter finds, as a file of any size. Importing it makes equal entities,"
        " except from CSV without types. The export is recorded in the activity log.",
        query=serializers.ExportParameters,
        problems=[problems.CONFLICT],
        other_responses={
            (200, type_): _ENTITIES if type_ == _JSON else OpenApiTypes.BINARY
            for type_ in sorted(set(exports.MEDIA_TYPES.values()))
        },
    )
    def export(self, request: Request, account: str, table: str) -> StreamingHttpResponse:
        export = self._read_export(self.read_query())
        with refusing():
            pieces = exports.start(export)
        # given a synchronous iterator, an ASGI server would first collect all of it
        is_streamed = isinstance(request._request, ASGIRequest)
        try:
            content = Download(pieces, f"token {self.token.pk}") if is_streamed else pieces
        except TooManyDownloads:
            detail = f"A token can have {quotas.limit(DOWNLOADS)} downloads at a time; finish one first."
            raise Problem(problems.TOO_MANY, detail, headers={"Retry-After": "5"}) from None
        name = f"{export.table.name}.{export.format}"
        return StreamingHttpResponse(
            content,
            content_type=exports.MEDIA_TYPES[export.format],
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )

    @operation(
        "start_table_export",
        "Export a table as a job",
        "The job makes a file, which is kept for a day and can be downloaded in parts: see its `files`. It goes on if"
        " the server is stopped.",
        body=serializers.ExportSerializer,
        answer=JobSerializer,
        is_job=True,
        example={"format": "ndjson", "filter": "PartitionKey eq 'se'"},
    )
    def start(self, request: Request, account: str, table: str) -> Response:
        return self.answer_job(export_jobs.start(self._read_export(self.read_body())))

    def _read_export(self, data: dict[str, Any]) -> Export:
        table = self.table()
        filter_ = parse_filter(data["filter"], timezone.now())
        check_library(data["format"])
        return Export(
            table,
            data["format"],
            self.by,
            Scope.TABLE if filter_ is None else Scope.QUERY,
            filter=filter_,
            text=data["filter"],
            escapes_formulas=data["escape_formulas"],
        )


def check_library(format_: str) -> None:
    """Raise Problem for a format without its library."""
    with refusing():
        exports.require_library(format_)


@contextmanager
def refusing() -> Iterator[None]:
    """Raise Problem for the refusal of a format."""
    try:
        yield
    except FileRefused as error:
        raise Problem(problems.CONFLICT, str(error)) from None


urlpatterns = [
    api_path(f"{TABLE}/import", ImportViewSet, "import", post="run"),
    api_path(f"{TABLE}/export", ExportViewSet, "export", get="export", post="start"),
]
