"""Conversion between entities or tables and OData JSON."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import orjson

from storage.domain.entities.annotations import ODATA_TYPE
from storage.domain.entities.entity import (
    SYSTEM_PROPERTIES,
    EncodedProperties,
    Entity,
    EntityKey,
    StoredEntity,
    write_members,
)
from storage.domain.entities.members import read_properties
from storage.domain.errors import (
    DuplicatePropertiesSpecified,
    InvalidInput,
    PartKind,
    PropertiesNeedValue,
)
from storage.domain.values import dialects, edm
from storage.domain.values.dialects import Dialect
from storage.domain.values.edm import UNREADABLE, Edm, write_datetime
from storage.domain.values.etag import write_etag
from storage.domain.values.names import check_entity_key
from storage.protocol.accept import Format

_BOM: Final = b"\xef\xbb\xbf"


# JSON → values


def read_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object; raises an error for duplicate members."""
    body = body.removeprefix(_BOM)
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = _read_strictly(body)  # orjson alone refuses lone surrogates
    if type(document) is not dict:
        raise InvalidInput(UNREADABLE)
    if _needs_strict_reading(body, document):
        document = _read_strictly(body)
        if type(document) is not dict:
            raise InvalidInput(UNREADABLE)
    if b"-0" in body:
        _restore_signs(body, document)
    return document


def _restore_signs(body: bytes, document: dict[str, Any]) -> None:
    """Restore the sign of ``-0`` declared as a Double, as .NET and Go write -0.0 and parsers drop the sign."""
    written = set(_NEGATIVE_ZERO.findall(body))
    for name, value in document.items():
        if type(value) is int and value == 0 and document.get(name + ODATA_TYPE) == Edm.DOUBLE:
            document[name] = -0.0 if orjson.dumps(name) in written else 0


_NEGATIVE_ZERO: Final = re.compile(rb'("[^"\\]*")[ \t\r\n]*:[ \t\r\n]*-0[ \t\r\n]*[,}]')
_LONG_NUMBER = re.compile(rb":[ \t\r\n]*-?[0-9]{19}")


def _needs_strict_reading(body: bytes, document: dict[str, Any]) -> bool:
    """Return whether orjson may have missed a duplicate member or an integer beyond 64 bits."""
    if b"\\" in body:
        return True
    strings = list(map(type, document.values())).count(str)
    return body.count(b'"') != 2 * (len(document) + strings) or _LONG_NUMBER.search(body) is not None


def _read_strictly(body: bytes) -> Any:
    try:
        return json.loads(body.decode(), object_pairs_hook=_without_duplicates, parse_constant=_no_constant)
    except (ValueError, RecursionError) as fault:
        error = InvalidInput(UNREADABLE).within(PartKind.BODY)
        if isinstance(fault, json.JSONDecodeError):
            error.span = (fault.pos, fault.pos + 1)
        raise error from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        repeated = next(name for name, count in counts.items() if count > 1)
        raise DuplicatePropertiesSpecified().within(PartKind.PROPERTY, repeated)
    return members


def _no_constant(name: str) -> None:
    raise ValueError(name)


def read_table_name(members: Mapping[str, Any]) -> str:
    name = members.get("TableName")
    if name is None:
        raise PropertiesNeedValue
    if not isinstance(name, str):
        raise InvalidInput(UNREADABLE)
    return name


def read_new_entity(members: Mapping[str, Any] | EncodedProperties, dialect: Dialect) -> Entity:
    """Return the entity of an insert, whose keys must be strings in the body."""
    if isinstance(members, EncodedProperties):
        if members.key is None:
            raise PropertiesNeedValue
        check_entity_key(*members.key, dialect)
        return Entity(members.key, members, dialect.kind)
    properties = read_properties(members, dialect.kind)
    key = EntityKey(_read_key(members, "PartitionKey"), _read_key(members, "RowKey"))
    check_entity_key(*key, dialect)
    return Entity(key, properties, dialect.kind)


def read_entity(members: Mapping[str, Any] | EncodedProperties, key: EntityKey, dialect: Dialect) -> Entity:
    """Return the entity of an update or upsert; keys in the URI override those in the body [inferred]."""
    if isinstance(members, EncodedProperties):
        check_entity_key(*key, dialect)
        return Entity(key, members, dialect.kind)
    if dialect.is_cosmos:
        for name in _KEYS & members.keys():
            if members[name] is not None:
                _read_key(members, name)
    properties = read_properties(members, dialect.kind)
    check_entity_key(*key, dialect)
    return Entity(key, properties, dialect.kind)


