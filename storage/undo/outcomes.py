"""Outcomes, actual or previewed, of making tables equal to a snapshot, another account or a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from storage.domain.entities.entity import EntityKey
from storage.domain.entities.fits import Misfit
from storage.domain.entities.restoring import Effect, Sample, Skip, Skipped, TableAction
from storage.domain.values.stored import read_member
from storage.models import Account, Activity, Snapshot, Table
from storage.sql.restoring import Chunk

EXAMPLES: Final = 100  # examples of skipped entities of a table


@dataclass(slots=True)
class TableOutcome:
    """Outcome for one table: numbers of entities, and examples of skipped ones."""

    name: str
    table: Table | None = field(
        default=None, compare=False
    )  # the one in which entities are written, if it exists
    action: TableAction = TableAction.KEEP
    inserted: int = 0
    changed: int = 0
    deleted: int = 0
    unchanged: int = 0
    skipped: int = 0
    examples: list[Skipped] = field(default_factory=list)
    samples: Sequence[Sample] = ()  # entities of a preview
    policies: bool = False
    # the deletion of the whole table, once it is done
    deletion: Activity | None = field(default=None, compare=False)

    @property
    def written(self) -> int:
        return self.inserted + self.changed + self.deleted

    @property
    def is_created(self) -> bool:
        return self.action is TableAction.CREATE

    @property
    def is_deleted(self) -> bool:
        return self.action is TableAction.DELETE

    @property
    def is_unchanged(self) -> bool:
        return self.action is TableAction.KEEP and not (self.written or self.skipped or self.policies)

    def number(self, effect: Effect) -> int:
        found: int = getattr(self, effect.value)
        return found

    def add(self, chunk: Chunk) -> None:
        for effect in Effect:
            setattr(self, effect.value, self.number(effect) + getattr(chunk, effect.value))
        self.examples += chunk.examples[: EXAMPLES - len(self.examples)]

    def skip(self, key: EntityKey | None, reason: Skip, misfit: Misfit | None = None) -> None:
        self.skipped += key is not None
        if len(self.examples) < EXAMPLES:
            self.examples.append(Skipped(key, reason, misfit))

    def dump(self) -> dict[str, Any]:
        return {
            "table": self.name,
            "id": None if self.table is None else self.table.pk,
            "action": self.action.value,
            **{effect.value: self.number(effect) for effect in Effect},
            "examples": [[it.key and [*it.key], it.reason, it.misfit] for it in self.examples],
            "policies": self.policies,
            "deletion": None if self.deletion is None else self.deletion.pk,
        }

    @classmethod
    def load(cls, stored: Mapping[str, Any], tables: Mapping[int, Table]) -> Self:
        return cls(
            stored["table"],
            tables.get(stored["id"]),
            read_member(TableAction, stored["action"]),
            **{effect.value: stored[effect] for effect in Effect},
            examples=[
                Skipped(
                    key and EntityKey(*key),
                    read_member(Skip, reason),
                    misfit and read_member(Misfit, misfit),
                )
                for key, reason, misfit in stored["examples"]
            ],
            policies=stored["policies"],
            deletion=Activity.objects.filter(pk=stored["deletion"]).first() if stored["deletion"] else None,
        )


@dataclass(slots=True)
class Outcome:
    """The outcome for all tables."""

    tables: list[TableOutcome] = field(default_factory=list)
    service_properties: bool = False
    activity: Activity | None = None  # None if no entity was written
    before: Snapshot | None = None  # the snapshot of the state before, if one was taken
    seconds: float | None = None
    is_preview: bool = False

    def dump(self) -> dict[str, Any]:
        """Serialize the outcome so far to JSON for ``load``."""
        return {
            "tables": [it.dump() for it in self.tables],
            "service_properties": self.service_properties,
            "before": "" if self.before is None else self.before.name,
            "seconds": self.seconds,
        }

    @classmethod
    def load(cls, stored: Mapping[str, Any], account: Account, done: Activity | None = None) -> Self:
        if not stored:
            return cls(activity=done)
        ids = [it["id"] for it in stored["tables"] if it["id"]]
        tables = Table.objects.select_related("account").in_bulk(ids)
        before = Snapshot.objects.filter(account=account, name=stored["before"]).first()
        return cls(
            [TableOutcome.load(it, tables) for it in stored["tables"]],
            stored["service_properties"],
            done,
            before if stored["before"] else None,
            stored["seconds"],
        )

    def table(self, name: str) -> TableOutcome:
        """Return the outcome of a table, adding an empty one if needed."""
        outcome = next((it for it in self.tables if it.name == name), None)
        if outcome is None:
            outcome = TableOutcome(name)
            self.tables.append(outcome)
        return outcome

    def number(self, effect: Effect) -> int:
        return sum(it.number(effect) for it in self.tables)

    @property
    def written(self) -> int:
        return sum(it.written for it in self.tables)

    @property
    def skipped(self) -> int:
        return self.number(Effect.SKIPPED)

    @property
    def changed_tables(self) -> list[TableOutcome]:
        return [it for it in self.tables if not it.is_unchanged]

    @property
    def written_tables(self) -> list[TableOutcome]:
        """Return the outcomes of tables in which entities were written."""
        return [it for it in self.tables if it.written]

    @property
    def only_table(self) -> Table | None:
        """Return the only table in which entities were written; None for none or several."""
        written = self.written_tables
        return written[0].table if len(written) == 1 else None

    def detail(self) -> dict[str, object]:
        """Return the numbers for the activity log."""
        return {
            "changed": self.number(Effect.CHANGED),
            "inserted": self.number(Effect.INSERTED),
            "deleted": self.number(Effect.DELETED),
            "skipped": self.skipped,
            "rows": self.written,
            "tables": len(self.written_tables),
        }
