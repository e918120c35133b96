"""CSV as Storage Explorer writes it, with a column P@type beside P, and rows copied from spreadsheets."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from storage.domain.entities.entity import KEY_PROPERTIES, SYSTEM_PROPERTIES
from storage.domain.values.edm import Edm, EdmValue
from storage.editing import guessing, pasted_rows, typed_text
from storage.editing.column_names import find_name_twice, name_columns
from storage.editing.field_roles import FieldRoles, find_roles, read_type_name
from storage.editing.pasted_rows import (
    Omission,
    PastedColumn,
    PastedRows,
    RowFault,
    RowFormat,
    RowReader,
    TypeSource,
    UnreadableReason,
    UnreadableRows,
)
from storage.editing.typed_text import InvalidText, TextForm

_DELIMITERS: Final = "\t,;|"

csv.field_size_limit(4 * 1024 * 1024)  # characters, of a value of the largest entity as base64


@dataclass(frozen=True, slots=True)
class ColumnOptions:
    """``columns`` names the fields of a text without header; ``chosen`` and ``known`` are types of columns."""

    columns: Sequence[str] = ()
    chosen: Mapping[str, Edm] = field(default_factory=dict)
    known: Mapping[str, Edm] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Source:
    """A column of the text: its index, the index of its types, and the type where those are empty."""

    name: str
    place: int
    type_place: int | None
    type: Edm | None
    why: TypeSource


def read(text: str, now: datetime, wishes: ColumnOptions) -> PastedRows:
    """Read pasted rows; a text that starts like JSON is read as JSON."""
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise UnreadableRows(UnreadableReason.EMPTY)
    if text.lstrip()[0] in "{[":
        return pasted_rows.read_json(text)
    first_line = text.lstrip("\n").partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first_line.count)  # the first one of several
    lines = _lines(text, delimiter)
    blank = sum(not any(fields) for _, fields in lines if fields)
    lines = [line for line in lines if any(line[1])]
    if not lines:
        raise UnreadableRows(UnreadableReason.EMPTY)
    header, unnamed, first = _header(lines, wishes.columns)
    rows = lines[first:]
    roles = find_roles(header)
    sources = _sources(header, unnamed, roles, rows, now, wishes)
    reading, absent = RowReader(), 0
    last: dict[str, Edm] = {}
    for number, fields in rows:
        reading.count += 1
        absent += _read_row(reading, number, fields, header, roles, sources, now, last)
    columns = tuple(
        PastedColumn(source.name, source.type, source.why)
        for source in sources
        if source.name not in SYSTEM_PROPERTIES
    )
    format_ = RowFormat.TSV if delimiter == "\t" else RowFormat.CSV
    left_out = dict.fromkeys(roles.controls, Omission.CONTROL)
    if "Timestamp" in header:
        left_out["Timestamp"] = Omission.TIMESTAMP
    return PastedRows(
        format_, columns, tuple(reading.rows), tuple(reading.problems), reading.count, absent, left_out, blank
    )


def _lines(text: str, delimiter: str) -> list[tuple[int, list[str]]]:
    """Return the fields with the number of the line on which they end."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        return [(reader.line_num, fields) for fields in reader]
    except csv.Error:
        raise UnreadableRows(UnreadableReason.BAD_CSV, reader.line_num) from None


def _header(
    lines: Sequence[tuple[int, list[str]]], columns: Sequence[str]
) -> tuple[Sequence[str], Sequence[str], int]:
    """Return the names of the fields, those that were empty, and how many lines the header takes."""
    header = [name.strip() for name in lines[0][1]]
    if set(KEY_PROPERTIES) <= set(header):
        names, unnamed = name_columns(header)
        twice = find_name_twice(names)
        if twice is not None:
            raise UnreadableRows(UnreadableReason.COLUMN_TWICE, lines[0][0], twice)
        return names, unnamed, 1
    if set(KEY_PROPERTIES) <= set(columns) and len(columns) == len(header):
        return columns, (), 0
    raise UnreadableRows(UnreadableReason.NO_KEYS, lines[0][0])


