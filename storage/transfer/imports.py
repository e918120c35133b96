"""Import a file into a table: chunks of rows that are written set-wise, each in a transaction with the progress.

What the protocol refuses is refused here by the same code, row by row: it becomes a reject. All changes of an import
have one request id in the history, so that it is undone as one. A chunk is a step that can be driven from anywhere;
``run`` drives all of them here, and ``check`` reads everything and writes nothing.
"""

import struct
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from hashlib import blake2b
from typing import Any, Final, Self

from django.db import transaction
from django.utils import timezone

from storage.accounts import accounts
from storage.activity import activity
from storage.domain.access.actor import Actor
from storage.domain.access.roles import Capability
from storage.domain.entities.changes import Insert, Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import EntityAlreadyExists, StorageError
from storage.domain.refusals import Reason
from storage.domain.requests.outcomes import is_server_failure
from storage.jobs import local, running
from storage.jobs.kinds import (
    JobKind,
    JobRequest,
    Run,
    Step,
)
from storage.jobs.states import JobStatus, Unit
from storage.metrics import table_use
from storage.models import Activity, Table
from storage.relations import history, table_relations
from storage.sql import django as sql
from storage.sql import entities as statements
from storage.sql import pages
from storage.sql.distribution import capabilities_of
from storage.sql.history import Recorder
from storage.sql.long_keys import is_long
from storage.sql.relations import relation_of
from storage.tabular import rejects
from storage.tabular.entities import Chunk
from storage.tabular.layout import FileRefused
from storage.tabular.rejects import Reject, RejectGroup, RejectGroups
from storage.tabular.report import FileReport
from storage.tabular.rows import Row
from storage.transfer.subject import TransferVerb


class ImportMode(StrEnum):
    """What happens to an entity that exists."""

    INSERT = "insert"  # the row is rejected
    SKIP = "skip"  # the entity stays, and the row is counted
    MERGE = "merge"
    REPLACE = "replace"


Progress = Callable[["ImportOutcome"], None]
OnRejects = Callable[[Sequence[Reject]], None]


def _ignore(_: object) -> None:
    pass


_COUNTS: Final = ("rows", "inserted", "changed", "skipped", "repeated")


@dataclass(slots=True)
class ImportOutcome:
    """What became of the rows of a file, or would become of them.

    ``changed`` entities existed before; ``skipped`` rows were left out because theirs does. ``repeated`` rows, known
    of a check only, have keys that an earlier row has. ``activity`` is None if nothing was written. ``report``: what
    else of the file is not in the table as it stands there.
    """

    rows: int = 0
    inserted: int = 0
    changed: int = 0
    skipped: int = 0
    groups: RejectGroups = field(default_factory=RejectGroups)
    repeated: int = 0
    repeated_lines: list[tuple[int, int]] = field(default_factory=list)
    activity: Activity | None = None
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
        """Return the state after a chunk as JSON, for ``load`` to go on with."""
        counts = {name: getattr(self, name) for name in _COUNTS}
        lines = [list(both) for both in self.repeated_lines]
        rejected = [it.dump() for it in self.groups.listed()]
        return {**counts, "repeated_lines": lines, "rejected": rejected, "report": self.report.dump()}

    @classmethod
    def load(cls, found: Mapping[str, Any]) -> Self:
        counts = {name: found[name] for name in _COUNTS}
        lines = [(first, line) for first, line in found["repeated_lines"]]
        groups = RejectGroups([RejectGroup.load(it) for it in found["rejected"]])
        report = FileReport.load(found.get("report", {}))
        return cls(**counts, repeated_lines=lines, groups=groups, report=report)


