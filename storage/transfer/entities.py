"""Rows become entities. Usual ones take one pass with the plans of the protocol; the others are read value by value."""

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from storage.domain.entities import plans
from storage.domain.entities.entity import ODATA_TYPE, Entity, EntityKey, check_size
from storage.domain.errors import StorageError
from storage.domain.values import edm, encoding
from storage.domain.values.edm import INT32, INT64, Edm, EdmValue
from storage.domain.values.encoding import ANNOTATED
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import check_entity_key
from storage.editing import typed_text
from storage.editing.formats.format import Format, NotInFormat
from storage.editing.formats.reading import read_format
from storage.editing.typed_csv import TYPE, TYPES
from storage.editing.typed_text import InvalidText
from storage.transfer import rejects
from storage.transfer.formulas import unescape_formula
from storage.transfer.layout import FileFormat, Layout
from storage.transfer.mapping import (
    GUID,
    ROW_NUMBER,
    Column,
    ColumnMapping,
    Empty,
    OnMisfit,
    Template,
    is_property_name,
    is_system_column,
    read_zone,
)
from storage.transfer.rejects import Fault, Reject
from storage.transfer.rows import Position, Reader, Row

CHUNK: Final = 1000  # rows
_BYTES_AT_ONCE: Final = 4 << 20
_INT32: Final = re.compile(r"-?[1-9][0-9]{0,8}|0", re.ASCII).fullmatch
_DOUBLE: Final = re.compile(r"-?[0-9]{1,15}\.[0-9]{1,15}", re.ASCII).fullmatch
_BOOLEANS: Final = {"true": True, "false": False, "True": True, "False": False}
_NOT_IN_KEYS: Final = re.compile("[/\\\\#?\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def _read_int32(text: str) -> int | None:
    return int(text) if _INT32(text) else None


def _read_double(text: str) -> float | None:
    return float(text) if _DOUBLE(text) else None


# From usual texts to what JSON would have; None of others. What is not here stays a text.
_AS_JSON: Final[Mapping[Edm, Callable[[str], Any]]] = {
    Edm.INT32: _read_int32,
    Edm.DOUBLE: _read_double,
    Edm.BOOLEAN: _BOOLEANS.get,
}


class _Step(NamedTuple):
    """What to do with a field: ``type_field`` is where its type is, ``format`` how its texts are spelled."""

    source: str
    column: Column
    target: str
    annotation: str
    type_field: str | None
    format: Format | None


class _Misfit(Exception):
    """A value is not one of its type."""

    def __init__(self, reject: Reject) -> None:
        super().__init__(reject.fault)
        self.reject = reject


@dataclass(slots=True)
class Chunk:
    """Rows that are written together; ``position`` is that after them."""

    position: Position
    rows: int = 0
    entities: list[tuple[Row, Entity]] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)


