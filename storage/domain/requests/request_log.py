"""The request log, in the format of the service's version 1.0.

https://learn.microsoft.com/rest/api/storageservices/storage-analytics-log-format
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from storage.domain.access.grants import DELETES, WRITES, Operation
from storage.domain.requests.analytics import Category, categorize, column_name
from storage.domain.requests.observed import Authentication, ObservedOperation, ObservedRequest
from storage.domain.service.service_properties import Logging

_AGENT_LIMIT: Final = 1024
_NAMED_ERRORS_SINCE: Final = "2017-04-17"  # versions from here on get the code of an error, not its category


@dataclass(frozen=True, slots=True)
class LogEntry:
    """The parts of a request that only the log needs; texts as they were sent, empty if absent.

    ``url`` is without the signature of a token; ``key`` the resource as `/account/table`; sizes in bytes.
    """

    url: str
    key: str
    request_id: str
    version: str = ""
    request_header_size: int = 0
    response_header_size: int = 0
    content_length: int = 0
    content_md5: str = ""
    etag: str = ""
    conditions: str = ""
    referrer: str = ""
    client_request_id: str = ""


def should_log(logging: Logging, operation: Operation | None) -> bool:
    """Return whether to log a request; one without an operation counts as a read."""
    if operation in DELETES:
        return logging.delete
    return logging.write if operation in WRITES else logging.read


def format_lines(observed: ObservedRequest, entry: LogEntry, started: datetime) -> list[str]:
    """Format the line of a request, followed by one for each operation of a change set."""
    whole = ObservedOperation(observed.operation, observed.status, observed.error, entry.key)
    return [
        _line(observed, entry, started, part, index) for index, part in enumerate((whole, *observed.parts))
    ]


def _line(
    observed: ObservedRequest, entry: LogEntry, started: datetime, part: ObservedOperation, index: int
) -> str:
    is_owner, address = observed.authentication is Authentication.KEY, observed.address
    return ";".join(
        (
            "1.0",
            started.strftime("%Y-%m-%dT%H:%M:%S.%f0Z"),
            part.operation or "Unknown",
            _status(observed.authentication, part, entry.version),
            str(part.status or ""),
            _milliseconds(observed.sent - observed.started),
            _milliseconds(observed.answered - observed.started),
            observed.authentication,
            observed.account if is_owner else "",
            observed.account,
            "table",
            _quoted(entry.url),
            _quoted(part.key),
            entry.request_id,
            str(index),
            _plain(f"{f'[{address}]' if ':' in address else address}:{observed.port}"),
            _plain(entry.version),
            str(entry.request_header_size),
            str(observed.ingress),
            str(entry.response_header_size),
            str(observed.egress),
            str(entry.content_length),
            _quoted(entry.content_md5),
            "",  # the MD5 that the server computed; this one computes none
            _quoted(entry.etag),
            "",  # tables have no Last-Modified
            _plain(entry.conditions),
            _quoted(observed.agent[:_AGENT_LIMIT].decode("latin-1")),
            _quoted(entry.referrer),
            _quoted(entry.client_request_id),
        )
    )


def _status(authentication: Authentication, part: ObservedOperation, version: str) -> str:
    found = categorize(part.status, part.error)
    if found is Category.CLIENT_OTHER and part.error and version >= _NAMED_ERRORS_SINCE:
        return part.error
    return column_name(found, authentication)


def _milliseconds(seconds: float) -> str:
    return str(max(round(1000 * seconds), 0))


def _plain(text: str) -> str:
    """Quote the text only if it needs quotes."""
    return _quoted(text) if _SPECIAL.search(text) else text


def _quoted(text: str) -> str:
    return f'"{_SPECIAL.sub(_escape, text)}"' if text else ""


def _escape(match: re.Match[str]) -> str:
    return _NAMED.get(match[0]) or f"&#{ord(match[0])};"


# a semicolon in quotes does not separate; line breaks of any kind would start a new line
_SPECIAL: Final = re.compile('["&<>;\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]')
_NAMED: Final = {'"': "&quot;", "&": "&amp;", "<": "&lt;", ">": "&gt;", ";": ";"}
