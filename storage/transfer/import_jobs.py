"""Jobs for imports and their checks, of uploaded files and of a command's local file."""

import json
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import partial
from threading import Lock
from typing import Any, Final, Protocol, TypeVar

from django.db import transaction

from storage.accounts import accounts
from storage.activity import activity
from storage.domain.access.actor import Actor
from storage.domain.access.roles import Capability
from storage.domain.refusals import Reason
from storage.domain.values.kinds import AccountKind
from storage.editing.input_context import InputContext
from storage.entities.writing import WriteMode
from storage.jobs import files, jobs, local, running
from storage.jobs.kinds import (
    Failure,
    JobKind,
    JobRequest,
    NoState,
    Run,
    Step,
)
from storage.jobs.states import JobStatus, Unit
from storage.models import Activity, Job, JobFile, Table
from storage.tabular.entities import Chunk
from storage.tabular.file import RowFile
from storage.tabular.layout import (
    NO_WISHES,
    FileRefused,
    Layout,
    Wishes,
)
from storage.tabular.mapping import ColumnMapping
from storage.tabular.rejects import Reject, RejectGroup, RejectWriter
from storage.tabular.rows import START, Position
from storage.transfer import file_work
from storage.transfer.imports import Check, Import, ImportOutcome, OnRejects, Progress, ignore, read_ahead
from storage.transfer.subject import TransferVerb

_OPEN_FILES: Final = 8  # that this process keeps open between steps
_COUNTED: Final = ("inserted", "changed", "skipped")


class _Arguments(Protocol):
    @property
    def mode(self) -> str: ...


A = TypeVar("A", bound=_Arguments)


@dataclass(frozen=True, slots=True)
class ImportArguments:
    """Arguments of an import or check: the file, its layout and mapping.

    Layout and mapping are JSON texts, because names of columns may hold characters that PostgreSQL's JSON cannot.
    """

    file: int
    layout: str
    mapping: str
    mode: str
    new_table: str = ""  # the name of a table that does not exist when a file is checked
    left: str = ""  # groups of rows that the check before it has rejected, and that were not repaired

    @property
    def unit(self) -> Unit:
        """Return the unit of progress: bytes, or rows of unknown total for files without seek."""
        return Unit.BYTES if self.read_layout().can_seek else Unit.ROWS

    def read_layout(self) -> Layout:
        return Layout.load(json.loads(self.layout))

    def read_mapping(self) -> ColumnMapping:
        return ColumnMapping.load(json.loads(self.mapping))


@dataclass(frozen=True, slots=True)
class ImportState:
    """State of an import between chunks."""

    began: str
    position: Position = START  # the position at which the next chunk begins
    # the outcome of the rows before ``position``
    outcome: Mapping[str, Any] = field(default_factory=lambda: ImportOutcome().dump())


class _RowsJob(JobKind[A, ImportState]):
    """Base of jobs that write rows of a file into a table, one chunk per step."""

    state, capability = ImportState, Capability.WRITE

    @abstractmethod
    def file_name(self, run: Run[A]) -> str: ...

    @abstractmethod
    def report(self, run: Run[A], rejects: list[Reject], outcome: ImportOutcome) -> None:
        """Store the rejects of a chunk, in the transaction that writes the rest."""

    def begin(self, run: Run[A]) -> Step[ImportState]:
        assert run.job.started_at is not None
        return Step(self.state(run.job.started_at.isoformat()))

    def step(self, run: Run[A], state: ImportState) -> Step[ImportState]:
        chunk: Chunk | None = run.prepared
        if chunk is None:
            return Step(state, is_finished=True)
        table_import = Import(run.table, WriteMode(run.arguments.mode), run.by)
        table_import.outcome = ImportOutcome.load(state.outcome)
        rejects = table_import.step(chunk)
        self.report(run, rejects, table_import.outcome)
        after = replace(state, position=chunk.position, outcome=table_import.outcome.dump())
        in_bytes = self.unit(run.arguments) is Unit.BYTES
        return Step(
            after,
            done=chunk.position.offset - state.position.offset if in_bytes else chunk.rows,
            counts={name: after.outcome[name] - state.outcome[name] for name in _COUNTED},
            failures=list(map(_failure, rejects)),
        )

    def end(self, run: Run[A], state: ImportState | None, status: JobStatus) -> Activity | None:
        detail = None if state is None else self.describe(run, state)
        if not detail:
            return None
        if status is not JobStatus.DONE:
            detail["interrupted"] = True
        return activity.record(
            TransferVerb.IMPORT, run.by, account=run.account, table=run.job.table, detail=detail
        )

    def describe(self, run: Run[A], state: ImportState) -> dict[str, Any]:
        """Return the details of an import for the activity log; empty if no entity was written."""
        outcome = ImportOutcome.load(state.outcome)
        if not outcome.written:
            return {}
        counts = {name: getattr(outcome, name) for name in _COUNTED}
        names = {"file": self.file_name(run), "mode": run.arguments.mode}
        return {**names, **counts, "rows": outcome.written, "began": state.began}

    def read_state(self, written: Mapping[str, Any] | None) -> ImportState | None:
        if written is None:
            return None
        return self.state(**{**written, "position": Position(*written.get("position", START))})


