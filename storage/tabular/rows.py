"""Row readers for all file formats, resumable at a position, so that a long import can continue."""

import csv
import io
import json
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from json import JSONDecodeError
from typing import IO, Any, Final, NamedTuple

from storage.domain.entities.annotations import is_control
from storage.domain.refusals import Reason
from storage.editing import exact_json
from storage.editing.exact_json import ExactDecoder
from storage.tabular import excel, parquet
from storage.tabular.content import (
    DAMAGED,
    Bounds,
    Rowless,
    open_content,
)
from storage.tabular.encodings import codec_of, errors_of
from storage.tabular.layout import FileFormat, FileRefused, Layout
from storage.tabular.report import ColumnUse, FileReport

# bytes of a line; an entity as JSON with every character escaped takes less
LONGEST_LINE: Final = 16 << 20
_CLI_ENTITIES: Final = re.compile(r'\[\s*\{[^{}\[\]]{0,4096}?"PartitionKey"\s*:')
_PIECE: Final = 1 << 20  # characters of JSON that are read at once

csv.field_size_limit(4 << 20)  # characters, of a value of the largest entity as base64

# errors of reading a damaged file, by itself or by the libraries that read it
_UNREADABLE: Final = (
    *DAMAGED,
    csv.Error,
    struct.error,
    LookupError,
    NotImplementedError,
    OverflowError,
    RecursionError,
    ValueError,
)


def text_of(value: Any) -> str:
    """Return the text of a JSON value or a formula as in the file."""
    return str(value) if isinstance(value, str | excel.Formula) else exact_json.write(value)


class RowFault(StrEnum):
    """Reason why a row cannot be read."""

    BAD_CSV = "quotation marks that do not match"
    BAD_JSON = "not JSON"
    NO_OBJECT = "not a JSON object"
    ENCODING = "bytes that are not text in the encoding of the file"
    TOO_MANY_FIELDS = "more fields than columns"
    MEMBER_TWICE = "two members with the same name"


class Position(NamedTuple):
    """Start of the next row, after so many ``rows`` and ``lines``, and at a byte ``offset`` if seekable."""

    rows: int = 0
    lines: int = 0
    offset: int = 0


START: Final = Position()


class Row(NamedTuple):
    """Row of a file; ``fields`` by column or JSON member, or a ``fault`` with the ``text`` at fault."""

    line: int
    fields: dict[str, Any]
    fault: RowFault | None = None
    text: str = ""
    column: str = ""
    further: Sequence[str] = ()


