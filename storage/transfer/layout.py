"""How a file of rows is to be read: found out from its first bytes, shown, and chosen otherwise if that is wrong."""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import IO, Any, Final, Self

from storage.domain.refusals import Reason
from storage.transfer import content
from storage.transfer.content import Bounds
from storage.transfer.content import Compression as Compression
from storage.transfer.content import FileRefused as FileRefused
from storage.transfer.mapping import name_columns

SAMPLE: Final = 256 * 1024  # bytes that are looked at
DELIMITERS: Final = ",\t;|"
_QUOTES: Final = "\"'"
_FEW: Final = 10  # letters of several bytes for each error make a text UTF-8 with errors
_GZIP: Final = b"\x1f\x8b"
_ZIP: Final = b"PK\x03\x04"
_PARQUET: Final = b"PAR1"
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# a String may have some of them
_CONTROLS: Final = re.compile("[\x00-\x08\x0e-\x1f]")
_MOST_CONTROLS: Final = 0.05
_LIST: Final = re.compile(r'"value"\s*:\s*\[')  # of the answer of a table service
# Excel understands this line, and other programs write it for Excel
_SEPARATOR_LINE: Final = re.compile(r"sep=(.)\r?\n")


class FileFormat(StrEnum):
    CSV = "csv"
    JSON = "json"
    NDJSON = "ndjson"
    PARQUET = "parquet"


@dataclass(frozen=True, slots=True)
class Layout:
    """What one has to know to read a file.

    ``columns`` names the fields of CSV; they come from its first line if ``has_header``. ``line_end`` is what Excel for
    old Macs writes, or the usual one. ``member`` is the name of the file in a ZIP file. ``unnamed``: the columns whose
    name in the file is empty, which are named by their position.
    """

    format: FileFormat
    compression: Compression = Compression.NONE
    encoding: str = "utf-8"
    delimiter: str = ","
    quote: str = '"'
    line_end: str = "\n"
    has_header: bool = True
    has_separator_line: bool = False
    columns: tuple[str, ...] = ()
    member: str = ""
    unnamed: tuple[str, ...] = ()

    @property
    def can_seek(self) -> bool:
        """Whether reading can begin at any row, by its place in bytes."""
        is_plain = self.compression is Compression.NONE and self.has_byte_lines
        return is_plain and self.format in (FileFormat.CSV, FileFormat.NDJSON)

    @property
    def has_byte_lines(self) -> bool:
        """Whether the byte of a line feed ends a line, and stands for nothing else."""
        return self.line_end == "\n" and _has_byte_line_feeds(self.encoding)

    @classmethod
    def load(cls, found: dict[str, Any]) -> Self:
        """Read what ``dataclasses.asdict`` made, from JSON."""
        known = {
            **found,
            "format": FileFormat(found["format"]),
            "compression": Compression(found["compression"]),
            "columns": tuple(found["columns"]),
            "unnamed": tuple(found.get("unnamed", ())),
        }
        return cls(**known)


# whose characters of several bytes have no byte of a line feed in them
_SEVERAL_BYTES: Final = re.compile("utf_8|gb|big5|cp9[345]|shift|euc|johab")


@lru_cache(maxsize=256)
def _has_byte_line_feeds(encoding: str) -> bool:
    try:
        name = codecs.lookup(encoding).name.replace("-", "_")
        text = bytes(range(256)).decode(name, "replace")
    except (LookupError, ValueError):
        return False
    has_no_states = not name.startswith(("iso2022", "hz", "utf_7"))
    is_of_single_bytes = has_no_states and len(text) == 256 and text.count("\n") == 1 and text[10] == "\n"
    return is_of_single_bytes or _SEVERAL_BYTES.match(name) is not None


@dataclass(frozen=True, slots=True)
class Wishes:
    """What is known of a file and not to be found out; ``member``: the file in a ZIP file with several."""

    format: FileFormat | None = None
    member: str = ""
    encoding: str = ""
    delimiter: str = ""
    has_header: bool = True
    columns: tuple[str, ...] = ()


NO_WISHES: Final = Wishes()


def detect(stream: IO[bytes], wishes: Wishes = NO_WISHES, bounds: Bounds | None = None) -> Layout:
    """Find out how to read a file from its beginning; raises FileRefused."""
    compression = _detect_compression(stream.read(len(_ZIP)))
    member = ""
    if compression is Compression.ZIP:
        member = wishes.member or _only_member(stream)
    stream.seek(0)
    sample = content.read_beginning(stream, SAMPLE, compression, member, bounds)
    if not sample.strip():
        if wishes.format is None:
            raise FileRefused(Reason.FILE_ROWS_EMPTY)
        return Layout(wishes.format, compression, member=member)
    if sample.startswith(_PARQUET):
        return Layout(FileFormat.PARQUET, compression, member=member)
    encoding = wishes.encoding or detect_encoding(sample)
    text = decode_sample(sample, encoding)
    if len(_CONTROLS.findall(text)) > _MOST_CONTROLS * len(text):
        raise FileRefused(Reason.FILE_ROWS_BINARY)
    format_ = wishes.format or _detect_format(text)
    layout = Layout(format_, compression, encoding, member=member, has_header=wishes.has_header)
    return layout if format_ is not FileFormat.CSV else _detect_dialect(layout, text, wishes)


