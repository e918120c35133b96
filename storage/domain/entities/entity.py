"""Entities in their wire and storage formats, and their size limits."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, NamedTuple, cast

from storage.domain.entities.annotations import ODATA_TYPE
from storage.domain.errors import EntityTooLarge, TooManyProperties
from storage.domain.values import edm
from storage.domain.values.edm import Edm, EdmValue, utf16_length, write_datetime
from storage.domain.values.encoding import ANNOTATED, encoders, needs_annotation
from storage.domain.values.kinds import PROPERTY_LIMIT as PROPERTY_LIMIT
from storage.domain.values.kinds import AccountKind

KEY_PROPERTIES: Final = ("PartitionKey", "RowKey")
SYSTEM_PROPERTIES: Final = (*KEY_PROPERTIES, "Timestamp")

# below this many characters of ``content`` no entity reaches the limit: a character counts at most two bytes,
# a property at most 8 + 16 more than its name and text
SURELY_SMALL: Final = 500_000


_ESCAPE = re.compile(r"\\u[0-9a-f]{4}")


class EntityKey(NamedTuple):
    partition_key: str
    row_key: str


@dataclass(slots=True)  # not frozen, which would take four times as long to make
class Entity:
    """Entity: its key and properties by name, in the order of the request; keys and Timestamp are separate."""

    key: EntityKey
    properties: Mapping[str, EdmValue]
    kind: AccountKind = AccountKind.STORAGE
    _fragments: "Fragments | None" = field(default=None, repr=False, compare=False)

    @property
    def fragments(self) -> "Fragments":
        """Return the texts of its row, encoded once for storage and response; raises TooManyProperties."""
        if self._fragments is None:
            if isinstance(self.properties, EncodedProperties):
                self._fragments = self.properties.fragments
            else:
                self._fragments = write_fragments(self.properties, self.kind)
        return self._fragments

    @property
    def sorted_fragments(self) -> "Fragments":
        """Return the fragments in stored order: by name, but unchanged in a Cosmos account."""
        if self.kind is AccountKind.COSMOS:
            return self.fragments
        return self.fragments.sorted_by(tuple(self.properties))


class Fragments(NamedTuple):
    """Properties of an entity as ASCII JSON fragments, as its row stores them."""

    projection: str
    content: str

    def sorted_by(self, names: tuple[str, ...]) -> "Fragments":
        """Return the fragments with their lines sorted by ``names``."""
        pick = _sorting(names)
        if pick is None:
            return self
        return Fragments(self.projection, "\n" + "\n".join(pick(self.content[1:].split("\n"))))


@lru_cache(maxsize=1024)
def _sorting(names: tuple[str, ...]) -> Callable[[list[str]], tuple[str, ...]] | None:
    """Return a function that sorts texts, one per name, into .NET's ordinal order; None if they are sorted."""
    order = sorted(range(len(names)), key=lambda place: names[place].encode("utf-16-be"))
    return None if order == list(range(len(names))) else itemgetter(*order)


class EncodedProperties(Mapping[str, EdmValue]):
    """Properties parsed from JSON and encoded already; their values are decoded lazily."""

    __slots__ = ("_kind", "_members", "_names", "fragments", "key")

    def __init__(
        self,
        names: tuple[str, ...],
        members: Mapping[str, object] | str,
        fragments: Fragments,
        kind: AccountKind,
        key: EntityKey | None = None,
    ) -> None:
        self._names = names
        self._members = members
        self._kind = kind
        self.fragments = fragments
        self.key = key

    def __getitem__(self, name: str) -> EdmValue:
        if isinstance(self._members, str):
            self._members = json.loads(self._members)
        members = cast("Mapping[str, object]", self._members)
        return edm.read(members[name], members.get(name + ODATA_TYPE), self._kind)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class StoredEntity(NamedTuple):
    """Stored row as bytes ready to send, as a page holds a thousand rows that need no parsing."""

    keys: bytes
    ticks: bytes
    content: bytes

    @property
    def key(self) -> EntityKey:
        members = json.loads(b"{%b}" % self.keys)
        return EntityKey(members["PartitionKey"], members["RowKey"])

    @property
    def timestamp(self) -> int:
        return int(self.ticks)


def write_members(content: bytes, *, annotations: bool = True) -> bytes:
    """Join the lines of row contents, possibly within JSON, with or without type annotations."""
    kept = (
        content.replace(b"\t", b"") if annotations else b"".join(map(_without_annotations, _parts(content)))
    )
    return kept.replace(b"\n", b"")


def _without_annotations(content: bytes) -> bytes:
    return b"".join(content.split(b"\t")[::2])  # every second piece is an annotation


def _parts(content: bytes) -> Iterator[bytes]:
    """Split contents between lines; the pieces of each part reuse the memory of the previous part."""
    start = 0
    while start < len(content):
        end = content.find(b"\n", start + _PART)
        end = len(content) if end < 0 else end
        yield content[start:end]
        start = end


_PART: Final = 1 << 16  # bytes


def split_members(content: bytes) -> list[bytes]:
    """Return the annotations and values of a content, each with a leading comma."""
    return [line for line in content.replace(b"\t", b"\n").split(b"\n") if line]


def read_members(stored: StoredEntity) -> dict[str, Any]:
    """Parse the properties and annotations of a row."""
    members: dict[str, Any] = json.loads(b"{" + stored.content.lstrip(b"\n\t,") + b"}")
    return members


