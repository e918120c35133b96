"""What a request is written in and asks to be answered in: format, version, preference.

https://learn.microsoft.com/rest/api/storageservices/payload-format-for-table-service-operations
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from enum import Enum, auto
from functools import lru_cache
from typing import Final

from storage.domain.errors import (
    AtomFormatNotSupported,
    InvalidHeaderValue,
    InvalidQueryParameterValue,
    JsonFormatNotSupported,
    MediaTypeNotSupported,
    XMethodIncorrectCount,
    XMethodIncorrectValue,
    XMethodNotUsingPost,
)

OLDEST_VERSION: Final = "2009-04-14"
NEWEST_VERSION: Final = "2026-06-06"
FIRST_WITH_UPSERT: Final = "2011-08-18"  # and with $select
FIRST_WITH_JSON: Final = "2013-08-15"  # and with Prefer
FIRST_WITHOUT_ATOM: Final = "2015-12-11"

_CACHED: Final = 512  # longer headers are read again each time: a cache must not be a way to fill the memory
_READ: Final = 2048  # bytes of an Accept; nobody has that much to say but who wants to keep us busy
_TUNNELLED: Final = frozenset({"MERGE", "PATCH", "PUT", "DELETE"})
_BEFORE_BODY: Final = b"\xef\xbb\xbf \t\r\n"


class Format(Enum):
    """What tables and entities are written in: JSON with so much control information, or Atom."""

    JSON_NONE = b"application/json;odata=nometadata;streaming=true;charset=utf-8"
    JSON_MINIMAL = b"application/json;odata=minimalmetadata;streaming=true;charset=utf-8"
    JSON_FULL = b"application/json;odata=fullmetadata;streaming=true;charset=utf-8"
    # the service adds ;type=feed or ;type=entry at times, and so no client relies on it
    ATOM = b"application/atom+xml;charset=utf-8"

    def __init__(self, content_type: bytes) -> None:
        self.content_type = content_type
        self.annotations = b"nometadata" not in content_type  # whether it tells the EDM types


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
    """What may be accepted besides a format."""

    ANYTHING = auto()
    UNKNOWN = auto()


def response_format(format_option: str | None, accept: bytes | None, version: str) -> Format:
    """``$format`` goes before Accept; whoever asks for nothing in particular gets what is usual in the version."""
    if len(accept or b"") > _CACHED or (format_option and len(format_option) > _CACHED):
        return _response_format.__wrapped__(format_option, accept, version)
    return _response_format(format_option, accept, version)


@lru_cache(maxsize=256)
def _response_format(format_option: str | None, accept: bytes | None, version: str) -> Format:
    if version < FIRST_WITHOUT_ATOM:
        return _old_format(_ranked(_sent(format_option, accept)), version)
    wanted = _wanted(format_option, accept)
    if wanted is _Other.ANYTHING:
        return Format.JSON_MINIMAL
    if wanted is _Other.UNKNOWN:
        raise MediaTypeNotSupported
    if wanted is Format.ATOM:
        raise AtomFormatNotSupported
    return wanted


def _old_format(ranked: Sequence[Format | _Other], version: str) -> Format:
    """Atom is the default, and before 2013-08-15 there is nothing else."""
    for wanted in ranked:
        if wanted in (_Other.ANYTHING, Format.ATOM):
            return Format.ATOM
        if isinstance(wanted, Format) and version >= FIRST_WITH_JSON:
            return wanted
    raise JsonFormatNotSupported if any(map(_is_json, ranked)) else MediaTypeNotSupported


def error_format(
    source: Source, format_option: str | None, accept: bytes | None, version: str = NEWEST_VERSION
) -> ErrorFormat:
    if source is Source.XML:
        return ErrorFormat.PREFIXED_XML
    wanted = _wanted(format_option, accept)
    if source is Source.FRONT_END:
        return ErrorFormat.JSON if _is_json(wanted) else ErrorFormat.PREFIXED_XML
    if source is Source.PART and wanted is _Other.ANYTHING and version >= FIRST_WITHOUT_ATOM:
        return ErrorFormat.JSON_MINIMAL
    return _ERROR_FORMATS.get(wanted, ErrorFormat.XML)


def request_format(content_type: bytes | None, body: bytes, version: str) -> Format:
    """What a body is by its Content-Type or, where there is none, by its looks; one level stands for all of JSON."""
    if content_type is None:
        found = _look_of(body)
    else:
        found = (_format_of if len(content_type) <= _CACHED else _format_of.__wrapped__)(content_type)
    if found is Format.ATOM:
        if version >= FIRST_WITHOUT_ATOM:
            raise AtomFormatNotSupported
    elif version < FIRST_WITH_JSON:
        raise JsonFormatNotSupported
    return found


def _look_of(body: bytes) -> Format:
    start = body.lstrip(_BEFORE_BODY)[:1]
    if start in (b"", b"{"):
        return Format.JSON_MINIMAL
    if start == b"<":
        return Format.ATOM
    raise MediaTypeNotSupported


@lru_cache(maxsize=256)
def _format_of(content_type: bytes) -> Format:
    match content_type.partition(b";")[0].strip().lower():
        case b"application/json":
            return Format.JSON_MINIMAL
        case b"application/atom+xml":
            return Format.ATOM
    raise MediaTypeNotSupported


def read_version(headers: Mapping[bytes, bytes], options: Mapping[str, str]) -> str:
    """The version to serve a request as.

    A shared access signature brings its own, which its bearer may override; api-version goes before x-ms-version.
    Who names none gets the oldest, unless what else he says is not older than JSON, or needs neither JSON nor Atom
    [inferred].
    """
    sent = headers.get(b"x-ms-version")
    if "sv" in options:
        for name in ("api-version", "sv") if sent is None else ("api-version",):
            if options.get(name):
                return _read_version_option(name, options[name])
    if sent is not None:
        return _read_version(sent)
    if "comp" in options or "restype" in options or _speaks_json(headers, options):
        return NEWEST_VERSION
    return OLDEST_VERSION


def _read_version_option(name: str, value: str) -> str:
    try:
        return _read_version(value.encode())
    except (InvalidHeaderValue, UnicodeEncodeError):
        raise InvalidQueryParameterValue(QueryParameterName=name, QueryParameterValue=value) from None


def _speaks_json(headers: Mapping[bytes, bytes], options: Mapping[str, str]) -> bool:
    for name in (b"maxdataserviceversion", b"dataserviceversion"):
        if headers.get(name, b"").strip().startswith(b"3"):
            return True
    content_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    return content_type == b"application/json" or _is_json(
        _wanted(options.get("$format"), headers.get(b"accept"))
    )


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


def heeded_options(options: Mapping[str, str], version: str) -> Mapping[str, str]:
    """Without those that the version does not know yet."""
    if version >= FIRST_WITH_UPSERT:
        return options
    return {name: value for name, value in options.items() if name not in ("$select", "raw:$select")}


def read_preference(value: bytes | None, version: str) -> Preference:
    """The value of Prefer; preferences that are none of ours are ignored."""
    if value is not None and version >= FIRST_WITH_JSON:
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


def _wanted(format_option: str | None, accept: bytes | None) -> Format | _Other:
    sent = _sent(format_option, accept)
    return _best(sent) if len(sent) <= _CACHED else _best.__wrapped__(sent)


def _sent(format_option: str | None, accept: bytes | None) -> bytes:
    if format_option:
        return _media_type(format_option) if len(format_option) <= _CACHED else b"unreadable"
    return accept or b"*/*"


@lru_cache(maxsize=256)
def _media_type(format_option: str) -> bytes:
    match format_option.strip().lower():
        case "json" | "atom" as short:
            return b"application/json" if short == "json" else b"application/atom+xml"
        case media_type:
            return media_type.encode("utf-8", "replace")


@lru_cache(maxsize=256)
def _best(accept: bytes) -> Format | _Other:
    """What is preferred of all but Atom; Atom and what is unknown tell which refusal the client understands."""
    ranked = _ranked(accept)
    offered = (wanted for wanted in ranked if wanted not in (Format.ATOM, _Other.UNKNOWN))
    return next(offered, Format.ATOM if Format.ATOM in ranked else _Other.UNKNOWN)


def _ranked(accept: bytes) -> list[Format | _Other]:
    """What is accepted, the best first; what is named goes before what a wildcard of the same quality covers."""
    ranges = sorted(_ranges(accept[:_READ]), key=lambda range_: (-range_[0], range_[1] is _Other.ANYTHING))
    refused = {kind for quality, kind in ranges if not quality}
    accepted = [kind for _, kind in ranges if kind not in refused]
    if not ranges:
        return [_Other.ANYTHING]
    # a wildcard does not cover what is refused by name
    for refused_format, other in ((Format.JSON_MINIMAL, Format.ATOM), (Format.ATOM, Format.JSON_MINIMAL)):
        if refused_format in refused:
            accepted = [other if kind is _Other.ANYTHING else kind for kind in accepted]
    return [kind for kind in accepted if kind not in refused]


def _ranges(accept: bytes) -> Iterator[tuple[float, Format | _Other]]:
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


def _kind(media_type: bytes, options: dict[bytes, bytes]) -> Format | _Other:
    match media_type:
        case b"application/json":
            return _JSON.get(options.get(b"odata", b"minimalmetadata"), _Other.UNKNOWN)
        case b"*/*" | b"application/*":
            return _Other.ANYTHING
        case b"application/atom+xml" | b"application/xml":
            return Format.ATOM
        case _:
            return _Other.UNKNOWN


def _is_json(wanted: Format | _Other) -> bool:
    return isinstance(wanted, Format) and wanted is not Format.ATOM


_JSON: Final = {
    b"nometadata": Format.JSON_NONE,
    b"minimalmetadata": Format.JSON_MINIMAL,
    b"fullmetadata": Format.JSON_FULL,
}
_PREFERENCES: Final = {preference.value: preference for preference in Preference}
_ERROR_FORMATS: Final[Mapping[Format | _Other, ErrorFormat]] = {
    Format.JSON_NONE: ErrorFormat.JSON_NONE,
    Format.JSON_MINIMAL: ErrorFormat.JSON_MINIMAL,
    Format.JSON_FULL: ErrorFormat.JSON_FULL,
}
