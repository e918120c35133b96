"""Conversion between entities or tables and Atom, for versions before 2015-12-11."""

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from time import time
from typing import Any, Final
from xml.etree.ElementTree import Element

import orjson

from storage.domain.entities.annotations import ODATA_TYPE
from storage.domain.entities.entity import SYSTEM_PROPERTIES, StoredEntity
from storage.domain.errors import DuplicatePropertiesSpecified, InvalidInput, InvalidXmlDocument
from storage.domain.values.edm import UNREADABLE, Edm, second_text, write_datetime
from storage.domain.values.etag import write_etag
from storage.domain.values.xml import read_xml, write_text
from storage.protocol.json_format import Context, entity_link

_ATOM_NAMESPACE: Final = "http://www.w3.org/2005/Atom"
_DATA_NAMESPACE: Final = "http://schemas.microsoft.com/ado/2007/08/dataservices"
_METADATA_NAMESPACE: Final = f"{_DATA_NAMESPACE}/metadata"
_ATOM, _DATA, _METADATA = (f"{{{name}}}" for name in (_ATOM_NAMESPACE, _DATA_NAMESPACE, _METADATA_NAMESPACE))
_SPACE: Final = " \t\r\n"
# tags, comments and sections of an entry; 255 properties need some 550, and a batch may have a hundred entries to read
_MARKUP_LIMIT: Final = 2000


# Atom → values


def read_object(body: bytes) -> dict[str, str | None]:
    """Convert an Atom entry to the members of the equivalent JSON object."""
    members: dict[str, str | None] = {}
    for element in _properties(body):
        if not element.tag.startswith(_DATA):
            continue
        name = _read_name(element.tag.removeprefix(_DATA))
        if name in members:
            raise DuplicatePropertiesSpecified
        members[name] = None if _is_null(element) else _read_text(element)
        if (annotation := element.get(f"{_METADATA}type")) is not None:
            members[name + ODATA_TYPE] = annotation
    return members


def _properties(body: bytes) -> Element:
    if body.count(b"<") > _MARKUP_LIMIT:
        raise InvalidInput(UNREADABLE)
    try:
        entry = read_xml(body)
    except InvalidXmlDocument:
        raise InvalidInput(UNREADABLE) from None
    properties = entry.findall(f"{_ATOM}content/{_METADATA}properties")
    # an entry that says nothing must not empty an entity
    if entry.tag != f"{_ATOM}entry" or len(properties) != 1:
        raise InvalidInput(UNREADABLE)
    return properties[0]


def _is_null(element: Element) -> bool:
    return element.get(f"{_METADATA}null", "").strip(_SPACE) in ("true", "1")


def _read_text(element: Element) -> str:
    """Return the text of a property as JSON would have it; only strings keep surrounding whitespace."""
    if len(element):  # collections and complex values, which tables do not hold
        raise InvalidInput(UNREADABLE)
    text = element.text or ""
    match element.get(f"{_METADATA}type"):
        case None | Edm.STRING:
            return text
        case Edm.BINARY:
            return "".join(text.split())
        case Edm.BOOLEAN:
            text = text.strip(_SPACE)
            return {"1": "true", "0": "false"}.get(text, text)
    return text.strip(_SPACE)


# values → Atom

_DECLARATION: Final = '<?xml version="1.0" encoding="utf-8" standalone="yes"?>\n'
_NAMESPACES: Final = f'xmlns:d="{_DATA_NAMESPACE}" xmlns:m="{_METADATA_NAMESPACE}" xmlns="{_ATOM_NAMESPACE}"'


def write_tables(context: Context, names: Sequence[str]) -> bytes:
    updated = _now()
    return _feed(context, updated, (_table(context, name, updated) for name in names))


def write_table(context: Context, name: str) -> bytes:
    return _alone(context, _table(context, name, _now()))


def write_page(context: Context, entities: Sequence[StoredEntity]) -> bytes:
    updated = _now()
    return _feed(context, updated, (_entity(context, entity, updated) for entity in entities))


def write_entity(context: Context, entity: StoredEntity) -> bytes:
    return _alone(context, _entity(context, entity, _now()))


def _now() -> str:
    return second_text(int(time())) + "Z"


def _feed(context: Context, updated: str, entries: Iterable[str]) -> bytes:
    name = context.table
    return (
        f'{_DECLARATION}<feed xml:base="{context.base}/" {_NAMESPACES}><title type="text">{name}</title>'
        f'<id>{context.base}/{name}</id><updated>{updated}</updated><link rel="self" title="{name}" href="{name}" />'
        f"{''.join(entries)}</feed>"
    ).encode()


def _alone(context: Context, entry: str) -> bytes:
    """Serialize an entry outside a feed, with the base URL and namespaces of a feed."""
    attributes = entry.removeprefix("<entry")
    return f'{_DECLARATION}<entry xml:base="{context.base}/" {_NAMESPACES}{attributes}'.encode()


