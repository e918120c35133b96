"""Layout of a file of rows: detected from its first bytes, and correctable by the user."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import IO, Any, Final, Self

from storage.domain.refusals import Reason
from storage.tabular import content, encoding_guess, encodings, excel
from storage.tabular.content import Bounds, Compression
from storage.tabular.content import FileRefused as FileRefused
from storage.tabular.encoding_guess import Evidence, Guess, Reading
from storage.tabular.mapping import has_keys

SAMPLE: Final = 256 * 1024  # bytes that are looked at
SCANNED: Final = 4 << 20  # bytes that are looked at for letters beyond ASCII, if the sample has too few
# entities of several kinds have more properties together than a single one may; each may have a column of types
MOST_COLUMNS: Final = 4_000
DELIMITERS: Final = ",\t;|"
_QUOTES: Final = "\"'"
_GZIP: Final = b"\x1f\x8b"
_PARQUET: Final = b"PAR1"
_OLD_EXCEL: Final = b"\xd0\xcf\x11\xe0"  # also that of a workbook with a password
# a String may have some of them
_CONTROLS: Final = re.compile("[\x00-\x08\x0e-\x1f]")
_MOST_CONTROLS: Final = 0.05
# the beginning of an answer of a table service
_PAGE: Final = re.compile(r'\{\s*("@?odata\.[^"]*"\s*:\s*"[^"]*"\s*,\s*)*"value"\s*:\s*\[\s*[{\]]')
_LISTS: Final = ("value", "items")  # members with entities: of the service, and of the Azure CLI
# Excel understands this line, and other programs write it for Excel
_SEPARATOR_LINE: Final = re.compile(r"sep=(.)\r?\n")
# Export-Csv of Windows PowerShell begins with the type of the objects
_OBJECT_LINE: Final = re.compile(r"#TYPE [A-Za-z_]\w*\.[\w.+#/`\[\], =-]*\r?\n", re.ASCII)


class FileFormat(StrEnum):
    CSV = "csv"
    JSON = "json"
    NDJSON = "ndjson"
    PARQUET = "parquet"
    EXCEL = "xlsx"


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of a file: its format, encoding and columns."""

    format: FileFormat
    compression: Compression = Compression.NONE
    encoding: str = "utf-8"
    delimiter: str = ","
    quote: str = '"'
    line_end: str = "\n"  # a line feed, or the carriage return that Excel for old Macs writes
    has_header: bool = True
    has_separator_line: bool = False  # or another one before the header, for a program that reads the file
    columns: tuple[str, ...] = ()  # names of the fields of CSV, from its first line if it is a header
    member: str = ""  # the name of the file in a ZIP file
    sheet: str = ""  # one of the ``sheets`` of a workbook
    sheets: tuple[str, ...] = ()
    # columns whose name in the file is empty, which are named by their position
    unnamed: tuple[str, ...] = ()
    encoding_is_guess: bool = False  # text of the file would be another one in one of the alternatives
    encoding_is_sure: bool = True  # it is much more probable than the alternatives
    encoding_alternatives: tuple[Reading, ...] = ()  # with samples of the differences; the chosen one first

    @property
    def can_seek(self) -> bool:
        """Return whether reading can resume at any row by its byte offset."""
        is_plain = self.compression is Compression.NONE and self.has_byte_lines
        return is_plain and self.format in (FileFormat.CSV, FileFormat.NDJSON)

    @property
    def has_byte_lines(self) -> bool:
        """Return whether the bytes of a line end are unambiguous before decoding."""
        return encodings.is_of_bytes(self.encoding)

    @classmethod
    def load(cls, stored: dict[str, Any]) -> Self:
        """Load from the JSON of ``dataclasses.asdict``."""
        known = {
            **stored,
            "format": FileFormat(stored["format"]),
            "compression": Compression(stored["compression"]),
            "columns": tuple(stored["columns"]),
            "unnamed": tuple(stored.get("unnamed", ())),
            "sheets": tuple(stored.get("sheets", ())),
            "encoding_alternatives": tuple(map(Reading.load, stored.get("encoding_alternatives", ()))),
        }
        return cls(**{name: value for name, value in known.items() if name in cls.__slots__})

    def with_guess(self, guess: Guess, *, is_chosen: bool) -> Self:
        """Return the layout with a guessed or chosen encoding."""
        return replace(
            self,
            encoding=guess.encoding,
            encoding_is_guess=bool(guess.readings) and not is_chosen,
            encoding_is_sure=guess.is_sure or is_chosen,
            encoding_alternatives=guess.readings,
        )


