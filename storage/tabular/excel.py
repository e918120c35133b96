"""Excel files (.xlsx) by openpyxl, an optional dependency."""

import re
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from typing import IO, Any, Final, NamedTuple, cast

from storage.domain.entities.annotations import ODATA_TYPE, TYPE, find_roles
from storage.domain.entities.entity import KEY_PROPERTIES, SYSTEM_PROPERTIES, StoredEntity, read_stored
from storage.domain.refusals import Reason
from storage.domain.values.edm import Edm, EdmValue
from storage.tabular import content
from storage.tabular.content import Compression, FileRefused
from storage.tabular.formulas import is_formula
from storage.tabular.report import ColumnUse, FileReport
from storage.tabular.writing import UnexpectedProperty, value_text

_MARK: Final = "xl/workbook.xml"  # a file that is in each workbook
_RELATIONS: Final = "xl/_rels/workbook.xml.rels"
_STRICT: Final = "{http://purl.oclc.org/"  # names of Strict Open XML, which openpyxl does not know
# files in other documents of Office, LibreOffice and Numbers
_OF_OFFICE: Final = frozenset({"[Content_Types].xml", "content.xml", "Index/Document.iwa"})
_WITHOUT_ROWS: Final = ("/chartsheet", "/dialogsheet")  # ends of the types of sheets
_SHEETS: Final = "xl/worksheets/"  # the only files that are not read into memory
_MOST_WORKBOOK: Final = 1 << 20  # bytes of that file
_MOST_BYTES: Final = 4 << 30  # bytes of all files
_MOST_IN_MEMORY: Final = 256 << 20
_PIECE: Final = 64 * 1024
MOST_ROWS: Final = 1_048_575  # below the header
MOST_COLUMNS: Final = 16_384
MOST_TEXT: Final = 32_767  # characters of a cell
_EXACT: Final = 2**53  # Excel keeps numbers as Doubles
_UNREADABLE: Final = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    NotImplementedError,
    SyntaxError,  # invalid XML
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


def library() -> Any:
    """Return openpyxl; raises FileRefused if it is missing."""
    try:
        import openpyxl
    except ImportError:
        raise FileRefused(Reason.FILE_ROWS_NO_EXCEL) from None
    return openpyxl


def is_workbook(names: Sequence[str]) -> bool:
    """Return whether the files of a ZIP archive make a workbook."""
    return _MARK in names


def is_other_document(names: Sequence[str]) -> bool:
    """Return whether the files of a ZIP archive make a document that is not a workbook of this format."""
    return _MARK not in names and not _OF_OFFICE.isdisjoint(names)


def sheet_names(stream: IO[bytes]) -> tuple[str, ...]:
    """Return the sheets of a workbook that have rows, visible ones first; raises FileRefused."""
    library()
    _check_size(stream)
    names = content.members(stream)
    root = _read_xml(stream, _MARK)
    if root.tag.startswith(_STRICT):
        raise FileRefused(Reason.FILE_ROWS_OTHER_DOCUMENT)
    relations = _read_xml(stream, _RELATIONS) if _RELATIONS in names else ()
    without_rows = {it.get("Id") for it in relations if it.get("Type", "").endswith(_WITHOUT_ROWS)}
    sheets = [it for it in root.iter() if it.tag.rpartition("}")[2] == "sheet"]
    sheets = [it for it in sheets if without_rows.isdisjoint(it.attrib.values())]
    sheets.sort(key=lambda it: it.get("state", "visible") != "visible")
    return tuple(it.get("name", "") for it in sheets)


def _read_xml(stream: IO[bytes], member: str) -> Any:
    """Return the root element of a file of a workbook; raises FileRefused."""
    from defusedxml import DefusedXmlException, ElementTree

    stream.seek(0)
    text = content.read_beginning(stream, _MOST_WORKBOOK, Compression.ZIP, member)
    try:
        return ElementTree.fromstring(text)
    except (SyntaxError, DefusedXmlException) as error:
        raise FileRefused(Reason.FILE_ROWS_NOT_EXCEL, why=str(error)) from None


def _check_size(stream: IO[bytes]) -> None:
    """Raise FileRefused if a workbook is far larger than its file, or too large for the memory.

    A reader of ZIP files takes no more of a file than the size in the archive.
    """
    infos = content.infos(stream)
    total = sum(info.file_size for info in infos)
    packed = sum(info.compress_size for info in infos)
    in_memory = sum(info.file_size for info in infos if not info.filename.startswith(_SHEETS))
    if total > max(content.EXPANDED, content.MOST_EXPANSION * packed):
        raise FileRefused(Reason.FILE_ROWS_EXPANDS, times=content.MOST_EXPANSION)
    if total > _MOST_BYTES or in_memory > _MOST_IN_MEMORY:
        raise FileRefused(Reason.FILE_ROWS_EXCEL_LARGE)


