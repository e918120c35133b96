"""The command `export`: write the entities of a table into a file."""

import argparse
import gzip
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from django.core.management.base import CommandError
from django.utils import timezone

from storage.account_files import account_export
from storage.activity.activity import command_actor
from storage.domain.values import dialects
from storage.domain.values.numbers import counted, were
from storage.editing.filters.diagnosis import parse_filter
from storage.management.command import DatabaseCommand, find_account
from storage.server.backups.backup import size_of
from storage.tables import tables
from storage.tabular.writing import ExportFormat
from storage.transfer import exports
from storage.transfer.exports import (
    FORMATS,
    LIBRARIES,
    Export,
    Scope,
)

T = TypeVar("T")


class Command(DatabaseCommand):
    help = (
        "Export the entities of a table, or those that a query finds, also while the server runs. The name of the file"
        " says the format: .typed.csv (as Storage Explorer has it), .csv, .json, .ndjson, .parquet or .xlsx, also with"
        " .gz. All tables of an account become a ZIP file."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("table", metavar="ACCOUNT[/TABLE]")
        parser.add_argument("file", metavar="FILE", help="- for the standard output")
        parser.add_argument("--format", choices=FORMATS, help="by default what the name of the file says")
        parser.add_argument("--filter", default="", help="such as \"PartitionKey eq 'se'\"")
        parser.add_argument(
            "--escape-formulas",
            action="store_true",
            help="in CSV, put an apostrophe before text that a spreadsheet would run as a formula",
        )

    def handle(self, *args: Any, table: str, file: str, **options: Any) -> None:
        is_piped = file == "-"
        if is_piped and sys.stdout.isatty() and (options["format"] in LIBRARIES or "/" not in table):
            raise CommandError("This is not shown on a terminal; name a file, or pass it on.")
        began, by = time.monotonic(), command_actor()
        with account_export.opening(None if is_piped else Path(file), sys.stdout.buffer) as stream:
            account, _, name = table.partition("/")
            if name:
                filter_ = parse_filter(options["filter"], timezone.now(), dialects.STORAGE)
                export = Export(
                    tables.get(find_account(account), name),
                    options["format"] or _format_of(file),
                    by,
                    Scope.TABLE if filter_ is None else Scope.QUERY,
                    filter=filter_,
                    text=options["filter"],
                    escapes_formulas=options["escape_formulas"],
                )
                number = _save(exports.write(export), stream, compresses=file.endswith(".gz"))
                what = f"{counted(number, 'entity', 'entities')} of {table}"
            else:
                if options["filter"]:
                    raise CommandError("A filter is for one table; write it as ACCOUNT/TABLE.")
                format_ = options["format"] or ExportFormat.TYPED_CSV.value
                escapes = options["escape_formulas"]
                every = [
                    Export(it, format_, by, escapes_formulas=escapes)
                    for it in tables.listed(find_account(account))
                ]
                counts = _save(exports.write_zip(every), stream)
                number = sum(counts.values())
                what = (
                    f"{counted(number, 'entity', 'entities')} of {counted(len(counts), 'table')} of {account}"
                )
            size = "" if is_piped else f" ({size_of(stream.tell())})"
        (self.stderr if is_piped else self.stdout).write(
            f"{what} {were(number)} exported to {file}{size} in {time.monotonic() - began:.1f} seconds."
        )


def _save(pieces: Generator[bytes, None, T], stream: IO[bytes], *, compresses: bool = False) -> T:
    """Write the pieces of a file to a stream; return the generator's result."""
    sink = gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=3) if compresses else stream
    try:
        while True:
            sink.write(next(pieces))
    except StopIteration as end:
        if compresses:
            sink.close()
        return cast("T", end.value)


def _format_of(file: str) -> str:
    name = file.removesuffix(".gz").lower()
    suffix = next((it for it in FORMATS if name.endswith(f".{it}")), None)
    if suffix is None and name.endswith(".jsonl"):
        suffix = ExportFormat.NDJSON.value
    if suffix is None:
        raise CommandError(
            f"Give the file a name that ends in {', '.join(f'.{it}' for it in FORMATS)}, or --format."
        )
    return suffix
