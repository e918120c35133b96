"""Imports as jobs: a step writes a chunk, and commits with it where the next one begins and what was rejected."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from threading import Lock
from typing import Any, Final

from storage.domain.access.roles import Capability
from storage.domain.refusals import Reason
from storage.domain.service.activity import Verb
from storage.domain.service.jobs import FAILURES_KEPT, JobStatus
from storage.domain.values.kinds import AccountKind
from storage.models import Activity, JobFile
from storage.operations.activity import activity
from storage.operations.entities.imports import Import, ImportMode, ImportOutcome
from storage.operations.jobs import files
from storage.operations.jobs.kinds import Failure, JobKind, Run, Step
from storage.transfer.entities import Chunk
from storage.transfer.file import RowFile
from storage.transfer.layout import FileRefused, Layout
from storage.transfer.mapping import ColumnMapping
from storage.transfer.rejects import Reject, RejectWriter
from storage.transfer.rows import Position

_OPEN_FILES: Final = 8  # that this process keeps open between steps


@dataclass(frozen=True, slots=True)
class ImportArguments:
    """What to import: a file of jobs, how it is read, and what becomes of its columns, as JSON."""

    file: int
    layout: Mapping[str, Any]
    mapping: Mapping[str, Any]
    mode: str


@dataclass(frozen=True, slots=True)
class ImportState:
    """``position``: where the next chunk begins; ``outcome``: what became of the rows before it."""

    began: str
    position: tuple[int, int, int] = (0, 0, 0)
    outcome: Mapping[str, Any] = field(default_factory=lambda: ImportOutcome().dump())


class ImportJob(JobKind[ImportArguments, ImportState]):
    """Write the rows of an uploaded file into a table; the rejected ones are a file of the job."""

    name = "entity.import"
    arguments, state, capability = ImportArguments, ImportState, Capability.WRITE

    def begin(self, run: Run[ImportArguments]) -> Step[ImportState]:
        source, layout = _file(run), Layout.load(dict(run.arguments.layout))
        assert run.job.started_at is not None
        state = ImportState(run.job.started_at.isoformat())
        # bytes; of other files rows are counted, and it is not known how many there are
        return Step(state, total=source.size if layout.can_seek else None)

    def step(self, run: Run[ImportArguments], state: ImportState) -> Step[ImportState]:
        start = Position(*state.position)
        chunk = _next_chunk(run, state, start)
        if chunk is None:
            return Step(state, is_finished=True)
        wanted = _import(run, state)
        rejects = wanted.step(chunk)
        _keep_rejects(run, rejects)
        after = ImportState(state.began, chunk.position, wanted.outcome.dump())
        before = ImportOutcome.load(state.outcome)
        counts = {
            name: getattr(wanted.outcome, name) - getattr(before, name)
            for name in ("inserted", "changed", "skipped")
        }
        failures = [_failure(it) for it in rejects[:FAILURES_KEPT]]
        can_seek = Layout.load(dict(run.arguments.layout)).can_seek
        done = chunk.position.offset - start.offset if can_seek else chunk.rows
        return Step(after, done=done, counts=counts, failures=failures)

    def end(self, run: Run[ImportArguments], state: ImportState | None, status: JobStatus) -> Activity | None:
        _forget(run.job.pk)
        for file in files.of_job(run.job):
            if not file.is_complete:
                files.complete(file)  # the rejected rows
        if state is None:
            return None
        wanted = _import(run, state)
        detail = wanted.detail()
        if not detail:
            return None
        if status is not JobStatus.DONE:
            detail["interrupted"] = True
        return activity.record(
            Verb.ENTITY_IMPORT, run.by, account=run.account, table=wanted.table, detail=detail
        )

    def read_state(self, written: Mapping[str, Any] | None) -> ImportState | None:
        return None if written is None else ImportState(**{**written, "position": tuple(written["position"])})


IMPORT_JOB: Final = ImportJob()


def arguments_for(
    file: JobFile, source: RowFile, mapping: ColumnMapping, mode: ImportMode
) -> ImportArguments:
    """Return the arguments of a job that imports a file; it must belong to the job: see jobs.start."""
    return ImportArguments(file.pk, asdict(source.layout), mapping.dump(), mode.value)


def open_rows(file: JobFile, layout: Layout | None = None) -> RowFile:
    """Return a file of jobs as rows; raises FileRefused."""
    return RowFile(lambda: files.open_file(file), known=layout)


def _file(run: Run[ImportArguments]) -> JobFile:
    found = JobFile.objects.filter(pk=run.arguments.file, is_complete=True).first()
    if found is None:
        raise FileRefused(Reason.FILE_NOT_READ, path="-", why="it has expired")
    return found


def _import(run: Run[ImportArguments], state: ImportState) -> Import:
    return Import(
        run.table,
        ImportMode(run.arguments.mode),
        run.by,
        _file(run).name,
        datetime.fromisoformat(state.began),
        ImportOutcome.load(state.outcome),
    )


# Files stay open between the steps of a job, because a compressed one has to be read again up to where it was.


@dataclass(slots=True)
class _OpenFile:
    chunks: Iterator[Chunk]
    position: Position
    size: int = 0


_open: Final[OrderedDict[int, _OpenFile]] = OrderedDict()
_opening: Final = Lock()


def _next_chunk(run: Run[ImportArguments], state: ImportState, start: Position) -> Chunk | None:
    with _opening:
        found = _open.pop(run.job.pk, None)
    if found is None or found.position != start:  # a step was rolled back, or done by another process
        found = _OpenFile(iter(()), start)
        source = open_rows(_file(run), Layout.load(dict(run.arguments.layout)))
        kind, now = AccountKind(run.account.kind), datetime.fromisoformat(state.began)
        mapping = ColumnMapping.load(run.arguments.mapping)
        found.chunks = source.chunks(mapping, kind, now, start, lambda: found.size)
    found.size = run.size
    chunk = next(found.chunks, None)
    if chunk is not None:
        found.position = chunk.position
        with _opening:
            _open[run.job.pk] = found
            while len(_open) > _OPEN_FILES:
                _open.popitem(last=False)
    return chunk


def _forget(job: int) -> None:
    with _opening:
        _open.pop(job, None)


# rejects


def _keep_rejects(run: Run[ImportArguments], rejects: list[Reject]) -> None:
    if not rejects:
        return
    writer = RejectWriter(Layout.load(dict(run.arguments.layout)))
    file = files.of_run(run, f"rejects.{writer.extension}", "text/csv" if writer.extension == "csv" else "")
    files.append(file, (b"" if file.size else writer.head()) + writer.write(rejects))


def _failure(reject: Reject) -> Failure:
    return Failure(str(reject.row.line), Reason.OTHER.of(text=reject.sentence))