class Reader:
    """Iterator over the rows of a stream; ``position`` is the start of the next one.

    Known columns can be passed: see ``Layout.columns``. ``bounds`` counts the bytes read, and may stop the
    reading. ``report`` covers content that is not in rows; blank rows are those after the start.
    """

    def __init__(
        self, stream: IO[bytes], layout: Layout, start: Position = START, bounds: Bounds | None = None
    ) -> None:
        self.layout = layout
        self.position = start
        bounds = bounds or Bounds()
        if layout.format not in (FileFormat.PARQUET, FileFormat.EXCEL):  # they are not read in order
            bounds.expect_rows(lambda: self.position.rows)
        self._content = open_content(stream, layout.compression, layout.member, bounds)
        self.report = FileReport()
        self._start = start
        self._resumes = start.rows > 0
        # versions up to 1.0 did not count the bytes of all files in which that is possible
        self._seeks = layout.can_seek and start.offset > 0

    def __iter__(self) -> Iterator[Row]:
        rows = _READERS[self.layout.format](self)
        try:
            if self._resumes and not self._seeks:
                for _ in range(self._start.rows):
                    next(rows)
            yield from rows
        except Rowless:
            raise FileRefused(Reason.FILE_ROWS_ROWLESS, line=self.position.lines) from None
        except _UNREADABLE as error:
            if isinstance(error, OSError) and error.errno:
                raise  # an error of the disk
            raise FileRefused(Reason.FILE_ROWS_CUT_OFF, line=self.position.lines) from None

    def _count_blank(self, line: int) -> None:
        # when reading goes on, those before are counted already
        if line > self._start.lines:
            self.report.blank_rows += 1

    # lines

    def _lines(self) -> "_Lines":
        if self._resumes and self._seeks:
            self._content.seek(self.position.offset)
            return _Lines(self._content, self.layout, self.position)
        return _Lines(self._content, self.layout, START)

    def _read_csv(self) -> Iterator[Row]:
        layout, lines = self.layout, self._lines()
        is_at_start = not lines.number
        if is_at_start and layout.has_separator_line:
            next(lines)
        columns, width = layout.columns, len(layout.columns)
        parser = csv.reader(lines, delimiter=layout.delimiter, quotechar=layout.quote, strict=True)
        skips_header = is_at_start and layout.has_header
        rows = 0 if is_at_start else self.position.rows
        while True:
            row: Row
            lines.taken.clear()
            try:
                fields = next(parser)
            except StopIteration:
                self.position = Position(rows, lines.number, lines.offset)
                return
            except csv.Error:
                row = Row(lines.number, {}, RowFault.BAD_CSV, "".join(lines.taken))
            else:
                if not any(fields) or (len(fields) == 1 and width > 1 and not fields[0].strip()):
                    self._count_blank(lines.number)
                    continue
                if skips_header:
                    skips_header = False
                    continue
                row = Row(lines.number, dict(zip(columns, fields, strict=False)))
                if len(fields) > width:
                    text = layout.delimiter.join(fields)
                    row = row._replace(
                        fault=RowFault.TOO_MANY_FIELDS, text=text, further=tuple(fields[width:])
                    )
            if lines.is_damaged:
                lines.is_damaged = False
                row = row._replace(fault=RowFault.ENCODING, text="".join(lines.taken))
            rows += 1
            self.position = Position(rows, lines.number, lines.offset)
            yield row

    def _read_ndjson(self) -> Iterator[Row]:
        lines, decoder = self._lines(), ExactDecoder()
        rows = self.position.rows if lines.number else 0
        for line in lines:
            lines.taken.clear()
            if not line.strip():
                self._count_blank(lines.number)
                continue
            try:
                value = decoder.load(line)
            except (ValueError, RecursionError):
                row = Row(lines.number, {}, RowFault.BAD_JSON, line)
            else:
                row = _row_of(lines.number, value, decoder.repeated, line.strip())
            if lines.is_damaged:
                lines.is_damaged = False
                row = Row(lines.number, {}, RowFault.ENCODING, line)
            rows += 1
            self.position = Position(rows, lines.number, lines.offset)
            yield row
        self.position = Position(rows, lines.number, lines.offset)

    # a JSON document

    def _read_json(self) -> Iterator[Row]:
        encoding = self.layout.encoding
        text = io.TextIOWrapper(self._content, codec_of(encoding), errors_of(encoding), newline="")
        document = _Document(text, self.report)
        number = 0
        for number, row in enumerate(document.rows(), 1):
            self.position = Position(number, document.line, 0)
            yield row
        # behind the last row, also if that is on the last line
        self.position = Position(number, document.line + 1, 0)

    def _read_parquet(self) -> Iterator[Row]:
        for number, fields in enumerate(parquet.read(self._content, self.report), 1):
            self.position = Position(number, number, 0)
            yield Row(number, fields)

    def _read_excel(self) -> Iterator[Row]:
        reader = excel.SheetReader(self._content, self.layout.sheet, self.report)
        for number, row in enumerate(reader.rows(), 1):
            for line in reader.blank_lines:
                self._count_blank(line)
            self.position = Position(number, row.line, 0)
            if row.further:
                text = "\t".join(map(str, (*row.fields.values(), *row.further)))
                yield Row(row.line, row.fields, RowFault.TOO_MANY_FIELDS, text, further=row.further)
            else:
                yield Row(row.line, row.fields)


def _row_of(line: int, value: object, repeated: str | None, text: str) -> Row:
    """Convert a JSON value to a row; ``repeated`` is a duplicate member, ``text`` the source."""
    if not isinstance(value, dict):
        return Row(line, {}, RowFault.NO_OBJECT, text)
    if repeated is not None:
        return Row(line, {}, RowFault.MEMBER_TWICE, text, repeated)
    return Row(line, value)


_READERS: Final[dict[FileFormat, Callable[[Reader], Iterator[Row]]]] = {
    FileFormat.CSV: Reader._read_csv,
    FileFormat.JSON: Reader._read_json,
    FileFormat.NDJSON: Reader._read_ndjson,
    FileFormat.PARQUET: Reader._read_parquet,
    FileFormat.EXCEL: Reader._read_excel,
}


