"""Lossless export of entities as text, written page by page."""

import base64
import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final

from storage.domain.entities.annotations import TYPE
from storage.domain.entities.entity import SYSTEM_PROPERTIES, StoredEntity, read_stored, write_document
from storage.domain.values import encoding
from storage.domain.values.edm import Edm, EdmValue, write_datetime
from storage.tabular.formulas import escape_formula


class ExportFormat(StrEnum):
    """Export format. The values are file extensions."""

    TYPED_CSV = "typed.csv"
    CSV = "csv"
    JSON = "json"
    NDJSON = "ndjson"


TYPES: Final = {
    ExportFormat.TYPED_CSV: "text/csv; charset=utf-8",
    ExportFormat.CSV: "text/csv; charset=utf-8",
    ExportFormat.JSON: "application/json",
    ExportFormat.NDJSON: "application/x-ndjson",
}
_NUMBERS: Final = frozenset({Edm.INT32, Edm.INT64, Edm.DOUBLE})  # -Infinity, too


class UnexpectedProperty(Exception):
    """An entity has a property that was unknown when the file's columns were determined."""


def has_columns(format_: ExportFormat) -> bool:
    return format_ in (ExportFormat.TYPED_CSV, ExportFormat.CSV)


def write(
    format_: ExportFormat,
    pages: Iterable[list[StoredEntity]],
    names: Sequence[str] = (),
    *,
    escapes_formulas: bool = False,
) -> Iterator[str]:
    """Write a file page by page; ``names`` are the properties with a CSV column."""
    match format_:
        case ExportFormat.TYPED_CSV:
            yield from _write_csv(pages, names, typed=True, escapes=escapes_formulas)
        case ExportFormat.CSV:
            yield from _write_csv(pages, names, typed=False, escapes=escapes_formulas)
        case ExportFormat.JSON:
            yield from _write_json(pages)
        case ExportFormat.NDJSON:
            for page in pages:
                yield b"".join(write_document(stored) + b"\n" for stored in page).decode()


def _write_json(pages: Iterable[list[StoredEntity]]) -> Iterator[str]:
    separator = b"[\n"
    for page in pages:
        documents = []
        for stored in page:
            documents += [separator, write_document(stored)]
            separator = b",\n"
        yield b"".join(documents).decode()
    yield "[]\n" if separator == b"[\n" else "\n]\n"


def _write_csv(
    pages: Iterable[list[StoredEntity]], names: Sequence[str], *, typed: bool, escapes: bool
) -> Iterator[str]:
    heads = [(name, name + TYPE) if typed else (name,) for name in names]
    yield write_rows([[*SYSTEM_PROPERTIES, *(head for pair in heads for head in pair)]])
    known = frozenset(names)
    for page in pages:
        yield write_rows(_csv_row(stored, names, known, typed=typed, escapes=escapes) for stored in page)


def _csv_row(
    stored: StoredEntity, names: Sequence[str], known: frozenset[str], *, typed: bool, escapes: bool
) -> Iterator[str]:
    entity = read_stored(stored)
    if not known.issuperset(entity.properties):
        raise UnexpectedProperty
    yield from (escape_formula(key) if escapes else key for key in entity.key)
    yield write_datetime(stored.timestamp)
    for name in names:
        value = entity.properties.get(name)
        text = "" if value is None else value_text(value)
        is_number = value is not None and value.type in _NUMBERS
        yield escape_formula(text) if escapes and not is_number else text
        if typed:
            yield "" if value is None else value.type.short_name


def write_rows(rows: Iterable[Iterable[str]], dialect: str = "excel") -> str:
    written = io.StringIO(newline="")
    csv.writer(written, dialect).writerows(rows)
    return written.getvalue()


def value_text(value: EdmValue) -> str:
    """Return the text of a value without its type."""
    match value:
        case (Edm.STRING, str(text)):
            return text
        case (Edm.BINARY, bytes(data)):
            return base64.b64encode(data).decode()
    return encoding.write(value).strip('"')