@dataclass(slots=True)
class Import:
    """An import into a table. ``name`` is that of the file, for the activity log."""

    table: Table
    mode: ImportMode
    by: Actor
    name: str = ""
    began: datetime = field(default_factory=timezone.now)
    outcome: ImportOutcome = field(default_factory=ImportOutcome)

    def __post_init__(self) -> None:
        # one for all changes: see changes.selection_of
        self.by = replace(self.by, request_id=self.by.request_id or str(uuid.uuid4()))

    def step(self, chunk: Chunk, save: Callable[[Mapping[str, Any]], None] = _ignore) -> list[Reject]:
        """Write a chunk in a transaction, in which ``save`` is called with what the activity log will have.

        Returns all rejects of the chunk. If it fails, the outcome is that before it.
        """
        outcome, found = self._write_and_save(chunk, save)
        self.outcome = outcome
        return found

    def _write_and_save(
        self, chunk: Chunk, save: Callable[[Mapping[str, Any]], None]
    ) -> tuple[ImportOutcome, list[Reject]]:
        @sql.repeatable
        def write() -> tuple[ImportOutcome, list[Reject]]:
            written = _write(self.table, chunk.entities, self.mode, self.by)
            before = self.outcome
            outcome = ImportOutcome(
                before.rows + chunk.rows,
                before.inserted + written.inserted,
                before.changed + written.changed,
                before.skipped + written.skipped,
            )
            save(self._describe(outcome))
            return outcome, [*chunk.rejects, *written.rejects]

        outcome, found = write()
        # only now: what is repeated would be counted twice
        outcome.groups, outcome.report = self.outcome.groups, self.outcome.report
        outcome.reject(found)
        outcome.report.add(chunk.report)
        return outcome, found

    def detail(self) -> dict[str, object]:
        """Return what the activity log has of it; nothing if no entity was written."""
        return self._describe(self.outcome)

    def _describe(self, outcome: ImportOutcome) -> dict[str, object]:
        if not outcome.written:
            return {}
        return {
            "file": self.name,
            "mode": self.mode.value,
            "inserted": outcome.inserted,
            "changed": outcome.changed,
            "skipped": outcome.skipped,
            "rows": outcome.written,
            "began": self.began.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class Arguments:
    """``place``: where the process that has started the job finds the rest, see operations.jobs.local."""

    file: str
    place: str


@dataclass(frozen=True, slots=True)
class State:
    """``detail``: what the activity log has of it."""

    detail: Mapping[str, Any] = field(default_factory=dict)


_COUNTED: Final = ("inserted", "changed", "skipped")


class _LocalImportJob(JobKind[Arguments, State]):
    """Write the rows of a file that only the process of a command can read."""

    name, arguments, state, capability = "entity.import-local", Arguments, State, Capability.WRITE
    is_transactional = False

    def unit(self, arguments: Arguments) -> Unit:
        return Unit.ROWS

    def begin(self, run: Run[Arguments]) -> Step[State]:
        return Step(State())

    def step(self, run: Run[Arguments], state: State) -> Step[State]:
        found: tuple[Import, Iterator[Chunk], OnRejects, Progress] | None = local.find(run.arguments.place)
        if found is None:
            why = "the process that has read it was ended"
            raise FileRefused(Reason.FILE_NOT_READ, path=run.arguments.file or "-", why=why)
        wanted, chunks, on_rejects, progress = found
        wanted.by = replace(wanted.by, request_id=run.by.request_id)
        saved: dict[str, int] = {}
        for chunk in _ahead(chunks):

            def save(detail: Mapping[str, Any], chunk: Chunk = chunk) -> None:
                counted = {name: detail.get(name, 0) for name in _COUNTED}
                counts = {name: number - saved.get(name, 0) for name, number in counted.items()}
                run.save(Step(State(detail), done=chunk.rows, counts=counts))
                saved.update(counted)

            on_rejects(wanted.step(chunk, save))
            progress(wanted.outcome)
            run.rest()
        return Step(State(wanted.detail()), is_finished=True)

    def end(self, run: Run[Arguments], state: State | None, status: JobStatus) -> Activity | None:
        if state is None or not state.detail:
            return None
        interrupted = {} if status is JobStatus.DONE else {"interrupted": True}
        return activity.record(
            TransferVerb.IMPORT,
            run.by,
            account=run.account,
            table=run.job.table,
            detail={**state.detail, **interrupted},
        )


LOCAL_IMPORT_JOB: Final = _LocalImportJob()


def run(
    wanted: Import,
    chunks: Iterator[Chunk],
    *,
    on_rejects: OnRejects = _ignore,
    progress: Progress = _ignore,
) -> ImportOutcome:
    """Write all chunks. What was written before a failure stays, and the activity log has it as interrupted.

    Raises StorageError if the account or the table refuses writes.
    """
    account, table = wanted.table.account, wanted.table
    accounts.check_writable(account)
    with local.offering((wanted, chunks, on_rejects, progress)) as place:
        request = JobRequest(LOCAL_IMPORT_JOB, Arguments(wanted.name, place), account, table)
        wanted.outcome.activity = running.complete(request, by=wanted.by).activity
    return wanted.outcome


def _ahead(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Read the next chunk in a thread while PostgreSQL writes the present one."""
    with ThreadPoolExecutor(1) as reading:
        following = reading.submit(next, chunks, None)
        while (chunk := following.result()) is not None:
            following = reading.submit(next, chunks, None)
            yield chunk


def check(
    wanted: Import,
    chunks: Iterator[Chunk],
    *,
    on_rejects: OnRejects = _ignore,
    progress: Progress = _ignore,
) -> ImportOutcome:
    """Say what an import would do now; reads everything and writes nothing."""
    with Check(wanted) as checked:
        for chunk in _ahead(chunks):
            on_rejects(checked.add(chunk))
            progress(wanted.outcome)
        return checked.finish()


class Check:
    """What an import would do now, chunk by chunk. Without a table that exists, no entity does."""

    def __init__(self, wanted: Import) -> None:
        self._wanted = wanted
        self._repeated = _RepeatedKeys()

    def __enter__(self) -> Self:
        self._repeated.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._repeated.__exit__()

    def add(self, chunk: Chunk) -> list[Reject]:
        """Look at a chunk, and return its rejects."""
        outcome, mode, table = self._wanted.outcome, self._wanted.mode, self._wanted.table
        keys = [entity.key for _, entity in chunk.entities]
        existing = _present(table, keys) if table.pk is not None else set()
        found = list(chunk.rejects)
        for row, entity in chunk.entities:
            self._repeated.add(entity.key, row.line)
            if entity.key not in existing:
                outcome.inserted += 1
            elif mode is ImportMode.INSERT:
                found.append(rejects.of_error(row, EntityAlreadyExists()))
            elif mode is ImportMode.SKIP:
                outcome.skipped += 1
            else:
                outcome.changed += 1
        outcome.rows += chunk.rows
        outcome.reject(found)
        outcome.report.add(chunk.report)
        return found

    def finish(self) -> ImportOutcome:
        """Return the outcome, with the rows that repeat keys."""
        outcome = self._wanted.outcome
        outcome.repeated, outcome.repeated_lines = self._repeated.count()
        return outcome


_BUCKETS: Final = 64
_RECORD: Final = struct.Struct(">16sq")  # a hash of the keys, and a line
_LISTED: Final = 20


class _RepeatedKeys:
    """Finds keys that a file has more than once, with 24 bytes of disk per row and little memory."""

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
        """Return how many rows repeat keys, and the lines of some of them with those of the first row."""
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


# a chunk


@dataclass(slots=True)
class _Written:
    inserted: int = 0
    changed: int = 0
    skipped: int = 0
    rejects: list[Reject] = field(default_factory=list)


def _write(table: Table, found: Sequence[tuple[Row, Entity]], mode: ImportMode, by: Actor) -> _Written:
    """Write entities in the order of the file, in the caller's transaction."""
    account = accounts.writable(table.account)
    written = _Written()
    if not found:
        return written
    table_relations.complete(table.pk)
    recorder = history.recorder(account, by)
    for several in _rounds(found):
        _write_round(table, several, mode, recorder, written)
    if written.inserted or written.changed:
        table_use.record_write(table)
    return written


_Round = dict[EntityKey, tuple[Row, Entity]]


def _rounds(found: Sequence[tuple[Row, Entity]]) -> Iterable[_Round]:
    """Divide entities so that none comes twice, and that of those with the same keys the later ones come later."""
    rounds: list[_Round] = []
    times: dict[EntityKey, int] = {}
    for row, entity in found:
        place = times.get(entity.key, 0)
        times[entity.key] = place + 1
        if place == len(rounds):
            rounds.append({})
        rounds[place][entity.key] = row, entity
    return rounds


def _write_round(
    table: Table, several: _Round, mode: ImportMode, recorder: Recorder | None, written: _Written
) -> None:
    relation = relation_of(table)
    is_insertion = mode in (ImportMode.INSERT, ImportMode.SKIP)
    existing: set[EntityKey] = set()
    if not is_insertion:
        existing = _present(table, list(several))
    # in the order of keys, in which other writers lock them too
    changes = {key: _change(several[key][1], mode) for key in sorted(several)}
    done = _change_together(relation, [it for key, it in changes.items() if not is_long(key)], recorder)
    for key, change in changes.items():
        if key in done:
            continue
        if is_insertion and done and not is_long(key):
            error: StorageError | None = EntityAlreadyExists()
        else:
            error = _change_alone(relation, change, recorder)
        if error is None:
            done[key] = 0
        elif mode is ImportMode.SKIP and isinstance(error, EntityAlreadyExists):
            written.skipped += 1
        else:
            written.rejects.append(rejects.of_error(several[key][0], error))
    changed = len(existing & done.keys())
    written.changed += changed
    written.inserted += len(done) - changed


def _change(entity: Entity, mode: ImportMode) -> Insert | Upsert:
    if mode in (ImportMode.INSERT, ImportMode.SKIP):
        return Insert(entity)
    return Upsert(entity, merge=mode is ImportMode.MERGE)


def _change_together(
    relation: str, changes: Sequence[Insert | Upsert], recorder: Recorder | None
) -> dict[EntityKey, int]:
    """Make those changes that are possible in one statement; return the keys of those that were made."""
    statement = statements.change_all(relation, changes, recorder) if changes else None
    return {} if statement is None else dict(sql.run(statement))


def _change_alone(relation: str, change: Insert | Upsert, recorder: Recorder | None) -> StorageError | None:
    """Make a change by itself; return why it is refused."""
    try:
        with transaction.atomic():  # a refusal may be an error of PostgreSQL
            sql.run(statements.change(relation, change, recorder))
    except StorageError as error:
        if is_server_failure(error.status):
            raise
        return error
    return None


def _present(table: Table, keys: Sequence[EntityKey]) -> set[EntityKey]:
    relation = relation_of(table)
    if not keys:
        return set()
    if capabilities_of(table).joins_partitions:
        return sql.run(statements.present(relation, list(dict.fromkeys(keys))))
    return set(sql.walk(pages.get_many(relation, keys)))
