"""How the body of an error reads in JSON and in the two XML forms.

https://learn.microsoft.com/rest/api/storageservices/status-and-error-codes2
"""

import json
import re
from functools import lru_cache
from http import HTTPStatus
from typing import Final, NamedTuple

from storage.domain.errors import StorageError
from storage.domain.requests.statuses import status_of
from storage.domain.values.edm import TICKS_PER_SECOND, second_text
from storage.domain.values.xml import write_text
from storage.protocol.accept import Format
from storage.protocol.negotiation import ErrorFormat

HEADERS: Final = ("Allow", "WWW-Authenticate")  # details that are sent as such, not in the body

_CONTENT_TYPES: Final = {
    ErrorFormat.JSON: b"application/json",
    ErrorFormat.JSON_NONE: Format.JSON_NONE.content_type,
    ErrorFormat.JSON_MINIMAL: Format.JSON_MINIMAL.content_type,
    ErrorFormat.JSON_FULL: Format.JSON_FULL.content_type,
    ErrorFormat.XML: b"application/xml;charset=utf-8",
    ErrorFormat.PREFIXED_XML: b"application/xml",
}

_DECLARATION: Final = '<?xml version="1.0" encoding="utf-8"?>'
_NAMESPACE: Final = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"
_NO_XML_CHARACTER: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class ErrorAnswer(NamedTuple):
    status: int
    content_type: bytes
    body: bytes


def write_error(
    error: StorageError, form: ErrorFormat, request_id: str, now: int, index: int | None = None
) -> ErrorAnswer:
    """``now`` in ticks since 1970; ``index`` is the place of a failed operation in its change set."""
    prefix = "" if index is None else f"{index}:"
    message = f"{prefix}{error.text}\nRequestId:{request_id}\nTime:{_write_time(now)}"
    match form:
        case ErrorFormat.XML:
            body = _write_xml(error, message)
        case ErrorFormat.PREFIXED_XML:
            body = _write_prefixed_xml(error, message)
        case _:
            body = _write_json(error, message)
    return ErrorAnswer(status_of(error), _CONTENT_TYPES[form], body)


@lru_cache
def reason(status: int) -> bytes:
    """The reason phrase, which sub-responses of a batch must not lack."""
    try:
        return HTTPStatus(status).phrase.encode()
    except ValueError:
        return b"Unknown"


def _write_json(error: StorageError, message: str) -> bytes:
    # no further members: Python's SDK would show the whole object for a message
    content = {"odata.error": {"code": error.code, "message": {"lang": "en-US", "value": message}}}
    return json.dumps(content, separators=(",", ":")).encode()


def _write_xml(error: StorageError, message: str) -> bytes:
    details = "".join(f"<{name}>{_escape(value)}</{name}>" for name, value in _told(error))
    return (
        f'{_DECLARATION}<error xmlns="{_NAMESPACE}"><code>{error.code}</code>'
        f'<message xml:lang="en-US">{_escape(message)}</message>{details}</error>'
    ).encode()


def _write_prefixed_xml(error: StorageError, message: str) -> bytes:
    details = "".join(f"<m:{name}>{_escape(value)}</m:{name}>" for name, value in _told(error))
    return (
        f'{_DECLARATION}<m:error xmlns:m="{_NAMESPACE}"><m:code>{error.code}</m:code>'
        f'<m:message xml:lang="en-US">{_escape(message)}</m:message>{details}</m:error>'
    ).encode()


def _told(error: StorageError) -> list[tuple[str, str]]:
    return [(name, value) for name, value in error.details.items() if name not in HEADERS]


def _escape(text: str) -> str:
    return write_text(_NO_XML_CHARACTER.sub("\N{REPLACEMENT CHARACTER}", text))


def _write_time(ticks: int) -> str:
    """Seven digits, unlike the times of entities."""
    seconds, fraction = divmod(ticks, TICKS_PER_SECOND)
    return f"{second_text(seconds)}.{fraction:07}Z"
