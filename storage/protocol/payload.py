"""Entities and tables ↔ OData JSON.

https://learn.microsoft.com/rest/api/storageservices/payload-format-for-table-service-operations
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    if not _surely_without_duplicates(body, document):
        document = _read_strictly(body)
        if type(document) is not dict:
            raise InvalidInput(UNREADABLE)
    return document


def _surely_without_duplicates(body: bytes, document: dict[str, Any]) -> bool:
    """Every name and every string has two quotation marks: one pair too many is a name that was overwritten."""
    if b"\\" in body:
        return False
    strings = sum(type(value) is str for value in document.values())
    return body.count(b'"') == 2 * (len(document) + strings)


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


def read_new_entity(body: bytes, key_limit: int) -> Entity:
    """The entity of an insert, whose keys are in the body and must be strings."""
    members = read_object(body)
    properties = _read_properties(members)
    key = EntityKey(_read_key(members, "PartitionKey"), _read_key(members, "RowKey"))
    check_keys(key, key_limit)
    return Entity(key, properties)


def read_entity(body: bytes, key: EntityKey, key_limit: int) -> Entity:
    """The entity of an update or upsert: its keys are the URI's, whatever the body says of them [inferred]."""
    properties = _read_properties(read_object(body))
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
        raise InvalidInput(UNREADABLE)
    return key


_SYSTEM: Final = frozenset(SYSTEM_PROPERTIES)


def _read_properties(members: Mapping[str, Any]) -> dict[str, EdmValue]:
    properties: dict[str, EdmValue] = {}
    for name, value in members.items():
        # null is as good as absent; control information is not ours to keep
        if value is None or name in _SYSTEM or "@" in name or name.startswith("odata."):
            continue
        check_property_name(name)
        annotation = members.get(name + _TYPE)
        if annotation is not None and not isinstance(annotation, str):
            raise InvalidInput(UNREADABLE)
        properties[name] = edm.read(value, annotation)
    return properties


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
    head = _head_writer(context)
    rows = b",".join([_row(head(entity), entity.content) for entity in entities])
    if context.level is Level.NONE:
        return b'{"value":[%b]}' % rows
    return b'{"odata.metadata":%b,"value":[%b]}' % (context.metadata(context.table).encode(), rows)


def write_entity(context: Context, entity: StoredEntity) -> bytes:
    row = _row(_head_writer(context)(entity), entity.content)
    if context.level is Level.NONE:
        return row
    metadata = context.metadata(f"{context.table}/@Element").encode()
    return b'{"odata.metadata":%b,%b' % (metadata, row[1:])


def _row(head: bytes, content: bytes) -> bytes:
    # without a head, when only the entity's own properties were selected, the first comma goes
    return b"{%b%b}" % (head, content) if head else b"{%b}" % content.lstrip(b"\n,")


def _head_writer(context: Context) -> Callable[[StoredEntity], bytes]:
    """Writes what stands before an entity's own properties."""
    if context.select is not None:
        return lambda entity: ",".join(_selected_head(context, entity)).encode()
    if context.level is Level.NONE:
        return _plain_head
    if context.level is Level.MINIMAL:
        return _minimal_head
    return lambda entity: ",".join(_selected_head(context, entity)).encode()


_quote = edm.quote


def _plain_head(entity: StoredEntity) -> bytes:
    partition_key, row_key, timestamp, _ = entity
    return (
        f'"PartitionKey":{_quote(partition_key)},"RowKey":{_quote(row_key)},'
        f'"Timestamp":"{write_datetime(timestamp)}"'
    ).encode()


def _minimal_head(entity: StoredEntity) -> bytes:
    partition_key, row_key, timestamp, _ = entity
    instant = write_datetime(timestamp)
    return (
        f'"odata.etag":"W/\\"datetime\'{instant.replace(":", "%3A")}\'\\"",'
        f'"PartitionKey":{_quote(partition_key)},"RowKey":{_quote(row_key)},"Timestamp":"{instant}"'
    ).encode()


def _selected_head(context: Context, entity: StoredEntity) -> Iterator[str]:
    if context.level is Level.FULL:
        link = entity_link(context.table, entity.partition_key, entity.row_key)
        yield f'"odata.type":"{context.account}.{context.table}"'
        yield f'"odata.id":{_quote(f"{context.base}/{link}")}'
        yield f'"odata.etag":{_quote(write_etag(entity.timestamp))}'
        yield f'"odata.editLink":{_quote(link)}'
    elif context.level is Level.MINIMAL:
        yield f'"odata.etag":{_quote(write_etag(entity.timestamp))}'
    wanted = _SYSTEM if context.select is None else context.select
    if "PartitionKey" in wanted:
        yield f'"PartitionKey":{_quote(entity.partition_key)}'
    if "RowKey" in wanted:
        yield f'"RowKey":{_quote(entity.row_key)}'
    if "Timestamp" in wanted:
        if context.level is Level.FULL:
            yield '"Timestamp@odata.type":"Edm.DateTime"'
        yield f'"Timestamp":"{write_datetime(entity.timestamp)}"'


def entity_link(table: str, partition_key: str, row_key: str) -> str:
    """``people(PartitionKey='p',RowKey='r')`` with quotes doubled and everything but the unreserved escaped."""
    return f"{table}(PartitionKey='{_in_link(partition_key)}',RowKey='{_in_link(row_key)}')"


def _in_link(key: str) -> str:
    return key if key.isalnum() and key.isascii() else quote(key.replace("'", "''"), safe="'")
