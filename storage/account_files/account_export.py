"""Export of an account to a file as a consistent snapshot, while clients write to it."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO, Final

from django.utils import timezone

from storage.account_files.account_files import (
    SETTINGS_IN_FILE,
    FileRefused,
    FileWriter,
    Header,
    TableInFile,
)
from storage.accounts import sealed_keys
from storage.accounts.refusals import busy
from storage.compare import sides
from storage.compare.sides import Side, SideTable
from storage.domain.entities.entity import StoredEntity
from storage.domain.entities.moments import Moment
from storage.domain.errors import TableNotFound
from storage.domain.filters.query import EntityQuery
from storage.domain.refusals import Reason
from storage.domain.values.kinds import AccountKind
from storage.domain.values.ticks import to_datetime
from storage.entities import entities
from storage.history import past
from storage.history.past import Past
from storage.jobs import jobs
from storage.models import Account, Table
from storage.sql import django as sql
from storage.tables import tables

Progress = Callable[[int], None]  # is called with the number of entities so far

_PAST_SECONDS: Final = (
    10.0  # for which the record of later changes is looked up; it grows by the minute at most
)


@contextmanager
def opening(path: Path | None, standard_output: BinaryIO) -> Iterator[BinaryIO]:
    """Open the standard output (None), or a private file that replaces ``path`` once complete."""
    draft = None
    try:
        if path is None:
            yield standard_output
            standard_output.flush()
            return
        if path.exists() and not path.is_file():
            raise FileRefused(Reason.FILE_NOT_WRITTEN, path=path, why="it is not a file")
        with NamedTemporaryFile(
            dir=path.parent, prefix=f".{path.name}.", suffix=".part", delete=False
        ) as file:
            draft = Path(file.name)
            yield file  # type: ignore[misc]
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        place = path or "the standard output"
        raise FileRefused(Reason.FILE_NOT_WRITTEN, path=place, why=error.strerror) from None
    finally:
        if draft is not None:
            draft.unlink(missing_ok=True)


def export(
    account: Account, stream: BinaryIO, *, with_keys: bool = False, progress: Progress = lambda number: None
) -> FileWriter:
    """Write an account to a stream; return the writer with its counts."""
    if jobs.of_whole_account(account) is not None:
        raise busy(account.name)
    with _one_moment(account) as side:
        writer = FileWriter(stream, _header(side, with_keys=with_keys))
        for table in side.tables.values():
            writer.write_table(
                TableInFile(table.name, table.description, table.tags, table.table.throughput, table.policies)
            )
            if isinstance(table.table, Table):
                writer.write_lines(table.table)
            for page in _pages(table, side.moment):
                writer.write_entities(page)
                progress(writer.entities)
        writer.close()
    return writer


@contextmanager
def _one_moment(account: Account) -> Iterator[Side]:
    own = tables.listed(account)
    if past.kept_since(account) is not None and all(it.form.capabilities.has_past for it in own):
        yield sides.as_of(account, past.closed_present())
    else:
        with sql.repeatable_read():
            yield sides.live(account)


def _header(side: Side, *, with_keys: bool) -> Header:
    account = side.account
    settings = {name: getattr(account, name) for name in SETTINGS_IN_FILE}
    if account.frozen_at is not None:
        settings["enabled"] = True  # the end of its lifetime froze it, which the file does not have
    return Header(
        account.name,
        AccountKind(account.kind),
        settings,
        side.service_properties,
        sealed_keys.keys_of(account) if with_keys else (),
        (timezone.now() if side.moment is None else to_datetime(side.moment.ticks)).isoformat(),
    )


def _pages(source: SideTable, moment: Moment | None) -> Iterator[list[StoredEntity]]:
    table, past_of_table = source.table, source.past
    assert isinstance(table, Table)
    start, looked_up_at = None, time.monotonic()
    while True:
        if moment is not None and time.monotonic() - looked_up_at > _PAST_SECONDS:
            past_of_table, looked_up_at = _find_again(table, moment), time.monotonic()
        query = EntityQuery(start=start)
        try:
            page = entities.page(table, query, past_of_table)
        except TableNotFound:
            if moment is None:
                raise
            # it was deleted, and its entities are kept under another name
            past_of_table = _find_again(table, moment)
            page = entities.page(table, query, past_of_table)
        yield page.entities
        if page.next is None:
            return
        start = page.next


def _find_again(table: Table, moment: Moment) -> Past:
    try:
        table.refresh_from_db()
    except Table.DoesNotExist:
        raise FileRefused(Reason.TABLE_GONE, table=table.name) from None
    return past.find(table, moment)
