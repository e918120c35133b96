"""Error bodies in JSON or one of two XML forms, and the choice between them.

https://learn.microsoft.com/rest/api/storageservices/status-and-error-codes2
"""

import json
import re
from collections.abc import Mapping
from enum import Enum, auto
from functools import lru_cache
from http import HTTPStatus
from time import time_ns
from typing import Final, NamedTuple

from storage.domain.errors import RequestBodyTooLarge, StorageError
from storage.domain.values.edm import TICKS_PER_SECOND, second_text
from storage.domain.values.xml import write_text
from storage.protocol.accept import Format, MediaRange, is_json, read_best
from storage.protocol.negotiation import FIRST_WITHOUT_ATOM, NEWEST_VERSION

HEADERS: Final = ("Allow", "WWW-Authenticate")  # details that are sent as headers, not in the body


class ErrorOrigin(Enum):
    """Stage that refuses a request, on which the format of the error depends."""

    CONNECTION = auto()  # the client sent something other than an HTTP request
    FRONT_END = auto()  # it is one, and names no resource or no version
    AUTHORIZATION = auto()
    ODATA = auto()
    XML_OPERATION = auto()  # ?comp=acl, ?restype=service
    BATCH_PART = auto()


class ErrorFormat(Enum):
    """Format of an error; the value is the Content-Type."""

    JSON = b"application/json"
    JSON_NONE = Format.JSON_NONE.content_type
    JSON_MINIMAL = Format.JSON_MINIMAL.content_type
    JSON_FULL = Format.JSON_FULL.content_type
    XML = b"application/xml;charset=utf-8"  # <error>
    PREFIXED_XML = b"application/xml"  # <m:error>


_DECLARATION: Final = '<?xml version="1.0" encoding="utf-8"?>'
_NAMESPACE: Final = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"
_NO_XML_CHARACTER: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class ErrorAnswer(NamedTuple):
    status: int
    format: ErrorFormat
    body: bytes

    @property
    def content_type(self) -> bytes:
        return self.format.value


def write_error(
    error: StorageError,
    origin: ErrorOrigin,
    request_id: str,
    *,
    format_option: str | None = None,
    accept: bytes | None = None,
    version: str = NEWEST_VERSION,
    index: int | None = None,
    now: int | None = None,
) -> ErrorAnswer:
    """Serialize an error in the format that its origin and the client's formats require."""
    form = _error_format(origin, format_option, accept, version)
    prefix = "" if index is None else f"{index}:"
    time = _write_time(time_ns() // 100 if now is None else now)
    message = f"{prefix}{error.text}\nRequestId:{request_id}\nTime:{time}"
    match form:
        case ErrorFormat.XML:
            body = _write_xml(error, message)
        case ErrorFormat.PREFIXED_XML:
            body = _write_prefixed_xml(error, message)
        case _:
            body = _write_json(error, message)
    return ErrorAnswer(error.status, form, body)


def _error_format(
    origin: ErrorOrigin, format_option: str | None, accept: bytes | None, version: str
) -> ErrorFormat:
    if origin is ErrorOrigin.CONNECTION or origin is ErrorOrigin.XML_OPERATION:
        return ErrorFormat.PREFIXED_XML
    accepted = read_best(format_option, accept)
    if origin is ErrorOrigin.AUTHORIZATION:
        return ErrorFormat.JSON if is_json(accepted) else ErrorFormat.PREFIXED_XML
    if origin is ErrorOrigin.BATCH_PART and accepted is MediaRange.ANYTHING and version >= FIRST_WITHOUT_ATOM:
        return ErrorFormat.JSON_MINIMAL
    return _ODATA_FORMATS.get(accepted, ErrorFormat.XML)


_ODATA_FORMATS: Final[Mapping[Format | MediaRange, ErrorFormat]] = {
    Format.JSON_NONE: ErrorFormat.JSON_NONE,
    Format.JSON_MINIMAL: ErrorFormat.JSON_MINIMAL,
    Format.JSON_FULL: ErrorFormat.JSON_FULL,
}


@lru_cache
def reason_phrase(status: int) -> bytes:
    """Return the reason phrase of a status, as used in batch responses."""
    try:
        return HTTPStatus(status).phrase.encode()
    except ValueError:
        return b"Unknown"


def error_reason(error: StorageError, origin: ErrorOrigin) -> bytes | None:
    """Return the reason phrase of an error; None for the default of its status."""
    # the test suite of azure-storage for Java reads a message of the phrase for a body that is too large
    has_sentence = origin in _WITH_SENTENCE or isinstance(error, RequestBodyTooLarge)
    return error.text.encode() if has_sentence and _SENTENCE.fullmatch(error.text) else None


_WITH_SENTENCE: Final = (ErrorOrigin.FRONT_END, ErrorOrigin.AUTHORIZATION, ErrorOrigin.XML_OPERATION)
_SENTENCE: Final = re.compile("[ -~]{1,200}")  # a message may repeat what a client sent


def _write_json(error: StorageError, message: str) -> bytes:
    # no further members: the Python SDK would show the whole object as the message
    content = {"odata.error": {"code": error.code, "message": {"lang": "en-US", "value": message}}}
    return json.dumps(content, separators=(",", ":")).encode()


def _write_xml(error: StorageError, message: str) -> bytes:
    details = "".join(f"<{name}>{_escape(value)}</{name}>" for name, value in _details(error))
    return (
        f'{_DECLARATION}<error xmlns="{_NAMESPACE}"><code>{error.code}</code>'
        f'<message xml:lang="en-US">{_escape(message)}</message>{details}</error>'
    ).encode()


def _write_prefixed_xml(error: StorageError, message: str) -> bytes:
    details = "".join(f"<m:{name}>{_escape(value)}</m:{name}>" for name, value in _details(error))
    return (
        f'{_DECLARATION}<m:error xmlns:m="{_NAMESPACE}"><m:code>{error.code}</m:code>'
        f'<m:message xml:lang="en-US">{_escape(message)}</m:message>{details}</m:error>'
    ).encode()


def _details(error: StorageError) -> list[tuple[str, str]]:
    return [(name, value) for name, value in error.details.items() if name not in HEADERS]


def _escape(text: str) -> str:
    return write_text(_NO_XML_CHARACTER.sub("\N{REPLACEMENT CHARACTER}", text))


def _write_time(ticks: int) -> str:
    """Format a time with all seven fraction digits, unlike those of entities."""
    seconds, fraction = divmod(ticks, TICKS_PER_SECOND)
    return f"{second_text(seconds)}.{fraction:07}Z"
