"""The entry of a request in the files of Storage Analytics, made from the headers of the request and of the answer.

As in the service's own files, addresses and filters are as they were sent, with keys of entities. What is no valid
address, option or header is left out: it may be a secret in a wrong place.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import unquote_to_bytes

from storage.domain.errors import StorageError
from storage.domain.filters.parser import parse
from storage.domain.requests.cleaning import (
    LEFT_OUT,
    clean_date,
    clean_etag,
    clean_md5,
    clean_option,
    clean_option_name,
    clean_sas_value,
    clean_words,
    holds_secret,
)
from storage.domain.requests.kept_addresses import UNKNOWN, keep_address
from storage.domain.requests.observed import ObservedRequest
from storage.domain.requests.request_log import LogEntry
from storage.domain.requests.routes import resolve_address
from storage.domain.sas import SAS_NAMES
from storage.protocol.http_request import Headers, RequestHead

_CONDITIONS: Final = {
    b"if-match": clean_etag,
    b"if-none-match": clean_etag,
    b"if-modified-since": clean_date,
    b"if-unmodified-since": clean_date,
}
_ORIGIN: Final = re.compile(r"https?://[A-Za-z0-9.-]{1,255}(?::[0-9]{1,5})?(?=/|$)")
_URL_LIMIT: Final = 4096  # characters; what is longer is cut
_LIMIT: Final = 1024
_REDACTED: Final = "XXXXX"  # as the service writes a signature
_TOKEN: Final = re.compile(r"1![0-9]{1,5}![A-Za-z0-9._-]*")  # of a continuation
_SAS_NAMES: Final = {name.lower(): name for name in SAS_NAMES}
_RANGE: Final = frozenset({"spk", "srk", "epk", "erk"})  # keys of entities


def log_entry(
    head: RequestHead,
    observed: ObservedRequest,
    version: str,
    answered: Headers,
    suffixes: Sequence[str] = (),
) -> LogEntry:
    """``answered`` are the headers of the answer, ``suffixes`` those of hosts that name an account."""
    headers = head.headers

    def sent(name: bytes) -> str:
        return headers.get(name, b"")[:_LIMIT].decode("latin-1")

    path = _keep_path(head, observed, suffixes)
    query = "&".join(_keep_options(head.query, observed))
    conditions = [
        f"{name.decode().title()}={clean(sent(name))}"
        for name, clean in _CONDITIONS.items()
        if name in headers
    ]
    return LogEntry(
        url=f"{head.scheme}://{sent(b'host')}{path}{'?' if query else ''}{query}"[:_URL_LIMIT],
        key=_key(observed.account, _decoded(path))[:_URL_LIMIT],
        request_id=observed.request_id,
        version=version,
        request_header_size=len(head.method) + len(head.path) + len(head.query) + 12 + _size(head.fields),
        response_header_size=_size(answered),
        content_length=observed.ingress,
        content_md5=clean_md5(sent(b"content-md5")),
        etag=next((value.decode("latin-1") for name, value in answered if name == b"ETag"), ""),
        conditions=";".join(conditions),
        referrer=_keep_origin(sent(b"referer")),
        client_request_id=clean_words(sent(b"x-ms-client-request-id")),
    )


def _keep_path(head: RequestHead, observed: ObservedRequest, suffixes: Sequence[str]) -> str:
    """Return the path as it was sent, if it names a resource and its keys hold no secret."""
    try:
        address = resolve_address(
            head.path,
            head.headers.get(b"host"),
            head.scheme,
            suffixes,
            head.headers.get(b"authorization"),
            head.query,
        )
    except StorageError:
        return UNKNOWN.text()
    kept = keep_address(address, head.method, observed.kind)
    path = head.path[:_URL_LIMIT].decode("latin-1")
    if holds_secret(path):
        return kept.text().replace(LEFT_OUT, _REDACTED)
    is_whole = kept.is_known and kept.fault is None and _decoded(path).isprintable()
    return path if is_whole else kept.text()


def _keep_options(query: bytes, observed: ObservedRequest) -> Iterator[str]:
    """Yield the options as they were sent, those that are understood; what is not known is one that is left out."""
    unknown = ""
    for part in query[:_URL_LIMIT].split(b"&") if query else ():
        raw_name, equals, raw_value = part.partition(b"=")
        name, value = (_decoded(it.replace(b"+", b" ").decode("latin-1")) for it in (raw_name, raw_value))
        if name.lower() in _SAS_NAMES:
            kept = _keep_sas_value(_SAS_NAMES[name.lower()], value)
        elif clean_option_name(name) == name:
            kept = _keep_value(name, value, observed)
        else:
            unknown = _REDACTED if unknown == _REDACTED or holds_secret(part.decode("latin-1")) else LEFT_OUT
            continue
        text = raw_value.decode("latin-1") if kept == value else kept
        yield f"{name}{equals.decode()}{text}"
    if unknown:
        yield unknown


def _keep_sas_value(name: str, value: str) -> str:
    if name == "sig":
        return _REDACTED
    if name in _RANGE:
        return LEFT_OUT if holds_secret(value) else value
    return clean_sas_value(name, value)


def _keep_value(name: str, value: str, observed: ObservedRequest) -> str:
    if name.lower().startswith("next"):
        return value if _TOKEN.fullmatch(value) else LEFT_OUT
    if name != "$filter":
        return clean_option(name, value)
    return value if _is_filter(value, observed) and not holds_secret(value) else clean_option(name, value)


def _is_filter(text: str, observed: ObservedRequest) -> bool:
    if observed.query is not None:  # it has been read
        return True
    try:
        parse(text)
    except StorageError:
        return False
    return True


def _keep_origin(referrer: str) -> str:
    """Return the site that a request came from, without what follows in the address of its page."""
    found = _ORIGIN.match(referrer)
    if found is None:
        return LEFT_OUT if referrer else ""
    return referrer if referrer in (found[0], f"{found[0]}/") else f"{found[0]}/{LEFT_OUT}"


def _decoded(path: str) -> str:
    return unquote_to_bytes(path).decode(errors="replace")


def _key(account: str, path: str) -> str:
    """Prefix the account, as the service's logs do, also when the host names it."""
    return path if path.startswith(f"/{account}") else f"/{account}{path}"


def _size(headers: Sequence[tuple[bytes, bytes]]) -> int:
    return sum(len(name) + len(value) + 4 for name, value in headers)
