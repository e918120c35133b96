"""The options of the command import: how a file is read, and what becomes of its columns."""

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO, Final

from django.core.management.base import CommandError
from django.utils import timezone

from storage.domain.refusals import Reason
from storage.operations.entities import imports
from storage.transfer import proposals
from storage.transfer.file import RowFile
from storage.transfer.layout import FileFormat, FileRefused, Wishes
from storage.transfer.mapping import ColumnMapping, Empty, MappingRefused, OnMisfit, read_type
from storage.transfer.proposals import Proposal
from storage.transfer.rejects import Reject, RejectWriter

_DELIMITERS: Final = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}


def _read_pair(text: str) -> tuple[str, str]:
    name, separator, value = text.rpartition("=")
    if not separator or not name:
        raise argparse.ArgumentTypeError(f"{text!r} must be written as COLUMN=VALUE")
    return name, value


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that read_wishes and read_mapping read."""
    keys = parser.add_argument_group("columns")
    keys.add_argument(
        "--partition-key",
        metavar="TEMPLATE",
        default="",
        help="such as '{country}'; by default the column PartitionKey",
    )
    keys.add_argument(
        "--row-key",
        metavar="TEMPLATE",
        default="",
        help="such as '{tenant}-{id}'; {#row} is the number of the row, {#guid} a new GUID",
    )
    keys.add_argument("--type", metavar="COLUMN=TYPE", type=_read_pair, action="append", default=[])
    keys.add_argument("--rename", metavar="COLUMN=PROPERTY", type=_read_pair, action="append", default=[])
    keys.add_argument("--ignore", metavar="COLUMN", action="append", default=[])
    keys.add_argument(
        "--unset", metavar="COLUMN=TEXT", type=_read_pair, action="append", default=[],
        help="a text that stands for no value, such as age=n/a",
    )  # fmt: skip
    keys.add_argument(
        "--misfit",
        metavar="COLUMN=WHAT",
        type=_read_pair,
        action="append",
        default=[],
        help="what becomes of values that are not of the type of the column: reject, string or unset",
    )
    keys.add_argument(
        "--empty-strings", action="store_true", help="empty fields of String columns are empty Strings"
    )
    keys.add_argument(
        "--replace-in-keys", metavar="TEXT", help="takes the place of characters that keys cannot have"
    )
    keys.add_argument(
        "--unescape-formulas",
        action="store_true",
        help="remove the apostrophes of an export with --escape-formulas",
    )
    keys.add_argument(
        "--zone",
        default="",
        help="the time zone of times in CSV that name none, such as Europe/Istanbul; columns of them become DateTime",
    )
    keys.add_argument("--mapping", metavar="FILE", type=Path, help="read all of this from a file")
    keys.add_argument("--save-mapping", metavar="FILE", type=Path, help="write it into a file for --mapping")
    layout = parser.add_argument_group("format, if it is not found out rightly")
    layout.add_argument("--format", choices=[it.value for it in FileFormat])
    layout.add_argument("--encoding", default="", help="such as utf-8 or windows-1254")
    layout.add_argument("--delimiter", default="", help="a character, or tab")
    layout.add_argument(
        "--no-header", action="store_true", help="the first line is a row; columns are column1 …"
    )


@contextmanager
def open_rows(file: str, wishes: Wishes) -> Iterator[RowFile]:
    """Yield a file of rows; raises FileRefused."""
    with open_stream(file) as opening:
        yield RowFile(opening, wishes)


@contextmanager
def open_stream(file: str) -> Iterator[Callable[[], IO[bytes]]]:
    """Yield what opens a file, or a copy of the standard input, which cannot be read twice."""
    with ExitStack() as stack:
        if file == "-":
            spooled = stack.enter_context(TemporaryFile())
            shutil.copyfileobj(sys.stdin.buffer, spooled)

            def opening() -> IO[bytes]:
                spooled.seek(0)
                return open(spooled.fileno(), "rb", closefd=False)

        else:
            path = Path(file)

            def opening() -> IO[bytes]:
                return path.open("rb")

        try:
            yield opening
        except OSError as error:
            raise FileRefused(Reason.FILE_NOT_READ, path=file, why=error.strerror) from None


def read_wishes(options: dict[str, Any]) -> Wishes:
    delimiter = _DELIMITERS.get(options["delimiter"], options["delimiter"])
    if len(delimiter) > 1:
        raise CommandError("A delimiter is one character, or tab.")
    format_ = FileFormat(options["format"]) if options["format"] else None
    return Wishes(format_, "", options["encoding"], delimiter, has_header=not options["no_header"])


def read_mapping(file: RowFile, options: dict[str, Any]) -> tuple[ColumnMapping, Proposal | None]:
    """Return the mapping of a file or a proposed one, with what the options change."""
    proposal: Proposal | None = None
    if options["mapping"] is not None:
        try:
            mapping = ColumnMapping.load(json.loads(options["mapping"].read_bytes()))
        except ValueError as error:
            raise MappingRefused(Reason.FILE_MAPPING_MALFORMED, why=str(error)) from None
    else:
        proposal = file.propose(timezone.now())
        mapping = proposals.complete(proposal, options["partition_key"], options["row_key"])
        if options["zone"]:
            mapping = proposals.in_zone(proposal, mapping, options["zone"])
    mapping = _change(mapping, options)
    mapping.check(proposal.names if proposal is not None else file.layout.columns)
    return mapping, proposal


def _change(mapping: ColumnMapping, options: dict[str, Any]) -> ColumnMapping:
    for name, text in options["type"]:
        mapping = mapping.with_column(replace(mapping.column(name), type=read_type(text)))
    for name, text in options["misfit"]:
        if text not in list(OnMisfit):
            raise CommandError(f"--misfit takes {', '.join(OnMisfit)}.")
        mapping = mapping.with_column(replace(mapping.column(name), on_misfit=OnMisfit(text)))
    for name, text in options["unset"]:
        column = mapping.column(name)
        mapping = mapping.with_column(replace(column, unset=(*column.unset, text)))
    for name, target in (*options["rename"], *((name, "") for name in options["ignore"])):
        mapping = mapping.with_column(replace(mapping.column(name), target=target))
    changed: dict[str, Any] = {
        "partition_key": options["partition_key"] or mapping.partition_key,
        "row_key": options["row_key"] or mapping.row_key,
    }
    if options["zone"]:
        changed["zone"] = options["zone"]
    if options["empty_strings"]:
        changed["empty"] = Empty.STRING
    if options["unescape_formulas"]:
        changed["unescapes_formulas"] = True
    if options["replace_in_keys"] is not None:
        changed["key_replacement"] = options["replace_in_keys"]
    return replace(mapping, **changed)


def format_of(member: str) -> FileFormat | None:
    extension = member.rpartition(".")[2].lower()
    return FileFormat(extension) if extension in list(FileFormat) else None


@contextmanager
def writing_rejects(file: RowFile, path: Path | None) -> Iterator[imports.OnRejects]:
    """Yield what writes rejects into a file, which is made with the first of them."""
    if path is None:
        yield lambda rejects: None
        return
    writer, opened = RejectWriter(file.layout), list[BinaryIO]()

    def write(rejects: Sequence[Reject]) -> None:
        if rejects and not opened:
            opened.append(path.open("wb"))
            opened[0].write(writer.head())
        if rejects:
            opened[0].write(writer.write(rejects))

    try:
        yield write
    finally:
        for stream in opened:
            stream.close()
