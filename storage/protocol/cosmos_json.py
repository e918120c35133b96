"""Serialization of tables and entities to the JSON of Cosmos accounts."""

import json
import re
from collections.abc import Sequence
from typing import Final

from storage.domain.entities.entity import SYSTEM_PROPERTIES, StoredEntity
from storage.domain.values import edm
from storage.domain.values.edm import write_datetime
from storage.domain.values.etag import write_etag
from storage.protocol.accept import Format
from storage.protocol.json_format import Context, entity_link, join_lines, table_link, write_keys


def write_tables(context: Context, names: Sequence[str]) -> bytes:
    rows = ",".join("{" + _table(context, name) + "}" for name in names)
    return b'{"value":[%b]%b}' % (rows.encode(), _metadata(context, "Tables"))


def write_table(context: Context, name: str) -> bytes:
    return b"{%b%b}" % (_table(context, name).encode(), _metadata(context, "Tables/@Element"))


def write_page(context: Context, entities: Sequence[StoredEntity]) -> bytes:
    rows = b",".join([b"{%b}" % _entity(context, entity) for entity in entities])
    return _unescaped(b'{"value":[%b]%b}' % (rows, _metadata(context, context.table)))


def write_entity(context: Context, entity: StoredEntity) -> bytes:
    # unlike in a list, the address of an entity's metadata is below its table
    metadata = edm.quote(f"{context.base}/{context.table}/$metadata#{context.table}/@Element")
    return _unescaped(b"{%b}" % _entity(context, entity, b'"odata.metadata":%b' % metadata.encode()))


def _unescaped(body: bytes) -> bytes:
    """Unescape characters beyond ASCII, which rows store escaped as storage accounts return them."""
    return _ESCAPES.sub(_unescape, body) if b"\\u" in body else body


def _unescape(match: re.Match[bytes]) -> bytes:
    escaped = match[0]
    if escaped[1:2] != b"u":
        return escaped
    text: str = json.loads(b'"%b"' % escaped)
    return "".join([edm.quote(it)[1:-1] if _stays_escaped(it) else it for it in text]).encode()


def _stays_escaped(character: str) -> bool:
    """Return whether a character must stay escaped: invalid in JSON or UTF-8, or escaped by Newtonsoft [inferred]."""
    return character < " " or character in '"\\\x7f\x85\u2028\u2029' or "\ud800" <= character <= "\udfff"


# a run of escaped code units, where two may be one character; or another escape, such as an escaped backslash
_ESCAPES: Final = re.compile(rb"(?:\\u[0-9a-f]{4})+|\\.")


def _metadata(context: Context, suffix: str) -> bytes:
    """Serialize the control information of a response, with a leading comma."""
    if context.format is Format.JSON_NONE:
        return b""
    return b',"odata.metadata":%b' % edm.quote(f"{context.base}/$metadata#{suffix}").encode()


def _table(context: Context, name: str) -> str:
    member = f'"TableName":{edm.quote(name)}'
    if context.format is not Format.JSON_FULL:
        return member
    link = table_link(name)
    identity = edm.quote(f"{context.base}/{link}")
    return (
        f'"odata.type":{edm.quote(f"{context.account}.Tables")},"odata.id":{identity},'
        f'"odata.editLink":{edm.quote(link)},{member}'
    )


def _entity(context: Context, entity: StoredEntity, metadata: bytes = b"") -> bytes:
    """Serialize the members of an entity; ``metadata`` is for entities outside a list."""
    ticks = int(entity.ticks)
    selected = SYSTEM_PROPERTIES if context.select is None else context.select
    members = [*_control(context, entity, ticks, metadata), *write_keys(entity, frozenset(selected))]
    if entity.content:
        members.append(join_lines(context, entity.content).removeprefix(b","))
    if "Timestamp" in selected:
        if context.format is Format.JSON_FULL:
            members.append(b'"Timestamp@odata.type":"Edm.DateTime"')
        members.append(b'"Timestamp":"%b"' % write_datetime(ticks, context.dialect.kind).encode())
    return b",".join(members)


def _control(context: Context, entity: StoredEntity, ticks: int, metadata: bytes) -> list[bytes]:
    if context.format is Format.JSON_NONE:
        return []
    etag = b'"odata.etag":%b' % edm.quote(write_etag(ticks, context.dialect.kind)).encode()
    ends = [metadata, etag] if metadata else [etag]
    if context.format is not Format.JSON_FULL:
        return ends
    link = entity_link(context.table, *entity.key)
    return [
        b'"odata.type":%b' % edm.quote(f"{context.account}.{context.table}").encode(),
        b'"odata.id":%b' % edm.quote(f"{context.base}/{link}").encode(),
        b'"odata.editLink":%b' % edm.quote(link).encode(),
        *ends,
    ]
