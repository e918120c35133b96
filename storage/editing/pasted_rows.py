"""Pasted rows: entities from JSON or lines of fields, with the problems of each row."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from storage.domain.entities import entity
from storage.domain.entities.entity import KEY_PROPERTIES, SYSTEM_PROPERTIES, Entity, EntityKey
from storage.domain.errors import StorageError
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.names import check_key, check_property_name
from storage.editing import exact_json, json_values
from storage.editing.exact_json import ExactDecoder, find_repeated
from storage.editing.field_roles import find_roles, is_control, read_type_name
from storage.editing.typed_text import InvalidText, TextFault


class RowFormat(StrEnum):
    TSV = "tab-separated"
    CSV = "CSV"
    JSON = "JSON"
    NDJSON = "NDJSON"


class TypeSource(StrEnum):
    """Where the type of a column comes from."""

    DECLARED = "given in the text"  # a column @type, an annotation
    CHOSEN = "chosen"  # by the user
    KNOWN = "as in the table"
    INFERRED = "what all values look like"
    DIFFERENT = "what all values look like, unlike in the table"


class RowFault(StrEnum):
    """What is wrong with a row or a cell, apart from invalid text and broken limits."""

    NO_KEY = "a key is missing"
    TWICE = "the key appears twice"
    MEMBER_TWICE = "a member appears twice"
    DIGITS_LOST = "a number with more digits than any type holds exactly"
    UNKNOWN_TYPE = "not an EDM type"
    NESTED = "an object or array"
    TOO_MANY_FIELDS = "more fields than columns"
    NO_OBJECT = "not an object"


@dataclass(frozen=True, slots=True)
class RowProblem:
    """``line`` counts lines, or JSON objects, from one; ``column`` is empty for the whole row."""

    line: int
    column: str
    reason: RowFault | InvalidText | StorageError
    text: str = ""


class Omission(StrEnum):
    """Why a column is left out."""

    TIMESTAMP = "set by the service"
    CONTROL = "control information"
    BESIDE_ROWS = "beside the rows"


@dataclass(frozen=True, slots=True)
class PastedColumn:
    name: str
    type: Edm | None  # None: several types, or no values
    why: TypeSource


@dataclass(frozen=True, slots=True)
class PastedRow:
    line: int
    entity: Entity


@dataclass(frozen=True, slots=True)
class PastedRows:
    """``rows`` are those without a problem; ``absent`` counts empty values of types other than String.

    ``left_out``: the columns that become no property, by their names; ``blank``: how many rows have no value.
    """

    format: RowFormat
    columns: tuple[PastedColumn, ...]
    rows: tuple[PastedRow, ...]
    problems: tuple[RowProblem, ...]
    count: int  # of all rows
    absent: int = 0
    left_out: Mapping[str, Omission] = field(default_factory=dict)
    blank: int = 0


class UnreadableRows(Exception):
    """No row can be read; ``line`` is where, if known, and ``column`` which one, if it is about one."""

    def __init__(self, reason: "UnreadableReason", line: int = 0, column: str = "") -> None:
        super().__init__(reason, line)
        self.reason = reason
        self.line = line
        self.column = column


class UnreadableReason(StrEnum):
    EMPTY = "empty"
    NO_JSON = "neither JSON nor lines of it"
    NO_KEYS = "no columns PartitionKey and RowKey"
    BAD_CSV = "unbalanced quotation marks"
    COLUMN_TWICE = "two columns with the same name"


@dataclass(slots=True)
class RowReader:
    """Collects rows and problems while they are read."""

    rows: list[PastedRow] = field(default_factory=list)
    problems: list[RowProblem] = field(default_factory=list)
    seen: set[EntityKey] = field(default_factory=set)
    count: int = 0

    def problem(
        self, line: int, column: str, reason: RowFault | InvalidText | StorageError, text: str = ""
    ) -> None:
        self.problems.append(RowProblem(line, column, reason, text[:80]))

    def add(self, line: int, keys: Sequence[str | None], properties: Mapping[str, EdmValue]) -> None:
        """Add a row with valid values, after checking its keys and its size."""
        partition_key, row_key = keys
        if partition_key is None or row_key is None:
            return self.problem(line, KEY_PROPERTIES[partition_key is not None], RowFault.NO_KEY)
        key = EntityKey(partition_key, row_key)
        if not self._check_keys(line, key):
            return None
        if key in self.seen:
            return self.problem(line, "", RowFault.TWICE)
        self.seen.add(key)
        found = Entity(key, properties)
        try:
            entity.check_size(found, entity.write_fragments(properties))
        except StorageError as error:
            return self.problem(line, "", error)
        self.rows.append(PastedRow(line, found))
        return None

    def _check_keys(self, line: int, key: EntityKey) -> bool:
        for name, text in zip(KEY_PROPERTIES, key, strict=True):
            try:
                check_key(name, text)
            except StorageError as error:
                self.problem(line, name, error, text)
                return False
        return True

    def check_name(self, line: int, name: str) -> bool:
        try:
            check_property_name(name)
        except StorageError as error:
            self.problem(line, name, error)
            return False
        return True


def read_json(text: str) -> PastedRows:
    """Read one object, a list, a response of the service with its ``value``, or one object per line."""
    left_out: dict[str, Omission] = {}
    format_, objects = _objects(text, left_out)
    reading = RowReader()
    types: dict[str, set[Edm]] = {}
    declared: set[str] = set()
    for line, found in objects:
        reading.count += 1
        _read_object(reading, line, found, types, declared, left_out)
    columns = tuple(
        PastedColumn(
            name,
            next(iter(its)) if len(its) == 1 else None,
            TypeSource.DECLARED if name in declared else TypeSource.INFERRED,
        )
        for name, its in types.items()
    )
    rows, problems = tuple(reading.rows), tuple(reading.problems)
    return PastedRows(format_, columns, rows, problems, reading.count, left_out=left_out)


def _objects(text: str, left_out: dict[str, Omission]) -> tuple[RowFormat, Iterable[tuple[int, object]]]:
    decoder = ExactDecoder()
    try:
        found = decoder.load(text)
    except RecursionError:
        raise UnreadableRows(UnreadableReason.NO_JSON) from None
    except ValueError:
        return RowFormat.NDJSON, _lines(text, decoder)
    if isinstance(found, dict) and isinstance(found.get("value"), list):
        for name in found.keys() - {"value"}:
            left_out[name] = Omission.CONTROL if is_control(name) else Omission.BESIDE_ROWS
        found = found["value"]
    return RowFormat.JSON, enumerate(found if isinstance(found, list) else [found], 1)


def _lines(text: str, decoder: ExactDecoder) -> list[tuple[int, object]]:
    found: list[tuple[int, object]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            found.append((number, decoder.load(line)))
        except (ValueError, RecursionError):
            raise UnreadableRows(UnreadableReason.NO_JSON, number) from None
    return found


def _read_object(
    reading: RowReader,
    line: int,
    found: object,
    types: dict[str, set[Edm]],
    declared: set[str],
    left_out: dict[str, Omission],
) -> None:
    if not isinstance(found, dict):
        return reading.problem(line, "", RowFault.NO_OBJECT)
    if (twice := find_repeated(found)) is not None:
        return reading.problem(line, twice, RowFault.MEMBER_TWICE)
    before = len(reading.problems)
    properties: dict[str, EdmValue] = {}
    roles = find_roles(found)
    for name, value in found.items():
        if name in roles.controls or name == "Timestamp":
            left_out[name] = Omission.CONTROL if name in roles.controls else Omission.TIMESTAMP
        if not roles.is_value(name) or name in SYSTEM_PROPERTIES or value is None:
            continue
        if not reading.check_name(line, name):
            continue
        annotation = found.get(roles.types.get(name, ""))
        if (read := _read_value(reading, line, name, value, annotation)) is not None:
            properties[name] = read
            types.setdefault(name, set()).add(read.type)
            if annotation is not None:
                declared.add(name)
    keys = [key if isinstance(key := found.get(name), str) else None for name in KEY_PROPERTIES]
    if len(reading.problems) == before:
        reading.add(line, keys, properties)
    return None


def _read_value(
    reading: RowReader, line: int, name: str, value: object, annotation: object
) -> EdmValue | None:
    if isinstance(value, dict | list):
        reading.problem(line, name, RowFault.NESTED)
        return None
    type_ = read_type_name(annotation) if isinstance(annotation, str) else None
    if annotation is not None and type_ is None:
        reading.problem(line, name, RowFault.UNKNOWN_TYPE, str(annotation))
        return None
    text = value if isinstance(value, str) else exact_json.write(value)
    try:
        return json_values.read(value, type_)
    except InvalidText as invalid:
        is_lost = type_ is None and invalid.fault is TextFault.DIGITS_LOST
        reading.problem(line, name, RowFault.DIGITS_LOST if is_lost else invalid, text)
    except StorageError as error:
        reading.problem(line, name, error, text)
    return None
