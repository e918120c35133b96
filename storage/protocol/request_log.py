"""The request log's entry for a request, made from the headers of the request and of the answer."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote_to_bytes

from storage.domain.requests.cleaning import redact_signatures
from storage.domain.requests.observed import ObservedRequest
from storage.domain.requests.request_log import LogEntry
from storage.protocol.http_request import Headers, RequestHead

_CONDITIONS: Final = (b"if-match", b"if-none-match", b"if-modified-since", b"if-unmodified-since")
_URL_LIMIT: Final = 4096  # characters; what is longer is cut
_LIMIT: Final = 1024


def log_entry(
    head: RequestHead,
    observed: ObservedRequest,
    version: str,
    answered: Headers,
) -> LogEntry:
    """``answered`` are the headers of the answer."""
    headers = head.headers

    def sent(name: bytes) -> str:
        return headers.get(name, b"")[:_LIMIT].decode("latin-1")

    path = head.path.decode("latin-1")
    query = head.query.decode("latin-1")
    conditions = [f"{name.decode().title()}={sent(name)}" for name in _CONDITIONS if name in headers]
    return LogEntry(
        url=_redacted(f"{head.scheme}://{sent(b'host')}{path}{'?' if query else ''}{query}", _URL_LIMIT),
        key=_redacted(_key(observed.account, _decoded(path[:_URL_LIMIT])), _URL_LIMIT),
        request_id=observed.request_id,
        version=version,
        request_header_size=len(head.method) + len(path) + len(query) + 12 + _size(head.fields),
        response_header_size=_size(answered),
        content_length=observed.ingress,
        content_md5=sent(b"content-md5"),
        etag=next((value.decode("latin-1") for name, value in answered if name == b"ETag"), ""),
        conditions=";".join(conditions),
        referrer=_redacted(headers.get(b"referer", b"").decode("latin-1"), _LIMIT),
        client_request_id=sent(b"x-ms-client-request-id"),
    )


def _redacted(text: str, limit: int) -> str:
    """Truncate the text and replace the value of every signature, also of one that is cut off."""
    return redact_signatures(text[:limit])


def _decoded(path: str) -> str:
    return unquote_to_bytes(path).decode(errors="replace")


def _key(account: str, path: str) -> str:
    """Prefix the account, as the service's logs do, also when the host names it."""
    return path if path.startswith(f"/{account}") else f"/{account}{path}"


def _size(headers: Sequence[tuple[bytes, bytes]]) -> int:
    return sum(len(name) + len(value) + 4 for name, value in headers)