class ImportJob(_RowsJob[ImportArguments]):
    """Job that imports an uploaded file; rejected rows go to a file of the job."""

    name, arguments, parses_files = "entity.import", ImportArguments, True

    def unit(self, arguments: ImportArguments) -> Unit:
        return arguments.unit

    def file_name(self, run: Run[ImportArguments]) -> str:
        return _file(run).name

    def begin(self, run: Run[ImportArguments]) -> Step[ImportState]:
        return replace(super().begin(run), total=_total(run))

    def prepare(self, run: Run[ImportArguments], state: ImportState) -> Chunk | None:
        return _next_chunk(run, state)

    def report(self, run: Run[ImportArguments], rejects: list[Reject], outcome: ImportOutcome) -> None:
        _keep_rejects(run, rejects)

    def end(self, run: Run[ImportArguments], state: ImportState | None, status: JobStatus) -> Activity | None:
        _forget(run.job.pk)
        _complete_rejects(run)
        return super().end(run, state, status)


IMPORT_JOB: Final = ImportJob()


@dataclass(frozen=True, slots=True)
class LocalArguments:
    """The arguments of an import by a command, which reads the file itself."""

    file: str  # its name
    place: str  # the place at which the command's process finds the rows, see storage.jobs.local
    mode: str = ""


@dataclass(frozen=True, slots=True)
class LocalState(ImportState):
    """The state of an import by a command."""

    began: str = ""
    # entries that a command before 2.0 has written for the activity log
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _LocalRows:
    wanted: Import
    chunks: Iterator[Chunk]
    on_rejects: OnRejects
    progress: Progress

    def tell(self, rejects: list[Reject], outcome: ImportOutcome) -> None:
        self.wanted.outcome = outcome
        self.on_rejects(rejects)
        self.progress(outcome)


class LocalImportJob(_RowsJob[LocalArguments]):
    """Job that imports a command's local file; another process that takes it over ends it."""

    name, arguments, state = "entity.import-local", LocalArguments, LocalState

    def unit(self, arguments: LocalArguments) -> Unit:
        return Unit.ROWS

    def file_name(self, run: Run[LocalArguments]) -> str:
        return run.arguments.file

    def prepare(self, run: Run[LocalArguments], state: ImportState) -> Chunk | None:
        return next(self._rows(run).chunks, None)

    def report(self, run: Run[LocalArguments], rejects: list[Reject], outcome: ImportOutcome) -> None:
        transaction.on_commit(partial(self._rows(run).tell, rejects, outcome))

    def describe(self, run: Run[LocalArguments], state: ImportState) -> dict[str, Any]:
        assert isinstance(state, LocalState)
        return {**state.detail} or super().describe(run, state)

    def _rows(self, run: Run[LocalArguments]) -> _LocalRows:
        rows: _LocalRows | None = local.find(run.arguments.place)
        if rows is None:
            why = "the process that has read it was ended"
            raise FileRefused(Reason.FILE_NOT_READ, path=run.arguments.file or "-", why=why)
        return rows