PLAIN_TEXT: Final = Layout(FileFormat.CSV)


@dataclass(frozen=True, slots=True)
class Wishes:
    """Known facts about a file that need no detection."""

    format: FileFormat | None = None
    member: str = ""  # the file in a ZIP file with several
    sheet: str = ""  # the sheet of a workbook with several
    encoding: str = ""
    delimiter: str = ""
    # None: the first line is a header if it names both keys, or has more or fewer fields than there are columns
    has_header: bool | None = True
    columns: tuple[str, ...] = ()
    name: str = ""  # the name of the file, which its content may overrule
    language: str = ""  # the importing user's, such as tr; the content may overrule it


NO_WISHES: Final = Wishes()


def detect(stream: IO[bytes], wishes: Wishes = NO_WISHES, bounds: Bounds | None = None) -> Layout:
    """Detect the layout of a file from its beginning; raises FileRefused."""
    compression = _detect_compression(stream.read(len(content.ZIP)))
    member = ""
    if compression is Compression.ZIP:
        names = content.members(stream)
        if excel.is_workbook(names):
            return _detect_sheet(excel.sheet_names(stream), wishes)
        if excel.is_other_document(names):
            raise FileRefused(Reason.FILE_ROWS_OTHER_DOCUMENT)
        member = wishes.member or _only_member(names)
    stream.seek(0)
    sample = content.read_beginning(stream, SAMPLE, compression, member, bounds)
    if sample.startswith(_OLD_EXCEL):
        raise FileRefused(Reason.FILE_ROWS_OLD_EXCEL)
    if not sample.strip():
        # one of several files may be that of a table without entities
        format_ = wishes.format or (_FORMATS.get(extension_of(member)) if wishes.member else None)
        if format_ is None:
            raise FileRefused(Reason.FILE_ROWS_EMPTY)
        return Layout(format_, compression, member=member)
    if sample.startswith(_PARQUET):
        return Layout(FileFormat.PARQUET, compression, member=member)
    layout = Layout(FileFormat.CSV, compression, member=member)
    layout = _detect_encoding(layout, stream, sample, wishes, bounds)
    text = _decode_sample(sample, layout.encoding)
    if len(_CONTROLS.findall(text)) > _MOST_CONTROLS * len(text):
        raise FileRefused(Reason.FILE_ROWS_BINARY)
    return detect_text(text, wishes, layout)


def _detect_sheet(sheets: tuple[str, ...], wishes: Wishes) -> Layout:
    if not sheets:
        raise FileRefused(Reason.FILE_ROWS_EMPTY)
    if wishes.sheet and wishes.sheet not in sheets:
        raise FileRefused(Reason.FILE_ROWS_NO_SHEET, sheet=wishes.sheet)
    return Layout(FileFormat.EXCEL, sheet=wishes.sheet or sheets[0], sheets=sheets)


def detect_text(text: str, wishes: Wishes, layout: Layout = PLAIN_TEXT) -> Layout:
    """Detect the layout of a text, given its encoding; raises FileRefused."""
    extension = extension_of(layout.member or wishes.name)
    format_ = wishes.format or _detect_format(text, _FORMATS.get(extension))
    layout = replace(layout, format=format_, has_header=wishes.has_header is not False)
    if layout.format is not FileFormat.CSV:
        return layout
    delimiters = _DELIMITERS_FIRST.get(extension, "") + DELIMITERS
    return _detect_dialect(layout, text, wishes.delimiter or delimiters, wishes)


def _detect_compression(head: bytes) -> Compression:
    if head.startswith(_GZIP):
        return Compression.GZIP
    return Compression.ZIP if head.startswith(content.ZIP) else Compression.NONE


def _only_member(names: Sequence[str]) -> str:
    if len(names) != 1:
        raise FileRefused(Reason.FILE_ROWS_ZIP_FILES, number=len(names))
    return names[0]


