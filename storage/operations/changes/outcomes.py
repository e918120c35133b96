"""What became, or would become, of tables that are made equal to something: a snapshot, another account, a time."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from storage.domain.entities.entity import EntityKey
from storage.domain.entities.fits import Misfit
from storage.domain.entities.restoring import Effect, Sample, Skip, Skipped, TableAction
from storage.models import Activity, Snapshot, Table
from storage.sql.restoring import Chunk

EXAMPLES: Final = 100  # of what was skipped in a table


@dataclass(slots=True)
class TableOutcome:
    """The numbers of entities of a table, with examples of those that were skipped.

    ``table`` is the one in which entities are written, if it exists; ``samples`` are of a preview; ``deletion``: that
    of the whole table once it is done.
    """

    name: str
    table: Table | None = field(default=None, compare=False)
    action: TableAction = TableAction.KEEP
    inserted: int = 0
    changed: int = 0
    deleted: int = 0
    unchanged: int = 0
    skipped: int = 0
    examples: list[Skipped] = field(default_factory=list)
    samples: Sequence[Sample] = ()
    policies: bool = False
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


@dataclass(slots=True)
class Outcome:
    """``activity`` is None if no entity was written; ``before``: the snapshot of the state before, if one was taken."""

    tables: list[TableOutcome] = field(default_factory=list)
    service_properties: bool = False
    activity: Activity | None = None
    before: Snapshot | None = None
    seconds: float | None = None
    is_preview: bool = False

    def table(self, name: str) -> TableOutcome:
        """Return what becomes of a table, which is added if it is not there yet."""
        found = next((it for it in self.tables if it.name == name), None)
        if found is None:
            found = TableOutcome(name)
            self.tables.append(found)
        return found

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
        """The tables in which entities were written."""
        return [it for it in self.tables if it.written]

    @property
    def only_table(self) -> Table | None:
        """The only table in which entities were written, or None."""
        written = self.written_tables
        return written[0].table if len(written) == 1 else None

    def detail(self) -> dict[str, object]:
        """Return the numbers that the activity log remembers."""
        return {
            "changed": self.number(Effect.CHANGED),
            "inserted": self.number(Effect.INSERTED),
            "deleted": self.number(Effect.DELETED),
            "skipped": self.skipped,
            "rows": self.written,
            "tables": len(self.written_tables),
        }
