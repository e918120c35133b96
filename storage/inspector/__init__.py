"""Inspector: explains why a token, connection string or request is refused."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import SplitResult

from storage.domain.errors import StorageError
from storage.domain.requests.routes import resolve_address
from storage.inspector import pasted_text
from storage.inspector.connections import inspect_connection
from storage.inspector.facts import Facts, IncomingRequest, Key, ManagedAccount
from storage.inspector.mistakes import Mistake
from storage.inspector.pasted_text import PastedConnection, PastedRequest, PastedToken, UnreadableText
from storage.inspector.reports import Finding, Report, ReportKind, finding
from storage.inspector.requests import inspect_request
from storage.inspector.tokens import inspect_token

__all__ = [
    "Facts",
    "Finding",
    "Key",
    "ManagedAccount",
    "Mistake",
    "Report",
    "ReportKind",
    "UnreadableText",
    "inspect",
]

# endpoints of Azure
_ELSEWHERE: Final = (
    "table.core.windows.net",
    "table.core.chinacloudapi.cn",
    "table.core.usgovcloudapi.net",
    "table.cosmos.azure.com",
)


def inspect(text: str, facts: Facts, account: str = "") -> Report | UnreadableText:
    """Inspect pasted text; ``account`` is the account for a token without one, if known."""
    match pasted_text.recognize_text(text):
        case PastedToken(query, url):
            sent = _sent("GET", url, {}, facts, is_a_request=False) if url is not None else None
            report = inspect_token(query, sent, facts, account)
            return report if url is None else _with(report, *_places(url))
        case PastedRequest() as request:
            return _request(request, facts)
        case PastedConnection(connection):
            return inspect_connection(connection, facts)
        case unreadable:
            return unreadable


def _request(request: PastedRequest, facts: Facts) -> Report:
    headers: dict[bytes, bytes] = {}
    for name, value in request.headers:
        key, raw = name.lower().encode("latin-1", "replace"), value.encode()
        headers[key] = headers[key] + b", " + raw if key in headers else raw
    problems = [*request.problems, *_places(request.url)]
    if not request.url.netloc:
        problems.append(finding(Mistake.NO_HOST))
    sent = _sent(request.method, request.url, headers, facts)
    if sent is None:
        return Report(
            ReportKind.REQUEST,
            findings=[*problems, finding(Mistake.ENDPOINT_MALFORMED, endpoint=request.url.netloc)],
        )
    return _with(inspect_request(sent, facts), *problems)


def _sent(
    method: str, url: SplitResult, headers: Mapping[bytes, bytes], facts: Facts, *, is_a_request: bool = True
) -> IncomingRequest | None:
    scheme, path = url.scheme or facts.scheme, url.path.encode()
    host = (url.netloc or facts.host).encode()
    try:
        where = resolve_address(
            path,
            host.rpartition(b"@")[2],
            scheme,
            (*facts.suffixes, *_ELSEWHERE),
            headers.get(b"authorization"),
            url.query.encode(),
        )
    except StorageError:
        return None
    return IncomingRequest(
        where, method, path, url.query.encode(), headers, scheme, facts.client, is_a_request
    )


def _places(url: SplitResult) -> list[Finding]:
    host = url.netloc.partition(":")[0].lower()
    is_elsewhere = any(host.endswith(f".{suffix}") for suffix in _ELSEWHERE)
    return [finding(Mistake.ELSEWHERE, host=host)] if is_elsewhere else []


def _with(report: Report, *more: Finding) -> Report:
    return replace(report, findings=[*more, *report.findings])