def checked_key(key: EntityKey, dialect: Dialect) -> EntityKey:
    check_entity_key(*key, dialect)
    return key


def _read_key(members: Mapping[str, Any], name: str) -> str:
    key = members.get(name)
    if key is None:
        raise PropertiesNeedValue().within(PartKind.PROPERTY, name)
    if not isinstance(key, str) or members.get(name + ODATA_TYPE, "Edm.String") != "Edm.String":
        raise InvalidInput().within(PartKind.PROPERTY, name)
    return key


_SYSTEM: Final = frozenset(SYSTEM_PROPERTIES)
_KEYS: Final = frozenset({"PartitionKey", "RowKey"})


# values → JSON


class Context(NamedTuple):
    """Context for control information of a response; ``base`` needs no JSON escaping."""

    format: Format
    base: str
    account: str
    table: str
    select: tuple[str, ...] | None
    raw_select: str | None  # as sent, which the context repeats
    dialect: Dialect = dialects.STORAGE

    def metadata(self, suffix: str) -> str:
        selected = "" if self.raw_select is None else f"&$select={self.raw_select}"
        return edm.quote(f"{self.base}/$metadata#{suffix}{selected}")


def write_tables(context: Context, names: Sequence[str]) -> bytes:
    rows = ",".join("{" + _table(context, name) + "}" for name in names)
    if context.format is Format.JSON_NONE:
        return f'{{"value":[{rows}]}}'.encode()
    return f'{{"odata.metadata":{context.metadata("Tables")},"value":[{rows}]}}'.encode()


def write_table(context: Context, name: str) -> bytes:
    if context.format is Format.JSON_NONE:
        return f"{{{_table(context, name)}}}".encode()
    return f'{{"odata.metadata":{context.metadata("Tables/@Element")},{_table(context, name)}}}'.encode()


def _table(context: Context, name: str) -> str:
    member = f'"TableName":"{name}"'
    if context.format is not Format.JSON_FULL:
        return member
    link = table_link(name)
    return (
        f'"odata.type":"{context.account}.Tables","odata.id":"{context.base}/{link}",'
        f'"odata.editLink":"{link}",{member}'
    )


def write_page(context: Context, entities: Sequence[StoredEntity]) -> bytes:
    if context.format is Format.JSON_NONE:
        opening = b'{"value":['
    else:
        opening = b'{"odata.metadata":%b,"value":[' % context.metadata(context.table).encode()
    if not entities:
        return opening + b"]}"
    # one copy of every byte: heads and contents in turn, joined
    heads = _heads(context, entities)
    pieces = [b""] * (2 * len(entities))
    pieces[0::2] = heads
    pieces[1::2] = _contents(heads, entities)
    pieces[0] = opening + pieces[0][2:]
    pieces.append(b"}]}")
    return join_lines(context, b"".join(pieces))


def write_entity(context: Context, entity: StoredEntity) -> bytes:
    heads = _heads(context, [entity])
    head, content = heads[0], _contents(heads, [entity])[0]
    if context.format is Format.JSON_NONE:
        return join_lines(context, b"%b%b}" % (head[2:], content))
    metadata = context.metadata(f"{context.table}/@Element").encode()
    return join_lines(context, b'{"odata.metadata":%b,%b%b}' % (metadata, head[3:], content))


def join_lines(context: Context, body: bytes) -> bytes:
    """Serialize lines of stored content on one line, as older .NET clients read parts of a batch by line."""
    return write_members(body, annotations=context.format is not Format.JSON_NONE)


def _contents(heads: Sequence[bytes], entities: Sequence[StoredEntity]) -> list[bytes]:
    if heads[0] == b"},{":  # then the first of an entity's own properties comes first
        return [content[1:] for _, _, content in entities]
    return [content for _, _, content in entities]


