"""What a request asks to be answered in: format, metadata level, version, preference.

https://learn.microsoft.com/rest/api/storageservices/payload-format-for-table-service-operations
"""

from collections.abc import Iterator, Sequence
from datetime import date
from enum import Enum, auto
from functools import lru_cache
from typing import Final, assert_never

from storage.domain.errors import (
    AtomFormatNotSupported,
    InvalidHeaderValue,
    JsonFormatNotSupported,
    MediaTypeNotSupported,
    XMethodIncorrectCount,
    XMethodIncorrectValue,
    XMethodNotUsingPost,
)

OLDEST_VERSION: Final = "2009-04-14"
NEWEST_VERSION: Final = "2026-06-06"
FIRST_JSON_VERSION: Final = "2013-08-15"

_CACHED: Final = 512  # longer headers are read again each time: a cache must not be a way to fill the memory
_TUNNELLED: Final = frozenset({"MERGE", "PATCH", "PUT", "DELETE"})
_JSON_START: Final = b"\xef\xbb\xbf \t\r\n"


class Level(Enum):
    """How much control information a JSON payload carries."""

    NONE = b"nometadata"
    MINIMAL = b"minimalmetadata"
    FULL = b"fullmetadata"

    def __init__(self, odata: bytes) -> None:
        self.content_type = b"application/json;odata=%b;streaming=true;charset=utf-8" % odata


class Source(Enum):
    """Where an error arises: that decides its format as much as what the client accepts."""

    ODATA = auto()
    XML = auto()  # ?comp=acl, ?restype=service
    FRONT_END = auto()  # authentication
    PART = auto()  # an operation of a batch


class ErrorFormat(Enum):
    JSON = "JSON without a level"
    JSON_NONE = "JSON, nometadata"
    JSON_MINIMAL = "JSON, minimalmetadata"
    JSON_FULL = "JSON, fullmetadata"
    XML = "<error>"
    PREFIXED_XML = "<m:error>"


class Preference(Enum):
    """Whether an insert is answered with the entity."""

    ABSENT = None
    CONTENT = b"return-content"
    NO_CONTENT = b"return-no-content"

    def __init__(self, applied: bytes | None) -> None:
        self.applied = applied  # the value of Preference-Applied


class _Other(Enum):
    """What may be accepted besides a level of JSON."""

    ANYTHING = auto()
    ATOM = auto()
    UNKNOWN = auto()


def response_level(format_option: str | None, accept: bytes | None, version: str) -> Level:
    """``$format`` goes before Accept; whoever asks for nothing in particular gets minimal metadata."""
    wanted = _wanted(format_option, accept)
    if isinstance(wanted, Level):
        if version < FIRST_JSON_VERSION:
            raise JsonFormatNotSupported
        return wanted
    match wanted:
        case _Other.ANYTHING:
            return Level.MINIMAL
        case _Other.ATOM:
            raise AtomFormatNotSupported
        case _Other.UNKNOWN:
            raise MediaTypeNotSupported
        case _:
            assert_never(wanted)


def error_format(source: Source, format_option: str | None, accept: bytes | None) -> ErrorFormat:
    if source is Source.XML:
        return ErrorFormat.PREFIXED_XML
    wanted = _wanted(format_option, accept)
    if source is Source.FRONT_END:
        return ErrorFormat.JSON if isinstance(wanted, Level) else ErrorFormat.PREFIXED_XML
    if isinstance(wanted, Level):
        return _ERROR_FORMATS[wanted]
    if source is Source.PART and wanted is _Other.ANYTHING:
        return ErrorFormat.JSON_MINIMAL
    return ErrorFormat.XML


def check_content_type(value: bytes | None, body: bytes, version: str) -> None:
    """Raises unless the body is JSON by its Content-Type or, where there is none, by its looks."""
    if value is None:
        if body and not body.lstrip(_JSON_START).startswith(b"{"):
            raise MediaTypeNotSupported
        return
    media_type = value.partition(b";")[0].strip().lower()
    if media_type == b"application/atom+xml":
        raise AtomFormatNotSupported
    if media_type != b"application/json":
        raise MediaTypeNotSupported
    if version < FIRST_JSON_VERSION:
        raise JsonFormatNotSupported


