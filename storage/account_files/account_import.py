"""Import of an account from a file: the whole file is checked first, then the account is created completely or not."""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, Final

from django.db import transaction

from storage.access import policies
from storage.account_files import account_building
from storage.account_files.account_building import (
    Building,
    BuildJob,
    BuiltAccount,
    built_by,
)
from storage.account_files.account_copies import CopyRefused, Finding, Fitting
from storage.account_files.account_export import Progress
from storage.account_files.account_files import (
    FileReader,
    FileRefused,
    Header,
    TableInFile,
    table_lines,
)
from storage.accounts import accounts
from storage.accounts.accounts import NewAccount
from storage.accounts.refusals import AccountExists
from storage.domain.access.actor import SERVER, Actor
from storage.domain.entities.entity import Entity
from storage.domain.refusals import Reason
from storage.domain.values.kinds import AccountKind
from storage.jobs import jobs, local, running
from storage.jobs.kinds import JobRequest, Run
from storage.models import Account, Table
from storage.relations import history
from storage.sql import copying
from storage.sql import django as sql
from storage.tables import tables

_AT_ONCE: Final = 1000  # entities
_BYTES_AT_ONCE: Final = 4 << 20
_IN_NEW_ACCOUNT: Final = ("label", "description", "colour", "labels")


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A complete, valid file and the account to create from it, which is impossible if ``findings`` is not empty."""

    stream: BinaryIO
    header: Header
    name: str
    kind: AccountKind
    tables: int
    entities: int
    fitting: Fitting

    @property
    def findings(self) -> Sequence[Finding]:
        return self.fitting.findings


@contextmanager
def opening(path: Path | None, standard_input: BinaryIO) -> Iterator[BinaryIO]:
    """Open a file, or a temporary copy of the standard input, which is read twice."""
    try:
        with TemporaryFile() if path is None else path.open("rb") as stream:
            if path is None:
                shutil.copyfileobj(standard_input, stream)
            yield stream
    except OSError as error:
        place = path or "The standard input"
        raise FileRefused(Reason.FILE_NOT_READ, path=place, why=error.strerror) from None


def check(
    stream: BinaryIO,
    name: str = "",
    kind: AccountKind | None = None,
    *,
    progress: Progress = lambda number: None,
) -> CheckedFile:
    """Read a whole file and collect everything that does not fit; name and kind default to the file's."""
    stream.seek(0)
    reader = FileReader(stream)
    name, kind = name or reader.header.account, kind or reader.header.kind
    _check_name(name)
    fitting = Fitting(kind)
    for table, table_entities in reader.read_tables():
        fitting.check_table(table.name, has_policies=bool(table.policies))
        for entity in table_entities:
            fitting.check_entity(table.name, entity)
            if reader.entities % _AT_ONCE == 0:
                progress(reader.entities)
    return CheckedFile(stream, reader.header, name, kind, reader.tables, reader.entities, fitting)


def load(file: CheckedFile, *, by: Actor = SERVER, progress: Progress = lambda number: None) -> BuiltAccount:
    """Create the account of a checked file; its entities get new Timestamps. Raises CopyRefused."""
    if file.fitting.refused:
        raise CopyRefused(file.fitting.refused)
    account_building.settle(file.name)
    with local.offering((file, progress)) as place:
        job_request = JobRequest(IMPORT_JOB, Arguments(file.name, place), None)
        return built_by(running.complete(job_request, by=by))


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of an import."""

    name: str
    # the place at which the process that has started the job finds the file, see storage.jobs.local
    place: str


class _ImportJob(BuildJob[Arguments]):
    name, arguments = "account.import", Arguments

    def count(self, run: Run[Arguments]) -> int | None:
        found: tuple[CheckedFile, Progress] | None = local.find(run.arguments.place)
        return None if found is None else found[0].entities

    def build(self, building: Building[Arguments]) -> None:
        arguments = building.run.arguments
        offered: tuple[CheckedFile, Progress] | None = local.find(arguments.place)
        if offered is None:
            why = "the process that has read it was ended"
            raise FileRefused(Reason.FILE_NOT_READ, path=arguments.name, why=why)
        _load(building, *offered)


IMPORT_JOB: Final = _ImportJob()
account_building.KINDS[IMPORT_JOB.name] = IMPORT_JOB


def _load(building: Building[Arguments], file: CheckedFile, progress: Progress) -> None:
    header = file.header
    primary, secondary = header.keys or (None, None)
    described = {name: header.settings[name] for name in _IN_NEW_ACCOUNT if name in header.settings}
    account = building.create(file.name, NewAccount(primary, secondary, file.kind, **described))
    if file.kind is AccountKind.STORAGE and header.service_properties is not None:
        account.service_properties = header.service_properties
        account.save(update_fields=("service_properties",))
    file.stream.seek(0)
    reader = FileReader(file.stream)
    for table, table_entities in reader.read_tables():
        _load_table(account, table, table_entities, lambda: progress(reader.entities))
        building.add(reader.entities - building.entities)
    settings = {name: value for name, value in header.settings.items() if name not in described}
    if not history.is_available():
        settings.pop("history_days", None)
    enabled = settings.pop("enabled", True)
    building.release(account, enabled=enabled, settings=settings)


def _check_name(name: str) -> None:
    accounts.check_name(name)
    account = accounts.by_name(name)
    # an account that a killed import has left is replaced
    if account is not None and jobs.of_whole_account(account) is None:
        raise AccountExists(Reason.ACCOUNT_EXISTS, account=name)


def _load_table(
    account: Account, table_in_file: TableInFile, in_table: Iterable[Entity], progress: Callable[[], None]
) -> None:
    """Create a table with its entities in a separate transaction."""
    kind = AccountKind(account.kind)

    def fill(relation: str) -> int:
        count = 0
        for batch in _batches(in_table, kind):
            sql.walk(copying.insert(relation, batch))
            count += len(batch)
            progress()
        return count

    described = Table(
        name=table_in_file.name,
        description=table_in_file.description,
        tags=list(table_in_file.tags),
        throughput=table_in_file.throughput if kind is AccountKind.COSMOS else 0,
    )
    with transaction.atomic():
        table, _ = tables.create_filled(account, described, fill)
        for lines in table_lines():
            lines.add(table, table_in_file.lines.get(lines.name, ()))
        if kind is AccountKind.STORAGE:
            policies.copy(table_in_file.policies, table)


def _batches(in_table: Iterable[Entity], kind: AccountKind) -> Iterator[list[Entity]]:
    batch: list[Entity] = []
    size = 0
    for entity in in_table:
        entity.kind = kind
        batch.append(entity)
        size += len(entity.fragments.content)
        if len(batch) == _AT_ONCE or size > _BYTES_AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
