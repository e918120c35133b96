"""Entities as the JSON documents of the service, and a single entity with its whole values."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.template.defaultfilters import filesizeformat
from django.utils.html import format_html
from django.utils.safestring import SafeString

from console.grid.columns import TIMESTAMP
from console.grid.tokens import encode_key
from storage.domain.entities.entity import KEY_PROPERTIES, EntityKey, StoredEntity, read_stored
from storage.domain.entities.previews import STRING_PREVIEW_LENGTH, EntityPreview
from storage.domain.values import edm, encoding
from storage.domain.values.edm import Edm, EdmValue, write_datetime


@dataclass(frozen=True, slots=True)
class JsonMember:
    """Line of a JSON document."""

    markup: SafeString
    size: str = ""  # the size of a value that was cut
    nested: str = ""  # a String that is JSON itself, indented


@dataclass(frozen=True, slots=True)
class JsonDocument:
    token: str
    key: EntityKey
    members: Sequence[JsonMember]


def build_document(glance: EntityPreview) -> JsonDocument:
    keys = [_plain(name, edm.quote(text)) for name, text in zip(KEY_PROPERTIES, glance.key, strict=True)]
    timestamp = _plain("Timestamp", f'"{write_datetime(glance.timestamp)}"')
    members = [*keys, timestamp]
    for name, value in glance.properties.items():
        if encoding.needs_annotation(value):
            members.append(_plain(f"{name}@odata.type", f'"{value.type}"', "note"))
        members.append(_member(name, value, glance.sizes.get(name)))
    return JsonDocument(encode_key(glance.key), glance.key, members)


def _plain(name: str, text: str, kind: str = "text") -> JsonMember:
    return JsonMember(_line(name, text, kind))


def _line(name: str, text: str, kind: str) -> SafeString:
    return format_html('<span class="name">"{}"</span>: <span class="{}">{}</span>', name, kind, text)


def _member(name: str, value: EdmValue, size: int | None) -> JsonMember:
    match value:
        case (Edm.STRING, str(text)):
            return _string(name, text, size)
        case (Edm.BINARY, bytes(data)) if size is not None or len(data) > STRING_PREVIEW_LENGTH:
            shown = encoding.write(EdmValue(Edm.BINARY, data[:120]))
            return JsonMember(_line(name, f'{shown[:-1]}…"', "text"), filesizeformat(size or len(data)))
    kind = "text" if encoding.write(value).startswith('"') else "number"
    return _plain(name, encoding.write(value), kind)


def _string(name: str, text: str, size: int | None) -> JsonMember:
    if size is None and (nested := _laid_out(text)):
        return JsonMember(_line(name, _readable(text[:STRING_PREVIEW_LENGTH]), "text"), nested=nested)
    if size is None and len(text) <= 4 * STRING_PREVIEW_LENGTH:
        return JsonMember(_line(name, _readable(text), "text"))
    size = size or len(text.encode(errors="surrogatepass"))
    return JsonMember(
        _line(name, _readable(text[:STRING_PREVIEW_LENGTH])[:-1] + '…"', "text"), filesizeformat(size)
    )


def _readable(text: str) -> str:
    """Serialize a JSON string, escaping only invisible characters."""
    characters = (
        character if character.isprintable() and character not in '"\\' else edm.quote(character)[1:-1]
        for character in text
    )
    return f'"{"".join(characters)}"'


def _laid_out(text: str) -> str:
    """Return indented JSON; empty if the text is neither an object nor an array."""
    return indent_json(text).encode(errors="replace").decode()


# one entity


def all_values(stored: StoredEntity) -> dict[str, EdmValue]:
    """Return the properties, the keys and the Timestamp."""
    keys = {name: EdmValue(Edm.STRING, text) for name, text in zip(KEY_PROPERTIES, stored.key, strict=True)}
    return {**read_stored(stored).properties, **keys, TIMESTAMP: EdmValue(Edm.DATETIME, stored.timestamp)}


# JSON in a string

LONGEST_INDENT: Final = 256 * 1024  # characters, of all lines
_PIECE: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
_OPENING: Final = ("{", "[")
_CLOSING: Final = ("}", "]")


def indent_json(text: str) -> str:
    """Indent JSON; empty for other text, and for extremely deep JSON."""
    if text[:1] not in _OPENING or not _is_json(text):
        return ""
    written: list[str] = []
    depth = size = 0
    for piece in _PIECE.findall(text):
        if piece in _CLOSING:
            depth -= 1
        if written and _breaks_line(written[-1], piece):
            written.append("\n" + "  " * depth)
            size += 2 * depth
            if size > LONGEST_INDENT:
                return ""
        written.append(piece)
        if piece in _OPENING:
            depth += 1
        elif piece == ":":
            written.append(" ")
    return "".join(written)


def _breaks_line(last: str, piece: str) -> bool:
    """Return whether a line break goes between two tokens; an empty object stays on one line."""
    if last in _OPENING:
        return piece not in _CLOSING
    return last == "," or piece in _CLOSING


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
