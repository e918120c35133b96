"""Rejected rows: grouped by reason with possible repairs, and as a file to correct."""

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple, Self

from storage.domain.entities.annotations import find_described
from storage.domain.errors import (
    EntityAlreadyExists,
    EntityTooLarge,
    KeyValueTooLarge,
    OutOfRangeInput,
    PropertiesNeedValue,
    PropertyNameInvalid,
    PropertyNameTooLong,
    PropertyValueTooLarge,
    StorageError,
    TooManyProperties,
)
from storage.domain.values.edm import Edm
from storage.editing import exact_json, guessing
from storage.editing.formats.dates import DateOrder
from storage.editing.formats.format import NotInFormat
from storage.editing.formats.numbers import Decimals
from storage.editing.formats.reading import read_format
from storage.editing.input_context import InputContext
from storage.editing.typed_text import InvalidText, TextFault
from storage.tabular.layout import FileFormat, Layout
from storage.tabular.mapping import ColumnMapping, OnMisfit, with_format
from storage.tabular.rows import Row, RowFault

# columns of a file of rejects, which the next import ignores: no property can have such names
LINE: Final = "reject:line"
REASON: Final = "reject:reason"
_ANY_TIME: Final = InputContext(datetime(2000, 1, 1, tzinfo=UTC))  # numbers do not depend on it
_LINES: Final = 5  # lines that are listed for a group
_TEXTS: Final = 20  # values of a group, that are counted


class Fault(StrEnum):
    """Reason why a row is rejected; the value is an English sentence with placeholders such as ``{column}``."""

    BAD_CSV = "Its quotation marks do not match."
    BAD_JSON = "It is not JSON."
    NO_OBJECT = "It is not a JSON object."
    ENCODING = "It has bytes that are not text in the encoding of the file."
    TOO_MANY_FIELDS = "It has more fields than there are columns."
    MEMBER_TWICE = "It has {column} twice."
    NO_KEY = "{column} is missing."
    KEY_CHARACTERS = "{column} has a character that keys cannot have: / \\ # ? or a control character."
    KEY_LONG = "{column} is too long."
    KEY_EMPTY = "{column} is empty."
    NAME = "{column} cannot be the name of a property."
    UNKNOWN_TYPE = "The type of {column} is not one of the service."
    NESTED = "{column} is an object or an array."
    NOT_OF_TYPE = "{column} is not of the type {type}."
    NOT_IN_FORMAT = "{column} is not {format}."
    OUT_OF_RANGE = "{column} is beyond the range of {type}."
    TOO_MANY_DIGITS = "{column} has more digits than {type} holds."
    INEXACT = "{column} is a number with more digits than any type holds exactly."
    NOT_COMPUTED = "{column} is a formula without a stored value. Save the file in Excel, which computes it."
    NAME_TWICE = "{column} would become a property that another column becomes."
    VALUE_LARGE = "{column} is larger than a property may be."
    MANY_PROPERTIES = "The entity would have too many properties."
    LARGE = "The entity would be too large."
    EXISTS = "An entity with its keys exists."
    OTHER = "{text}"

    @property
    def code(self) -> str:
        """Return the machine-readable name, such as not-of-type."""
        return self.name.lower().replace("_", "-")


class Repair(StrEnum):
    """Repair for a group of rejected rows."""

    # the whole column gets the type of this name, whose values include those of its type
    INT64 = "Int64"
    DOUBLE = "Double"
    STRING = "string"  # the values of the column that do not fit become Strings
    UNSET = "unset"  # they are left out
    # the values are read in the format of this name
    DECIMAL_COMMA = Decimals.COMMA.value
    DECIMAL_POINT = Decimals.POINT.value
    DAY_FIRST = DateOrder.DAY_FIRST.value
    MONTH_FIRST = DateOrder.MONTH_FIRST.value
    YEAR_FIRST = DateOrder.YEAR_FIRST.value
    ROUND = "round"  # numbers and times with too many digits become the nearest of the type
    KEY_CHARACTERS = "replace"  # with a hyphen, in keys
    SKIP = "skip"  # entities that exist stay
    REPLACE = "replace existing"


