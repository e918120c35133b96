"""Bodies of tables and entities, read and written in the format that a request is in or asks for."""

from collections.abc import Mapping, Sequence
from typing import Any

from storage.domain.entities.entity import StoredEntity
from storage.protocol import atom, json_format
from storage.protocol.accept import Format
from storage.protocol.json_format import Context
from storage.protocol.negotiation import request_format

Members = Mapping[str, Any]


def read_object(content_type: bytes | None, body: bytes, version: str) -> Members:
    """The members of the JSON object that a body is or, in Atom, could have been."""
    if request_format(content_type, body, version) is Format.ATOM:
        return atom.read_object(body)
    return json_format.read_object(body)


def write_tables(context: Context, names: Sequence[str]) -> bytes:
    write = atom.write_tables if context.format is Format.ATOM else json_format.write_tables
    return write(context, names)


def write_table(context: Context, name: str) -> bytes:
    write = atom.write_table if context.format is Format.ATOM else json_format.write_table
    return write(context, name)


def write_page(context: Context, entities: Sequence[StoredEntity]) -> bytes:
    write = atom.write_page if context.format is Format.ATOM else json_format.write_page
    return write(context, entities)


def write_entity(context: Context, entity: StoredEntity) -> bytes:
    write = atom.write_entity if context.format is Format.ATOM else json_format.write_entity
    return write(context, entity)
