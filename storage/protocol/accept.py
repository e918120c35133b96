"""Response formats by Accept and ``$format``."""

from collections.abc import Iterator
from enum import Enum, auto
from functools import lru_cache
from typing import Final

CACHED: Final = 512  # longer headers are not cached, so that a client cannot fill the memory
_READ: Final = 2048  # bytes of an Accept that are parsed, so that a client cannot keep the server busy


class Format(Enum):
    """Format of tables and entities: JSON with a metadata level, or Atom."""

    JSON_NONE = b"application/json;odata=nometadata;streaming=true;charset=utf-8"
    JSON_MINIMAL = b"application/json;odata=minimalmetadata;streaming=true;charset=utf-8"
    JSON_FULL = b"application/json;odata=fullmetadata;streaming=true;charset=utf-8"
    # the service sometimes adds ;type=feed or ;type=entry, so no client relies on it
    ATOM = b"application/atom+xml;charset=utf-8"

    def __init__(self, content_type: bytes) -> None:
        self.content_type = content_type
        self.annotations = b"nometadata" not in content_type  # whether the EDM types are included


class MediaRange(Enum):
    """Wildcard media range in an Accept header."""

    ANYTHING = auto()
    UNKNOWN = auto()


def read_best(format_option: str | None, accept: bytes | None) -> Format | MediaRange:
    """Return the preferred format other than Atom.

    Without one, it is Atom or UNKNOWN, which decide the format of the refusal.
    """
    sent = _sent(format_option, accept)
    return _best(sent) if len(sent) <= CACHED else _best.__wrapped__(sent)


def read_ranked(format_option: str | None, accept: bytes | None) -> list[Format | MediaRange]:
    """Return all accepted formats, best first; ``$format`` takes precedence over Accept."""
    return _ranked(_sent(format_option, accept))


def is_json(wanted: Format | MediaRange) -> bool:
    return isinstance(wanted, Format) and wanted is not Format.ATOM


def _sent(format_option: str | None, accept: bytes | None) -> bytes:
    if format_option:
        return _media_type(format_option) if len(format_option) <= CACHED else b"unreadable"
    return accept or b"*/*"


@lru_cache(maxsize=256)
def _media_type(format_option: str) -> bytes:
    match format_option.strip().lower():
        case "json" | "atom" as short:
            return b"application/json" if short == "json" else b"application/atom+xml"
        case media_type:
            return media_type.encode("utf-8", "replace")


@lru_cache(maxsize=256)
def _best(accept: bytes) -> Format | MediaRange:
    ranked = _ranked(accept)
    offered = (wanted for wanted in ranked if wanted not in (Format.ATOM, MediaRange.UNKNOWN))
    return next(offered, Format.ATOM if Format.ATOM in ranked else MediaRange.UNKNOWN)


def _ranked(accept: bytes) -> list[Format | MediaRange]:
    # a named type goes before a wildcard of the same quality
    ranges = sorted(
        _ranges(accept[:_READ]), key=lambda range_: (-range_[0], range_[1] is MediaRange.ANYTHING)
    )
    if not ranges:
        return [MediaRange.ANYTHING]
    refused = {kind for quality, kind in ranges if not quality}
    accepted = [kind for _, kind in ranges if kind not in refused]
    # a wildcard does not cover a type that is refused by name (q=0)
    for refused_format, other in ((Format.JSON_MINIMAL, Format.ATOM), (Format.ATOM, Format.JSON_MINIMAL)):
        if refused_format in refused:
            accepted = [other if kind is MediaRange.ANYTHING else kind for kind in accepted]
    return [kind for kind in accepted if kind not in refused]


def _ranges(accept: bytes) -> Iterator[tuple[float, Format | MediaRange]]:
    for media_range in accept.lower().split(b","):
        media_type, *parameters = [piece.strip() for piece in media_range.split(b";")]
        if media_type:
            options = dict(_parameter(parameter) for parameter in reversed(parameters))
            yield _quality(options.get(b"q", b"")), _kind(media_type, options)


def _parameter(text: bytes) -> tuple[bytes, bytes]:
    name, _, value = text.partition(b"=")
    return name.strip(), value.strip(b' \t"')


def _quality(text: bytes) -> float:
    try:
        quality = float(text)
    except ValueError:
        return 1.0
    return quality if 0 <= quality <= 1 else 1.0


def _kind(media_type: bytes, options: dict[bytes, bytes]) -> Format | MediaRange:
    match media_type:
        case b"application/json":
            return _JSON.get(options.get(b"odata", b"minimalmetadata"), MediaRange.UNKNOWN)
        case b"*/*" | b"application/*":
            return MediaRange.ANYTHING
        case b"application/atom+xml" | b"application/xml":
            return Format.ATOM
        case _:
            return MediaRange.UNKNOWN


_JSON: Final = {
    b"nometadata": Format.JSON_NONE,
    b"minimalmetadata": Format.JSON_MINIMAL,
    b"fullmetadata": Format.JSON_FULL,
}