def _table(context: Context, name: str, updated: str) -> str:
    content = _content(context, "Tables", f"Tables('{name}')", updated, f"<d:TableName>{name}</d:TableName>")
    return f"<entry>{content}"


def _entity(context: Context, entity: StoredEntity, updated: str) -> str:
    instant = write_datetime(int(entity.ticks))
    members = _read_members(
        b'{%b,"Timestamp":"%b","Timestamp%b":"Edm.DateTime"%b}'
        % (entity.keys, instant.encode(), ODATA_TYPE.encode(), entity.content)
    )
    link = entity_link(context.table, members["PartitionKey"], members["RowKey"])
    properties = _write_properties(members, context.select)
    etag = write_etag(int(entity.ticks)).replace('"', "&quot;")
    return f'<entry m:etag="{etag}">{_content(context, context.table, link, updated, properties)}'


def _content(context: Context, collection: str, link: str, updated: str, properties: str) -> str:
    return (
        f'<id>{context.base}/{link}</id><title type="text"></title><updated>{updated}</updated>'
        f'<author><name /></author><link rel="edit" title="{collection}" href="{link}" />'
        f'<category term="{context.account}.{collection}" scheme="{_DATA_NAMESPACE}/scheme" />'
        f'<content type="application/xml"><m:properties>{properties}</m:properties></content></entry>'
    )


def _read_members(text: bytes) -> dict[str, Any]:
    try:
        members: dict[str, Any] = orjson.loads(text)
    except orjson.JSONDecodeError:
        members = json.loads(text)  # lone surrogates
    return members


def _write_properties(members: dict[str, Any], select: tuple[str, ...] | None) -> str:
    unwanted = () if select is None else {name for name in SYSTEM_PROPERTIES if name not in select}
    return "".join(
        _write_property(_element(name), value, members.get(name + ODATA_TYPE))
        for name, value in members.items()
        if "@" not in name and name not in unwanted
    )


def _write_property(element: str, value: object, annotation: str | None) -> str:
    match value:
        case str():
            if annotation is None:
                return _write_string(element, value)
            text = _SPECIAL_DOUBLES.get(value, value) if annotation == Edm.DOUBLE else value
        case None:  # selected, but the entity has none
            return f'<{element} m:null="true" />'
        case bool():
            annotation, text = Edm.BOOLEAN, "true" if value else "false"
        case int():
            annotation, text = Edm.INT32, str(value)
        case _:
            annotation, text = Edm.DOUBLE, repr(value).replace("e", "E")
    return f'<{element} m:type="{annotation}">{text}</{element}>'


_SPECIAL_DOUBLES: Final = {"Infinity": "INF", "-Infinity": "-INF"}
_NO_XML_CHARACTER: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _write_string(element: str, text: str) -> str:
    attributes = ""
    if _NO_XML_CHARACTER.search(text):
        # XML has no way to say them, and most readers give up the whole feed at a reference such as &#x1;. The
        # replacement character keeps the rest readable, and the attribute says that the value is not the stored one.
        text = _NO_XML_CHARACTER.sub("\N{REPLACEMENT CHARACTER}", text)
        attributes = ' xmlns:t="urn:tablero" t:replaced="true"'
    if text and (text[0] in _SPACE or text[-1] in _SPACE):
        attributes += ' xml:space="preserve"'
    return f"<{element}{attributes}>{write_text(text)}</{element}>"


# names of properties ↔ names of elements
#
# To most readers a name is made of the letters of Unicode 2.0, and they refuse a whole feed with any other. In such a
# name characters are written as .NET writes them, _x0219_. Such escapes are read as .NET reads them, beyond ASCII.

_ESCAPED: Final = re.compile("_x([0-9A-Fa-f]{8}|[0-9A-Fa-f]{4})_")
_LONGEST: Final = 255 * len("_x0000_")  # whatever is longer is no name


@lru_cache(maxsize=8192)
def _element(name: str) -> str:
    if name.isascii() or _is_xml_name(name):
        return f"d:{name}"
    return "d:" + "".join(character if character.isascii() else _escape(character) for character in name)


def _is_xml_name(text: str) -> bool:
    try:
        read_xml(f"<{text}/>".encode())
    except InvalidXmlDocument:
        return False
    return True


def _escape(character: str) -> str:
    code = ord(character)
    return f"_x{code:04X}_" if code < 0x10000 else f"_x{code:08X}_"


def _read_name(element: str) -> str:
    return _ESCAPED.sub(_unescape, element) if "_x" in element and len(element) <= _LONGEST else element


def _unescape(escaped: re.Match[str]) -> str:
    code = int(escaped[1], 16)
    of_a_name = 0x80 <= code <= 0x10FFFF and f"a{chr(code)}".isidentifier()
    return chr(code) if of_a_name else escaped[0]
