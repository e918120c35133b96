"""Conversion of rows to entities: in one pass with the protocol's plans, or else value by value."""

import re
import uuid
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from storage.domain.entities import plans
from storage.domain.entities.annotations import ODATA_TYPE, FieldRoles, find_roles, read_type_name
from storage.domain.entities.entity import KEY_PROPERTIES, Entity, EntityKey, check_size
from storage.domain.errors import StorageError
from storage.domain.values import edm, encoding
from storage.domain.values.dialects import Dialect
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.encoding import ANNOTATED
from storage.domain.values.names import check_entity_key
from storage.editing import exact_json, json_values, typed_text
from storage.editing.exact_json import InexactNumber, SpelledNumber
from storage.editing.formats.format import Format, NotInFormat
from storage.editing.formats.reading import read_format
from storage.editing.input_context import InputContext
from storage.editing.invalid_text import TextFault
from storage.editing.typed_text import InvalidText, TextForm
from storage.tabular import rejects
from storage.tabular.excel import Formula
from storage.tabular.formulas import unescape_formula
from storage.tabular.layout import FileFormat, Layout
from storage.tabular.mapping import (
    GUID,
    ROW_NUMBER,
    Column,
    ColumnMapping,
    Empty,
    OnMisfit,
    Template,
    is_property_name,
    is_spelling,
    property_name,
    read_zone,
)
from storage.tabular.rejects import Fault, Reject
from storage.tabular.report import ColumnUse, FileReport, ValueChange
from storage.tabular.rows import Position, Reader, Row, text_of

