"""Negotiation of formats, version, preference and method.

https://learn.microsoft.com/rest/api/storageservices/payload-format-for-table-service-operations
"""

from collections.abc import Mapping, Sequence
from datetime import date
from enum import Enum
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
from storage.protocol.accept import CACHED, Format, MediaRange, is_json, read_best, read_ranked

OLDEST_VERSION: Final = "2009-04-14"
NEWEST_VERSION: Final = "2026-06-06"
FIRST_WITH_UPSERT: Final = "2011-08-18"  # and with $select
FIRST_WITH_JSON: Final = "2013-08-15"  # and with Prefer
FIRST_WITHOUT_ATOM: Final = "2015-12-11"

_TUNNELLED: Final = frozenset({"MERGE", "PATCH", "PUT", "DELETE"})
_BEFORE_BODY: Final = b"\xef\xbb\xbf \t\r\n"


class Preference(Enum):
    """Preference whether an insert returns the entity; ``headers`` confirm it, also in errors."""

    ABSENT = None
    CONTENT = b"return-content"
    NO_CONTENT = b"return-no-content"

    def __init__(self, applied: bytes | None) -> None:
        self.headers = [] if applied is None else [(b"Preference-Applied", applied)]


def response_format(format_option: str | None, accept: bytes | None, version: str) -> Format:
    """Return the response format: ``$format`` before Accept, then the default of the version."""
    if len(accept or b"") > CACHED or (format_option and len(format_option) > CACHED):
        return _response_format.__wrapped__(format_option, accept, version)
    return _response_format(format_option, accept, version)


@lru_cache(maxsize=256)
def _response_format(format_option: str | None, accept: bytes | None, version: str) -> Format:
    if version < FIRST_WITHOUT_ATOM:
        return _old_format(read_ranked(format_option, accept), version)
    best = read_best(format_option, accept)
    if best is MediaRange.ANYTHING:
        return Format.JSON_MINIMAL
    if best is MediaRange.UNKNOWN:
        raise MediaTypeNotSupported
    if best is Format.ATOM:
        raise AtomFormatNotSupported
    return best


def _old_format(ranked: Sequence[Format | MediaRange], version: str) -> Format:
    """Return the format for versions before 2015-12-11; Atom is the default, and the only one before 2013-08-15."""
    for media_range in ranked:
        if media_range in (MediaRange.ANYTHING, Format.ATOM):
            return Format.ATOM
        if isinstance(media_range, Format) and version >= FIRST_WITH_JSON:
            return media_range
    raise JsonFormatNotSupported if any(map(is_json, ranked)) else MediaTypeNotSupported


def request_format(content_type: bytes | None, body: bytes, version: str) -> Format:
    """Return the format of a body by its Content-Type, or else its first character."""
    if content_type is None:
        request_form = _sniff_format(body)
    else:
        request_form = (_format_of if len(content_type) <= CACHED else _format_of.__wrapped__)(content_type)
    if request_form is Format.ATOM:
        if version >= FIRST_WITHOUT_ATOM:
            raise AtomFormatNotSupported
    elif version < FIRST_WITH_JSON:
        raise JsonFormatNotSupported
    return request_form


def _sniff_format(body: bytes) -> Format:
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
    """Return the protocol version of a request; raises an error for an unsupported one."""
    sent = headers.get(b"x-ms-version")
    if "sv" in options:
        for name in ("api-version", "sv") if sent is None else ("api-version",):
            if options.get(name):
                return _read_version_option(name, options[name])
    if sent is not None:
        return _read_version(sent)
    if "comp" in options or "restype" in options or _uses_json(headers, options):
        return NEWEST_VERSION
    return OLDEST_VERSION


def _read_version_option(name: str, value: str) -> str:
    try:
        return _read_version(value.encode())
    except (InvalidHeaderValue, UnicodeEncodeError):
        raise InvalidQueryParameterValue(QueryParameterName=name, QueryParameterValue=value) from None


def _uses_json(headers: Mapping[bytes, bytes], options: Mapping[str, str]) -> bool:
    for name in (b"maxdataserviceversion", b"dataserviceversion"):
        if headers.get(name, b"").strip().startswith(b"3"):
            return True
    content_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    return content_type == b"application/json" or is_json(
        read_best(options.get("$format"), headers.get(b"accept"))
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


def supported_options(options: Mapping[str, str], version: str) -> Mapping[str, str]:
    """Return the options supported in a version."""
    if version >= FIRST_WITH_UPSERT:
        return options
    return {name: value for name, value in options.items() if name not in ("$select", "raw:$select")}


def read_preference(value: bytes | None, version: str) -> Preference:
    """Parse the Prefer header, ignoring unknown preferences."""
    if value is not None and version >= FIRST_WITH_JSON:
        for preference in value.lower().split(b","):
            known = _PREFERENCES.get(preference.partition(b";")[0].strip())
            if known is not None:
                return known
    return Preference.ABSENT


def effective_method(method: str, values: Sequence[bytes]) -> str:
    """Return the effective method, given all X-HTTP-Method headers."""
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


_PREFERENCES: Final = {preference.value: preference for preference in Preference}
