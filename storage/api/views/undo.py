"""Undo recorded changes of entities."""

from dataclasses import dataclass
from typing import Final

from rest_framework.request import Request
from rest_framework.response import Response

from storage.api import problems
from storage.api.documentation import operation
from storage.api.serializers import undo as serializers
from storage.api.views.base import AccountScopedViewSet
from storage.domain.access.roles import Capability
from storage.domain.entities.entity import EntityKey
from storage.domain.entities.restoring import Effect, Skip
from storage.operations.changes.changes import ChangeFilter
from storage.operations.changes.reverting import Reverted
from storage.operations.undo import data_undo
from storage.operations.undo.data_undo import TablePreview

_SAMPLE: Final = 10


@dataclass(frozen=True, slots=True)
class UndoneEntity:
    key: EntityKey
    effect: Effect
    reason: Skip | None = None


class UndoViewSet(AccountScopedViewSet):
    tag = "Undo"
    capabilities = {"undo": Capability.MANAGE_TABLES}

    @operation(
        "undo_changes",
        "Undo changes of entities",
        "Entities get back what they were before the selected changes, as far as nothing else changed them since. The"
        " undo itself is recorded, and can be undone by its request ID. With `dry_run` nothing is written.",
        body=serializers.UndoSerializer,
        answer=serializers.UndoResultSerializer,
        problems=[problems.CONFLICT],
        example={"actor": "nightly import", "from": "2026-11-21T14:33:00Z", "to": "2026-11-21T14:50:00Z"},
    )
    def undo(self, request: Request, account: str) -> Response:
        data = self.read_body()
        wanted = ChangeFilter(
            table=data["table"],
            caller=data["actor"],
            requests=(str(data["request"]),) if data["request"] else (),
            numbers=tuple(data["ids"]),
            since=data["from"],
            until=data["to"],
        )
        if data["dry_run"]:
            preview = data_undo.preview(self.account, wanted, sample=_SAMPLE)
            tables = [_foreseen(it) for it in preview.tables]
            return self.answer({"dry_run": True, "tables": tables, "activity": None, "request": None})
        undone = data_undo.undo(self.account, wanted, by=self.by)
        activity = undone.activity
        return self.answer(
            {
                "dry_run": False,
                "tables": [_done(table.name, it) for table, it in undone.tables],
                "activity": activity and activity.pk,
                "request": activity and activity.request_id,
            }
        )


def _foreseen(preview: TablePreview) -> dict[str, object]:
    sample = [
        UndoneEntity(
            it.key,
            it.effect,
            (Skip.CHANGED if it.now else Skip.GONE) if it.effect is Effect.SKIPPED else None,
        )
        for it in preview.samples
    ]
    return {"table": preview.table.name, "sample": sample} | {
        effect.value: number for effect, number in preview.numbers.items()
    }


def _done(table: str, done: Reverted) -> dict[str, object]:
    sample = [UndoneEntity(it.key, Effect.SKIPPED, it.reason) for it in done.examples[:_SAMPLE]]
    return {
        "table": table,
        "changed": done.changed,
        "inserted": done.inserted,
        "deleted": done.deleted,
        "skipped": done.skipped,
        "unchanged": done.unchanged,
        "sample": sample,
    }