LOCAL_IMPORT_JOB: Final = LocalImportJob()


def run(
    table_import: Import,
    chunks: Iterator[Chunk],
    *,
    on_rejects: OnRejects = ignore,
    progress: Progress = ignore,
) -> ImportOutcome:
    """Import a local file as a job in this thread."""
    account, table = table_import.table.account, table_import.table
    accounts.check_writable(account)
    with (
        closing(read_ahead(chunks)) as ahead,
        local.offering(_LocalRows(table_import, ahead, on_rejects, progress)) as place,
    ):
        arguments = LocalArguments(table_import.name, place, table_import.mode.value)
        request = JobRequest(LOCAL_IMPORT_JOB, arguments, account, table)
        table_import.outcome.activity = running.complete(request, by=table_import.by).activity
    return table_import.outcome


class ImportCheckJob(JobKind[ImportArguments, NoState]):
    """Job that previews an import; rejected rows go to a file of the job."""

    name, is_transactional, parses_files = "entity.import-check", False, True
    arguments, state, capability = ImportArguments, NoState, Capability.WRITE

    def unit(self, arguments: ImportArguments) -> Unit:
        return arguments.unit

    def begin(self, run: Run[ImportArguments]) -> Step[NoState]:
        return Step(NoState(), total=_total(run))

    def step(self, run: Run[ImportArguments], state: NoState) -> Step[NoState]:
        files.discard_results(run.job)  # an interrupted process may have left some
        run.save(Step(state, starts_over=True))
        table_import = Import(_table_or_new(run), WriteMode(run.arguments.mode), run.by)
        source = open_rows(_file(run), run.arguments.read_layout(), check=run.look)
        context = InputContext(table_import.began, AccountKind(run.account.kind))
        last, in_bytes = START, run.arguments.unit is Unit.BYTES
        chunks = source.chunks(run.arguments.read_mapping(), context)
        with Check(table_import) as check:
            for chunk in chunks:
                rejects = check.add(chunk)
                done = chunk.position.offset - last.offset if in_bytes else chunk.rows
                last = chunk.position
                with transaction.atomic():
                    _keep_rejects(run, rejects)
                    run.save(Step(state, done=done))
                run.rest()
            outcome = check.finish()
        counts = {name: getattr(outcome, name) for name in ("inserted", "changed", "skipped", "rejected")}
        result = {"outcome": outcome.dump()}
        return Step(state, counts=counts, result=result, is_finished=True)

    def end(self, run: Run[ImportArguments], state: NoState | None, status: JobStatus) -> None:
        _complete_rejects(run)


IMPORT_CHECK_JOB: Final = ImportCheckJob()


def arguments_for(file: JobFile, source: RowFile, mapping: ColumnMapping, mode: WriteMode) -> ImportArguments:
    """Return the arguments to import a file, which must be attached to the job: see jobs.start."""
    layout, columns = json.dumps(asdict(source.layout)), json.dumps(mapping.dump())
    return ImportArguments(file.pk, layout, columns, mode.value)


@transaction.atomic
def start(
    table: Table, file: JobFile, source: RowFile, mapping: ColumnMapping, mode: WriteMode, *, by: Actor
) -> Job:
    """Start a job that imports a file and takes it over; raises TooMuchFileWork."""
    file_work.require_room(table.account, by=by)
    arguments = arguments_for(file, source, mapping, mode)
    return jobs.start(IMPORT_JOB, arguments, account=table.account, table=table, files=[file], by=by)


@transaction.atomic
def start_check(
    table: Table,
    file: JobFile,
    source: RowFile,
    mapping: ColumnMapping,
    mode: WriteMode,
    *,
    by: Actor,
    takes_file: bool = False,
    left: Sequence[RejectGroup] = (),
) -> Job:
    """Start a job that checks an import; the table need not exist."""
    file_work.require_room(table.account, by=by)
    arguments, exists = arguments_for(file, source, mapping, mode), table.pk is not None
    if left:
        arguments = replace(arguments, left=json.dumps([group.dump() for group in left]))
    if not exists:
        arguments = replace(arguments, new_table=table.name)
    return jobs.start(
        IMPORT_CHECK_JOB,
        arguments,
        account=table.account,
        table=table if exists else None,
        files=[file] if takes_file else (),
        by=by,
    )