@dataclass(frozen=True, slots=True)
class Formula:
    """Formula without a stored value, as libraries write them that do not compute; ``text`` begins with =."""

    text: str

    def __str__(self) -> str:
        return self.text


class SheetRow(NamedTuple):
    """Row of a sheet by its number; ``further`` are texts of cells beyond the columns."""

    line: int
    fields: dict[str, Any]
    further: Sequence[str] = ()


class SheetReader:
    """Reader of the rows of a sheet as JSON members with annotations; the first row names the columns.

    Formulas have the values that Excel stored, and are values of the type Formula where it stored none.
    """

    def __init__(self, stream: IO[bytes], sheet: str, report: FileReport) -> None:
        self.blank_lines = range(0)  # before the present row
        self._stream = stream
        self._sheet = sheet
        self._report = report

    def rows(self) -> Iterator[SheetRow]:
        library()
        _check_size(self._stream)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about unknown styles and extensions
                workbook = _load(self._stream)
                with closing(workbook):
                    yield from self._rows(self._find_sheet(workbook))
        except _UNREADABLE as error:
            raise FileRefused(
                Reason.FILE_ROWS_NOT_EXCEL, why=next(iter(str(error).splitlines()), "")
            ) from None

    def _find_sheet(self, workbook: Any) -> Any:
        sheet = next((it for it in workbook.worksheets if it.title == self._sheet), None)
        if sheet is None:
            raise FileRefused(Reason.FILE_ROWS_NO_SHEET, sheet=self._sheet)
        return sheet

    def _rows(self, sheet: Any) -> Iterator[SheetRow]:
        from storage.tabular.layout import name_columns, require_different, require_few_columns

        names: tuple[str, ...] = ()
        last = 0  # line with values
        for line, cells in _read_lines(sheet):
            if line > MOST_ROWS + 1:
                raise FileRefused(Reason.FILE_ROWS_ROWLESS, line=last)
            # cells without a value may only have a colour, also far to the right
            known = {column: value for column, value in cells if value is not None}
            if not known:
                continue
            require_few_columns(range(max(known)))
            values = [known.get(column) for column in range(1, max(known) + 1)]
            if not names:
                names, unnamed = name_columns([_text(value).strip() for value in values])
                require_different(names)
                self._report_columns(names, unnamed)
                last = line
                continue
            self.blank_lines, last = range(last + 1, line), line
            yield self._row(line, names, values)

    def _report_columns(self, names: Sequence[str], unnamed: Sequence[str]) -> None:
        for name in unnamed:
            self._report.add_column(name, ColumnUse.UNNAMED, name)
        roles = find_roles(names)
        for name, described in roles.described.items():
            self._report.add_column(name, ColumnUse.TYPES, described)
        for name in roles.controls:
            self._report.add_column(name, ColumnUse.CONTROL)

    def _row(self, line: int, names: Sequence[str], values: list[Any]) -> SheetRow:
        further = tuple(map(_text, values[len(names) :]))
        values += [None] * (len(names) - len(values))
        fields: dict[str, Any] = {}
        for name, value in zip(names, values, strict=False):
            if isinstance(value, _Time):
                fields[name] = value.text
                fields.setdefault(name + ODATA_TYPE, Edm.DATETIME.value)
            elif name.endswith((TYPE, ODATA_TYPE)) and value is None:
                continue
            elif value is None and (name in KEY_PROPERTIES or self._is_empty_text(name, names, values)):
                fields[name] = ""
            else:
                fields[name] = value
        return SheetRow(line, fields, further)

    def _is_empty_text(self, name: str, names: Sequence[str], values: Sequence[Any]) -> bool:
        """Return whether the type beside an empty cell has an empty text."""
        declared = name + TYPE
        return declared in names and values[names.index(declared)] in _WITH_EMPTY


_WITH_EMPTY: Final = (Edm.STRING.short_name, Edm.BINARY.short_name)


def _load(stream: IO[bytes]) -> Any:
    """Open a workbook for reading, without its charts."""
    from openpyxl.reader.excel import ExcelReader

    class Reader(ExcelReader):  # type: ignore[misc]
        def read_chartsheet(self, sheet: Any, rel: Any) -> None:
            """Skip a sheet without rows, whose charts may not be readable."""

    reader = Reader(stream, read_only=True, data_only=True, keep_links=False)
    reader.read()
    return reader.wb