def _sources(
    header: Sequence[str],
    unnamed: Sequence[str],
    roles: FieldRoles,
    rows: Sequence[tuple[int, list[str]]],
    now: datetime,
    wishes: ColumnOptions,
) -> list[_Source]:
    places = {name: place for place, name in enumerate(header)}
    sources = []
    for name, place in places.items():
        if not roles.is_value(name) or (name in unnamed and not _has_values(place, rows)):
            continue
        type_place = places.get(roles.types.get(name, ""))
        type_, why = _type_of(name, place, type_place, rows, now, wishes)
        sources.append(_Source(name, place, type_place, type_, why))
    return sources


def _has_values(place: int, rows: Sequence[tuple[int, list[str]]]) -> bool:
    return any(place < len(fields) and fields[place] for _number, fields in rows)


def _type_of(
    name: str,
    place: int,
    type_place: int | None,
    rows: Sequence[tuple[int, list[str]]],
    now: datetime,
    wishes: ColumnOptions,
) -> tuple[Edm | None, TypeSource]:
    if name in wishes.chosen:
        return wishes.chosen[name], TypeSource.CHOSEN
    values = [fields[place] for _number, fields in rows if place < len(fields) and fields[place]]
    if type_place is not None:
        declared = {
            fields[type_place] for _number, fields in rows if type_place < len(fields) and fields[type_place]
        }
        return (read_type_name(declared.pop()) if len(declared) == 1 else None), TypeSource.DECLARED
    known = wishes.known.get(name)
    if known is not None and all(guessing.fits(known, value, now) for value in values):
        return known, TypeSource.KNOWN
    return guessing.guess(values, now).type, TypeSource.INFERRED if known is None else TypeSource.DIFFERENT


def _read_row(
    reading: RowReader,
    number: int,
    fields: Sequence[str],
    header: Sequence[str],
    roles: FieldRoles,
    sources: Sequence[_Source],
    now: datetime,
    last: dict[str, Edm],
) -> int:
    """Read a row; return how many values were empty although a type was given."""
    before, absent = len(reading.problems), 0
    if len(fields) > len(header):
        reading.problem(number, "", RowFault.TOO_MANY_FIELDS)
        return 0
    texts = dict(zip(header, fields, strict=False))
    properties: dict[str, EdmValue] = {}
    for source in sources:
        if source.name in SYSTEM_PROPERTIES or not reading.check_name(number, source.name):
            continue
        text, declared = texts.get(source.name, ""), texts.get(roles.types.get(source.name, ""), "").strip()
        type_ = _declared_type(reading, number, source, declared, last)
        # an empty text is a value of String and Binary only
        if text or (declared and type_ in (Edm.STRING, Edm.BINARY)):
            if (
                type_ is not None
                and (value := _read_value(reading, number, source, type_, text, now)) is not None
            ):
                properties[source.name] = value
        elif declared:
            absent += 1
    if len(reading.problems) == before:
        reading.add(number, [texts.get(name) for name in KEY_PROPERTIES], properties)
    return absent


def _declared_type(
    reading: RowReader, number: int, source: _Source, declared: str, last: dict[str, Edm]
) -> Edm | None:
    """Return the type of a value: the one beside it, else the last one in its column, else that of the column."""
    if source.why is TypeSource.CHOSEN:
        return source.type
    if declared:
        type_ = read_type_name(declared)
        if type_ is None:
            reading.problem(number, source.name, RowFault.UNKNOWN_TYPE, declared)
            return None
        last[source.name] = type_
        return type_
    return last.get(source.name) or source.type or Edm.STRING


def _read_value(
    reading: RowReader, number: int, source: _Source, type_: Edm, text: str, now: datetime
) -> EdmValue | None:
    try:
        form = TextForm.BASE64 if type_ is Edm.BINARY else None
        return typed_text.read_exactly(type_, text, now, form)
    except InvalidText as refusal:
        reading.problem(number, source.name, refusal, text)
        return None