def read_version(value: bytes | None) -> str:
    """The value of x-ms-version; requests without one are served as the newest version."""
    return NEWEST_VERSION if value is None else _read_version(value)


@lru_cache(maxsize=256)
def _read_version(value: bytes) -> str:
    text = value.decode("latin-1").strip()
    # fromisoformat also reads 20190202 and 2019-W05-6
    if len(text) == 10 and text[4] == text[7] == "-" and text.replace("-", "").isdecimal():
        try:
            date.fromisoformat(text)
        except ValueError:
            pass
        else:
            if text >= OLDEST_VERSION:
                return text
    raise InvalidHeaderValue(HeaderName="x-ms-version", HeaderValue=text)


def read_preference(value: bytes | None, version: str) -> Preference:
    """The value of Prefer; preferences that are none of ours are ignored."""
    if value is not None and version >= FIRST_JSON_VERSION:
        for preference in value.lower().split(b","):
            known = _PREFERENCES.get(preference.partition(b";")[0].strip())
            if known is not None:
                return known
    return Preference.ABSENT


def effective_method(method: str, values: Sequence[bytes]) -> str:
    """The method a request means, given the values of all its X-HTTP-Method headers."""
    if not values:
        return method
    if len(values) > 1:
        raise XMethodIncorrectCount
    if method != "POST":
        raise XMethodNotUsingPost
    tunnelled = values[0].decode("latin-1").strip().upper()
    if tunnelled not in _TUNNELLED:
        raise XMethodIncorrectValue
    return tunnelled


def _wanted(format_option: str | None, accept: bytes | None) -> Level | _Other:
    if format_option:
        return _short_or_media_type(format_option) if len(format_option) <= _CACHED else _Other.UNKNOWN
    if accept is None:
        return _Other.ANYTHING
    return _best(accept) if len(accept) <= _CACHED else _best.__wrapped__(accept)


@lru_cache(maxsize=256)
def _short_or_media_type(option: str) -> Level | _Other:
    match option.strip().lower():
        case "json":
            return Level.MINIMAL
        case "atom":
            return _Other.ATOM
        case media_type:
            return _best(media_type.encode("utf-8", "replace"))


@lru_cache(maxsize=256)
def _best(accept: bytes) -> Level | _Other:
    """The most preferred format that is offered; else what kind of refusal the client understands."""
    ranges = sorted(_ranges(accept), key=lambda range_: -range_[0])  # stable: of equals, the first
    if not ranges:
        return _Other.ANYTHING
    refused = {kind for quality, kind in ranges if not quality}
    accepted = [(quality, kind) for quality, kind in ranges if kind not in refused]
    for quality, kind in accepted:
        if isinstance(kind, Level):
            return kind
        if kind is _Other.ANYTHING and Level.MINIMAL not in refused:
            # what is named goes before what is only covered by a wildcard of the same quality
            named = (level for q, level in accepted if q == quality and isinstance(level, Level))
            return next(named, _Other.ANYTHING)
    return _Other.ATOM if any(kind is _Other.ATOM for _, kind in accepted) else _Other.UNKNOWN


def _ranges(accept: bytes) -> Iterator[tuple[float, Level | _Other]]:
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


def _kind(media_type: bytes, options: dict[bytes, bytes]) -> Level | _Other:
    match media_type:
        case b"application/json":
            return _LEVELS.get(options.get(b"odata", b"minimalmetadata"), _Other.UNKNOWN)
        case b"*/*" | b"application/*":
            return _Other.ANYTHING
        case b"application/atom+xml" | b"application/xml":
            return _Other.ATOM
        case _:
            return _Other.UNKNOWN


_LEVELS: Final[dict[bytes, Level]] = {level.value: level for level in Level}
_PREFERENCES: Final = {preference.value: preference for preference in Preference}
_ERROR_FORMATS: Final = {
    Level.NONE: ErrorFormat.JSON_NONE,
    Level.MINIMAL: ErrorFormat.JSON_MINIMAL,
    Level.FULL: ErrorFormat.JSON_FULL,
}
