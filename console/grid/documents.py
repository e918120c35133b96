"""Entities as the JSON documents of the service, one below the other, and one alone with its whole values."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

from django.template.defaultfilters import filesizeformat
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from console.grid import cells
from console.grid.cells import Cell
from console.grid.indented_json import indented
from console.grid.keys import write_key
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.entities.previews import STRING_PREVIEW_LENGTH, EntityPreview
from storage.domain.values import edm, encoding
from storage.domain.values.edm import Edm, EdmValue, write_datetime


@dataclass(frozen=True, slots=True)
class Nested:
    """A String that is JSON itself, laid out."""

    text: str


@dataclass(frozen=True, slots=True)
class Member:
    """A line of a document; ``size`` of a value that is cut, ``nested`` when it can be unfolded."""

    markup: SafeString
    size: str = ""
    nested: Nested | None = None


@dataclass(frozen=True, slots=True)
class Document:
    token: str
    key: EntityKey
    members: Sequence[Member]


def document(glance: EntityPreview) -> Document:
    keys = [_plain(name, edm.quote(text)) for name, text in zip(EntityKey._fields, glance.key, strict=True)]
    timestamp = _plain("Timestamp", f'"{write_datetime(glance.timestamp)}"')
    members = [*keys, timestamp]
    for name, value in glance.properties.items():
        if encoding.needs_annotation(value):
            members.append(_plain(f"{name}@odata.type", f'"{value.type}"', "note"))
        members.append(_member(name, value, glance.sizes.get(name)))
    return Document(write_key(glance.key), glance.key, members)


_NAMES = {"partition_key": "PartitionKey", "row_key": "RowKey"}


def _plain(name: str, text: str, kind: str = "text") -> Member:
    return Member(_line(_NAMES.get(name, name), text, kind))


def _line(name: str, text: str, kind: str) -> SafeString:
    return format_html('<span class="name">"{}"</span>: <span class="{}">{}</span>', name, kind, text)


def _member(name: str, value: EdmValue, size: int | None) -> Member:
    match value:
        case (Edm.STRING, str(text)):
            return _string(name, text, size)
        case (Edm.BINARY, bytes(data)) if size is not None or len(data) > STRING_PREVIEW_LENGTH:
            shown = encoding.write(EdmValue(Edm.BINARY, data[:120]))
            return Member(_line(name, f'{shown[:-1]}…"', "text"), filesizeformat(size or len(data)))
    kind = "text" if encoding.write(value).startswith('"') else "number"
    return _plain(name, encoding.write(value), kind)


def _string(name: str, text: str, size: int | None) -> Member:
    if size is None and (nested := _laid_out(text)):
        return Member(_line(name, _readable(text[:STRING_PREVIEW_LENGTH]), "text"), nested=Nested(nested))
    if size is None and len(text) <= 4 * STRING_PREVIEW_LENGTH:
        return Member(_line(name, _readable(text), "text"))
    size = size or len(text.encode(errors="surrogatepass"))
    return Member(
        _line(name, _readable(text[:STRING_PREVIEW_LENGTH])[:-1] + '…"', "text"), filesizeformat(size)
    )


def _readable(text: str) -> str:
    """A JSON string in which only what cannot be seen is escaped."""
    characters = (
        character if character.isprintable() and character not in '"\\' else edm.quote(character)[1:-1]
        for character in text
    )
    return f'"{"".join(characters)}"'


def _laid_out(text: str) -> str:
    """JSON with its members on lines of their own; nothing for what is no object or array."""
    return indented(text).encode(errors="replace").decode()


# one entity


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: str
    cell: Cell


def fields(entity: Entity, zone: tzinfo | None) -> list[Field]:
    """Its properties with their whole values."""
    return [Field(name, value.type, _whole(value, zone)) for name, value in entity.properties.items()]


def _whole(value: EdmValue, zone: tzinfo | None) -> Cell:
    if value.type is Edm.STRING and len(str(value.value)) > STRING_PREVIEW_LENGTH:
        text = str(value.value).encode(errors="replace").decode().replace("\0", "\u2400")
        # the only markup in it is ours
        return Cell(mark_safe(f'<span class="whole">{escape(text)}</span>'), 0)  # noqa: S308
    return cells.draw(value, None, zone)
