"""Entity as an editable JSON document: OData with types, and errors with line and column."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from storage.domain.entities.annotations import ODATA_TYPE, find_described, find_roles, read_type_name
from storage.domain.entities.entity import (
    KEY_PROPERTIES,
    SYSTEM_PROPERTIES,
    Entity,
    EntityKey,
)
from storage.domain.errors import EntityTooLarge, OutOfRangeInput, PropertyValueTooLarge, StorageError
from storage.domain.values import encoding
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import check_property_name
from storage.editing import json_values
from storage.editing.exact_json import ExactDecoder
from storage.editing.invalid_text import InvalidText, TextFault


class DocumentFault(StrEnum):
    """Reason why a document is invalid."""

    NOT_JSON = "not JSON"
    NOT_OBJECT = "not an object"
    TWICE = "a name appears twice"
    NO_TYPE = "an @odata.type that does not exist"
    NO_PROPERTY = "an @odata.type without its property"
    NESTED = "an object or array"
    NULL = "null"
    VALUE = "not a value of the type"
    DIGITS = "more digits than the type holds"
    TOO_LARGE = "a value beyond the limit"
    OUT_OF_RANGE = "a time before 1601 or after 9999"
    NAME = "not a name"
    KEY = "a key is not a string"
    NO_KEY = "no PartitionKey or RowKey"


@dataclass(frozen=True, slots=True)
class InvalidDocument(Exception):
    """The document is invalid; ``line`` and ``column`` count from one, ``about`` is a property or type."""

    fault: DocumentFault
    line: int
    column: int
    about: str = ""


def write(entity: Entity) -> str:
    """Serialize an entity with one line per member."""
    lines = [_member(name, _text(key)) for name, key in zip(KEY_PROPERTIES, entity.key, strict=True)]
    for name, value in entity.properties.items():
        if encoding.needs_annotation(value):
            lines.append(_member(name + ODATA_TYPE, f'"{value.type.value}"'))
        text = _text(value.value) if isinstance(value.value, str) else encoding.write(value)
        lines.append(_member(name, text))
    return "{\n  " + ",\n  ".join(lines) + "\n}"


def _member(name: str, value: str) -> str:
    return f"{_text(name)}: {value}"


# characters that HTML cannot carry, that are invisible, or that change the direction of the text after them
_ESCAPED = re.compile(
    "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


def _text(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def read(text: str, kind: AccountKind = AccountKind.STORAGE) -> Entity:
    """Parse an entity of a kind of account, ignoring control information and Timestamp; raises InvalidDocument."""
    reader = _Reader(text, kind)
    members = reader.members()
    roles = find_roles(members)
    properties: dict[str, EdmValue] = {}
    for name, member in members.items():
        described = find_described(name)
        if described is not None and described not in members:
            raise reader.fault(DocumentFault.NO_PROPERTY, member.at, described)
        if roles.is_value(name) and name not in SYSTEM_PROPERTIES:
            properties[name] = reader.value(name, member, members.get(roles.types.get(name, "")))
    return Entity(EntityKey(*(reader.key(name, members) for name in KEY_PROPERTIES)), properties, kind)


class _Member(NamedTuple):
    value: Any
    at: int  # where its name starts
    value_at: int


_SPACE = re.compile(r"[ \t\r\n]*")


class _Reader:
    """Parser of one JSON object that reports the positions of its members, unlike the standard library."""

    def __init__(self, text: str, kind: AccountKind) -> None:
        self.text = text
        self._kind = kind
        self._decoder = ExactDecoder(is_strict=True)

    def fault(self, fault: DocumentFault, at: int, about: str = "") -> InvalidDocument:
        start = self.text.rfind("\n", 0, at) + 1
        return InvalidDocument(fault, self.text.count("\n", 0, at) + 1, at - start + 1, about)

    def members(self) -> dict[str, _Member]:
        members: dict[str, _Member] = {}
        for name, member in self._walk():
            if name in members:
                raise self.fault(DocumentFault.TWICE, member.at, name)
            members[name] = member
        return members

    def value(self, name: str, member: _Member, annotation: _Member | None) -> EdmValue:
        try:
            check_property_name(name)
        except StorageError:
            raise self.fault(DocumentFault.NAME, member.at, name) from None
        type_: Edm | None = None
        if annotation is not None:
            type_ = read_type_name(annotation.value)
            if type_ is None:
                raise self.fault(DocumentFault.NO_TYPE, annotation.value_at, str(annotation.value))
        if member.value is None:
            raise self.fault(DocumentFault.NULL, member.value_at, name)
        if isinstance(member.value, dict | list):
            raise self.fault(DocumentFault.NESTED, member.value_at, name)
        try:
            return json_values.read(member.value, type_, self._kind)
        except InvalidText as invalid:
            is_decimal = not isinstance(member.value, int)
            if invalid.fault in (TextFault.DIGITS_LOST, TextFault.TOO_PRECISE) and is_decimal:
                raise self.fault(DocumentFault.DIGITS, member.value_at, name) from None
            raise self.fault(DocumentFault.VALUE, member.value_at, (type_ or Edm.INT64).value) from None
        except (PropertyValueTooLarge, EntityTooLarge):
            raise self.fault(DocumentFault.TOO_LARGE, member.value_at, name) from None
        except OutOfRangeInput:
            raise self.fault(DocumentFault.OUT_OF_RANGE, member.value_at, name) from None
        except StorageError:
            raise self.fault(DocumentFault.VALUE, member.value_at, (type_ or Edm.INT32).value) from None

    def key(self, name: str, members: dict[str, _Member]) -> str:
        member = members.get(name)
        if member is None:
            raise self.fault(DocumentFault.NO_KEY, 0, name)
        if not isinstance(member.value, str):
            raise self.fault(DocumentFault.KEY, member.value_at, name)
        return member.value

    def _walk(self) -> Iterator[tuple[str, _Member]]:
        at = self._skip(0)
        if self.text[at : at + 1] != "{":
            self._decode(at)
            raise self.fault(DocumentFault.NOT_OBJECT, at)
        at = self._skip(at + 1)
        if self.text[at : at + 1] != "}":
            while True:
                start = at
                if self.text[start : start + 1] != '"':
                    raise self.fault(DocumentFault.NOT_JSON, start)
                name, at = self._decode(start)
                value_at = self._expect(":", at)
                value, at = self._decode(value_at)
                yield name, _Member(value, start, value_at)
                at = self._skip(at)
                if self.text[at : at + 1] == "}":
                    break
                at = self._expect(",", at)
        end = self._skip(at + 1)
        if end < len(self.text):
            raise self.fault(DocumentFault.NOT_JSON, end)

    def _skip(self, at: int) -> int:
        space = _SPACE.match(self.text, at)
        return space.end() if space else at

    def _expect(self, mark: str, at: int) -> int:
        at = self._skip(at)
        if self.text[at : at + 1] != mark:
            raise self.fault(DocumentFault.NOT_JSON, at)
        return self._skip(at + 1)

    def _decode(self, at: int) -> tuple[Any, int]:
        try:
            return self._decoder.decode(self.text, at)
        except json.JSONDecodeError as error:
            raise self.fault(DocumentFault.NOT_JSON, error.pos) from None
        except (ValueError, RecursionError):  # NaN without quotes, or a number of thousands of digits
            raise self.fault(DocumentFault.NOT_JSON, at) from None
