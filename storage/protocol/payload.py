"""Entities and tables ↔ OData JSON.

https://learn.microsoft.com/rest/api/storageservices/payload-format-for-table-service-operations
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import orjson

from storage.domain import edm
from storage.domain.edm import UNREADABLE, EdmValue, write_datetime
from storage.domain.entity import SYSTEM_PROPERTIES, Entity, EntityKey, StoredEntity
from storage.domain.errors import DuplicatePropertiesSpecified, InvalidInput, PropertiesNeedValue
from storage.domain.etag import write_etag
from storage.domain.names import check_key, check_property_name
from storage.protocol.negotiation import Level

_BOM: Final = b"\xef\xbb\xbf"
_TYPE: Final = "@odata.type"


# JSON → values


def read_object(body: bytes) -> dict[str, Any]:
    """The members of a JSON object; a name that comes twice is refused."""
    body = body.removeprefix(_BOM)
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = _read_strictly(body)  # what only orjson refuses: lone surrogates
    if type(document) is not dict:
        raise InvalidInput(UNREADABLE)
    if _needs_strict_reading(body, document):
        document = _read_strictly(body)
        if type(document) is not dict:
            raise InvalidInput(UNREADABLE)
    return document


_LONG_NUMBER = re.compile(rb":[ \t\r\n]*-?[0-9]{19}")


def _needs_strict_reading(body: bytes, document: dict[str, Any]) -> bool:
    """Whether orjson may have passed over something: a name that came twice, an integer of more than 64 bits.

    Every name and every string has two quotation marks; one pair too many is a name that was overwritten.
    """
    if b"\\" in body:
        return True
    strings = list(map(type, document.values())).count(str)
    return body.count(b'"') != 2 * (len(document) + strings) or _LONG_NUMBER.search(body) is not None


def _read_strictly(body: bytes) -> Any:
    try:
        return json.loads(body.decode(), object_pairs_hook=_without_duplicates, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise InvalidInput(UNREADABLE) from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise DuplicatePropertiesSpecified
    return members


def _no_constant(name: str) -> None:
    raise ValueError(name)


def read_table_name(body: bytes) -> str:
    name = read_object(body).get("TableName")
    if name is None:
        raise PropertiesNeedValue
    if not isinstance(name, str):
        raise InvalidInput(UNREADABLE)
    return name


def read_new_entity(members: Mapping[str, Any], key_limit: int) -> Entity:
    """The entity of an insert, whose keys are in the body and must be strings."""
    properties = _read_properties(members)
    key = EntityKey(_read_key(members, "PartitionKey"), _read_key(members, "RowKey"))
    check_keys(key, key_limit)
    return Entity(key, properties)


def read_entity(members: Mapping[str, Any], key: EntityKey, key_limit: int) -> Entity:
    """The entity of an update or upsert: its keys are the URI's, whatever the body says of them [inferred]."""
    properties = _read_properties(members)
    check_keys(key, key_limit)
    return Entity(key, properties)


def check_keys(key: EntityKey, limit: int) -> None:
    check_key("PartitionKey", key.partition_key, limit=limit)
    check_key("RowKey", key.row_key, limit=limit)


def _read_key(members: Mapping[str, Any], name: str) -> str:
    key = members.get(name)
    if key is None:
        raise PropertiesNeedValue
    if not isinstance(key, str) or members.get(name + _TYPE, "Edm.String") != "Edm.String":
        raise InvalidInput
    return key


_SYSTEM: Final = frozenset(SYSTEM_PROPERTIES)
_KEYS: Final = frozenset({"PartitionKey", "RowKey"})


def _read_properties(members: Mapping[str, Any]) -> dict[str, EdmValue]:
    properties: dict[str, EdmValue] = {}
    for name, value in members.items():
        # null is as good as absent
        if value is None or name in _SYSTEM:
            continue
        annotation_name = _annotation_name(name)
        if annotation_name is not None:
            properties[name] = edm.read(value, members.get(annotation_name))
    return properties


@lru_cache(maxsize=8192)
def _annotation_name(name: str) -> str | None:
    """The name of the member that says a property's type; None if the name is that of control information."""
    if "@" in name or name.startswith("odata."):
        return None
    check_property_name(name)
    return name + _TYPE


# values → JSON


class Context(NamedTuple):
    """What the control information of an answer is made of; ``base`` holds nothing that JSON would escape."""

    level: Level
    base: str
    account: str
    table: str
    select: tuple[str, ...] | None
    raw_select: str | None

    def metadata(self, suffix: str) -> str:
        selected = f"&$select={self.raw_select}" if self.raw_select else ""
        return edm.quote(f"{self.base}/$metadata#{suffix}{selected}")


def write_tables(context: Context, names: Sequence[str]) -> bytes:
    rows = ",".join("{" + _table(context, name) + "}" for name in names)
    if context.level is Level.NONE:
        return f'{{"value":[{rows}]}}'.encode()
    return f'{{"odata.metadata":{context.metadata("Tables")},"value":[{rows}]}}'.encode()