def write_document(stored: StoredEntity) -> bytes:
    """Serialize a stored entity as one line of OData JSON with type annotations, exactly as stored."""
    timestamp = write_datetime(stored.timestamp).encode()
    return b'{%b,"Timestamp":"%b"%b}' % (stored.keys, timestamp, write_members(stored.content))


def write_stored(entity: Entity, ticks: int) -> StoredEntity:
    """Build the row of an inserted entity with this Timestamp; raises TooManyProperties."""
    return _stored(entity, ticks, entity.fragments)


def write_sorted(entity: Entity, ticks: int) -> StoredEntity:
    """Build the row of an entity written by other operations, sorted by name; raises TooManyProperties."""
    return _stored(entity, ticks, entity.sorted_fragments)


def _stored(entity: Entity, ticks: int, texts: Fragments) -> StoredEntity:
    return StoredEntity(encode_entity_key(entity.key), b"%d" % ticks, texts.content.encode())


def read_stored(stored: StoredEntity) -> Entity:
    """Parse a row with its annotations."""
    content = read_members(stored)
    properties = {
        name: read_value(value, content.get(name + ODATA_TYPE))
        for name, value in content.items()
        if not name.endswith(ODATA_TYPE)
    }
    return Entity(stored.key, properties)


def read_value(json: object, annotation: object) -> EdmValue:
    """Decode a stored value, of any account kind."""
    # whatever is stored is within the wider limits, so that most values need no look at them
    known = _PLAIN.get(type(json)) if annotation is None else None
    return edm.read(json, annotation, AccountKind.COSMOS) if known is None else EdmValue(known, json)  # type: ignore[arg-type]


_PLAIN: Final = {str: Edm.STRING, bool: Edm.BOOLEAN, float: Edm.DOUBLE}


def encode_entity_key(key: EntityKey) -> bytes:
    """Serialize the keys as members of a JSON object."""
    return f'"PartitionKey":{edm.quote(key.partition_key)},"RowKey":{edm.quote(key.row_key)}'.encode()


@lru_cache(maxsize=8192)
def quote_name(name: str) -> str:
    """Serialize a property name as an ASCII JSON string."""
    return edm.quote(name)


def write_fragments(properties: Mapping[str, EdmValue], kind: AccountKind = AccountKind.STORAGE) -> Fragments:
    """Serialize properties to the fragments of a row; raises TooManyProperties."""
    if kind.property_limit is not None and len(properties) > kind.property_limit:
        raise TooManyProperties
    projection, lines = [], []
    encode = encoders(kind)
    for name, value in properties.items():
        member = quote_name(name)
        written, projected = encode[value.type](value.value)
        projection.append(f"{member}:{projected}")
        lines.append(f"{line_start(name, value.type if needs_annotation(value) else None)}{written}")
    return Fragments("{" + ",".join(projection) + "}", "".join(lines))


@lru_cache(maxsize=8192)
def line_start(name: str, annotated: Edm | None) -> str:
    """Return the text before a property's value in its stored line; ``annotated`` is the type to declare, if any."""
    member = quote_name(name)
    annotation = "" if annotated is None else f'\t,{member[:-1]}{ODATA_TYPE}":"{annotated.value}"\t'
    return f"\n{annotation},{member}:"


def declared_start(name: str, type_: Any) -> str:
    """Return the text before a typical value of a type in its stored line, declaring the type if that is needed."""
    return line_start(name, Edm(type_) if type_ in ANNOTATED else None)


def check_size(entity: Entity, written: Fragments) -> None:
    if len(written.content) > SURELY_SMALL and entity_size(entity) > entity.kind.entity_size_limit:
        raise EntityTooLarge


def _cosmos_size(key: EntityKey, written: Fragments) -> int:
    """Return the bytes of the keys and of the values as JSON; each escaped UTF-16 unit counts as three [inferred]."""
    keys = len(key.partition_key.encode()) + len(key.row_key.encode())
    values = "".join(written.content.split("\t")[::2])  # without annotations
    return keys + len(_ESCAPE.sub("xxx", values))


def property_names(stored: Iterable[StoredEntity]) -> list[str]:
    """Return the property names of entities, in order of appearance."""
    return list(dict.fromkeys(name for one in stored for name in read_stored(one).properties))


def entity_size(entity: Entity) -> int:
    """Compute the size of an entity in bytes by the published formula, or for Cosmos by its JSON text."""
    if entity.kind is AccountKind.COSMOS:
        return _cosmos_size(entity.key, entity.fragments)
    keys = utf16_length(entity.key.partition_key) + utf16_length(entity.key.row_key)
    return 4 + 2 * keys + sum(8 + 2 * utf16_length(n) + _value_size(v) for n, v in entity.properties.items())


def _value_size(value: EdmValue) -> int:
    match value:
        case (Edm.STRING, str(text)):
            return 4 + 2 * utf16_length(text)
        case (Edm.BINARY, bytes(data)):
            return 4 + len(data)
        case (type_, _):
            return FIXED_SIZES[type_]


FIXED_SIZES: Final = {
    Edm.BOOLEAN: 1,
    Edm.INT32: 4,
    Edm.INT64: 8,
    Edm.DOUBLE: 8,
    Edm.DATETIME: 8,
    Edm.GUID: 16,
}
