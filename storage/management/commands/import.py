"""The command `import`: write the rows of a file into a table."""

import argparse
import json
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from django.core.management.base import CommandError
from django.db import DatabaseError, InterfaceError
from django.utils import timezone

from storage.activity.activity import command_actor
from storage.domain.errors import StorageError
from storage.domain.values.edm import Edm
from storage.domain.values.kinds import AccountKind
from storage.domain.values.numbers import counted, were
from storage.editing.formats.reading import read_format
from storage.editing.input_context import InputContext
from storage.entities.writing import WriteMode
from storage.jobs import files
from storage.management.command import DatabaseCommand, find_usable_account
from storage.management.importing import (
    add_options,
    describe_options,
    find_unused_formats,
    open_rows,
    open_stream,
    read_mapping,
    read_wishes,
    writing_rejects,
)
from storage.models import Account, Table
from storage.tables import tables
from storage.tabular.content import is_zip, members
from storage.tabular.entities import Chunk
from storage.tabular.excel import is_other_document, is_workbook
from storage.tabular.file import RowFile
from storage.tabular.format_proposals import FormatProposal
from storage.tabular.layout import FileFormat, Layout, Wishes
from storage.tabular.mapping import ColumnMapping
from storage.tabular.proposals import Proposal
from storage.tabular.report import FileReport
from storage.transfer import import_jobs, imports
from storage.transfer.imports import Import, ImportOutcome

_EVERY: Final = 1.0  # seconds between two lines of progress