def _detect_encoding(
    layout: Layout, stream: IO[bytes], sample: bytes, wishes: Wishes, bounds: Bounds | None
) -> Layout:
    chosen = encodings.with_order(find_encoding(wishes.encoding), sample) if wishes.encoding else ""
    marked = encodings.of_mark(sample) or encodings.of_zeros(sample)
    if marked:
        return replace(layout, encoding=chosen or marked)
    evidence = Evidence()
    evidence.add(sample, is_cut=len(sample) == SAMPLE)
    if len(sample) == SAMPLE and not evidence.is_enough:
        stream.seek(0)
        sample = content.read_beginning(stream, SCANNED, layout.compression, layout.member, bounds)
        evidence = Evidence()
        evidence.add(sample, is_cut=len(sample) == SCANNED)
    if chosen:
        guess = Guess(chosen, readings=encoding_guess.compare(evidence, chosen, wishes.language))
    else:
        guess = encoding_guess.guess(evidence, wishes.language)
    return layout.with_guess(guess, is_chosen=bool(chosen))


def find_encoding(name: str) -> str:
    """Return an encoding by one of its names; raises FileRefused."""
    encoding = encodings.find(name)
    if encoding is None:
        known = ", ".join(encodings.ENCODINGS)
        raise FileRefused(Reason.FILE_ROWS_ENCODING, encoding=name, encodings=known)
    return encoding


def _decode_sample(sample: bytes, encoding: str) -> str:
    return encodings.decode_beginning(sample, encoding).removeprefix("\ufeff")


_FORMATS: Final = {
    "csv": FileFormat.CSV,
    "tsv": FileFormat.CSV,
    "tab": FileFormat.CSV,
    "json": FileFormat.JSON,
    "ndjson": FileFormat.NDJSON,
    "jsonl": FileFormat.NDJSON,
    "ldjson": FileFormat.NDJSON,
}
_DELIMITERS_FIRST: Final = {"tsv": "\t", "tab": "\t"}
_JSON_ARRAY: Final = re.compile(r'\s*\[\s*([\[{\]"0-9tfn-]|$)')
_JSON_OBJECT: Final = re.compile(r'\s*\{\s*(["}]|$)')


def extension_of(name: str) -> str:
    """Return the lower-case extension of a file name, ignoring a compression suffix."""
    return name.lower().removesuffix(".gz").rpartition(".")[2]


def _detect_format(text: str, expected: FileFormat | None) -> FileFormat:
    """Return the format of a text; ``expected`` only decides between possible ones."""
    if _JSON_ARRAY.match(text):
        return FileFormat.CSV if expected is FileFormat.CSV and not _is_json(text) else FileFormat.JSON
    if not _JSON_OBJECT.match(text):
        return FileFormat.CSV
    return _detect_objects(text.lstrip(), expected)


def _is_json(text: str) -> bool:
    """Return whether a text begins like a JSON array of objects."""
    return re.match(r'\s*\[\s*(\{\s*["}]|\])', text) is not None


def _detect_objects(text: str, expected: FileFormat | None) -> FileFormat:
    """Return the format of JSON objects: one or several documents, or one row per line."""
    if _PAGE.match(text):
        return FileFormat.JSON
    try:
        first, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):  # longer than the sample, or not JSON
        line, line_end, _ = text.partition("\n")
        is_row = expected is not FileFormat.JSON and (line.rstrip().endswith("}") or not line_end)
        return FileFormat.NDJSON if is_row else FileFormat.JSON
    same_line, _, others = text[end:].partition("\n")
    if "\n" in text[:end] or same_line.strip():
        return FileFormat.JSON
    may_be_rows = others.strip() or expected is not FileFormat.JSON
    is_list = any(isinstance(first.get(name), list) for name in _LISTS) and expected is not FileFormat.NDJSON
    return FileFormat.NDJSON if may_be_rows and not is_list else FileFormat.JSON


def _detect_dialect(layout: Layout, text: str, delimiters: str, wishes: Wishes) -> Layout:
    separator = _SEPARATOR_LINE.match(text)
    first_line = separator or _OBJECT_LINE.match(text)
    if first_line is not None:
        text = text[first_line.end() :]
        layout = replace(layout, has_separator_line=True)
    line_end = _detect_line_end(text)
    if separator is not None and not wishes.delimiter:
        delimiters = separator[1]
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if wishes.has_header is None:
        with_keys = (it for it in delimiters if has_keys(_first_fields(text, it, _QUOTES[0])))
        delimiters = next(with_keys, delimiters)
    delimiter, quote = _best_dialect(text, delimiters)
    layout = replace(layout, delimiter=delimiter, quote=quote, line_end=line_end)
    if wishes.columns and wishes.has_header is not None:
        return replace(layout, columns=wishes.columns)
    first = _first_fields(text, delimiter, quote)
    if wishes.columns and len(wishes.columns) == len(first) and not has_keys(first):
        return replace(layout, columns=wishes.columns, has_header=False)
    require_few_columns(first)
    if not layout.has_header:
        return replace(layout, columns=name_columns([""] * len(first))[0])
    names, unnamed = name_columns(first)
    require_different(names)
    return replace(layout, columns=names, unnamed=unnamed)