def _heads(context: Context, entities: Sequence[StoredEntity]) -> list[bytes]:
    """Return the text before each entity's properties, after the end of the previous entity: ``},{"PartitionKey…``."""
    if context.format is Format.JSON_FULL:
        return [_full_head(context, entity) for entity in entities]
    selected = _SYSTEM if context.select is None else _SYSTEM.intersection(context.select)
    if context.format is Format.JSON_NONE:
        return _plain_heads(entities, selected)
    instants = _instants(entities)
    if selected == _SYSTEM:
        return [
            b'},{"odata.etag":"W/\\"datetime\'%b\'\\"",%b,"Timestamp":"%b"' % (escaped, entity[0], instant)
            for entity, (instant, escaped) in zip(entities, instants, strict=True)
        ]
    etags = [b'},{"odata.etag":"W/\\"datetime\'%b\'\\""' % escaped for _, escaped in instants]
    if not selected:
        return etags
    return [e + _some_system(entity, selected) for e, entity in zip(etags, entities, strict=True)]


def _plain_heads(entities: Sequence[StoredEntity], selected: frozenset[str]) -> list[bytes]:
    if selected == _SYSTEM:
        return [
            b'},{%b,"Timestamp":"%b"' % (entity[0], instant)
            for entity, (instant, _) in zip(entities, _instants(entities), strict=True)
        ]
    return [b"},{" + _some_system(entity, selected)[1:] for entity in entities]


def _instants(entities: Sequence[StoredEntity]) -> list[tuple[bytes, bytes]]:
    """Return the Timestamps, each plain and as in ETags."""
    instants = []
    last, both = b"", (b"", b"")
    for _, ticks, _ in entities:
        if ticks != last:
            instant = _instant(ticks)
            last, both = ticks, (instant, instant.replace(b":", b"%3A"))
        instants.append(both)
    return instants


def _instant(ticks: bytes) -> bytes:
    """Format a Timestamp from decimal ticks."""
    fraction = ticks[-7:].rstrip(b"0")
    return _second(ticks[:-7]) + (b".%bZ" % fraction if fraction else b"Z")


@lru_cache(maxsize=4096)
def _second(digits: bytes) -> bytes:
    return write_datetime(int(digits) * edm.TICKS_PER_SECOND)[:-1].encode()


def _some_system(entity: StoredEntity, selected: frozenset[str]) -> bytes:
    """Serialize the selected system properties, each with a leading comma."""
    if not selected:
        return b""
    members = [b"", *write_keys(entity, selected)]
    if "Timestamp" in selected:
        members.append(b'"Timestamp":"%b"' % _instant(entity.ticks))
    return b",".join(members)


def write_keys(entity: StoredEntity, selected: frozenset[str]) -> list[bytes]:
    """Serialize the selected keys as members of an object."""
    if selected >= _KEYS:
        return [entity.keys]
    keys = orjson.loads(b"{%b}" % entity.keys)
    return [f'"{name}":{edm.quote(keys[name])}'.encode() for name in keys if name in selected]


def _full_head(context: Context, entity: StoredEntity) -> bytes:
    link = entity_link(context.table, *entity.key)
    selected = _SYSTEM if context.select is None else _SYSTEM.intersection(context.select)
    system = _some_system(entity, selected - {"Timestamp"})
    if "Timestamp" in selected:
        system += b',"Timestamp@odata.type":"Edm.DateTime","Timestamp":"%b"' % _instant(entity.ticks)
    return b'},{"odata.type":"%b","odata.id":%b,"odata.etag":%b,"odata.editLink":%b%b' % (
        f"{context.account}.{context.table}".encode(),
        edm.quote(f"{context.base}/{link}").encode(),
        edm.quote(write_etag(int(entity.ticks))).encode(),
        edm.quote(link).encode(),
        system,
    )


def table_link(name: str) -> str:
    return f"Tables('{_in_link(name)}')"


def entity_link(table: str, partition_key: str, row_key: str) -> str:
    """Return a link such as ``people(PartitionKey='p',RowKey='r')``, with quotes doubled and the rest escaped."""
    # the name of a storage account's table needs no escape
    name = table if table.isalnum() and table.isascii() else quote(table, safe="$'")
    return f"{name}(PartitionKey='{_in_link(partition_key)}',RowKey='{_in_link(row_key)}')"


def _in_link(key: str) -> str:
    return key if key.isalnum() and key.isascii() else quote(key.replace("'", "''"), safe="'")
