"""Options of the command `import`: how a file is read and how its columns are mapped."""

import argparse
import json
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO, Final

from django.core.management.base import CommandError

from storage.domain.refusals import Reason
from storage.editing.formats.counted_times import CountedTimeFormat
from storage.editing.formats.dates import DateFormat
from storage.editing.formats.format import Format
from storage.editing.formats.numbers import NumberFormat
from storage.editing.formats.reading import DATE_FORMATS, NUMBER_FORMATS, UnknownFormat, read_format
from storage.editing.formats.words import BooleanWords
from storage.editing.input_context import InputContext
from storage.tabular import proposals
from storage.tabular.encoding_guess import language_of_zone
from storage.tabular.file import RowFile
from storage.tabular.format_proposals import Certainty, FormatProposal
from storage.tabular.layout import FileFormat, FileRefused, Wishes
from storage.tabular.mapping import (
    ColumnMapping,
    Empty,
    MappingRefused,
    OnMisfit,
    read_type,
)
from storage.tabular.proposals import Proposal
from storage.tabular.rejects import Reject, RejectWriter
from storage.transfer import imports

_DELIMITERS: Final = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}


def _read_pair(text: str) -> tuple[str, str]:
    name, separator, value = text.rpartition("=")
    if not separator or not name:
        raise argparse.ArgumentTypeError(f"{text!r} must be written as COLUMN=VALUE")
    return name, value


