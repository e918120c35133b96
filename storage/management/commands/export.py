"""The command `export`: write the entities of a table into a file."""

import argparse
import gzip
import sys
import time
from pathlib import Path
from typing import IO, Any, cast

from django.core.management.base import CommandError
from django.utils import timezone

from storage.domain.filters.parser import parse
from storage.management.command import DatabaseCommand, find_account
from storage.operations.activity.activity import command_actor
from storage.operations.entities import exports
from storage.operations.entities.exports import FORMATS, PARQUET, Export, Scope
from storage.operations.snapshots import account_export
from storage.operations.tables import tables
from storage.server.backups.backup import size_of
from storage.transfer.writing import ExportFormat


class Command(DatabaseCommand):
    help = (
        "Export the entities of a table, or those that a query finds, also while the server runs. The name of the file"
        " says the format: .typed.csv (as Storage Explorer has it), .csv, .json, .ndjson or .parquet, also with .gz."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("table", metavar="ACCOUNT/TABLE")
        parser.add_argument("file", metavar="FILE", help="- for the standard output")
        parser.add_argument("--format", choices=FORMATS, help="by default what the name of the file says")
        parser.add_argument("--filter", default="", help="such as \"PartitionKey eq 'se'\"")
        parser.add_argument(
            "--escape-formulas",
            action="store_true",
            help="in CSV, put an apostrophe before text that a spreadsheet would run as a formula",
        )

    def handle(self, *args: Any, table: str, file: str, **options: Any) -> None:
        account, _, name = table.partition("/")
        is_piped = file == "-"
        if is_piped and sys.stdout.isatty() and options["format"] == PARQUET:
            raise CommandError("Parquet is not shown on a terminal; name a file, or pass it on.")
        filter_ = parse(options["filter"], now=timezone.now())
        wanted = Export(
            tables.get(find_account(account), name),
            options["format"] or _format_of(file),
            command_actor(),
            Scope.TABLE if filter_ is None else Scope.QUERY,
            filter=filter_,
            text=options["filter"],
            escapes_formulas=options["escape_formulas"],
        )
        began = time.monotonic()
        with account_export.opening(None if is_piped else Path(file), sys.stdout.buffer) as stream:
            count = _write(wanted, stream, compresses=file.endswith(".gz"))
            size = "" if is_piped else f" ({size_of(stream.tell())})"
        (self.stderr if is_piped else self.stdout).write(
            f"{count:,} entities of {table} were exported to {file}{size} in {time.monotonic() - began:.1f} seconds."
        )


def _write(wanted: Export, stream: IO[bytes], *, compresses: bool) -> int:
    sink = gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=3) if compresses else stream
    pieces = exports.write(wanted)
    try:
        while True:
            sink.write(next(pieces))
    except StopIteration as end:
        if compresses:
            sink.close()
        return cast("int", end.value)


def _format_of(file: str) -> str:
    name = file.removesuffix(".gz").lower()
    found = next((it for it in FORMATS if name.endswith(f".{it}")), None)
    if found is None and name.endswith(".jsonl"):
        found = ExportFormat.NDJSON.value
    if found is None:
        raise CommandError(
            f"Give the file a name that ends in {', '.join(f'.{it}' for it in FORMATS)}, or --format."
        )
    return found
