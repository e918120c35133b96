"""Bulk edits of all entities that match a query, in the management API."""

import json
from datetime import datetime
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from storage.bulk_edit import bulk_edit_jobs, bulk_edit_previews, serializers
from storage.bulk_edit.bulk_edit_jobs import BulkEditOutcome
from storage.bulk_edit.bulk_edit_previews import BulkEditPreview
from storage.bulk_edit.bulk_edits import BulkEditRequest, Counts
from storage.domain.access.roles import Capability
from storage.domain.entities.entity import StoredEntity
from storage.domain.values.ticks import to_datetime, to_ticks
from storage.editing.bulk_edit import InvalidOperation
from storage.rest import problems
from storage.rest.documentation import operation
from storage.rest.negotiation import EscapingRenderer
from storage.rest.problems import FieldError, Problem
from storage.rest.routing import TABLE, api_path
from storage.rest.views import AccountScopedViewSet
from storage.runtime import job_runner


class BulkEditViewSet(AccountScopedViewSet):
    renderer_classes = (EscapingRenderer,)
    tag = "Bulk edit"
    capabilities = {"edit": Capability.WRITE}

    @operation(
        "bulk_edit",
        "Edit all entities that a query finds",
        "Sets, removes, renames, copies and converts properties, changes keys, or deletes, in chunks of up to 1,000"
        " entities. An entity that cannot be edited as asked, or that is written meanwhile, is left alone and counted."
        " The edit is a job, which goes on if the client does not wait or the server is stopped, and one activity that"
        " can be undone. With `dry_run` nothing is written.",
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
            pointer = f"/operations/{error.index}" + (f"/{error.member}" if error.member else "")
            raise Problem(problems.INVALID, error.text, errors=[FieldError(error.text, pointer)]) from None
        if self.is_async:
            return self.answer_job(job)
        return self.answer(_describe_run(bulk_edit_jobs.outcome_of(job_runner.finish(job))))


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
        "samples": [{"before": _members(it.stored), "after": _members(it.result)} for it in preview.samples],
        "can_undo": preview.can_undo,
        "read_at": to_datetime(preview.read_at),
        "activity": None,
    }


def _describe_counts(counts: Counts) -> dict[str, Any]:
    return {
        **{name: getattr(counts, name) for name in ("changed", "moved", "deleted", "unchanged", "skipped")},
        "obstacles": [
            {
                "kind": obstacle.kind,
                "property": obstacle.property,
                "detail": obstacle.detail,
                "entities": number,
                "examples": [key for key, met in counts.examples if met == obstacle],
            }
            for obstacle, number in counts.obstacles.most_common()
        ],
    }


def _members(stored: StoredEntity | None) -> dict[str, Any] | None:
    if stored is None:
        return None
    found: dict[str, Any] = json.loads(b"{%b%b}" % (stored.keys, stored.content))
    return found


urlpatterns = [
    api_path(f"{TABLE}/bulk-edit", BulkEditViewSet, "bulk-edit", post="edit"),
]