def _detect_compression(head: bytes) -> Compression:
    if head.startswith(_GZIP):
        return Compression.GZIP
    return Compression.ZIP if head.startswith(_ZIP) else Compression.NONE


def _only_member(stream: IO[bytes]) -> str:
    found = content.members(stream)
    if len(found) != 1:
        raise FileRefused(Reason.FILE_ROWS_ZIP_FILES, number=len(found))
    return found[0]


def detect_encoding(sample: bytes) -> str:
    """Return the encoding of text: that of its mark, UTF-8 if it can be, else the most probable one."""
    for mark, encoding in _MARKS:
        if sample.startswith(mark):
            return encoding
    if _is_utf8(sample):
        return "utf-8"
    from charset_normalizer import from_bytes  # rarely needed, and slow to import

    best = from_bytes(sample).best()
    return "cp1252" if best is None else best.encoding.replace("_", "-")


def _is_utf8(sample: bytes) -> bool:
    """Return whether a sample is UTF-8, also with the surrogates that an export may contain, or with few errors."""
    if b"\0" in sample:
        return False
    text = codecs.getincrementaldecoder("utf-8")("surrogatepass").decode
    try:
        text(sample)
    except UnicodeDecodeError:
        found = sample.decode("utf-8", "replace")
        wrong = found.count("\ufffd")
        letters = len(found) - len(found.encode("ascii", "ignore")) - wrong
        return letters > _FEW * wrong
    return True


def decode_sample(sample: bytes, encoding: str) -> str:
    try:
        sample[:4].decode(encoding, "replace")  # which refuses those of Python's codecs that are of no text
        text = codecs.getincrementaldecoder(encoding)("replace").decode(sample)
    except (LookupError, ValueError):
        raise FileRefused(Reason.FILE_ROWS_ENCODING, encoding=encoding) from None
    return text.removeprefix("\ufeff")


def errors_of(encoding: str) -> str:
    """Return how Python shall treat errors, so that halves of surrogate pairs survive where they can be written."""
    return "surrogatepass" if encoding.replace("_", "-").startswith("utf") else "strict"


def _detect_format(text: str) -> FileFormat:
    start = text.lstrip()[:1]
    if start == "[":
        return FileFormat.JSON
    if start != "{":
        return FileFormat.CSV
    # an object that ends on its line, or in one longer than the sample, is followed by others, or it is the only one
    first, end, _ = text.lstrip().partition("\n")
    is_row = first.rstrip().endswith("}") or not end
    return FileFormat.NDJSON if is_row and not _LIST.search(first[:500]) else FileFormat.JSON


def _detect_dialect(layout: Layout, text: str, wishes: Wishes) -> Layout:
    separator = _SEPARATOR_LINE.match(text)
    if separator is not None:
        text = text[separator.end() :]
        layout = replace(layout, has_separator_line=True)
    line_end = "\r" if "\r" in text and "\n" not in text else "\n"
    delimiters = wishes.delimiter or (separator[1] if separator else DELIMITERS)
    delimiter, quote = _best_dialect(text.replace("\r\n", "\n").replace("\r", "\n"), delimiters)
    layout = replace(layout, delimiter=delimiter, quote=quote, line_end=line_end)
    if wishes.columns:
        return replace(layout, columns=wishes.columns)
    first = next((it for it in _parse(text.replace("\r", "\n"), delimiter, quote) if any(it)), [])
    if not layout.has_header:
        return replace(layout, columns=name_columns([""] * len(first))[0])
    names, unnamed = name_columns([name.strip() for name in first])
    require_different(names)
    return replace(layout, columns=names, unnamed=unnamed)


def require_different(names: Iterable[str]) -> None:
    """Raise FileRefused if two columns have the same name."""
    twice = next((name for name, number in Counter(names).items() if number > 1), None)
    if twice is not None:
        raise FileRefused(Reason.FILE_ROWS_COLUMN_TWICE, column=twice)


def _best_dialect(text: str, delimiters: str) -> tuple[str, str]:
    """Return the delimiter with which most lines have the same number of fields, and many; and the quotation mark."""
    best: list[Sequence[str]] = []
    best_delimiter, best_score = delimiters[0], (-1.0, 0)
    for delimiter in delimiters:
        lines = _parse(text, delimiter, _QUOTES[0])
        lines = lines[:-1] if len(lines) > 1 else lines  # the last one may be cut off
        if not lines:
            continue
        width, number = Counter(map(len, lines)).most_common(1)[0]
        score = (number / len(lines), width) if width > 1 else (0.0, 0)
        if score > best_score:
            best, best_delimiter, best_score = lines, delimiter, score
    single = [field for fields in best for field in fields if field.startswith(_QUOTES[1])]
    is_single = single and _QUOTES[0] not in text and all(it[1:].endswith(_QUOTES[1]) for it in single)
    return best_delimiter, _QUOTES[1] if is_single else _QUOTES[0]


def _parse(text: str, delimiter: str, quote: str) -> list[Sequence[str]]:
    found: list[Sequence[str]] = []
    try:
        for fields in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quotechar=quote):
            if fields:
                found.append(fields)
            if len(found) > 500:
                break
    except csv.Error:
        pass  # what was read so far counts
    return found
