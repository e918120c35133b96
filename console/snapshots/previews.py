"""Previews of a restore."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import Any, Final

from django.http import QueryDict
from django.utils.text import capfirst

from console.site.effects import Effect, list_effects
from storage.access import policies
from storage.branches import snapshot_restores
from storage.branches.snapshot_restores import RestoreRequest
from storage.domain.access.policies import SignedIdentifier
from storage.domain.errors import OperationTimedOut, StorageError
from storage.models import Account, Snapshot, SnapshotTable
from storage.snapshots import snapshots
from storage.undo.outcomes import Outcome, TableOutcome

LIMIT: Final = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Choices:
    """Selected parts of a snapshot, from the address; ``left_out`` are table names."""

    left_out: frozenset[str] = frozenset()
    with_settings: bool = False
    deletes_new: bool = False

    @classmethod
    def read(cls, query: QueryDict) -> "Choices":
        return cls(frozenset(query.getlist("without")), "settings" in query, "new" in query)

    def request(self, snapshot: Snapshot) -> RestoreRequest:
        names = [it.name for it in snapshots.tables(snapshot) if it.name not in self.left_out]
        return RestoreRequest(
            tables=names if self.left_out else None,
            with_policies=self.with_settings,
            with_settings=self.with_settings,
            deletes_new=self.deletes_newer(snapshot),
        )

    def deletes_newer(self, snapshot: Snapshot) -> bool:
        """Return whether newer tables are deleted, which only a restore of a whole account can."""
        return self.deletes_new and snapshot.is_whole and not self.left_out


@dataclass(frozen=True, slots=True)
class PolicyEffect:
    """Policies of a table that a restore adds, changes and removes."""

    table: str
    added: Sequence[str]
    changed: Sequence[str]
    removed: Sequence[str]


@dataclass(frozen=True, slots=True)
class Preview:
    """Preview of a restore; ``plan`` covers all tables, None on timeout."""

    snapshot: Snapshot
    choices: Choices
    plan: Outcome | None
    effects: Sequence[PolicyEffect] = ()

    @property
    def tables(self) -> Sequence[SnapshotTable]:
        return snapshots.tables(self.snapshot)

    @property
    def deletes_newer(self) -> bool:
        return self.choices.deletes_newer(self.snapshot)

    @property
    def as_of(self) -> str:
        """Return the time at which a grid shows the snapshot's state, while the history is kept."""
        return f"{self.snapshot.taken_at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"

    @property
    def changed(self) -> Sequence[TableOutcome]:
        return self.plan.changed_tables if self.plan else ()

    @property
    def identical(self) -> int:
        return len(self.plan.tables) - len(self.changed) if self.plan else 0

    @property
    def wanted(self) -> Sequence[TableOutcome]:
        return [it for it in self.changed if it.name not in self.choices.left_out]

    @property
    def effects_text(self) -> str:
        """Return what a restore does to entities, such as "Insert 5, change 1"; empty if unknown or nothing."""
        numbers = {
            Effect.INSERT: sum(it.inserted for it in self.wanted),
            Effect.CHANGE: sum(it.changed for it in self.wanted),
            Effect.DELETE: sum(it.deleted for it in self.wanted),
        }
        return capfirst(list_effects(numbers))

    @property
    def is_empty(self) -> bool:
        return self.plan is not None and not self.wanted and not self.plan.service_properties


def preview(snapshot: Snapshot, choices: Choices) -> Preview:
    """Preview a restore within a time limit."""
    restore_request = RestoreRequest(
        with_policies=choices.with_settings,
        with_settings=choices.with_settings,
        deletes_new=choices.deletes_newer(snapshot),
    )
    try:
        plan = snapshot_restores.preview(snapshot, restore_request, limit=LIMIT)
    except OperationTimedOut:
        return Preview(snapshot, choices, None)
    return Preview(snapshot, choices, plan, list(_effects(snapshot, plan)))


def _effects(snapshot: Snapshot, plan: Outcome) -> Any:
    then = {it.name: it for it in snapshots.tables(snapshot)}
    for table in plan.tables:
        if not table.policies:
            continue
        snapshot_table = then[table.name]
        after = {it.identifier: it for it in policies.read(snapshot_table.policies)}
        before = _present(snapshot.account, snapshot_table.folded_name)
        yield PolicyEffect(
            table.name,
            sorted(after.keys() - before.keys()),
            sorted(name for name in after.keys() & before.keys() if after[name] != before[name]),
            sorted(before.keys() - after.keys()),
        )


def _present(account: Account, folded_name: str) -> dict[str, SignedIdentifier]:
    try:
        return {it.identifier: it for it in policies.stored_by_name(account, folded_name)}
    except StorageError:
        return {}  # the table is missing