FORMAT_REPAIRS: Final = (
    Repair.DECIMAL_COMMA,
    Repair.DECIMAL_POINT,
    Repair.DAY_FIRST,
    Repair.MONTH_FIRST,
    Repair.YEAR_FIRST,
)
_TYPE_REPAIRS: Final = {Repair.INT64: Edm.INT64, Repair.DOUBLE: Edm.DOUBLE}
_NARROWER: Final[Mapping[Repair, tuple[Edm | None, ...]]] = {
    Repair.INT64: (Edm.INT32,),
    Repair.DOUBLE: (Edm.INT32, Edm.INT64),
}
_REPAIRS: Final[Mapping[Fault, tuple[Repair, ...]]] = {
    Fault.NOT_OF_TYPE: (Repair.STRING, Repair.UNSET),
    Fault.NOT_IN_FORMAT: (Repair.STRING, Repair.UNSET),
    Fault.OUT_OF_RANGE: (Repair.STRING, Repair.UNSET),
    Fault.UNKNOWN_TYPE: (Repair.STRING, Repair.UNSET),
    Fault.TOO_MANY_DIGITS: (Repair.STRING, Repair.ROUND, Repair.UNSET),
    Fault.INEXACT: (Repair.STRING, Repair.ROUND, Repair.UNSET),
    Fault.NOT_COMPUTED: (Repair.STRING, Repair.UNSET),
    Fault.NAME_TWICE: (Repair.UNSET,),
    Fault.VALUE_LARGE: (Repair.UNSET,),
    Fault.NESTED: (Repair.STRING, Repair.UNSET),
    Fault.KEY_CHARACTERS: (Repair.KEY_CHARACTERS,),
    Fault.EXISTS: (Repair.SKIP, Repair.REPLACE),
}


class Reject(NamedTuple):
    """Rejected row of a file."""

    row: Row
    fault: Fault
    column: str = ""
    type: Edm | None = None
    text: str = ""  # the value at fault
    format: str = ""  # the format of its column
    invalid: InvalidText | None = None  # the fault of a text, more exactly

    @property
    def sentence(self) -> str:
        return describe(self.fault, self.column, self.type, self.text, self.format)


# sentences about several columns, in which groups are counted together if there are very many
_IN_GENERAL: Final[Mapping[Fault, str]] = {
    Fault.MEMBER_TWICE: "Objects have members twice.",
    Fault.NO_KEY: "Keys are missing.",
    Fault.KEY_CHARACTERS: "Keys have characters that keys cannot have.",
    Fault.KEY_LONG: "Keys are too long.",
    Fault.KEY_EMPTY: "Keys are empty.",
    Fault.NAME: "Columns cannot be the names of properties.",
    Fault.UNKNOWN_TYPE: "Declared types are not types of the service.",
    Fault.NESTED: "Values are objects or arrays.",
    Fault.NOT_OF_TYPE: "Values are not of the types of their columns.",
    Fault.NOT_IN_FORMAT: "Values are not in the formats of their columns.",
    Fault.OUT_OF_RANGE: "Values are beyond the ranges of their types.",
    Fault.TOO_MANY_DIGITS: "Values have more digits than their types hold.",
    Fault.INEXACT: "Numbers have more digits than any type holds exactly.",
    Fault.NOT_COMPUTED: "Formulas have no stored values. Save the file in Excel, which computes them.",
    Fault.NAME_TWICE: "Columns would become properties that other columns become.",
    Fault.VALUE_LARGE: "Values are larger than a property may be.",
}


def describe(fault: Fault, column: str, type_: Edm | None, text: str = "", format_: str = "") -> str:
    if not column and fault in _IN_GENERAL:
        return _IN_GENERAL[fault]
    return fault.value.format(
        column=column,
        type="" if type_ is None else type_.short_name,
        text=text,
        format=read_format(format_).singular if format_ else "",
    )


def of_row(row: Row) -> Reject:
    """Return the reject for an unreadable row."""
    assert row.fault is not None
    return Reject(row, _OF_ROWS[row.fault], row.column, text=row.text[:80])


_OF_ROWS: Final[Mapping[RowFault, Fault]] = {fault: Fault[fault.name] for fault in RowFault}