def write_table(context: Context, name: str) -> bytes:
    if context.level is Level.NONE:
        return f"{{{_table(context, name)}}}".encode()
    return f'{{"odata.metadata":{context.metadata("Tables/@Element")},{_table(context, name)}}}'.encode()


def _table(context: Context, name: str) -> str:
    member = f'"TableName":"{name}"'
    if context.level is not Level.FULL:
        return member
    return (
        f'"odata.type":"{context.account}.Tables","odata.id":"{context.base}/Tables(\'{name}\')",'
        f'"odata.editLink":"Tables(\'{name}\')",{member}'
    )


def write_page(context: Context, entities: Sequence[StoredEntity]) -> bytes:
    rows = b",".join(_rows(context, entities))
    if context.level is Level.NONE:
        return b'{"value":[%b]}' % rows
    return b'{"odata.metadata":%b,"value":[%b]}' % (context.metadata(context.table).encode(), rows)


def write_entity(context: Context, entity: StoredEntity) -> bytes:
    row = _rows(context, [entity])[0]
    if context.level is Level.NONE:
        return row
    metadata = context.metadata(f"{context.table}/@Element").encode()
    return b'{"odata.metadata":%b,%b' % (metadata, row[1:])


def _rows(context: Context, entities: Sequence[StoredEntity]) -> list[bytes]:
    """Each entity as a JSON object."""
    if context.level is Level.FULL:
        return [_full_row(context, entity) for entity in entities]
    wanted = _SYSTEM if context.select is None else _SYSTEM.intersection(context.select)
    if context.level is Level.NONE:
        return _plain_rows(entities, wanted)
    if wanted == _SYSTEM:
        return [
            b'{"odata.etag":"W/\\"datetime\'%b\'\\"",%b,"Timestamp":"%b"%b}' % (etag, keys, instant, content)
            for keys, ticks, content in entities
            for instant, etag in (_instant(ticks),)
        ]
    return [
        b'{"odata.etag":"W/\\"datetime\'%b\'\\""%b%b}'
        % (_instant(entity.ticks)[1], _some_system(entity, wanted), entity.content)
        for entity in entities
    ]


def _plain_rows(entities: Sequence[StoredEntity], wanted: frozenset[str]) -> list[bytes]:
    if wanted == _SYSTEM:
        return [
            b'{%b,"Timestamp":"%b"%b}' % (keys, _instant(ticks)[0], content)
            for keys, ticks, content in entities
        ]
    return [b"{%b}" % (_some_system(entity, wanted) + entity.content)[1:] for entity in entities]


def _instant(ticks: bytes) -> tuple[bytes, bytes]:
    """A Timestamp, and the same as it stands in an ETag."""
    second, escaped = _second(ticks[:-7])
    fraction = ticks[-7:].rstrip(b"0")
    if fraction:
        return b"%b.%bZ" % (second, fraction), b"%b.%bZ" % (escaped, fraction)
    return second + b"Z", escaped + b"Z"


@lru_cache(maxsize=4096)
def _second(digits: bytes) -> tuple[bytes, bytes]:
    second = write_datetime(int(digits) * edm.TICKS_PER_SECOND)[:-1].encode()
    return second, second.replace(b":", b"%3A")


def _some_system(entity: StoredEntity, wanted: frozenset[str]) -> bytes:
    """Selected system properties, each led by a comma."""
    if not wanted:
        return b""
    if wanted == _KEYS:
        return b"," + entity.keys
    keys = orjson.loads(b"{%b}" % entity.keys)
    members = [b",%b:%b" % (orjson.dumps(name), orjson.dumps(keys[name])) for name in keys if name in wanted]
    if "Timestamp" in wanted:
        members.append(b',"Timestamp":"%b"' % _instant(entity.ticks)[0])
    return b"".join(members)


def _full_row(context: Context, entity: StoredEntity) -> bytes:
    keys = orjson.loads(b"{%b}" % entity.keys)
    link = entity_link(context.table, keys["PartitionKey"], keys["RowKey"])
    wanted = _SYSTEM if context.select is None else _SYSTEM.intersection(context.select)
    system = _some_system(entity, wanted - {"Timestamp"})
    if "Timestamp" in wanted:
        system += b',"Timestamp@odata.type":"Edm.DateTime","Timestamp":"%b"' % _instant(entity.ticks)[0]
    return b'{"odata.type":"%b","odata.id":%b,"odata.etag":%b,"odata.editLink":%b%b%b}' % (
        f"{context.account}.{context.table}".encode(),
        edm.quote(f"{context.base}/{link}").encode(),
        edm.quote(write_etag(int(entity.ticks))).encode(),
        edm.quote(link).encode(),
        system,
        entity.content,
    )


def entity_link(table: str, partition_key: str, row_key: str) -> str:
    """``people(PartitionKey='p',RowKey='r')`` with quotes doubled and everything but the unreserved escaped."""
    return f"{table}(PartitionKey='{_in_link(partition_key)}',RowKey='{_in_link(row_key)}')"


def _in_link(key: str) -> str:
    return key if key.isalnum() and key.isascii() else quote(key.replace("'", "''"), safe="'")
