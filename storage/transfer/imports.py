"""Import of a file into a table in chunks, and its check without writing."""

import struct
import tempfile
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
        self._repeated = _RepeatedKeys()

    def __enter__(self) -> Self:
        self._repeated.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._repeated.__exit__()

    def add(self, chunk: Chunk) -> list[Reject]:
        """Process a chunk and return its rejects."""
        outcome, mode, table = self._wanted.outcome, self._wanted.mode, self._wanted.table
        keys = [entity.key for _, entity in chunk.entities]
        existing = existing_keys(table, keys) if table.pk is not None else set()
        chunk_rejects = list(chunk.rejects)
        for row, entity in chunk.entities:
            self._repeated.add(entity.key, row.line)
            if entity.key not in existing:
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
        """Return the outcome, including rows with repeated keys."""
        outcome = self._wanted.outcome
        outcome.repeated, outcome.repeated_lines = self._repeated.count()
        return outcome


_BUCKETS: Final = 64
_RECORD: Final = struct.Struct(">16sq")  # a hash of the keys, and a line
_LISTED: Final = 20


class _RepeatedKeys:
    """Detector of repeated keys in a file, with 24 bytes of disk per row and little memory."""

    def __enter__(self) -> Self:
        self._files = [tempfile.TemporaryFile() for _ in range(_BUCKETS)]  # noqa: SIM115
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()

    def add(self, key: EntityKey, line: int) -> None:
        text = f"{len(key.partition_key)}:{key.partition_key}{key.row_key}"
        digest = blake2b(text.encode(), digest_size=16).digest()
        self._files[digest[0] % _BUCKETS].write(_RECORD.pack(digest, line))

    def count(self) -> tuple[int, list[tuple[int, int]]]:
        """Return the number of rows with repeated keys, and some of them as pairs of first and repeated line."""
        number, lines = 0, list[tuple[int, int]]()
        for file in self._files:
            file.seek(0)
            first: dict[bytes, int] = {}
            for digest, line in _RECORD.iter_unpack(file.read()):
                if first.setdefault(digest, line) != line:
                    number += 1
                    if len(lines) < _LISTED:
                        lines.append((first[digest], line))
        return number, sorted(lines, key=lambda both: both[1])