def _read_format(text: str) -> tuple[str, str]:
    name, _, value = text.rpartition("=")
    return name or "*", value


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for read_wishes and read_mapping to a parser."""
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
    keys.add_argument(
        "--number-format", metavar="[COLUMN=]FORMAT", type=_read_format, action="append", default=[],
        help=f"how numbers are written: {', '.join(NUMBER_FORMATS)}; without a column, in all that are numbers so",
    )  # fmt: skip
    keys.add_argument(
        "--date-format", metavar="[COLUMN=]FORMAT", type=_read_format, action="append", default=[],
        help=f"how dates are written: {', '.join(DATE_FORMATS)}, or a pattern such as dd.MM.yyyy; without a column, in"
        " all that are dates so",
    )  # fmt: skip
    keys.add_argument(
        "--boolean-words", metavar="[COLUMN=]TRUE/FALSE", type=_read_format, action="append", default=[],
        help="words for true and false, such as ja/nein; without a column, in all that have only these",
    )  # fmt: skip
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
        help="what becomes of values that are not of the type of the column: reject, string, unset or round",
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
    layout.add_argument("--encoding", default="", help="such as utf-8, windows-1254 or latin-1")
    layout.add_argument("--delimiter", default="", help="a character, or tab")
    layout.add_argument("--sheet", default="", help="of Excel; by default the first one")
    layout.add_argument(
        "--no-header", action="store_true", help="the first line is a row; columns are column1 …"
    )


@contextmanager
def open_rows(file: str, wishes: Wishes) -> Iterator[RowFile]:
    """Yield a file as rows, with the requested layout; raises FileRefused."""
    with open_stream(file) as opening:
        yield RowFile(opening, wishes)


@contextmanager
def open_stream(file: str) -> Iterator[Callable[[], IO[bytes]]]:
    """Yield a function that opens a file, or a copy of the standard input, which is read twice."""
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


def read_wishes(file: str, options: dict[str, Any]) -> Wishes:
    delimiter = _DELIMITERS.get(options["delimiter"], options["delimiter"])
    if len(delimiter) > 1:
        raise CommandError("A delimiter is one character, or tab.")
    format_ = FileFormat(options["format"]) if options["format"] else None
    return Wishes(
        format_,
        encoding=options["encoding"],
        delimiter=delimiter,
        sheet=options["sheet"],
        has_header=not options["no_header"],
        name=Path(file).name,
        language=language_of_zone(options["zone"]),
    )


def read_mapping(
    file: RowFile, context: InputContext, options: dict[str, Any]
) -> tuple[ColumnMapping, Proposal | None]:
    """Return the given or proposed mapping of a file, with the options applied."""
    proposal: Proposal | None = None
    if options["mapping"] is not None:
        try:
            mapping = ColumnMapping.load(json.loads(options["mapping"].read_bytes()))
        except ValueError as error:
            raise MappingRefused(Reason.FILE_MAPPING_MALFORMED, why=str(error)) from None
    else:
        proposal = file.propose(context)
        _require_keys(proposal, options["partition_key"], options["row_key"])
        mapping = proposals.complete(proposal, options["partition_key"], options["row_key"])
        if options["zone"]:
            mapping = proposals.in_zone(proposal, mapping, options["zone"])
    for option, kinds in _FORMAT_OPTIONS.items():
        for name, text in options[option.replace("-", "_")]:
            format_ = _find_format(option, kinds, text)
            looked_at = proposal or file.propose(context)
            mapping = _with_formats(looked_at, mapping, name, format_)
    mapping = _change(mapping, options)
    mapping.check(proposal.names if proposal is not None else file.layout.columns)
    return mapping, proposal


_FORMAT_OPTIONS: Final = {
    "number-format": (NumberFormat,),
    "date-format": (DateFormat, CountedTimeFormat),
    "boolean-words": (BooleanWords,),
}


def _find_format(option: str, kinds: tuple[type[Format], ...], text: str) -> Format:
    try:
        format_ = read_format(text)
    except UnknownFormat as error:
        raise CommandError(f"--{option}: {error}") from None
    if not isinstance(format_, kinds):
        raise CommandError(f"--{option} does not take {format_.spelling}, which is {format_.singular}.")
    return format_


def _with_formats(proposal: Proposal, mapping: ColumnMapping, name: str, format_: Format) -> ColumnMapping:
    """Return a mapping with a format for one column, or for all columns (*) whose sampled values fit it."""
    if name != "*":
        return mapping.with_column(proposals.in_format(proposal, mapping.column(name), format_))
    in_keys = mapping.whole_keys()
    for column in proposals.find_columns_in(proposal, format_):
        if column.source not in in_keys:
            kept = mapping.column(column.source)
            mapping = mapping.with_column(replace(kept, type=column.type, format=column.format))
    return mapping


def _require_keys(proposal: Proposal, partition_key: str, row_key: str) -> None:
    """Raise CommandError with the possible keys if one is missing."""
    proposed = proposals.propose_missing_keys(proposal, partition_key, row_key).proposals
    if not proposed:
        return
    chosen = {
        "PartitionKey": partition_key or proposal.mapping.partition_key,
        "RowKey": row_key or proposal.mapping.row_key,
    }
    missing = [name for name, text in chosen.items() if not text]
    columns = ", ".join(proposal.names)
    task = f"Choose what makes up the {' and the '.join(missing)}"
    lines = [f"{task}: the file has no column of this name, but {columns}. Proposed:"]
    for it in proposed:
        options = {
            "PartitionKey": f"--partition-key {shlex.quote(it.partition_key)}",
            "RowKey": f"--row-key {shlex.quote(it.row_key)}",
        }
        lines += [f"  {' '.join(options[name] for name in missing)}", f"      because {it.reason}"]
    raise CommandError("\n".join(lines))


def find_unused_formats(mapping: ColumnMapping, options: dict[str, Any]) -> list[str]:
    """Return the formats requested for all columns (*) that no column has."""
    used = [read_format(column.format) for column in mapping.columns if column.format]
    formats = (
        text for option in _FORMAT_OPTIONS for name, text in options[option.replace("-", "_")] if name == "*"
    )
    return [text for text in formats if not any(read_format(text).includes(it) for it in used)]


def describe_options(column: str, proposal: FormatProposal) -> list[str]:
    """Return the command-line options that apply a proposal."""
    if not proposal.format:
        option = f"--type {shlex.quote(f'{column}={proposal.type.short_name}')}"
    else:
        format_ = read_format(proposal.format)
        name = next(name for name, kinds in _FORMAT_OPTIONS.items() if isinstance(format_, kinds))
        option = f"--{name} {shlex.quote(f'{column}={proposal.format}')}"
    if proposal.certainty is Certainty.PARTIAL:
        return [option, f"{option} --misfit {shlex.quote(f'{column}=string')}"]
    return [option]


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


@contextmanager
def writing_rejects(file: RowFile, path: Path | None) -> Iterator[imports.OnRejects]:
    """Yield a function that writes rejected rows to a file, created with the first of them."""
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