def arguments_of(job: Job) -> ImportArguments:
    """Return the arguments of an import or a check."""
    return IMPORT_JOB.read_arguments(job.arguments)


def outcome_of(job: Job) -> ImportOutcome:
    """Return the outcome of an ended import or check."""
    if job.kind == IMPORT_CHECK_JOB.name:
        dumped = job.result.get("outcome")
    else:
        dumped = None if job.state is None else job.state["outcome"]
    outcome = ImportOutcome() if dumped is None else ImportOutcome.load(dumped)
    if job.activity_id is not None:
        outcome.activity = Activity.objects.filter(pk=job.activity_id).first()
    return outcome


def groups_of(check: Job) -> list[RejectGroup]:
    """Return a check's groups of rejected rows; while it runs, the groups of the previous check."""
    if "outcome" in check.result:
        return outcome_of(check).groups.listed()
    left = arguments_of(check).left
    return [RejectGroup.load(it) for it in json.loads(left)] if left else []


def open_rows(
    file: JobFile,
    layout: Layout | None = None,
    wishes: Wishes = NO_WISHES,
    check: Callable[[], object] = lambda: None,
) -> RowFile:
    """Open a stored file as rows, with a known layout or a detected one; raises FileRefused.

    ``check`` is called many times per second while reading, and may raise to stop.
    """
    return RowFile(lambda: files.open_file(file), wishes, layout, check)


def _table_or_new(run: Run[ImportArguments]) -> Table:
    name = run.arguments.new_table
    return Table(account=run.account, name=name) if name else run.table


def _total(run: Run[ImportArguments]) -> int | None:
    return _file(run).size if run.arguments.unit is Unit.BYTES else None


def _file(run: Run[ImportArguments]) -> JobFile:
    found = JobFile.objects.filter(pk=run.arguments.file, is_complete=True).first()
    if found is None:
        raise FileRefused(Reason.FILE_NOT_READ, path="-", why="it has expired")
    return found


# Files stay open between the steps of a job, because a compressed one has to be read again up to where it was.


@dataclass(slots=True)
class _OpenFile:
    """File opened for several steps; ``size`` and ``look`` belong to the current one."""

    position: Position
    chunks: Iterator[Chunk] = field(default_factory=lambda: iter(()))
    size: int = 0
    look: Callable[[], object] = lambda: None


_open: Final[OrderedDict[int, _OpenFile]] = OrderedDict()
_opening: Final = Lock()


def _next_chunk(run: Run[ImportArguments], state: ImportState) -> Chunk | None:
    start = state.position
    with _opening:
        opened = _open.pop(run.job.pk, None)
    if opened is None or opened.position != start:  # a step was rolled back, or done by another process
        opened = _OpenFile(start)
        source = open_rows(_file(run), run.arguments.read_layout(), check=lambda: opened.look())
        context = InputContext(datetime.fromisoformat(state.began), AccountKind(run.account.kind))
        mapping = run.arguments.read_mapping()
        opened.chunks = source.chunks(mapping, context, start, lambda: opened.size)
    opened.size, opened.look = run.size, run.look
    chunk = next(opened.chunks, None)
    if chunk is not None:
        opened.position = chunk.position
        with _opening:
            _open[run.job.pk] = opened
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
    writer = RejectWriter(run.arguments.read_layout())
    file = files.of_run(run, f"rejects.{writer.extension}", "text/csv" if writer.extension == "csv" else "")
    files.append(file, (b"" if file.size else writer.head()) + writer.write(rejects))


def _complete_rejects(run: Run[ImportArguments]) -> None:
    for file in files.of_job(run.job):
        if not file.is_complete:
            files.complete(file)


def _failure(reject: Reject) -> Failure:
    return Failure(str(reject.row.line), Reason.OTHER.of(text=reject.sentence))