def of_error(
    row: Row, error: StorageError, column: str = "", type_: Edm | None = None, text: str = ""
) -> Reject:
    """Convert the service's refusal of a row's entity to a reject."""
    fault = next((fault for kind, fault in _OF_ERRORS if isinstance(error, kind)), Fault.OTHER)
    return Reject(row, fault, column, type_, (error.text if fault is Fault.OTHER else text)[:80])


def of_value(row: Row, error: StorageError | InvalidText, column: str, type_: Edm, text: str) -> Reject:
    """Return the reject for a text or JSON value of the wrong type."""
    if isinstance(error, InvalidText):
        fault = _OF_TEXTS.get(error.fault, Fault.NOT_OF_TYPE)
        # with its traceback, it would keep the frames of the reading
        return Reject(row, fault, column, type_, text[:80], invalid=error.with_traceback(None))
    fault = next((it for kind, it in _OF_VALUES if isinstance(error, kind)), Fault.NOT_OF_TYPE)
    return Reject(row, fault, column, type_, text[:80])


_OF_TEXTS: Final[Mapping[TextFault, Fault]] = {
    TextFault.TOO_LARGE: Fault.OUT_OF_RANGE,
    TextFault.OUT_OF_RANGE: Fault.OUT_OF_RANGE,
    TextFault.TOO_PRECISE: Fault.TOO_MANY_DIGITS,
    TextFault.DIGITS_LOST: Fault.TOO_MANY_DIGITS,
    TextFault.TOO_LONG: Fault.VALUE_LARGE,
}
_OF_VALUES: Final = (
    (PropertyValueTooLarge, Fault.VALUE_LARGE),
    (EntityTooLarge, Fault.VALUE_LARGE),  # a value that fills an entity alone
    (OutOfRangeInput, Fault.OUT_OF_RANGE),
)
_OF_ERRORS: Final = (
    (EntityAlreadyExists, Fault.EXISTS),
    (TooManyProperties, Fault.MANY_PROPERTIES),
    (EntityTooLarge, Fault.LARGE),
    (PropertyNameInvalid, Fault.NAME),
    (PropertyNameTooLong, Fault.NAME),
    (KeyValueTooLarge, Fault.KEY_LONG),
    (PropertiesNeedValue, Fault.KEY_EMPTY),
    (OutOfRangeInput, Fault.KEY_CHARACTERS),
)


# groups


@dataclass(slots=True)
class RejectGroup:
    """Rejected rows with the same fault and column: the first ``lines``, the most frequent ``texts``."""

    fault: Fault
    column: str
    type: Edm | None
    rows: int = 0
    lines: list[int] = field(default_factory=list)
    texts: Counter[str] = field(default_factory=Counter)
    format: str = ""

    @property
    def repairs(self) -> tuple[Repair, ...]:
        formats = FORMAT_REPAIRS if self.fault is Fault.NOT_OF_TYPE and self.column and self.texts else ()
        is_of_type = self.fault in (Fault.NOT_OF_TYPE, Fault.OUT_OF_RANGE) and self.column and self.texts
        types = next(((it,) for it in _TYPE_REPAIRS if is_of_type and self._is_of_wider_type(it)), ())
        return (*types, *filter(self._is_in_format, formats), *_REPAIRS.get(self.fault, ()))

    def _is_of_wider_type(self, how: Repair) -> bool:
        """Return whether all listed values are numbers of the type of a repair, which includes that of the column."""
        type_ = _TYPE_REPAIRS[how]
        is_wider = self.type in _NARROWER[how] and not self.format
        return is_wider and all(guessing.looks_like(type_, text, _ANY_TIME) for text in self.texts)

    def _is_in_format(self, how: Repair) -> bool:
        """Return whether all listed values are texts in the format of a repair."""
        format_ = read_format(how.value)
        if self.type not in format_.types:
            return False
        try:
            texts = list(map(format_.rewrite, self.texts))
        except NotInFormat:
            return False
        is_whole = self.type in (Edm.INT32, Edm.INT64)  # 2.5 has a decimal point, but would not fit
        return all(texts) and (
            not is_whole or all(guessing.fits(self.type, text, _ANY_TIME) for text in texts)
        )

    @property
    def sentence(self) -> str:
        text = next(iter(self.texts), "") if self.fault is Fault.OTHER else ""
        return describe(self.fault, self.column, self.type, text, self.format)

    def dump(self) -> dict[str, Any]:
        return {**{name: getattr(self, name) for name in self.__slots__}, "texts": dict(self.texts)}

    @classmethod
    def load(cls, stored: Mapping[str, Any]) -> Self:
        type_ = stored["type"]
        fault = (
            Fault(stored["fault"]) if stored["fault"] in set(Fault) else Fault.OTHER
        )  # a fault of a newer version
        known = {"fault": fault, "type": None if type_ is None else Edm(type_)}
        return cls(**{**stored, **known, "texts": Counter(stored["texts"])})


