"""Import of a file into a table in chunks, and its check without writing."""

import sqlite3
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final, Self

from django.utils import timezone

from storage.domain.access.actor import Actor
from storage.domain.entities.entity import EntityKey
from storage.domain.errors import EntityAlreadyExists
from storage.entities.writing import WriteMode, existing_keys, write_many
from storage.models import Activity, Table
from storage.tabular import rejects
from storage.tabular.entities import Chunk
from storage.tabular.rejects import Reject, RejectGroup, RejectGroups
from storage.tabular.report import FileReport

Progress = Callable[["ImportOutcome"], None]
OnRejects = Callable[[Sequence[Reject]], None]


def ignore(_: object) -> None:
    pass


_COUNTS: Final = ("rows", "inserted", "changed", "skipped", "repeated")


@dataclass(slots=True)
class ImportOutcome:
    """Outcome of importing or checking rows."""

    rows: int = 0
    inserted: int = 0
    changed: int = 0  # entities that existed before
    skipped: int = 0  # rows that were left out because their entities exist
    groups: RejectGroups = field(default_factory=RejectGroups)
    repeated: int = 0  # rows with the keys of an earlier row; known of a check only
    repeated_lines: list[tuple[int, int]] = field(default_factory=list)
    activity: Activity | None = None  # None if nothing was written
    # differences between the file and the table that are not rejects
    report: FileReport = field(default_factory=FileReport)

    @property
    def written(self) -> int:
        return self.inserted + self.changed

    @property
    def rejected(self) -> int:
        return self.groups.rows

    def reject(self, found: Sequence[Reject]) -> None:
        for reject in found:
            self.groups.add(reject)

    def repeat(self, first_line: int, line: int) -> None:
        """Count a row with the keys of an earlier one."""
        self.repeated += 1
        if len(self.repeated_lines) < _LISTED:
            self.repeated_lines.append((first_line, line))

    def dump(self) -> dict[str, Any]:
        """Serialize the state after a chunk to JSON for ``load``."""
        counts = {name: getattr(self, name) for name in _COUNTS}
        lines = [list(both) for both in self.repeated_lines]
        rejected = [it.dump() for it in self.groups.listed()]
        return {**counts, "repeated_lines": lines, "rejected": rejected, "report": self.report.dump()}

    @classmethod
    def load(cls, dumped: Mapping[str, Any]) -> Self:
        counts = {name: dumped[name] for name in _COUNTS}
        lines = [(first, line) for first, line in dumped["repeated_lines"]]
        groups = RejectGroups([RejectGroup.load(it) for it in dumped["rejected"]])
        report = FileReport.load(dumped.get("report", {}))
        return cls(**counts, repeated_lines=lines, groups=groups, report=report)


@dataclass(slots=True)
class Import:
    """Import into a table; ``name`` is the file's."""

    table: Table
    mode: WriteMode
    by: Actor
    name: str = ""
    began: datetime = field(default_factory=timezone.now)
    outcome: ImportOutcome = field(default_factory=ImportOutcome)

    def step(self, chunk: Chunk) -> list[Reject]:
        """Write a chunk, in the caller's transaction if there is one; return its rejects.

        On failure, the outcome is unchanged.
        """
        result = write_many(self.table, [entity for _, entity in chunk.entities], self.mode, by=self.by)
        outcome = self.outcome
        outcome.rows += chunk.rows
        outcome.inserted += result.inserted
        outcome.changed += result.changed
        outcome.skipped += result.skipped
        refused = (rejects.of_error(chunk.entities[place][0], error) for place, error in result.refused)
        of_chunk = [*chunk.rejects, *refused]
        outcome.reject(of_chunk)
        outcome.report.add(chunk.report)
        return of_chunk


def read_ahead(chunks: Iterator[Chunk]) -> Generator[Chunk, None, None]:
    """Read the next chunk in a thread while PostgreSQL writes the current one."""
    with ThreadPoolExecutor(1) as reading:
        following = reading.submit(next, chunks, None)
        while (chunk := following.result()) is not None:
            following = reading.submit(next, chunks, None)
            yield chunk


def check(
    table_import: Import,
    chunks: Iterator[Chunk],
    *,
    on_rejects: OnRejects = ignore,
    progress: Progress = ignore,
) -> ImportOutcome:
    """Preview an import by reading everything without writing."""
    with Check(table_import) as checked:
        for chunk in read_ahead(chunks):
            on_rejects(checked.add(chunk))
            progress(table_import.outcome)
        return checked.finish()


class Check:
    """Check of the present outcome of an import, in chunks; the table need not exist."""

    def __init__(self, wanted: Import) -> None:
        self._wanted = wanted
        self._seen = _SeenKeys()

    def __enter__(self) -> Self:
        self._seen.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._seen.__exit__()

    def add(self, chunk: Chunk) -> list[Reject]:
        """Process a chunk and return its rejects."""
        outcome, mode, table = self._wanted.outcome, self._wanted.mode, self._wanted.table
        keys = [entity.key for _, entity in chunk.entities]
        existing = existing_keys(table, keys) if table.pk is not None else set()
        chunk_rejects = list(chunk.rejects)
        for row, entity in chunk.entities:
            first_line = self._seen.add(entity.key, row.line)
            if first_line is not None:
                outcome.repeat(first_line, row.line)
            if first_line is None and entity.key not in existing:
                outcome.inserted += 1
            elif mode is WriteMode.INSERT:
                chunk_rejects.append(rejects.of_error(row, EntityAlreadyExists()))
            elif mode is WriteMode.SKIP:
                outcome.skipped += 1
            else:
                outcome.changed += 1
        outcome.rows += chunk.rows
        outcome.reject(chunk_rejects)
        outcome.report.add(chunk.report)
        return chunk_rejects

    def finish(self) -> ImportOutcome:
        return self._wanted.outcome


_LISTED: Final = 20
_CACHE: Final = 64 * 1024  # KiB; more keys than fit are in a temporary file
_SETTINGS: Final = f"""
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -{_CACHE};
CREATE TABLE seen (key BLOB PRIMARY KEY, line INTEGER) WITHOUT ROWID;
"""


class _SeenKeys:
    """Keys of the rows before, as hashes in a private database that grows into a temporary file."""

    def __enter__(self) -> Self:
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.executescript(_SETTINGS)
        self._database.execute("BEGIN")
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def add(self, key: EntityKey, line: int) -> int | None:
        """Add a key; return the line of its first row, None if it is the first."""
        text = f"{len(key.partition_key)}:{key.partition_key}{key.row_key}"
        digest = blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
        added = self._database.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (digest, line))
        if added.rowcount:
            return None
        [(first,)] = self._database.execute("SELECT line FROM seen WHERE key = ?", (digest,))
        return int(first)
