"""Bulk edits of all entities that match a query, in the management API."""

import json
from datetime import datetime
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from storage.bulk_edit import bulk_edit_jobs, bulk_edit_previews, bulk_edits, serializers
from storage.bulk_edit.bulk_edit_jobs import BulkEditOutcome
from storage.bulk_edit.bulk_edit_previews import BulkEditPreview
from storage.bulk_edit.bulk_edit_work import BulkEditRequest
from storage.bulk_edit.bulk_edits import COUNTED, Counts
from storage.domain.access.roles import Capability
from storage.domain.entities.entity import StoredEntity
from storage.domain.values.ticks import to_datetime, to_ticks
from storage.editing.bulk_edit import InvalidOperation
from storage.rest import access, problems
from storage.rest.documentation import operation
from storage.rest.negotiation import EscapingRenderer
from storage.rest.problems import FieldError, Problem
from storage.rest.routing import TABLE, api_path
from storage.rest.views import AccountScopedViewSet
from storage.runtime import job_runner


class BulkEditViewSet(AccountScopedViewSet):
    renderer_classes = (EscapingRenderer,)
    tag = "Bulk edit"
    capabilities = {"edit": Capability.WRITE, "check_copies": Capability.READ}

    @operation(
        "bulk_edit",
        "Edit all entities that a query finds",
        "Sets, removes, renames, copies and converts properties, changes keys, makes second copies of entities under"
        " other keys or in another table, or deletes, in chunks of up to 1,000 entities. An entity that cannot be"
        " edited as asked, or that is written meanwhile, is left alone and counted. The edit is a job, which goes on if"
        " the client does not wait or the server is stopped, and one activity that can be undone. With `dry_run`"
        " nothing is written. Second copies in a table that does not exist need the role maintainer.",
        body=serializers.BulkEditSerializer,
        answer=serializers.BulkEditResultSerializer,
        problems=[problems.CONFLICT],
        is_job=True,
        example={
            "filter": "PartitionKey eq 'store-001' and Status eq 'returned'",
            "operations": [{"op": "set", "property": "Status", "expression": "'refunded'"}],
            "dry_run": True,
        },
    )
    def edit(self, request: Request, account: str, table: str) -> Response:
        data, target = self.read_body(), self.table()
        edit_request = BulkEditRequest(data["filter"], data["operations"], data["allow_loss"])
        read_at: datetime | None = data["read_at"]
        try:
            for capability in bulk_edits.needed_capabilities(target, edit_request):
                access.check_scope(self.token, capability)
                access.find_account(self.token, self.account.name, capability)
            if data["dry_run"]:
                return self.answer(_describe_preview(bulk_edit_previews.preview(target, edit_request)))
            job = bulk_edit_jobs.start(
                target,
                edit_request,
                by=self.by,
                number=data["number"],
                read_at=None if read_at is None else to_ticks(read_at),
            )
        except InvalidOperation as error:
            raise _invalid(error) from None
        if self.is_async:
            return self.answer_job(job)
        return self.answer(_describe_run(bulk_edit_jobs.outcome_of(job_runner.finish(job))))

    @operation(
        "check_second_copies",
        "Check second copies",
        "Compares the second copies that operations make with their originals, without writing: which are missing,"
        " which differ, and which are left over because their original is gone. To repair them, send the same"
        " operations as a bulk edit, with `replace` and `delete_left_over`.",
        body=serializers.CopiesCheckSerializer,
        answer=serializers.CopiesCheckResultSerializer,
        example={
            "filter": "RowKey ge 'id_' and RowKey lt 'id`'",
            "operations": [
                {
                    "op": "second-copy",
                    "row_key": "'mail_' + Email",
                    "copies": "RowKey ge 'mail_' and RowKey lt 'mail`'",
                }
            ],
        },
    )
    def check_copies(self, request: Request, account: str, table: str) -> Response:
        data, target = self.read_body(), self.table()
        edit_request = BulkEditRequest(data["filter"], data["operations"], data["allow_loss"]).repairing()
        if edit_request is None:
            raise problems.invalid("The last operation must be second-copy.", "/operations")
        try:
            return self.answer(
                _describe_check(bulk_edit_previews.preview(target, edit_request, is_check=True))
            )
        except InvalidOperation as error:
            raise _invalid(error) from None


def _invalid(error: InvalidOperation) -> Problem:
    pointer = f"/operations/{error.index}" + (f"/{error.member}" if error.member else "")
    return Problem(problems.INVALID, error.text, errors=[FieldError(error.text, pointer)])


def _describe_check(preview: BulkEditPreview) -> dict[str, Any]:
    counts = preview.counts
    is_in_step = preview.is_in_step if preview.is_complete or counts.written or counts.skipped else None
    pairs: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
    for it in preview.samples:
        pairs[it.replaced is not None].append({"original": it.old_key, "copy": it.key})
    return {
        "in_step": is_in_step,
        "complete": preview.is_complete,
        "examined": preview.examined,
        "up_to_date": counts.unchanged,
        "missing": counts.copied,
        "differing": counts.replaced,
        "left_over": counts.left_over,
        "obstacles": _describe_obstacles(counts),
        "missing_examples": pairs[False],
        "differing_examples": pairs[True],
        "left_over_examples": [it.old_key for it in preview.left_over],
        "read_at": to_datetime(preview.read_at),
    }


def _describe_run(done: BulkEditOutcome) -> dict[str, Any]:
    counts, progress = done.counts, done.progress
    number = counts.seen
    return {
        **_describe_counts(counts),
        "dry_run": False,
        "matches": number,
        "exact": True,
        "examined": number,
        "complete": True,
        "losses": [],
        "types": [],
        "samples": [],
        "can_undo": done.can_undo,
        "read_at": to_datetime(progress.read_at),
        "activity": done.activity,
    }


def _describe_preview(preview: BulkEditPreview) -> dict[str, Any]:
    return {
        **_describe_counts(preview.counts),
        "dry_run": True,
        "matches": preview.matches,
        "exact": preview.is_exact,
        "examined": preview.examined,
        "complete": preview.is_complete,
        "losses": [{**it._asdict(), "entities": number} for it, number in preview.losses.most_common()],
        "types": [{**it._asdict(), "entities": number} for it, number in preview.types.most_common()],
        "samples": [
            {"before": _members(it.replaced or it.stored), "after": _members(it.result)}
            for it in (*preview.samples, *preview.left_over)
        ],
        "can_undo": preview.can_undo,
        "read_at": to_datetime(preview.read_at),
        "activity": None,
    }


def _describe_counts(counts: Counts) -> dict[str, Any]:
    return {
        **{name: getattr(counts, name) for name in COUNTED},
        "obstacles": _describe_obstacles(counts),
    }


def _describe_obstacles(counts: Counts) -> list[dict[str, Any]]:
    return [
        {
            "kind": obstacle.kind,
            "property": obstacle.property,
            "detail": obstacle.detail,
            "entities": number,
            "examples": [key for key, met in counts.examples if met == obstacle],
        }
        for obstacle, number in counts.obstacles.most_common()
    ]


def _members(stored: StoredEntity | None) -> dict[str, Any] | None:
    if stored is None:
        return None
    found: dict[str, Any] = json.loads(b"{%b%b}" % (stored.keys, stored.content))
    return found


urlpatterns = [
    api_path(f"{TABLE}/second-copies/check", BulkEditViewSet, "second-copies-check", post="check_copies"),
    api_path(f"{TABLE}/bulk-edit", BulkEditViewSet, "bulk-edit", post="edit"),
]