def _read_lines(sheet: Any) -> Iterator[tuple[int, list[tuple[int, Any]]]]:
    """Yield the rows of a sheet as their numbers, and the numbers and values of their cells.

    ``iter_rows`` of openpyxl takes a formula without a stored value for an empty cell, and a number beyond all dates
    for an error if its cell is one for dates, and leaves out rows that are not in their order.
    """
    from openpyxl.worksheet import _reader

    class Parser(_reader.WorkSheetParser):  # type: ignore[misc]
        def parse_cell(self, element: Any) -> dict[str, Any]:
            cell: dict[str, Any] = super().parse_cell(element)
            stored = element.findtext(_reader.VALUE_TAG)
            is_text = element.get("t") == "str" and stored is not None  # also an empty one
            if not stored and not is_text and element.find(_reader.FORMULA_TAG) is not None:
                formula = self.parse_formula(element)
                cell["value"] = Formula(getattr(formula, "text", None) or str(formula))
            elif cell["data_type"] == "e" and element.get("t", "n") == "n":
                cell["value"] = _reader._cast_number(stored)
            return cell

    workbook = sheet.parent
    with sheet._get_source() as source:
        parser = Parser(
            source,
            sheet._shared_strings,
            data_only=True,
            epoch=workbook.epoch,
            date_formats=workbook._date_formats,
            timedelta_formats=workbook._timedelta_formats,
        )
        for line, cells in parser.parse():
            yield line, [(cell["column"], _read_cell(cell["value"])) for cell in cells]


class _Time(NamedTuple):
    """Date or time of a cell, without a time zone."""

    text: str


_MICROSECOND: Final = timedelta(microseconds=1)
# Excel writes control characters so, and the underscore of a text that looks like it
_ESCAPED: Final = re.compile("_x(00[01][0-9A-Fa-f]|005[Ff])_")
_ESCAPES: Final = re.compile("\r|_(?=x[0-9A-Fa-f]{4}_)")


