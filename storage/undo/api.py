"""Undo of recorded changes in the management API."""

from typing import Final

from rest_framework.request import Request
from rest_framework.response import Response

from storage.domain.access.roles import Capability
from storage.domain.entities.entity import EntityKey
from storage.domain.entities.restoring import Effect
from storage.history.changes import ChangeFilter
from storage.rest import problems
from storage.rest.documentation import operation
from storage.rest.routing import ACCOUNT, api_path
from storage.rest.views import AccountScopedViewSet
from storage.undo import data_undo, serializers
from storage.undo.outcome_jobs import outcome_of
from storage.undo.outcomes import Outcome, TableOutcome

_SAMPLE: Final = 10


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
        is_job=True,
        example={"actor": "nightly import", "from": "2026-11-21T14:33:00Z", "to": "2026-11-21T14:50:00Z"},
    )
    def undo(self, request: Request, account: str) -> Response:
        data = self.read_body()
        criteria = ChangeFilter(
            table=data["table"],
            caller=data["actor"],
            requests=(str(data["request"]),) if data["request"] else (),
            numbers=tuple(data["ids"]),
            since=data["from"],
            until=data["to"],
            entity=None if data["PartitionKey"] is None else EntityKey(data["PartitionKey"], data["RowKey"]),
        )
        if data["dry_run"]:
            return self._answer_outcome(data_undo.preview(self.account, criteria, sample=_SAMPLE))
        undo = data_undo.request(self.account, criteria)
        return self.answer_by_job(undo, lambda job: self._answer_outcome(outcome_of(job)))

    def _answer_outcome(self, done: Outcome) -> Response:
        tables = [_describe(it) for it in done.tables]
        return self.answer({"is_preview": done.is_preview, "tables": tables, "activity": done.activity})


def _describe(table: TableOutcome) -> dict[str, object]:
    return {
        "table": table.name,
        "sample": [*(it for it in table.examples[:_SAMPLE] if it.key), *table.samples],
        **{effect.value: table.number(effect) for effect in Effect},
    }


urlpatterns = [
    api_path(f"{ACCOUNT}/undo", UndoViewSet, "undo", post="undo"),
]