CHUNK: Final = 1000  # rows
_BYTES_AT_ONCE: Final = 4 << 20
_EXAMPLE: Final = 80  # characters of a value in the report
_INT32: Final = re.compile(r"-?[1-9][0-9]{0,8}|0", re.ASCII).fullmatch
_DOUBLE: Final = re.compile(r"-?[0-9]{1,20}\.[0-9]{1,20}", re.ASCII).fullmatch
_SHORT_DOUBLE: Final = 16  # characters with a point, so that at most 15 are digits, which a Double holds
_NUMBER_TYPES: Final[Mapping[type, Edm]] = {int: Edm.INT32, float: Edm.DOUBLE}
_NUMBERS: Final = frozenset({Edm.INT32, Edm.INT64, Edm.DOUBLE})
_BOOLEANS: Final = {"true": True, "false": False, "True": True, "False": False}
_NOT_IN_KEYS: Final = re.compile("[/\\\\#?\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def _read_int32(text: str) -> int | None:
    return int(text) if _INT32(text) else None


def _read_double(text: str) -> float | None:
    if not _DOUBLE(text):
        return None
    value = float(text)
    return value if len(text) <= _SHORT_DOUBLE or repr(value) == text else None


# Converts usual texts to values of JSON, and others to None. Texts of other types stay texts.
_AS_JSON: Final[Mapping[Edm, Callable[[str], Any]]] = {
    Edm.INT32: _read_int32,
    Edm.DOUBLE: _read_double,
    Edm.BOOLEAN: _BOOLEANS.get,
}


class _Step(NamedTuple):
    """Conversion step for one field."""

    source: str
    column: Column
    target: str
    annotation: str
    type_field: str | None
    format: Format | None
    rival: str | None = None


class _Shape(NamedTuple):
    """Conversion steps for rows with the same fields; ``unnamed`` columns are skipped while empty."""

    steps: Sequence[_Step]
    unnamed: Sequence[str]


class _Misfit(Exception):
    """The value does not fit its type."""

    def __init__(self, reject: Reject) -> None:
        super().__init__(reject.fault)
        self.reject = reject


@dataclass(slots=True)
class Chunk:
    """Rows written together; ``position`` is after them, ``report`` has what is new in them."""

    position: Position
    rows: int = 0
    entities: list[tuple[Row, Entity]] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    report: FileReport = field(default_factory=FileReport)

    def add(self, row: Row, outcome: Entity | Sequence[Reject]) -> None:
        """Add a row's entity, or the first reason for its rejection."""
        self.rows += 1
        if isinstance(outcome, Entity):
            self.entities.append((row, outcome))
        else:
            self.rejects.append(outcome[0])


class RowMapper:
    """Converter of rows to entities; times without a zone use that of the mapping, or of the context.

    ``report`` has the columns and values of the rows read so far that were not imported under their own name.
    """

    def __init__(self, mapping: ColumnMapping, layout: Layout, context: InputContext) -> None:
        self.report = FileReport()
        self._mapping = mapping
        self._layout = layout
        self._kind = context.kind
        self._dialect = Dialect(context.kind)
        self._context = context.in_zone(read_zone(mapping.zone)) if mapping.zone else context
        self._is_text = layout.format is FileFormat.CSV
        # cells of Excel have no time zone
        self._is_in_zone = layout.format is FileFormat.EXCEL and mapping.zone != ""
        self._listed = {column.source: column for column in mapping.columns}
        self._targets = {column.target: column.source for column in mapping.columns if column.target}
        self._keys = [
            (name, Template.read(text).parts)
            for name, text in zip(KEY_PROPERTIES, (mapping.partition_key, mapping.row_key), strict=True)
        ]
        self._in_keys = mapping.whole_keys()
        self._named = set[str]()  # columns without a name that have values
        self._shapes: dict[tuple[str, ...], _Shape] = {}
        self._last: dict[str, Edm] = {}  # the last type in a column, which stands for missing ones
        self._changes = list[tuple[str, ValueChange, str]]()  # changed values of a row
        self._first_numbers: dict[str, Edm] = {}  # types of the first numbers in columns without a type
        self._number = 0
        if self._is_text:  # rows of text may end before the last column
            self._shapes[layout.columns] = self._make_shape(layout.columns)

    def read(self, row: Row, number: int) -> Entity | Sequence[Reject]:
        """Convert the row ``number`` of a file to an entity, or return all reasons for its rejection."""
        if row.fault is not None:
            return [rejects.of_row(row)]
        self._number = number
        self._changes.clear()
        try:
            entity = self._read(row)
        except StorageError as error:
            return [rejects.of_error(row, error)]
        if isinstance(entity, Entity):
            for column, change, text in self._changes:
                self.report.add_value(column, change, 1, *([text[:_EXAMPLE]] if text else []))
        return entity

    def _read(self, row: Row) -> Entity | Sequence[Reject]:
        """Convert a row to an entity; raises StorageError if it is refused as a whole."""
        rejects: list[Reject] = []
        try:
            key = self._key(row)
        except _Misfit as misfit:
            key = EntityKey("", "")
            rejects.append(misfit.reject)
        steps = self._steps(row.fields)
        count = len(self._changes)
        if not rejects and (members := self._members(steps, row.fields)) is not None:
            properties = plans.encode(members, self._kind)
            if properties is not None:
                entity = Entity(key, properties, self._kind)
                check_size(entity, properties.fragments)
                return entity
        del self._changes[count:]
        values = self._read_values(row, steps, rejects)
        if rejects:
            return rejects
        entity = Entity(key, values, self._kind)
        check_size(entity, entity.fragments)
        return entity

    # keys

    def _key(self, row: Row) -> EntityKey:
        partition_key, row_key = (self._make_key(row, name, parts) for name, parts in self._keys)
        try:
            check_entity_key(partition_key, row_key, self._dialect)
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
            text = text_of(value)
            if isinstance(value, Formula):
                raise _Misfit(Reject(row, Fault.NOT_COMPUTED, part, text=text[:80]))
            if type(value) is not str and isinstance(value, dict | list):
                raise _Misfit(Reject(row, Fault.NESTED, part, text=text[:80]))
            if self._mapping.unescapes_formulas:
                text = unescape_formula(text)
            if self._mapping.key_replacement is not None and _NOT_IN_KEYS.search(text):
                self._changes.append((name, ValueChange.KEY_REPLACED, text))
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
                check_entity_key(other["PartitionKey"], other["RowKey"], self._dialect)
            except StorageError as its:
                return rejects.of_error(row, its, name, text=text)
        return rejects.of_error(row, error)

    # columns

    def _steps(self, fields: Mapping[str, Any]) -> Sequence[_Step]:
        names = tuple(fields)
        shape = self._shapes.get(names)
        if shape is None:
            if len(self._shapes) >= plans.KEPT:
                self._shapes.clear()
            shape = self._shapes[names] = self._make_shape(names)
        if shape.unnamed and (unnamed := [it for it in shape.unnamed if fields[it]]):
            self._named.update(unnamed)
            self._shapes.clear()
            return self._steps(fields)
        return shape.steps

    def _make_shape(self, names: Sequence[str]) -> _Shape:
        # a row of CSV may end before the column of a type or of its value, and one of JSON may lack the value
        roles = find_roles(self._layout.columns if self._is_text else names, self._listed)
        steps: list[_Step] = []
        unnamed: list[str] = []
        # a name that can stay as it is has the first claim to it
        free = {name: name for name in names if self._is_free(name, roles) and name not in self._targets}
        # a copy would take long for each row of JSON, where a file has very many names
        targets = ChainMap(free, self._targets)
        for source in names:
            if source in self._in_keys:
                self._report_key(source)
            column = self._listed.get(source)
            if column is None:
                if source in self._in_keys or not self._takes(source, roles):
                    continue
                if source in self._layout.unnamed and source not in self._named:
                    self.report.add_column(source, ColumnUse.EMPTY)
                    unnamed.append(source)
                    continue
                column = Column(source, property_name(source))
            if not column.target:
                is_timestamp = source == "Timestamp"
                self.report.add_column(source, ColumnUse.TIMESTAMP if is_timestamp else ColumnUse.IGNORED)
                continue
            rival = targets.setdefault(column.target, source)
            self._report_property(column)
            type_field = roles.types.get(source) if column.type is None else None
            steps.append(
                _Step(
                    source,
                    column,
                    column.target,
                    column.target + ODATA_TYPE,
                    type_field if type_field in names else None,
                    read_format(column.format) if column.format else None,
                    None if rival == source else rival,
                )
            )
        return _Shape(steps, unnamed)

    def _is_free(self, name: str, roles: FieldRoles) -> bool:
        """Return whether an unmapped column becomes the property of its name."""
        is_other = name in self._listed or name in self._in_keys
        return not is_other and roles.is_value(name) and is_property_name(name)

    def _takes(self, source: str, roles: FieldRoles) -> bool:
        """Return whether an unmapped column becomes a property; report the reason if not."""
        if not roles.is_value(source):
            described = roles.described.get(source)
            # the readers of Parquet and Excel add types that are not columns, and report those that are
            if self._layout.format not in (FileFormat.PARQUET, FileFormat.EXCEL):
                use = ColumnUse.CONTROL if described is None else ColumnUse.TYPES
                self.report.add_column(source, use, described or "")
        elif rejects.is_of_rejects(source):
            self.report.add_column(source, ColumnUse.REJECTS)
        elif source == "Timestamp":
            self.report.add_column(source, ColumnUse.TIMESTAMP)
        elif not self._mapping.takes_others:
            self.report.add_column(source, ColumnUse.NOT_MAPPED)
        else:
            return True
        return False

    def _report_key(self, source: str) -> None:
        """Report a key column found by another spelling of its name."""
        for name, parts in self._keys:
            if parts == ((True, source),) and source != name and is_spelling(source, name):
                self.report.add_column(source, ColumnUse.KEY, name)

    def _report_property(self, column: Column) -> None:
        if column.source in self._layout.unnamed:
            self.report.add_column(column.source, ColumnUse.UNNAMED, column.target)
        elif column.source != column.target:
            self.report.add_column(column.source, ColumnUse.RENAMED, column.target)

    # usual values

    def _members(self, steps: Sequence[_Step], fields: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return JSON members with annotations; None if a value needs slow conversion."""
        members: dict[str, Any] = {}
        is_text = self._is_text
        unescapes = self._mapping.unescapes_formulas
        for source, column, target, annotation, type_field, format_, rival in steps:
            value = fields[source]
            if value is None:
                continue
            if is_text:
                type_ = column.type or Edm.STRING
                if type_field is not None:
                    declared_type = self._declared(column, fields.get(type_field, ""))
                    if declared_type is None:
                        return None
                    type_ = declared_type
                if not value and not self._keeps_empty(type_, type_field, fields):
                    self._report_empty(source, type_field, fields)
                    continue
                if rival is not None:
                    return None
                if unescapes:
                    value = unescape_formula(value)
                if column.unset and value in column.unset:
                    self._changes.append((source, ValueChange.UNSET, value))
                    continue
                if format_ is not None:
                    try:
                        value = format_.rewrite(value)
                    except NotInFormat:
                        return None
                    if type_ is Edm.DATETIME and not self._mapping.zone and value[-9] == "T":
                        value += "Z"  # as usual times are written, which take one pass
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
            if rival is not None:
                return None
            if column.unset and value in column.unset:
                self._changes.append((source, ValueChange.UNSET, value))
                continue
            if format_ is not None:
                return None
            declared: Any = column.type
            if declared is None and type_field is not None and (named := fields[type_field]):
                declared = read_type_name(named)
                if declared is None:
                    return None
            if self._is_in_zone and declared is Edm.DATETIME and isinstance(value, str):
                instant = self._read_local(value)
                if instant is None:
                    return None
                value = instant
            if type(value) is SpelledNumber and declared is None:
                value = float(value)
            members[target] = value
            if declared is not None:
                members[annotation] = declared
            elif (number := _NUMBER_TYPES.get(type(value))) is not None:
                self._note_number(source, number, value)
        return members

    def _note_number(self, source: str, type_: Edm, value: Any) -> None:
        """Report a number of another type than the first one: filters take one type of numbers."""
        if self._first_numbers.setdefault(source, type_) is not type_:
            self._changes.append((source, ValueChange.OTHER_TYPE, exact_json.write(value)))

    def _read_local(self, text: str) -> str | None:
        """Convert a time to the service's format, or None if invalid; the mapping's zone is the default."""
        try:
            return encoding.write(typed_text.read_exactly(Edm.DATETIME, text, self._context)).strip('"')
        except InvalidText:
            return None

    def _declared(self, column: Column, text: str) -> Edm | None:
        """Return the type in the adjacent type column, or the column's previous one if that is empty.

        None if unknown.
        """
        if not text:
            return self._last.get(column.source, column.type or Edm.STRING)
        type_ = read_type_name(text)
        if type_ is not None:
            self._last[column.source] = type_
        return type_

    def _keeps_empty(self, type_: Edm, type_field: str | None, fields: Mapping[str, Any]) -> bool:
        """Return whether an empty field is a value: for a declared String or Binary, or if chosen."""
        if type_field is not None:
            return bool(fields.get(type_field)) and type_ in (Edm.STRING, Edm.BINARY)
        return type_ is Edm.STRING and self._mapping.empty is Empty.STRING

    def _report_empty(self, source: str, type_field: str | None, fields: Mapping[str, Any]) -> None:
        """Report an empty field with a declared type that has no empty value."""
        if type_field is not None and fields.get(type_field):
            self._changes.append((source, ValueChange.EMPTY, ""))

    # unusual ones

    def _read_values(self, row: Row, steps: Sequence[_Step], rejects: list[Reject]) -> dict[str, EdmValue]:
        """Convert a row value by value, adding the reason of each failure to ``rejects``."""
        properties: dict[str, EdmValue] = {}
        for step in steps:
            try:
                value = self._read_step(row, step)
            except _Misfit as misfit:
                rejects.append(misfit.reject)
                continue
            if value is not None:
                properties[step.target] = value
        return properties

    def _read_step(self, row: Row, step: _Step) -> EdmValue | None:
        value, source = row.fields[step.source], step.source
        if value is None:
            return None
        if step.column.unset and value in step.column.unset:
            self._changes.append((source, ValueChange.UNSET, value))
            return None
        try:
            if step.rival is not None and (value or not self._is_text):
                raise _Misfit(Reject(row, Fault.NAME_TWICE, source, text=step.target))
            if self._is_text:
                return self._read_text(row, step, value)
            read = self._read_json(row, step, value)
            is_typed = step.column.type is not None or (step.type_field and row.fields[step.type_field])
            if read.type in _NUMBERS and not is_typed:
                self._note_number(source, read.type, value)
            return read
        except _Misfit as misfit:
            text = text_of(value)
            match step.column.on_misfit:
                case OnMisfit.UNSET:
                    self._changes.append((source, ValueChange.DROPPED, text))
                    return None
                case OnMisfit.STRING if step.rival is None:
                    as_string = self._as_string(row, step, value)
                    self._changes.append((source, ValueChange.STRING, text))
                    return as_string
                case OnMisfit.ROUND if misfit.reject.fault in (Fault.TOO_MANY_DIGITS, Fault.INEXACT):
                    self._changes.append((source, ValueChange.ROUNDED, text))
                    return self._round(row, step, misfit.reject)
            raise

    def _round(self, row: Row, step: _Step, reject: Reject) -> EdmValue:
        """Round a number or time with too many digits to its type; raises _Misfit."""
        value = row.fields[step.source]
        if self._is_text and self._mapping.unescapes_formulas:
            value = unescape_formula(value)
        if reject.type is Edm.DATETIME:
            cut = json_values.cut_fraction(value)
            return (
                self._read_typed(row, step, Edm.DATETIME, cut)
                if self._is_text
                else self._read_json(row, step, cut)
            )
        if isinstance(value, InexactNumber):
            return EdmValue(Edm.DOUBLE, value.nearest)
        return typed_text.read(Edm.DOUBLE, str(value), self._context)

    def _read_text(self, row: Row, step: _Step, text: str) -> EdmValue | None:
        type_: Edm | None = step.column.type or Edm.STRING
        if step.type_field is not None:
            declared = row.fields.get(step.type_field, "")
            type_ = self._declared(step.column, declared)
            if type_ is None:
                raise _Misfit(Reject(row, Fault.UNKNOWN_TYPE, step.source, text=declared[:80]))
        assert type_ is not None
        if not text and not self._keeps_empty(type_, step.type_field, row.fields):
            self._report_empty(step.source, step.type_field, row.fields)
            return None
        if self._mapping.unescapes_formulas:
            text = unescape_formula(text)
            if step.column.unset and text in step.column.unset:
                self._changes.append((step.source, ValueChange.UNSET, text))
                return None
        if step.format is not None:
            return self._read_formatted(row, step, step.format, text)
        return self._read_typed(row, step, type_, text)

    def _read_typed(self, row: Row, step: _Step, type_: Edm, text: str) -> EdmValue:
        try:
            if type_ is Edm.DATETIME:
                json_values.check_fraction(text)
            is_local = type_ is Edm.DATETIME and self._mapping.zone != ""
            if type_ in (Edm.STRING, Edm.BINARY, Edm.DATETIME) and not is_local:
                try:
                    return edm.read(text, type_, self._kind)
                except StorageError:
                    if type_ is Edm.STRING:
                        raise
            form = TextForm.BASE64 if type_ is Edm.BINARY else None
            return typed_text.read_exactly(type_, text, self._context, form)
        except (InvalidText, StorageError) as error:
            raise _Misfit(rejects.of_value(row, error, step.source, type_, text)) from None

    def _read_formatted(self, row: Row, step: _Step, format_: Format, text: str) -> EdmValue:
        type_ = step.column.type or format_.types[0]
        try:
            return typed_text.read_exactly(type_, format_.rewrite(text), self._context)
        except NotInFormat:
            reject = Reject(row, Fault.NOT_IN_FORMAT, step.source, type_, text[:80], format_.spelling)
            raise _Misfit(reject) from None
        except InvalidText as error:
            raise _Misfit(rejects.of_value(row, error, step.source, type_, text)) from None

    def _read_json(self, row: Row, step: _Step, value: Any) -> EdmValue:
        if isinstance(value, dict | list):
            raise _Misfit(Reject(row, Fault.NESTED, step.source, text=text_of(value)[:80]))
        if isinstance(value, Formula):
            raise _Misfit(Reject(row, Fault.NOT_COMPUTED, step.source, text=value.text[:80]))
        if step.format is not None:
            return self._read_formatted(row, step, step.format, text_of(value))
        type_ = step.column.type
        if type_ is None and step.type_field is not None and (named := row.fields[step.type_field]):
            type_ = read_type_name(named)
            if type_ is None:
                raise _Misfit(Reject(row, Fault.UNKNOWN_TYPE, step.source, text=text_of(named)[:80]))
        if self._is_in_zone and type_ is Edm.DATETIME and isinstance(value, str):
            return self._read_typed(row, step, type_, value)
        try:
            if type_ is Edm.STRING and not isinstance(value, str):
                return edm.read(text_of(value), type_, self._kind)
            return json_values.read(value, type_, self._kind)
        except (InvalidText, StorageError) as error:
            if type_ is None and isinstance(error, InvalidText) and error.fault is TextFault.DIGITS_LOST:
                raise _Misfit(Reject(row, Fault.INEXACT, step.source, text=text_of(value)[:80])) from None
            known = type_ or json_values.type_without_annotation(value)
            raise _Misfit(rejects.of_value(row, error, step.source, known, text_of(value))) from None

    def _as_string(self, row: Row, step: _Step, value: Any) -> EdmValue:
        text = text_of(value)
        if self._is_text and self._mapping.unescapes_formulas:
            text = unescape_formula(text)
        try:
            return edm.read(text, Edm.STRING, self._kind)
        except StorageError as error:
            raise _Misfit(rejects.of_value(row, error, step.source, Edm.STRING, text)) from None


def read_chunks(
    reader: Reader, mapper: RowMapper, most: Callable[[], int] = lambda: CHUNK
) -> Iterator[Chunk]:
    """Yield the rows of a file in chunks of limited size; what follows the last row forms its own chunk."""
    chunk, size = Chunk(reader.position), 0

    def end_chunk() -> Chunk:
        report = reader.report.take()
        report.add(mapper.report.take())
        return replace(chunk, position=reader.position, report=report)

    for number, row in enumerate(reader, reader.position.rows + 1):
        outcome = mapper.read(row, number)
        chunk.add(row, outcome)
        if isinstance(outcome, Entity):
            size += len(outcome.fragments.content)
        if chunk.rows >= most() or size > _BYTES_AT_ONCE:
            yield end_chunk()
            chunk, size = Chunk(reader.position), 0
    if chunk.rows or reader.position != chunk.position:
        yield end_chunk()