class RejectGroups:
    """Bounded collection of rejects in groups, largest first."""

    def __init__(self, groups: Sequence[RejectGroup] = ()) -> None:
        self._groups = {(it.fault, it.column, it.type, it.format): it for it in groups}

    def add(self, reject: Reject) -> None:
        key = reject.fault, reject.column, reject.type, reject.format
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= _MOST_GROUPS:
                key = reject.fault, "", None, ""
            group = self._groups.setdefault(key, RejectGroup(*key[:3], format=key[3]))
        group.rows += 1
        if len(group.lines) < _LINES:
            group.lines.append(reject.row.line)
        if reject.text and (reject.text in group.texts or len(group.texts) < _TEXTS):
            group.texts[reject.text] += 1

    @property
    def rows(self) -> int:
        return sum(group.rows for group in self._groups.values())

    def listed(self) -> list[RejectGroup]:
        return sorted(self._groups.values(), key=lambda group: -group.rows)


_MOST_GROUPS: Final = 1000


def repair(mapping: ColumnMapping, group: RejectGroup, how: Repair) -> ColumnMapping:
    """Return the mapping adapted so that a group's rows are no longer rejected for its reason."""
    if how in FORMAT_REPAIRS:
        return mapping.with_column(with_format(mapping.column(group.column), how.value))
    match how:
        case Repair.INT64 | Repair.DOUBLE:
            return mapping.with_column(replace(mapping.column(group.column), type=_TYPE_REPAIRS[how]))
        case Repair.STRING | Repair.UNSET | Repair.ROUND:
            on_misfit = OnMisfit(how.value)
            return mapping.with_column(replace(mapping.column(group.column), on_misfit=on_misfit))
        case Repair.KEY_CHARACTERS:
            return replace(mapping, key_replacement="-")
    return mapping  # the others are modes of the import


def is_repaired(other: RejectGroup, group: RejectGroup, how: Repair) -> bool:
    """Return whether the repair of one group also repairs another, or itself."""
    is_of_column = how in (*FORMAT_REPAIRS, *_TYPE_REPAIRS, Repair.STRING, Repair.UNSET, Repair.ROUND)
    return how in other.repairs and (not is_of_column or other.column == group.column)


# files


class RejectWriter:
    """Writer of rejected rows with line and reason, in CSV for a CSV file, otherwise in NDJSON."""

    def __init__(self, layout: Layout) -> None:
        self.extension = "csv" if layout.format is FileFormat.CSV else "ndjson"
        self._layout = layout

    def head(self) -> bytes:
        if self.extension != "csv":
            return b""
        return self._csv([*self._layout.columns, LINE, REASON])

    def write(self, rejects: Sequence[Reject]) -> bytes:
        return b"".join(map(self._row, rejects))

    def _row(self, reject: Reject) -> bytes:
        row = reject.row
        if self.extension == "csv":
            fields = [str(row.fields.get(name, "")) for name in self._layout.columns]
            if row.fault is not None and not row.fields and fields:
                fields[0] = row.text
            return self._csv([*fields, str(row.line), reject.sentence, *row.further])
        members = row.fields if row.fault is None else {"text": row.text}
        document = {**members, LINE: row.line, REASON: reject.sentence}
        return exact_json.write(document, is_ascii=True).encode() + b"\n"

    def _csv(self, fields: Sequence[str]) -> bytes:
        written = io.StringIO(newline="")
        csv.writer(written, delimiter=self._layout.delimiter).writerow(fields)
        return written.getvalue().encode(errors="surrogatepass")


def is_of_rejects(column: str) -> bool:
    """Return whether a column was added by a reject file."""
    return (find_described(column) or column) in (LINE, REASON)
