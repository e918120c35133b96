"""Bodies of tables and entities in the format of the request or the negotiated one."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from storage.domain.entities.entity import EncodedProperties, StoredEntity
from storage.domain.entities.patterns import recognize
from storage.domain.filters.query import PAGE_BYTES, Page, Position
from storage.domain.values.dialects import Dialect
from storage.protocol import atom, cosmos_json, json_format
from storage.protocol.accept import Format
from storage.protocol.json_format import Context
from storage.protocol.negotiation import request_format

Members = Mapping[str, Any]


def read_entity(
    content_type: bytes | None, body: bytes, version: str, dialect: Dialect
) -> Members | EncodedProperties:
    """Read the entity in a body; faster than ``read_object`` for bodies that match a learned pattern."""
    if request_format(content_type, body, version) is Format.ATOM:
        return atom.read_object(body)
    recognized = recognize(body, dialect.kind)  # not empty, but false, if there are no properties
    return json_format.read_object(body) if recognized is None else recognized


def read_object(content_type: bytes | None, body: bytes, version: str) -> Members:
    """Return the members of the JSON object in a body, or those converted from an Atom entry."""
    if request_format(content_type, body, version) is Format.ATOM:
        return atom.read_object(body)
    return json_format.read_object(body)


class Writer(Protocol):
    """Interface of a module that serializes one format."""

    def write_tables(self, context: Context, names: Sequence[str]) -> bytes: ...

    def write_table(self, context: Context, name: str) -> bytes: ...

    def write_page(self, context: Context, entities: Sequence[StoredEntity]) -> bytes: ...

    def write_entity(self, context: Context, entity: StoredEntity) -> bytes: ...


def _writer(context: Context) -> Writer:
    if context.dialect.is_cosmos:
        return cosmos_json
    return atom if context.format is Format.ATOM else json_format


def write_tables(context: Context, names: Sequence[str]) -> bytes:
    return _writer(context).write_tables(context, names)


def write_table(context: Context, name: str) -> bytes:
    return _writer(context).write_table(context, name)


def write_page(context: Context, page: Page[StoredEntity]) -> tuple[bytes, Position | None]:
    """Return the body of a page and the start of the next one, cut after the entity that exceeds PAGE_BYTES.

    Pages are limited by stored size before; links, names and escapes can make the body many times longer.
    """
    body = _writer(context).write_page(context, page.entities)
    if len(body) <= PAGE_BYTES:
        return body, page.next
    count = _count_fitting(context, page.entities)
    if count == len(page.entities):
        return body, page.next
    following = page.entities[count].key
    return _writer(context).write_page(context, page.entities[:count]), Position(*following)


def _count_fitting(context: Context, entities: Sequence[StoredEntity]) -> int:
    write = _writer(context).write_page
    frame = size = len(write(context, []))
    for count, entity in enumerate(entities):
        if size > PAGE_BYTES:
            return count
        size += len(write(context, [entity])) - frame
    return len(entities)


def write_entity(context: Context, entity: StoredEntity) -> bytes:
    return _writer(context).write_entity(context, entity)