class Command(DatabaseCommand):
    help = (
        "Import a file of rows into a table, also while the server runs: CSV of any dialect, JSON, lines of JSON, or"
        " Parquet, also compressed. Unless --rejects names a file for rows that do not fit, everything is checked first"
        " and nothing is written if there are any. Into an account: each file of a ZIP file into the table of its name."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("table", metavar="ACCOUNT[/TABLE]")
        parser.add_argument("file", metavar="FILE", help="- for the standard input")
        parser.add_argument(
            "--mode",
            choices=[mode.value for mode in WriteMode],
            default=WriteMode.INSERT.value,
            help="what becomes of entities that exist: insert rejects the row, skip keeps the entity, merge changes the"
            " properties in the file, replace removes the others (default: insert)",
        )
        parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
        parser.add_argument(
            "--job",
            action="store_true",
            help="hand the file to the server, which imports what fits as a job: see the command job",
        )
        parser.add_argument("--create", action="store_true", help="create the table if it does not exist")
        parser.add_argument(
            "--rejects",
            metavar="FILE",
            type=Path,
            help="import what fits, and write the other rows into a file with their reasons",
        )
        add_options(parser)

    def handle(self, *args: Any, table: str, file: str, **options: Any) -> None:
        account_name, _, name = table.partition("/")
        account, wishes = find_usable_account(account_name), read_wishes(file, options)
        if not name:
            self._import_account(account, file, wishes, options)
            return
        existing = _find_table(account, name, creates=options["create"])
        with open_rows(file, wishes) as row_file:
            source = self._prepare(row_file, existing, Path(file).name, options)
            if options["job"] and not options["dry_run"]:
                self._start_job(source, file)
                return
            if options["dry_run"] or options["rejects"] is None:
                checked = self._check(source, options)
                if options["dry_run"]:
                    return
                _require_fitting([checked], "Import the others with --rejects FILE.")
            self._run(source, options)

    def _import_account(self, account: Account, file: str, wishes: Wishes, options: dict[str, Any]) -> None:
        """Import each file of a ZIP archive into the table of its name, or none if any row is rejected."""
        if (
            options["rejects"] is not None
            or options["mapping"] is not None
            or options["save_mapping"] is not None
        ):
            raise CommandError("These files are of one table; write it as ACCOUNT/TABLE.")
        if options["job"]:
            raise CommandError("A job imports the file of one table; write it as ACCOUNT/TABLE.")
        with ExitStack() as stack:
            opening = stack.enter_context(open_stream(file))
            sources = []
            for member, table in _find_tables(account, opening, creates=options["create"]).items():
                wished = replace(wishes, member=member)
                self.stdout.write(f"{table.name}:")
                sources.append(self._prepare(RowFile(opening, wished), table, member, options))
            if not sources:
                self.stdout.write("The ZIP file has no files.")
            checked = [self._check(source, options) for source in sources]
            if options["dry_run"]:
                return
            _require_fitting(checked, "Import the tables one by one to see which, with --rejects FILE.")
            for source in sources:
                self._run(source, options)

    def _prepare(self, file: RowFile, table: Table, name: str, options: dict[str, Any]) -> "_Source":
        """Print how a file is read and how its columns are mapped."""
        self._describe_layout(file)
        context = InputContext(timezone.now(), AccountKind(table.account.kind))
        mapping, proposal = read_mapping(file, context, options)
        self._describe_mapping(mapping, proposal)
        for text in find_unused_formats(mapping, options):
            self.stdout.write(f"No column has only values in the format {text}. Name one: COLUMN={text}")
        if options["save_mapping"]:
            options["save_mapping"].write_text(json.dumps(mapping.dump(), indent=2) + "\n")
        return _Source(Import(table, WriteMode(options["mode"]), command_actor(), name), file, mapping)

    def _check(self, source: "_Source", options: dict[str, Any]) -> ImportOutcome:
        with writing_rejects(source.file, options["rejects"] if options["dry_run"] else None) as write:
            outcome = imports.check(
                source.wanted, source.chunks(), on_rejects=write, progress=self._progress("checked")
            )
        verb = "would be inserted" if options["dry_run"] else "to insert"
        others = {"changed": outcome.changed, "left alone because they exist": outcome.skipped}
        parts = [f"{counted(outcome.rows, 'row')}: {outcome.inserted:,} {verb}"]
        parts += [f"{number:,} {what}" for what, number in others.items() if number]
        self.stdout.write(", ".join(parts) + ".")
        self._describe_report(outcome.report)
        self._describe_rejects(outcome)
        return outcome

    def _run(self, source: "_Source", options: dict[str, Any]) -> None:
        request, began = source.wanted, time.monotonic()
        self._create(request)
        request.outcome = ImportOutcome()
        try:
            with writing_rejects(source.file, options["rejects"]) as write:
                outcome = import_jobs.run(
                    request, source.chunks(), on_rejects=write, progress=self._progress("imported")
                )
        except BaseException as error:
            number = request.outcome.written
            done = f"{counted(number, 'entity', 'entities')} {were(number)}"
            self.stderr.write(
                f"Interrupted after {counted(request.outcome.rows, 'row')}: {done} imported"
                f" into {request.table.name}. To go on, import the file again with --mode skip; to take them back, undo"
                " the import in the activity log."
            )
            if isinstance(error, DatabaseError | InterfaceError):
                problem = str(error).strip().splitlines()[0]
                raise CommandError(f"The connection to the database was lost: {problem}") from None
            raise
        seconds = max(time.monotonic() - began, 0.001)
        what = [f"{outcome.inserted:,} inserted", f"{outcome.changed:,} changed"]
        what += [f"{outcome.skipped:,} left alone because they exist"] if outcome.skipped else []
        self.stdout.write(
            f"{counted(outcome.written, 'entity', 'entities')} {were(outcome.written)} imported into"
            f" {request.table.name} in {seconds:.1f} seconds"
            f" ({outcome.written / seconds:,.0f} per second): {', '.join(what)}."
        )
        if options["rejects"] is not None:  # else they were told by the check
            self._describe_report(outcome.report)
        if outcome.rejected:
            self._describe_rejects(outcome)
            where = f" They are in {options['rejects']}." if options["rejects"] else ""
            self.stdout.write(f"{counted(outcome.rejected, 'row')} {were(outcome.rejected)} rejected.{where}")

    def _start_job(self, source: "_Source", path: str) -> None:
        request = source.wanted
        account, table = request.table.account, self._create(request)
        with source.file.open() as stream:
            file = files.create(request.name, account=account, by=request.by)
            files.upload(file, iter(lambda: stream.read(files.PIECE), b""))
        job = import_jobs.start(table, file, source.file, source.mapping, request.mode, by=request.by)
        self.stdout.write(
            f"Job {job.pk} imports {path} into {table.name}. Look at it with: job show {job.pk}"
        )

    def _create(self, wanted: Import) -> Table:
        if wanted.table.pk is None:
            wanted.table = tables.create(wanted.table.account, wanted.table.name, by=wanted.by)
        return wanted.table

    def _describe_layout(self, file: RowFile) -> None:
        layout = file.layout
        about = [layout.format.value]
        if layout.format is FileFormat.CSV:
            delimiter = "tab" if layout.delimiter == "\t" else layout.delimiter
            about.append(f"delimiter {delimiter}  quote {layout.quote}")
        if layout.format is FileFormat.EXCEL:
            about.append(f"sheet {layout.sheet}")
        elif layout.format is not FileFormat.PARQUET:
            about.append(layout.encoding)
        about += [] if layout.compression.value == "none" else [layout.compression.value]
        self.stdout.write("  ".join(about))
        if layout.encoding_is_guess:
            self._describe_encoding(layout)

    def _describe_encoding(self, layout: Layout) -> None:
        """Print sample texts of the file in the detected encoding and its alternatives."""
        certainty = "probably" if layout.encoding_is_sure else "perhaps"
        self.stdout.write(
            f"The file does not say its encoding: it is {certainty} {layout.encoding}. Texts of it in this and others:"
        )
        for reading in layout.encoding_alternatives:
            self.stdout.write(f"  {reading.encoding:14}  {' | '.join(reading.samples)}")
        other = layout.encoding_alternatives[1].encoding
        self.stdout.write(f"To read it in another one, name it: --encoding {other}")

    def _describe_mapping(self, mapping: ColumnMapping, proposal: Proposal | None) -> None:
        self.stdout.write(f"PartitionKey  {mapping.partition_key}\nRowKey  {mapping.row_key}")
        guesses = {} if proposal is None else {it.column.source: it for it in proposal.columns}
        for column in mapping.columns:
            target = column.target or "ignored"
            name = column.source if column.source == target else f"{column.source} -> {target}"
            guess = guesses.get(column.source)
            why = ""
            if guess is not None and guess.column.type is column.type:
                why = f"  {guess.reason or guess.why}"
                why += f", such as {', '.join(guess.examples)}" if guess.examples else ""
            if column.format:
                why = f"  {read_format(column.format).plural}"
            type_ = column.type.short_name if column.type else "as in the file"
            self.stdout.write(f"{name}  {type_ if column.target else ''}{why}".rstrip())

        for column in mapping.columns:
            guess = guesses.get(column.source)
            if guess is not None and column.target and column.type is guess.column.type and not column.format:
                self._describe_formats(column.source, guess.formats)
        if not mapping.zone and any(it.type is Edm.DATETIME and it.format for it in mapping.columns):
            self.stdout.write("Dates and times without a time zone are those of UTC; --zone says otherwise.")

    def _describe_formats(self, column: str, proposed: Sequence[FormatProposal]) -> None:
        """Print the other formats of a column with the options that select them."""
        for it in proposed:
            self.stdout.write(f"{column}: {it.sentence}")
            for option in describe_options(column, it):
                self.stdout.write(f"    {option}")

    def _describe_report(self, report: FileReport) -> None:
        for sentence in report.sentences():
            self.stdout.write(f"  {sentence}")

    def _describe_rejects(self, outcome: ImportOutcome) -> None:
        for group in outcome.groups.listed():
            lines = ", ".join(map(str, group.lines))
            more = f" and {group.rows - len(group.lines):,} more" if group.rows > len(group.lines) else ""
            texts = ", ".join(repr(text) for text, _ in group.texts.most_common(3))
            self.stdout.write(f"  {group.rows:,}  {group.sentence}{f' {texts}' if texts else ''}")
            self.stdout.write(f"      line {lines}{more}")
            for option in _options_for(group.column, group.repairs):
                self.stdout.write(f"      {option}")
        if outcome.repeated:
            lines = ", ".join(f"{line} (as {first})" for first, line in outcome.repeated_lines)
            repeat = "repeats" if outcome.repeated == 1 else "repeat"
            self.stdout.write(
                f"  {counted(outcome.repeated, 'row')} {repeat} the keys of another row: line {lines}"
            )

    def _progress(self, verb: str) -> imports.Progress:
        last = time.monotonic()

        def show(outcome: ImportOutcome) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _EVERY and self.stderr.isatty():
                self.stderr.write(f"{counted(outcome.rows, 'row')} {verb}", ending="\r")
                last = now

        return show


def _options_for(column: str, repairs: Sequence[str]) -> Iterator[str]:
    """Yield the command-line options that repair a group of rejects."""
    for repair in repairs:
        match repair:
            case "Int64" | "Double":
                yield f"--type {shlex.quote(f'{column}={repair}')}"
            case "decimal-comma" | "decimal-point":
                yield f"--number-format {shlex.quote(f'{column}={repair}')}"
            case "day-first" | "month-first" | "year-first":
                yield f"--date-format {shlex.quote(f'{column}={repair}')}"
            case "string" | "unset" | "round":
                yield f"--misfit {shlex.quote(f'{column}={repair}')}"
            case "replace":
                yield "--replace-in-keys -"
            case "skip":
                yield "--mode skip"
            case "replace existing":
                yield "--mode merge or --mode replace"


def _find_tables(account: Account, opening: Callable[[], IO[bytes]], *, creates: bool) -> dict[str, Table]:
    """Return the table of each file of a ZIP archive; raises CommandError before anything is read or created."""
    with opening() as stream:
        names = members(stream) if is_zip(stream) else None
    if names is None or is_workbook(names) or is_other_document(names):
        raise CommandError(
            "This is not a ZIP file with a file for each table. To import a file into a table, write ACCOUNT/TABLE."
        )
    by_member: dict[str, Table] = {}
    by_name: dict[str, str] = {}
    for member in names:
        name = PurePosixPath(member.replace("\\", "/")).name.partition(".")[0]
        other = by_name.setdefault(name.lower(), member)
        if other != member or names.count(member) > 1:
            raise CommandError(
                f"{other} and {member} would be imported into the same table, {name}. Unpack them, and import each into"
                " ACCOUNT/TABLE."
            )
        try:
            by_member[member] = _find_table(account, name, creates=creates)
        except StorageError as error:
            raise CommandError(
                f"{member}: {error.text} Each file is imported into the table of its name: rename it, or unpack it and"
                " import it into ACCOUNT/TABLE."
            ) from None
    return by_member


def _find_table(account: Account, name: str, *, creates: bool) -> Table:
    """Return a table, unsaved if it does not exist yet; raises CommandError unless it may be created."""
    table = tables.get_or_new(account, name)
    if table.pk is None and not creates:
        raise CommandError(f"The table {name} does not exist; create it with --create.")
    return table


@dataclass(slots=True)
class _Source:
    """File with its import."""

    wanted: Import
    file: RowFile
    mapping: ColumnMapping

    def chunks(self) -> Iterator[Chunk]:
        kind = AccountKind(self.wanted.table.account.kind)
        return self.file.chunks(self.mapping, InputContext(self.wanted.began, kind))


def _require_fitting(checked: Sequence[ImportOutcome], advice: str) -> None:
    rejected, rows = (sum(getattr(it, name) for it in checked) for name in ("rejected", "rows"))
    if rejected:
        do = "does" if rejected == 1 else "do"
        raise CommandError(f"Nothing was imported: {rejected:,} of {rows:,} rows {do} not fit. {advice}")
