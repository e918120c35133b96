"""Column mapping of a file to keys and typed properties, kept as JSON for later files."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, Final, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from storage.domain.entities.annotations import read_type_name
from storage.domain.entities.entity import KEY_PROPERTIES, SYSTEM_PROPERTIES
from storage.domain.errors import StorageError
from storage.domain.refusals import Reason, Refused
from storage.domain.values.edm import Edm
from storage.domain.values.names import PROPERTY_NAME_LIMIT, check_property_name
from storage.editing.formats.reading import UnknownFormat, read_format


class MappingRefused(Refused):
    """The mapping is invalid, or does not fit the file."""


class OnMisfit(StrEnum):
    """Treatment of a value that does not fit the type of its column."""

    REJECT = "reject"  # the row is left out, and reported
    STRING = "string"  # it becomes a String
    UNSET = "unset"  # the entity does not get the property
    ROUND = (
        "round"  # a number or time with too many digits becomes the nearest of the type; others are rejected
    )


class Empty(StrEnum):
    """Treatment of an empty field in a String column; in other columns it is never a value."""

    UNSET = "unset"
    STRING = "string"


# parts of a template that are not names of columns
ROW_NUMBER: Final = "#row"  # ten digits, so that keys are in the order of the file
GUID: Final = "#guid"
_PART: Final = re.compile(r"\{\{|\}\}|\{([^{}]+)\}|[^{}]+")


@dataclass(frozen=True, slots=True)
class Template:
    """Template of a key, with columns in braces as in ``{tenant}-{id}``; ``{{`` is a literal brace."""

    text: str
    parts: tuple[tuple[bool, str], ...]  # whether it is a column, and its name or the text

    @classmethod
    def read(cls, text: str) -> Self:
        """Parse a template; raises MappingRefused."""
        parts: list[tuple[bool, str]] = []
        end = 0
        for part in _PART.finditer(text):
            if part.start() != end:
                break
            end = part.end()
            name = part[1]
            parts.append((True, name) if name else (False, {"{{": "{", "}}": "}"}.get(part[0], part[0])))
        if end != len(text):
            raise MappingRefused(Reason.FILE_MAPPING_TEMPLATE, text=text)
        return cls(text, tuple(parts))

    @classmethod
    def of_parts(cls, parts: Iterable[tuple[bool, str]]) -> Self:
        """Build a template from ``parts`` of another one."""
        known = tuple(parts)
        texts = (
            "{" + part + "}" if is_column else part.replace("{", "{{").replace("}", "}}")
            for is_column, part in known
        )
        return cls("".join(texts), known)

    @property
    def columns(self) -> list[str]:
        return [part for part in self.names if part not in (ROW_NUMBER, GUID)]

    @property
    def names(self) -> list[str]:
        """Return the names in braces: columns and generated values."""
        return [part for is_column, part in self.parts if is_column]


def can_be_in_template(column: str) -> bool:
    """Return whether a column name can be used in a template."""
    return column != "" and not set("{}") & set(column)


@dataclass(frozen=True, slots=True)
class Column:
    """Mapping of one column; without a ``target`` property it is ignored."""

    source: str
    target: str
    type: Edm | None = None
    on_misfit: OnMisfit = OnMisfit.REJECT
    unset: tuple[str, ...] = ()  # texts that stand for no value, such as n/a
    format: str = ""


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """A mapping of the columns of a file to keys and properties."""

    partition_key: str
    row_key: str
    columns: tuple[Column, ...] = ()
    takes_others: bool = True  # columns that are not listed become properties of their name
    empty: Empty = Empty.UNSET
    # replaces characters that a key cannot have; None: the row is rejected
    key_replacement: str | None = None
    # texts lose the apostrophe that an export for spreadsheets has given them
    unescapes_formulas: bool = False
    zone: str = ""  # zone of times in CSV that name none, such as Europe/Istanbul; empty: UTC

    def column(self, source: str) -> Column:
        return next((it for it in self.columns if it.source == source), Column(source, source))

    def with_column(self, column: Column) -> Self:
        if all(it.source != column.source for it in self.columns):
            return replace(self, columns=(*self.columns, column))
        return replace(
            self, columns=tuple(column if it.source == column.source else it for it in self.columns)
        )

    def whole_keys(self) -> set[str]:
        """Return the columns that form a whole key, which need not be properties as well."""
        templates = (Template.read(text).parts for text in (self.partition_key, self.row_key))
        return {parts[0][1] for parts in templates if len(parts) == 1 and parts[0][0]}

    def check(self, columns: Sequence[str]) -> None:
        """Validate the mapping, against the columns of a file if there are any; raises MappingRefused."""
        if self.zone:
            read_zone(self.zone)
        for template in (self.partition_key, self.row_key):
            for name in Template.read(template).columns:
                _check_known(name, columns)
        targets: set[str] = set()
        for column in self.columns:
            _check_known(column.source, columns)
            if not column.target:
                continue
            if column.format:
                with_format(column, column.format)
            if not is_property_name(column.target):
                raise MappingRefused(Reason.FILE_MAPPING_PROPERTY, text=column.target)
            if column.target in targets:
                raise MappingRefused(Reason.FILE_MAPPING_TWICE, property=column.target)
            targets.add(column.target)

    def dump(self) -> dict[str, Any]:
        """Serialize to JSON for ``load``."""
        return asdict(self)

    @classmethod
    def load(cls, stored: object) -> Self:
        """Parse JSON from ``dump`` or a user; raises MappingRefused."""
        if not isinstance(stored, Mapping):
            raise MappingRefused(Reason.FILE_MAPPING_MALFORMED, why="it must be a JSON object.")
        try:
            keys = {"partition_key": "{PartitionKey}", "row_key": "{RowKey}"}
            columns = stored.get("columns", ())
            if not isinstance(columns, list | tuple):
                raise TypeError("columns must be a list.")
            known = {**keys, **stored, "columns": tuple(map(_load_column, columns))}
            if "empty" in known:
                known["empty"] = Empty(known["empty"])
            _check_names(known, cls)
            for name in ("takes_others", "unescapes_formulas"):
                if not isinstance(known.get(name, False), bool):
                    raise TypeError(f"{name} must be true or false.")
            _check_texts(known, "partition_key", "row_key", "key_replacement", "zone")
            return cls(**known)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise MappingRefused(Reason.FILE_MAPPING_MALFORMED, why=str(error)) from None


def _check_names(stored: Mapping[str, Any], kind: type) -> None:
    for name in stored:
        if name not in kind.__dataclass_fields__:  # type: ignore[attr-defined]
            raise TypeError(f"{name!r} is not one of {', '.join(kind.__dataclass_fields__)}.")  # type: ignore[attr-defined]


def _load_column(stored: object) -> Column:
    if not isinstance(stored, Mapping) or "source" not in stored:
        raise TypeError("a column must be an object with its source.")
    _check_names(stored, Column)
    type_, unset = stored.get("type"), stored.get("unset", ())
    _check_texts(stored, "source", "target", "type", "format")
    if isinstance(unset, str) or not all(isinstance(text, str) for text in unset):
        raise TypeError("unset must be a list of texts.")
    column = Column(
        **{
            "target": stored["source"],
            **stored,
            "type": None if type_ is None else read_type(type_),
            "on_misfit": OnMisfit(stored.get("on_misfit", OnMisfit.REJECT)),
            "unset": tuple(unset),
            "format": "",
        }
    )
    return with_format(column, stored["format"]) if stored.get("format") else column


def with_format(column: Column, text: str) -> Column:
    """Return a column with the named format and a matching type; raises MappingRefused."""
    try:
        format_ = read_format(text)
    except UnknownFormat as error:
        raise MappingRefused(Reason.FILE_MAPPING_MALFORMED, why=str(error)) from None
    type_ = column.type or format_.types[0]
    if type_ not in format_.types:
        why = f"texts in the format {format_.spelling} become {format_.types[0].short_name}, not {type_.short_name}."
        raise MappingRefused(Reason.FILE_MAPPING_MALFORMED, why=why)
    return replace(column, type=type_, format=format_.spelling)


def _check_texts(found: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if not isinstance(found.get(name, ""), str | None):
            raise TypeError(f"{name} must be a text.")


def read_zone(name: str) -> ZoneInfo:
    """Return a time zone by name; raises MappingRefused."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        why = f"{name!r} is not a time zone such as Europe/Istanbul."
        raise MappingRefused(Reason.FILE_MAPPING_MALFORMED, why=why) from None


def read_type(text: str) -> Edm:
    """Parse a type name, with or without namespace; raises MappingRefused."""
    named = read_type_name(text)
    if named is None:
        names = ", ".join(type_.short_name for type_ in Edm)
        raise MappingRefused(Reason.FILE_MAPPING_MALFORMED, why=f"{text!r} is not one of {names}.")
    return named


def _check_known(name: str, columns: Sequence[str]) -> None:
    if columns and name not in columns:
        raise MappingRefused(Reason.FILE_MAPPING_NO_COLUMN, column=name, columns=", ".join(columns))


def is_property_name(name: str) -> bool:
    """Return whether a name is valid for a property, not for a key or the Timestamp."""
    try:
        check_property_name(name)
    except StorageError:
        return False
    return name not in SYSTEM_PROPERTIES


def find_keys(columns: Iterable[str]) -> tuple[str | None, str | None]:
    """Return the columns of PartitionKey and RowKey by name; None for a key without one.

    Other spellings, such as rowkey, row_key and Row Key, name keys only if both keys are found: a single such column
    may be one of many, as in the export of a spreadsheet. The first one wins.
    """
    columns = tuple(columns)
    exact = [name if name in columns else None for name in KEY_PROPERTIES]
    spelled = [
        name or next((it for it in columns if is_spelling(it, key)), None)
        for key, name in zip(KEY_PROPERTIES, exact, strict=True)
    ]
    partition_key, row_key = exact if None in spelled else spelled
    return partition_key, row_key


def has_keys(columns: Iterable[str]) -> bool:
    """Return whether both keys are columns."""
    return None not in find_keys(columns)


def is_spelling(column: str, name: str) -> bool:
    """Return whether a column name is a spelling of another name."""
    return re.sub(r"[\s_\-.]", "", column).lower() == name.lower()


def property_name(column: str) -> str:
    """Derive a valid property name from a column name."""
    if is_property_name(column):
        return column
    letters = (letter if f"a{letter}".isidentifier() else " " for letter in column)
    name = "_".join("".join(letters).split())[: PROPERTY_NAME_LIMIT // 2]
    if not name:
        return "unnamed"
    if name in SYSTEM_PROPERTIES:
        return f"{name}_2"
    return name if is_property_name(name) else f"_{name}"