class RowMapper:
    """Makes entities for an account of a kind; times without a zone are those of the mapping's, or of ``now``."""

    def __init__(self, mapping: ColumnMapping, layout: Layout, kind: AccountKind, now: datetime) -> None:
        self._mapping = mapping
        self._kind = kind
        self._now = now.astimezone(read_zone(mapping.zone)) if mapping.zone else now
        self._is_text = layout.format is FileFormat.CSV
        self._listed = {column.source: column for column in mapping.columns}
        self._keys = [
            (name, Template.read(text).parts)
            for name, text in (("PartitionKey", mapping.partition_key), ("RowKey", mapping.row_key))
        ]
        self._in_keys = mapping.whole_keys()
        self._shapes: dict[tuple[str, ...], list[_Step]] = {}
        self._last: dict[str, Edm] = {}  # the last type in a column, which stands for those that are missing
        self._number = 0

    def read(self, row: Row, number: int) -> Entity | Reject:
        """Return the entity of a row, the ``number``-th of its file."""
        if row.fault is not None:
            return rejects.of_row(row)
        self._number = number
        try:
            key = self._key(row)
            steps = self._steps(row.fields)
            if (members := self._members(steps, row.fields)) is not None:
                properties = plans.encode(members, self._kind)
                if properties is not None:
                    entity = Entity(key, properties, self._kind)
                    check_size(entity, properties.fragments)
                    return entity
            return self._read_values(row, key, steps)
        except _Misfit as misfit:
            return misfit.reject
        except StorageError as error:
            return rejects.of_error(row, error)

    # keys

    def _key(self, row: Row) -> EntityKey:
        partition_key, row_key = (self._make_key(row, name, parts) for name, parts in self._keys)
        try:
            check_entity_key(partition_key, row_key, kind=self._kind)
        except StorageError as error:
            raise _Misfit(self._describe_key(row, error, partition_key, row_key)) from None
        return EntityKey(partition_key, row_key)

    def _make_key(self, row: Row, name: str, parts: tuple[tuple[bool, str], ...]) -> str:
        texts = []
        for is_column, part in parts:
            if not is_column:
                texts.append(part)
                continue
            value = self._generate(part) if part[0] == "#" else row.fields.get(part)
            if value is None:
                raise _Misfit(Reject(row, Fault.NO_KEY, part))
            text = value if type(value) is str else _key_text(value)
            if self._mapping.unescapes_formulas:
                text = unescape_formula(text)
            if self._mapping.key_replacement is not None:
                text = _NOT_IN_KEYS.sub(self._mapping.key_replacement, text)
            texts.append(text)
        return texts[0] if len(texts) == 1 else "".join(texts)

    def _generate(self, part: str) -> str | None:
        match part:
            case str(name) if name == ROW_NUMBER:
                return f"{self._number:010}"
            case str(name) if name == GUID:
                return str(uuid.uuid4())
        return None

    def _describe_key(self, row: Row, error: StorageError, partition_key: str, row_key: str) -> Reject:
        for name, text in (("PartitionKey", partition_key), ("RowKey", row_key)):
            other = {"PartitionKey": "x", "RowKey": "x", name: text}
            try:
                check_entity_key(other["PartitionKey"], other["RowKey"], kind=self._kind)
            except StorageError as its:
                return rejects.of_error(row, its, name, text=text)
        return rejects.of_error(row, error)

    # properties

    def _steps(self, fields: Mapping[str, Any]) -> list[_Step]:
        shape = tuple(fields)
        steps = self._shapes.get(shape)
        if steps is None:
            if len(self._shapes) >= plans.KEPT:
                self._shapes.clear()
            steps = self._shapes[shape] = self._make_steps(fields)
        return steps

    def _make_steps(self, fields: Mapping[str, Any]) -> list[_Step]:
        marks = TYPE if self._is_text else ODATA_TYPE
        steps = []
        for source in fields:
            if not source or source.endswith(marks) or rejects.is_of_rejects(source):
                continue
            column = self._listed.get(source)
            if column is None:
                is_control = "@" in source or source.startswith("odata.")
                if is_control or is_system_column(source) or source in self._in_keys:
                    continue
                column = Column(source, source if self._mapping.takes_others else "")
            if column.target:
                type_field = source + marks if source + marks in fields and column.type is None else None
                format_ = read_format(column.format) if column.format else None
                annotation = column.target + ODATA_TYPE
                steps.append(_Step(source, column, column.target, annotation, type_field, format_))
        return steps

    def _members(self, steps: list[_Step], fields: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return JSON members with their annotations; None if a value is not usual."""
        members: dict[str, Any] = {}
        is_text = self._is_text
        unescapes = self._mapping.unescapes_formulas
        for source, column, target, annotation, type_field, format_ in steps:
            value = fields[source]
            if value is None:
                continue
            if is_text:
                type_ = column.type or Edm.STRING
                if type_field is not None:
                    found = self._declared(column, fields[type_field])
                    if found is None:
                        return None
                    type_ = found
                if not value and not self._keeps_empty(type_, type_field, fields):
                    continue
                if unescapes:
                    value = unescape_formula(value)
                if column.unset and value in column.unset:
                    continue
                if format_ is not None:
                    try:
                        value = format_.rewrite(value)
                    except NotInFormat:
                        return None
                if self._mapping.zone and type_ is Edm.DATETIME:
                    # the service takes a time without a zone for one in UTC
                    instant = self._read_local(value)
                    if instant is None:
                        return None
                    value = instant
                read = _AS_JSON.get(type_)
                if read is not None and (value := read(value)) is None:
                    return None
                members[target] = value
                if type_ in ANNOTATED:
                    members[annotation] = type_
                continue
            if column.unset and value in column.unset:
                continue
            if format_ is not None:
                return None
            members[target] = value
            if column.type is not None:
                members[annotation] = column.type
            elif type_field is not None and fields[type_field] is not None:
                members[annotation] = fields[type_field]
        return members

    def _read_local(self, text: str) -> str | None:
        """Return a time as the service writes it, one without a zone in that of the mapping; None for no time."""
        if not text.strip()[:4].isdecimal():
            return None
        try:
            return encoding.write(typed_text.read(Edm.DATETIME, text, self._now)).strip('"')
        except InvalidText:
            return None

    def _declared(self, column: Column, text: str) -> Edm | None:
        """Return the type beside a value, else the last one in its column; None of an unknown one."""
        if not text:
            return self._last.get(column.source, column.type or Edm.STRING)
        type_ = TYPES.get(text.strip().lower())
        if type_ is not None:
            self._last[column.source] = type_
        return type_

    def _keeps_empty(self, type_: Edm, type_field: str | None, fields: Mapping[str, Any]) -> bool:
        """Return whether an empty field is a value: of a String or Binary that says so, or if that is chosen."""
        if type_field is not None:
            return bool(fields[type_field]) and type_ in (Edm.STRING, Edm.BINARY)
        return type_ is Edm.STRING and self._mapping.empty is Empty.STRING

    def _read_values(self, row: Row, key: EntityKey, steps: list[_Step]) -> Entity:
        """Read value by value, which says what is wrong; raises _Misfit, StorageError."""
        properties: dict[str, EdmValue] = {}
        for step in steps:
            if not is_property_name(step.target):
                raise _Misfit(Reject(row, Fault.NAME, step.target))
            value = self._read_step(row, step)
            if value is not None:
                properties[step.target] = value
        entity = Entity(key, properties, self._kind)
        check_size(entity, entity.fragments)
        return entity

    def _read_step(self, row: Row, step: _Step) -> EdmValue | None:
        value = row.fields[step.source]
        if value is None or (step.column.unset and value in step.column.unset):
            return None
        try:
            return self._read_text(row, step, value) if self._is_text else self._read_json(row, step, value)
        except _Misfit:
            match step.column.on_misfit:
                case OnMisfit.UNSET:
                    return None
                case OnMisfit.STRING:
                    return self._as_string(row, step, value)
            raise

    def _read_text(self, row: Row, step: _Step, text: str) -> EdmValue | None:
        type_: Edm | None = step.column.type or Edm.STRING
        if step.type_field is not None:
            type_ = self._declared(step.column, row.fields[step.type_field])
            if type_ is None:
                raise _Misfit(Reject(row, Fault.UNKNOWN_TYPE, step.source, text=row.fields[step.type_field]))
        assert type_ is not None
        if not text and not self._keeps_empty(type_, step.type_field, row.fields):
            return None
        if self._mapping.unescapes_formulas:
            text = unescape_formula(text)
            if step.column.unset and text in step.column.unset:
                return None
        if step.format is not None:
            return self._read_formatted(row, step, step.format, text)
        try:
            # words such as "now" are for typing: in a file they are not times
            if type_ is Edm.DATETIME and not text.strip()[:4].isdecimal():
                raise _Misfit(Reject(row, Fault.NOT_OF_TYPE, step.source, type_, text[:80]))
            is_local = type_ is Edm.DATETIME and self._mapping.zone != ""
            if type_ in (Edm.STRING, Edm.BINARY, Edm.DATETIME) and not is_local:
                try:
                    return edm.read(text, type_, self._kind)
                except StorageError:
                    if type_ is not Edm.DATETIME:
                        raise
            return typed_text.read(type_, text, self._now)
        except (InvalidText, StorageError) as error:
            raise _Misfit(rejects.of_value(row, error, step.source, type_, text)) from None

    def _read_formatted(self, row: Row, step: _Step, format_: Format, text: str) -> EdmValue:
        type_ = step.column.type or format_.types[0]
        try:
            return typed_text.read(type_, format_.rewrite(text), self._now)
        except NotInFormat:
            reject = Reject(row, Fault.NOT_IN_FORMAT, step.source, type_, text[:80], format_.spelling)
            raise _Misfit(reject) from None
        except InvalidText as error:
            raise _Misfit(rejects.of_value(row, error, step.source, type_, text)) from None

    def _read_json(self, row: Row, step: _Step, value: Any) -> EdmValue:
        if isinstance(value, dict | list):
            raise _Misfit(Reject(row, Fault.NESTED, step.source, text=json.dumps(value)[:80]))
        if step.format is not None:
            return self._read_formatted(row, step, step.format, _key_text(value))
        annotation: Any = step.column.type
        if annotation is None and step.type_field is not None:
            annotation = row.fields[step.type_field]
        type_ = TYPES.get(annotation.lower()) if isinstance(annotation, str) else None
        if annotation is not None and type_ is None:
            raise _Misfit(Reject(row, Fault.UNKNOWN_TYPE, step.source, text=str(annotation)))
        try:
            # the service would make it a Double; an identifier must keep every digit
            if type_ is None and type(value) is int and value not in INT32 and value in INT64:
                return EdmValue(Edm.INT64, value)
            if type_ is Edm.STRING and not isinstance(value, str):
                value = _key_text(value)
            return edm.read(value, type_, self._kind)
        except StorageError as error:
            raise _Misfit(rejects.of_value(row, error, step.source, type_, str(value))) from None

    def _as_string(self, row: Row, step: _Step, value: Any) -> EdmValue:
        text = value if isinstance(value, str) else _key_text(value)
        if self._is_text and self._mapping.unescapes_formulas:
            text = unescape_formula(text)
        try:
            return edm.read(text, Edm.STRING, self._kind)
        except StorageError as error:
            raise _Misfit(rejects.of_value(row, error, step.source, Edm.STRING, text)) from None


def _key_text(value: Any) -> str:
    """Return the text of a JSON value that is no text."""
    if isinstance(value, float):
        return encoding.write(EdmValue(Edm.DOUBLE, value)).strip('"')
    return value if isinstance(value, str) else json.dumps(value)


def read_chunks(
    reader: Reader, mapper: RowMapper, most: Callable[[], int] = lambda: CHUNK
) -> Iterator[Chunk]:
    """Yield the rows of a file in chunks of at most so many rows."""
    chunk, size = Chunk(reader.position), 0
    for number, row in enumerate(reader, reader.position.rows + 1):
        chunk.rows += 1
        found = mapper.read(row, number)
        if isinstance(found, Reject):
            chunk.rejects.append(found)
        else:
            chunk.entities.append((row, found))
            size += len(found.fragments.values)
        if chunk.rows >= most() or size > _BYTES_AT_ONCE:
            yield replace(chunk, position=reader.position)
            chunk, size = Chunk(reader.position), 0
    if chunk.rows:
        yield replace(chunk, position=reader.position)