def _read_cell(value: Any) -> Any:
    """Return the JSON value of a cell; None for an empty one."""
    match value:
        case str():
            text = _ESCAPED.sub(lambda it: chr(int(it[1], 16)), value) if "_x" in value else value
            return text or None
        case datetime():
            return _Time(value.isoformat())
        case date():
            return _Time(f"{value.isoformat()}T00:00:00")
        case time():
            return str(value)
        case timedelta():
            return write_duration(value // _MICROSECOND * 1000)
    return value


def write_duration(nanoseconds: int) -> str:
    """Return a duration in hours, minutes and seconds, as spreadsheets show it, such as 42:00:00.5."""
    seconds, fraction = divmod(abs(nanoseconds), 1_000_000_000)
    sign = "-" if nanoseconds < 0 else ""
    digits = f".{fraction:09}".rstrip("0") if fraction else ""
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{digits}"


def _text(value: Any) -> str:
    if isinstance(value, _Time):
        return value.text
    return "" if value is None else str(value)


# writing


def write(
    pages: Iterable[list[StoredEntity]], names: Sequence[str], uses: Mapping[str, frozenset[Edm]]
) -> Iterator[bytes]:
    """Yield a workbook piece by piece; ``uses`` are the types of the properties in ``names``.

    Types that a cell does not show are in hidden columns. Raises UnexpectedProperty for another property, FileRefused
    for texts and numbers of rows and columns that Excel cannot hold.
    """
    openpyxl = library()
    workbook = openpyxl.Workbook(write_only=True)
    sheet = workbook.create_sheet("Entities")
    sheet.freeze_panes = "A2"
    typed = {name for name in names if len(uses.get(name, ())) != 1 or not uses[name] <= _PLAIN}
    head = [*SYSTEM_PROPERTIES]
    for name in names:
        head += [name, name + TYPE] if name in typed else [name]
    if len(head) > MOST_COLUMNS:
        raise FileRefused(Reason.FILE_ROWS_EXCEL_COLUMNS, number=len(head), most=MOST_COLUMNS)
    for number, name in enumerate(head, 1):
        column = sheet.column_dimensions[openpyxl.utils.get_column_letter(number)]
        column.width = _WIDTH
        column.hidden = name.endswith(TYPE) and name.removesuffix(TYPE) in typed
    with tempfile.TemporaryFile() as file:
        try:
            _append(sheet, head, pages, names, typed)
        finally:
            workbook.save(file)  # after an error, too, because it deletes the rows on the disk
        file.seek(0)
        while piece := file.read(_PIECE):
            yield piece


def _append(
    sheet: Any,
    head: Sequence[str],
    pages: Iterable[list[StoredEntity]],
    names: Sequence[str],
    typed: set[str],
) -> None:
    writer, rows = _Writer(sheet), 0
    sheet.append([writer.text_cell(name, name) for name in head])
    for page in pages:
        rows += len(page)
        if rows > MOST_ROWS:
            raise FileRefused(Reason.FILE_ROWS_EXCEL_ROWS, most=f"{MOST_ROWS:,}")
        for stored in page:
            sheet.append(writer.row(stored, names, typed))


_PLAIN: Final = frozenset({Edm.STRING, Edm.BOOLEAN, Edm.INT32})
_WIDTH: Final = 18  # characters
_FIRST: Final = datetime(1900, 3, 1, tzinfo=UTC)  # before, Excel has a day that did not exist
_TICKS_PER_MILLISECOND: Final = 10_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class _Writer:
    """Writer of the cells of a sheet."""

    def __init__(self, sheet: Any) -> None:
        from openpyxl.cell import WriteOnlyCell
        from openpyxl.cell.cell import ERROR_CODES, ILLEGAL_CHARACTERS_RE

        self._sheet = sheet
        self._make = WriteOnlyCell
        self._errors = frozenset(ERROR_CODES)
        self._find_illegal = ILLEGAL_CHARACTERS_RE.search

    def row(self, stored: StoredEntity, names: Sequence[str], typed: set[str]) -> list[Any]:
        entity = read_stored(stored)
        if not entity.properties.keys() <= set(names):
            raise UnexpectedProperty
        cells = [self.text_cell(name, key) for name, key in zip(SYSTEM_PROPERTIES, entity.key, strict=False)]
        moment = _EPOCH + timedelta(milliseconds=stored.timestamp // _TICKS_PER_MILLISECOND)
        cells.append(moment.replace(tzinfo=None))
        for name in names:
            value = entity.properties.get(name)
            cells.append(None if value is None else self._cell(name, value))
            if name in typed:
                cells.append(None if value is None else value.type.short_name)
        return cells

    def text_cell(self, name: str, text: str) -> Any:
        """Return a cell of text, also if it looks like a formula, an error or a number."""
        escaped = _ESCAPES.sub(lambda it: f"_x{ord(it[0]):04X}_", text)
        if len(escaped) > MOST_TEXT:
            raise FileRefused(Reason.FILE_ROWS_EXCEL_TEXT, property=name, most=f"{MOST_TEXT:,}")
        try:
            escaped.encode()
        except UnicodeEncodeError:
            raise FileRefused(Reason.FILE_ROWS_EXCEL_CHARACTER, property=name) from None
        if self._find_illegal(escaped):
            raise FileRefused(Reason.FILE_ROWS_EXCEL_CHARACTER, property=name)
        if not is_formula(text) and text not in self._errors:
            return escaped
        cell = self._make(self._sheet, escaped)
        cell.data_type = "s"
        cell.quotePrefix = True  # it stays text when a user edits it
        return cell

    def _cell(self, name: str, value: EdmValue) -> Any:
        match value:
            case (Edm.BOOLEAN, bool(is_true)):
                return is_true
            case (Edm.INT32 | Edm.INT64, int(number)) if abs(number) <= _EXACT:
                return number
            case (Edm.DOUBLE, float(number)) if abs(number) < float("inf"):
                if number and float(f"{number:.16g}") == number:
                    return number
                # openpyxl would round it to 16 digits, and write -0.0 as a whole number
                cell = self._make(self._sheet, repr(number))
                cell.data_type = "n"
                return cell
            case (Edm.DATETIME, int(ticks)) if not ticks % _TICKS_PER_MILLISECOND:
                moment = _EPOCH + timedelta(milliseconds=ticks // _TICKS_PER_MILLISECOND)
                if moment >= _FIRST:
                    return moment.replace(tzinfo=None)
        return self.text_cell(name, value_text(value))


def group_uses(found: Iterable[Sequence[Any]]) -> dict[str, frozenset[Edm]]:
    """Return the types of each property, of pairs of a name and a type."""
    pairs = sorted((str(it[0]), cast("Edm", it[1])) for it in found)
    return {name: frozenset(type_ for _, type_ in its) for name, its in groupby(pairs, lambda it: it[0])}