def _detect_line_end(text: str) -> str:
    """Return a carriage return for files of old Macs, whose texts may have line feeds in quotation marks."""
    first = re.search("[\r\n]", text)
    return "\r" if first is not None and first[0] == "\r" and "\r\n" not in text else "\n"


def require_few_columns(names: Sequence[object]) -> None:
    """Raise FileRefused if there are more columns than a file may have."""
    if len(names) > MOST_COLUMNS:
        raise FileRefused(Reason.FILE_ROWS_COLUMNS, number=len(names), most=MOST_COLUMNS)


def require_different(names: Iterable[str]) -> None:
    """Raise FileRefused if two columns have the same name."""
    for name, number in Counter(names).items():
        if number > 1:
            raise FileRefused(Reason.FILE_ROWS_COLUMN_TWICE, column=name)


def name_columns(header: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return all column names, and those generated from positions for unnamed columns."""
    taken, unnamed, names = set(header), list[str](), list[str]()
    for number, name in enumerate(header, 1):
        if not name:
            name = free_name(f"column{number}", taken)
            taken.add(name)
            unnamed.append(name)
        names.append(name)
    return tuple(names), tuple(unnamed)


def free_name(name: str, taken: Container[str]) -> str:
    """Return an unused name, with a number appended if needed."""
    free, number = name, 2
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    return free


def _best_dialect(text: str, delimiters: str) -> tuple[str, str]:
    """Return the delimiter that gives most lines the same, large number of fields, and the quote character."""
    best: list[Sequence[str]] = []
    best_delimiter, best_score = delimiters[0], (-1.0, 0)
    for delimiter in delimiters:
        lines = _whole_lines(text, delimiter, _QUOTES[0])
        if not lines:
            continue
        width, number = _common_width(lines)
        score = (number / len(lines), width) if width > 1 else (0.0, 0)
        if score > best_score:
            best, best_delimiter, best_score = lines, delimiter, score
    return best_delimiter, _QUOTES[_has_apostrophes(text, best_delimiter, best)]


def _has_apostrophes(text: str, delimiter: str, lines: list[Sequence[str]]) -> bool:
    """Return whether apostrophes are the quotation marks of a file, given its lines as they are without.

    They are part of a text unless a name of the header is in apostrophes, or a field that needs quotation marks. Files
    with PartitionKey and RowKey come from programs that write proper quotation marks.
    """
    apostrophe = _QUOTES[1]
    quoted = [field for fields in lines for field in fields if field.startswith(apostrophe)]
    if not quoted or _QUOTES[0] in text or has_keys([field.strip() for field in lines[0]]):
        return False
    if all(field[1:].endswith(apostrophe) for field in quoted):
        needed = (*DELIMITERS, "\n")
        return any(field.startswith(apostrophe) for field in lines[0]) or any(
            character in field for field in quoted for character in needed
        )
    # an apostrophe without another one would swallow the lines after it
    joined = _whole_lines(text, delimiter, apostrophe)
    width, number = _common_width(joined)
    without = _common_width(lines)[1]
    return width > 1 and without < len(lines) and without <= number == len(joined)


def _common_width(lines: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Return the number of fields that most lines have, and the number of these lines."""
    return Counter(map(len, lines)).most_common(1)[0]


def _whole_lines(text: str, delimiter: str, quote: str) -> list[Sequence[str]]:
    lines = _parse(text, delimiter, quote)
    return lines[:-1] if len(lines) > 1 else lines  # the last one may be cut off


def _first_fields(text: str, delimiter: str, quote: str) -> list[str]:
    """Return the stripped fields of the first row with any."""
    rows = _parse(text, delimiter, quote)
    return [field.strip() for field in next(filter(any, rows), ())]


def _parse(text: str, delimiter: str, quote: str) -> list[Sequence[str]]:
    records: list[Sequence[str]] = []
    try:
        for fields in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quotechar=quote):
            if fields:
                records.append(fields)
            if len(records) > 500:
                break
    except csv.Error:
        pass  # the part read so far counts
    return records
