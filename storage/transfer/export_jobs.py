"""Jobs that export a table, the entities that match a query, or several tables to a file for download."""

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import BinaryIO, Final

from storage.domain.access.actor import Actor
from storage.domain.access.roles import Capability
from storage.domain.errors import ResourceNotFound
from storage.domain.filters.parser import parse
from storage.domain.values import dialects
from storage.entities import entities
from storage.jobs import jobs
from storage.jobs.exporting import (
    Exported,
    ExportJob,
    FileType,
    Progress,
)
from storage.jobs.kinds import NoState, Run, Step
from storage.models import Account, Job, Table
from storage.transfer import exports
from storage.transfer.exports import MEDIA_TYPES, Export, Scope


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of an export."""

    tables: list[int]  # numbers of tables, in a ZIP file unless it is the table of the job
    format: str
    # a filter and the first columns as JSON text, since a filter may hold characters that PostgreSQL's JSON cannot
    query: str = "{}"
    escapes_formulas: bool = False


class _TableExportJob(ExportJob[Arguments]):
    name, arguments, capability = "entity.export", Arguments, Capability.READ

    def begin(self, run: Run[Arguments]) -> Step[NoState]:
        numbers = [entities.total(it.table, it.query).number for it in _exports(run)]
        known = [number for number in numbers if number is not None]
        return Step(NoState(), total=sum(known) if len(known) == len(numbers) else None)

    def file_type(self, run: Run[Arguments]) -> FileType:
        if run.job.table_id is None:
            return FileType(f"{run.account.name}.zip", "application/zip")
        return FileType(f"{run.table.name}.{run.arguments.format}", MEDIA_TYPES[run.arguments.format])

    def export(self, run: Run[Arguments], stream: BinaryIO, progress: Progress) -> Exported:
        table_exports, count = _exports(run), 0

        def add(number: int) -> None:
            nonlocal count
            count += number
            progress(count)

        is_zip = run.job.table_id is None
        with closing(
            exports.write_zip(table_exports, add) if is_zip else exports.write(table_exports[0], add)
        ) as pieces:
            stream.writelines(pieces)
        return Exported(len(table_exports), count)


TABLE_EXPORT_JOB: Final = _TableExportJob()


def start(export: Export) -> Job:
    """Start a job that exports a table or a query; selected keys and past states are not supported."""
    table = export.table
    query = json.dumps({"text": export.text, "columns": list(export.columns)})
    arguments = Arguments([table.pk], export.format, query, export.escapes_formulas)
    return jobs.start(TABLE_EXPORT_JOB, arguments, account=table.account, table=table, by=export.by)


def start_zip(
    account: Account, several: Sequence[Table], format_: str, *, by: Actor, escapes_formulas: bool = False
) -> Job:
    """Start a job that exports tables of an account as one ZIP archive."""
    arguments = Arguments([it.pk for it in several], format_, escapes_formulas=escapes_formulas)
    return jobs.start(TABLE_EXPORT_JOB, arguments, account=account, by=by)


def _exports(run: Run[Arguments]) -> list[Export]:
    """Return the exports of a job; raises ResourceNotFound for a deleted table."""
    arguments = run.arguments
    query = json.loads(arguments.query)
    text = query.get("text", "")
    # times in a filter that are relative to now are those of the start
    filter_ = parse(text, dialects.CONSOLE, run.job.created_at) if text else None
    scope = Scope.TABLE if filter_ is None else Scope.QUERY
    tables = Table.objects.filter(pk__in=arguments.tables, account=run.account, deleted_at=None).in_bulk()
    if tables.keys() != set(arguments.tables):
        raise ResourceNotFound
    for table in tables.values():
        table.account = run.account
    columns = query.get("columns", ())
    return [
        Export(
            tables[pk],
            arguments.format,
            run.by,
            scope,
            filter=filter_,
            text=text,
            columns=columns,
            escapes_formulas=arguments.escapes_formulas,
        )
        for pk in arguments.tables
    ]
