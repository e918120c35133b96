"""Viewers that decode a stored value in formats such as JSON, JWT, Base64 or images."""

import base64
import binascii
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, cast
from urllib.parse import unquote_to_bytes

from console.entities import json_tree
from console.entities.json_tree import Node
from storage.domain.values import ticks
from storage.domain.values.edm import BINARY_LIMIT, Edm, EdmValue
from storage.editing import typed_text

LIMIT: Final = 1024 * 1024  # bytes, after decompression
HEX_LIMIT: Final = 16 * 1024  # bytes in a dump
_LINE: Final = 16


class Viewer(StrEnum):
    PLAIN = "plain"
    JSON = "json"
    JWT = "jwt"
    IMAGE = "image"
    GZIP = "gzip"
    BASE64 = "base64"
    URL = "url"
    TIME = "time"
    HEX = "hex"


@dataclass(frozen=True, slots=True)
class Line:
    offset: str
    digits: str
    text: str


@dataclass(frozen=True, slots=True)
class View:
    """The content of a viewer: one of the parts, or a text."""

    text: str = ""
    nodes: tuple[Node, ...] = ()
    lines: tuple[Line, ...] = ()
    image: str = ""  # a data: address
    moment: datetime | None = None
    is_cut: bool = False


def views(value: EdmValue) -> dict[Viewer, View]:
    """Return the viewers for a value, most helpful first."""
    found = {viewer: view for viewer, show in _VIEWERS.items() if (view := show(value)) is not None}
    return found or {Viewer.PLAIN: View(_shown(typed_text.write(value)))}


def _shown(text: str) -> str:
    """Remove lone surrogates, which HTML cannot hold."""
    return _HALF.sub("\ufffd", text)


_HALF = re.compile("[\ud800-\udfff]")


def _text(value: EdmValue) -> str | None:
    """Return the text of a String, or of a Binary in UTF-8."""
    match value:
        case (Edm.STRING, str(text)):
            return text
        case (Edm.BINARY, bytes(data)):
            try:
                return data.decode()
            except UnicodeDecodeError:
                return None
    return None


def _plain(value: EdmValue) -> View | None:
    if value.type is Edm.BINARY:
        text = _text(value) or ""
        return View(text) if _is_readable(text) else None
    return View(_shown(typed_text.write(value)))


def _is_readable(text: str) -> bool:
    """Return whether bytes that are valid UTF-8 look like text."""
    letters = sum(character.isalnum() or character.isspace() for character in text)
    return 2 * letters >= len(text) > 0 and not re.search("[\x00-\x08\x0e-\x1f]", text)


# JSON and JWT


def _json(value: EdmValue) -> View | None:
    text = _text(value)
    return None if text is None else _json_view(text)


def _json_view(text: str) -> View | None:
    found = json_tree.read(text)
    return None if found is None else View(_shown(text), nodes=(json_tree.tree("$", found),))


_JWT = re.compile(r"(eyJ[A-Za-z0-9_-]{2,})\.(eyJ[A-Za-z0-9_-]{2,})\.[A-Za-z0-9_-]*")


def _jwt(value: EdmValue) -> View | None:
    """Return the header and claims of a JWT, without verifying its signature."""
    match = _JWT.fullmatch((_text(value) or "").strip().removeprefix("Bearer "))
    if match is None:
        return None
    header, claims = (json_tree.read(_utf8(_decoded(part)) or "") for part in match.groups())
    if not (isinstance(header, tuple) and isinstance(claims, tuple)):
        return None
    return View(nodes=(json_tree.tree("header", header), json_tree.tree("claims", claims)))


# compressed and encoded values


def _decoded(text: str) -> bytes | None:
    joined = "".join(text.split()).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(joined + "=" * (-len(joined) % 4), validate=True)
    except (ValueError, binascii.Error):
        return None


def _utf8(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")


def _base64(value: EdmValue) -> View | None:
    text = (_text(value) or "").strip()
    if not _BASE64.fullmatch(text) or (decoded := _decoded(text)) is None:
        return None
    inner = _utf8(decoded)
    if inner is not None and inner.isprintable() | ("\n" in inner):
        return _json_view(inner) or View(inner)
    # sixteen letters may also be a word; decoded bytes only help if they are text or compressed
    return _unpacked(decoded) or (_dump(decoded) if text.endswith("=") else None)


def _url(value: EdmValue) -> View | None:
    text = _text(value) or ""
    if not re.search(r"%[0-9A-Fa-f]{2}", text):
        return None
    decoded = _utf8(unquote_to_bytes(text.encode(errors="surrogatepass")))
    return View(decoded) if decoded is not None else None


def _unpacked(data: bytes) -> View | None:
    if data[:2] == b"\x1f\x8b":
        unpacked = _inflated(data, 16 + zlib.MAX_WBITS)
    elif data[:1] == b"\x78" and len(data) > 2 and int.from_bytes(data[:2]) % 31 == 0:
        unpacked = _inflated(data, zlib.MAX_WBITS)
    else:
        return None
    if not unpacked:
        return None
    text = _utf8(unpacked)
    is_cut = len(unpacked) >= LIMIT
    if text is None:
        dump = _dump(unpacked)
        return View(lines=dump.lines, is_cut=is_cut or dump.is_cut)
    view = _json_view(text)
    return view or View(text, is_cut=is_cut)


def _inflated(data: bytes, bits: int) -> bytes | None:
    """Decompress up to LIMIT bytes, as a small file may expand to gigabytes; None if invalid."""
    try:
        return zlib.decompressobj(bits).decompress(data, LIMIT)
    except zlib.error:
        return None


# bytes

_MAGIC: Final[Mapping[bytes, str]] = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def image_type(data: bytes) -> str | None:
    """Return the image type by magic bytes; None for other data."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((type_ for magic, type_ in _MAGIC.items() if data.startswith(magic)), None)


def _image(value: EdmValue) -> View | None:
    data = value.value if isinstance(value.value, bytes) else _decoded(_text(value) or "")
    if not data or len(data) > BINARY_LIMIT or (type_ := image_type(data)) is None:
        return None
    return View(image=f"data:{type_};base64,{base64.b64encode(data).decode()}")


def _dump(data: bytes) -> View:
    shown = data[:HEX_LIMIT]
    lines = tuple(_line(shown, start) for start in range(0, len(shown), _LINE))
    return View(lines=lines, is_cut=len(shown) < len(data))


def _line(data: bytes, start: int) -> Line:
    part = data[start : start + _LINE]
    text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)
    return Line(f"{start:06x}", part.hex(" "), text)


def _time(value: EdmValue) -> View | None:
    if value.type is not Edm.DATETIME:
        return None
    moment = ticks.to_datetime(cast("int", value.value))
    # near the ends of the calendar, another zone is out of range
    return View(typed_text.write(value), moment=moment) if 1602 <= moment.year <= 9998 else None


_VIEWERS: Final[Mapping[Viewer, Callable[[EdmValue], View | None]]] = {
    Viewer.IMAGE: _image,
    Viewer.JWT: _jwt,
    Viewer.GZIP: lambda value: _unpacked(value.value) if isinstance(value.value, bytes) else None,
    Viewer.JSON: _json,
    Viewer.BASE64: _base64,
    Viewer.URL: _url,
    Viewer.TIME: _time,
    Viewer.PLAIN: _plain,
    Viewer.HEX: lambda value: _dump(value.value) if isinstance(value.value, bytes) else None,
}