class _Lines:
    """Text lines of a stream with line number and byte offset."""

    def __init__(self, stream: IO[bytes], layout: Layout, start: Position) -> None:
        self.number = start.lines
        self.offset = start.offset
        self.taken = list[str]()
        self.is_damaged = False
        self._codec, self._errors = codec_of(layout.encoding), errors_of(layout.encoding)
        self._stream: Any = stream
        self._is_text = not layout.has_byte_lines
        if self._is_text:
            # where a line ends cannot be seen in the bytes
            self._stream = io.TextIOWrapper(stream, self._codec, self._errors, newline=layout.line_end)
        self._read: Callable[[int], Any] = self._stream.readline
        if layout.line_end == "\r" and not self._is_text:
            self._read = self._read_to_return

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        try:
            raw = self._read(LONGEST_LINE)
        except UnicodeDecodeError:  # the end of a UTF-16 file is missing
            raise FileRefused(Reason.FILE_ROWS_CUT_OFF, line=self.number) from None
        if not raw:
            raise StopIteration
        self.number += 1
        if len(raw) >= LONGEST_LINE:
            raise FileRefused(Reason.FILE_ROWS_LONG_LINE, line=self.number)
        if self._is_text:
            line: str = raw
        else:
            self.offset += len(raw)
            try:
                line = raw.decode(self._codec, self._errors)
            except UnicodeDecodeError:
                line = raw.decode(self._codec, "replace")
                self.is_damaged = True
        if self.number == 1:
            line = line.removeprefix("\ufeff")
        self.taken.append(line)
        return line

    def _read_to_return(self, most: int) -> bytes:
        """Read a line that ends with a carriage return, as on old Macs."""
        line = bytearray()
        while len(line) < most and (block := self._stream.peek()):
            line += self._stream.read(block.find(b"\r") + 1 or len(block))
            if line.endswith(b"\r"):
                break
        return bytes(line)


class _Document:
    """Streaming reader of objects in JSON arrays, or in ``value`` arrays of response objects."""

    def __init__(self, text: io.TextIOWrapper, report: FileReport) -> None:
        self.line = 1
        self._text = text
        self._report = report
        self._buffer = ""
        self._at = 0
        self._is_whole = False
        self._decoder = ExactDecoder()

    def rows(self) -> Iterator[Row]:
        self._fill()
        self._buffer = self._buffer.removeprefix("\ufeff")
        while True:
            match self._peek():
                case "[":
                    yield from self._array()
                case "{":
                    yield from self._page()
                case _:
                    raise self._refused()
            if not self._peek():
                return

    def _array(self) -> Iterator[Row]:
        self._expect("[")
        if self._peek() == "]":
            self._expect("]")
            return
        while True:
            value, text = self._value()
            yield _row_of(self.line, value, self._decoder.repeated, text)
            if self._peek() == "]":
                self._expect("]")
                return
            self._expect(",")

    def _page(self) -> Iterator[Row]:
        """Yield the objects of a service response, or of the Azure CLI; another object is the only one."""
        members: dict[str, object] = {}
        texts: list[str] = []
        repeated: str | None = None
        is_page = False
        self._expect("{")
        while self._peek() != "}":
            if self._peek() != '"':
                raise self._refused()
            name = str(self._value()[0])
            self._expect(":")
            if not is_page and self._peek() == "[" and (name == "value" or self._is_of_cli(name, members)):
                yield from self._array()
                is_page = True
            else:
                value, text = self._value()
                twice = name if name in members else self._decoder.repeated
                repeated = twice if repeated is None else repeated
                members[name] = value
                texts.append(f"{json.dumps(name)}: {text}")
            if self._peek() != ",":
                break
            self._expect(",")
        self._expect("}")
        if not is_page:
            yield _row_of(self.line, members, repeated, f"{{{', '.join(texts)}}}")
            return
        for name in members:
            self._report.add_column(name, ColumnUse.CONTROL if is_control(name) else ColumnUse.BESIDE_ROWS)

    def _is_of_cli(self, name: str, members: Mapping[str, object]) -> bool:
        """Return whether the array here is the entities of ``az storage entity query``, which begins with them."""
        return name == "items" and not members and _CLI_ENTITIES.match(self._buffer, self._at) is not None

    def _value(self) -> tuple[object, str]:
        """Decode a value and return it with its text."""
        self._peek()
        while True:
            try:
                value, end = self._decoder.decode(self._buffer, self._at)
            except (JSONDecodeError, RecursionError):
                if self._is_whole or len(self._buffer) - self._at > LONGEST_LINE:
                    raise self._refused() from None
            else:
                # a number at the end of the buffer may go on, also behind its point or exponent
                if end + 2 < len(self._buffer) or self._is_whole:
                    text = self._buffer[self._at : end]
                    self._advance(end)
                    return value, text
            self._fill()

    def _peek(self) -> str:
        while True:
            at, size = self._at, len(self._buffer)
            while at < size and self._buffer[at] in " \t\r\n":
                at += 1
            self._advance(at)
            if at < size or self._is_whole:
                return self._buffer[at : at + 1]
            self._fill()

    def _expect(self, mark: str) -> None:
        if self._peek() != mark:
            raise self._refused()
        self._advance(self._at + 1)

    def _advance(self, to: int) -> None:
        self.line += self._buffer.count("\n", self._at, to)
        self._at = to

    def _fill(self) -> None:
        try:
            piece = self._text.read(_PIECE)
        except UnicodeDecodeError:
            raise self._refused() from None
        self._is_whole = not piece
        self._buffer, self._at = self._buffer[self._at :] + piece, 0

    def _refused(self) -> FileRefused:
        return FileRefused(Reason.FILE_ROWS_NOT_JSON, line=self.line)
