"""Texts that a client may have signed by mistake for a request: the right rules with one of them broken."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from storage.domain.access.signature import Scheme, SignedRequest, string_to_sign
from storage.domain.requests.routes import SECONDARY
from storage.domain.values.names import DEVELOPMENT_ACCOUNT
from storage.inspector.facts import Facts
from storage.inspector.reports import Finding, Mistake, finding
from storage.inspector.search import Change

Way = tuple[Finding, "RequestDraft"]

_METHODS: Final = ("GET", "POST", "PUT", "MERGE", "PATCH", "DELETE", "HEAD")
_TYPES: Final = (
    b"",
    b"application/json",
    b"application/json;odata=nometadata",
    b"application/json; odata=nometadata",
    b"application/json;odata=minimalmetadata",
    b"application/json;charset=utf-8",
    b"application/json; charset=utf-8",
    b"application/atom+xml",
    b"application/atom+xml;charset=utf-8",
    b"application/xml",
    b"application/octet-stream",
    b"application/x-www-form-urlencoded",
    b"text/plain",
    b"text/plain;charset=utf-8",
)


@dataclass(frozen=True, slots=True)
class RequestDraft:
    """A request and how to write its text; ``origin`` precedes the path, ``resource`` replaces the right one."""

    request: SignedRequest
    scheme: Scheme
    origin: str = ""
    is_path_style: bool = True
    newline: bytes = b"\n"
    has_final_newline: bool = False
    is_as_of_blobs: bool = False
    resource: bytes | None = None


def write(draft: RequestDraft) -> bytes:
    request = draft.request
    text = _of_blobs(draft) if draft.is_as_of_blobs else string_to_sign(request, draft.scheme)
    if draft.resource is not None:
        text = text.rpartition(b"\n")[0] + b"\n" + draft.resource
    if draft.has_final_newline:
        text += b"\n"
    return text if draft.newline == b"\n" else text.replace(b"\n", draft.newline)


def changes(facts: Facts) -> list[Change[RequestDraft]]:
    return [
        _schemes,
        _dates,
        _types,
        _paths,
        _queries,
        partial(_accounts, facts=facts),
        _methods,
        _md5,
        _newlines,
    ]


def _schemes(draft: RequestDraft) -> Iterator[Way]:
    other = Scheme.SHARED_KEY if draft.scheme is Scheme.SHARED_KEY_LITE else Scheme.SHARED_KEY_LITE
    signed = other.value.decode()
    yield (
        finding(Mistake.OTHER_SCHEME, signed=signed, sent=draft.scheme.value.decode()),
        replace(draft, scheme=other),
    )
    yield finding(Mistake.BLOB_LAYOUT), replace(draft, is_as_of_blobs=True)


def _of_blobs(draft: RequestDraft) -> bytes:
    """Write the text by the rules of blobs and queues."""
    request, headers = draft.request, draft.request.headers
    names = _LITE if draft.scheme is Scheme.SHARED_KEY_LITE else _FULL
    values = {name: headers.get(name.encode(), b"") for name in names}
    if b"x-ms-date" in headers:
        values["date"] = b""
    if values.get("content-length") == b"0":
        values["content-length"] = b""
    own = b"".join(
        b"%b:%b\n" % (name, headers[name]) for name in sorted(headers) if name.startswith(b"x-ms-")
    )
    resource = b"/%b%b" % (request.account.encode(), request.path or b"/")
    if draft.scheme is Scheme.SHARED_KEY:
        for part in sorted(filter(None, request.query.split(b"&"))):
            name, _, value = part.partition(b"=")
            resource += b"\n%b:%b" % (name.lower(), unquote_to_bytes(value))
    lines = b"\n".join((request.method.encode(), *values.values()))
    return lines + b"\n" + own + resource


_LITE: Final = ("content-md5", "content-type", "date")
_FULL: Final = (
    *("content-encoding", "content-language", "content-length", "content-md5", "content-type", "date"),
    *("if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"),
)


def _dates(draft: RequestDraft) -> Iterator[Way]:
    headers = draft.request.headers
    if b"x-ms-date" in headers and b"date" in headers:
        yield finding(Mistake.DATE_HEADER), _headers(draft, {b"x-ms-date": headers[b"date"]})
    if b"x-ms-date" in headers or b"date" in headers:
        yield finding(Mistake.NO_DATE_SIGNED), _headers(draft, {b"x-ms-date": b""})


def _types(draft: RequestDraft) -> Iterator[Way]:
    if draft.scheme is Scheme.SHARED_KEY_LITE and not draft.is_as_of_blobs:
        return  # not signed
    sent = draft.request.headers.get(b"content-type", b"")
    plain = sent.partition(b";")[0].strip()
    for signed in dict.fromkeys((*_TYPES, plain, plain + b";charset=utf-8", plain + b"; charset=utf-8")):
        if signed != sent:
            yield _type_mistake(sent, signed), _headers(draft, {b"content-type": signed})


def _type_mistake(sent: bytes, signed: bytes) -> Finding:
    if not sent:
        return finding(Mistake.CONTENT_TYPE_MISSING, signed=signed.decode())
    if not signed:
        return finding(Mistake.CONTENT_TYPE_ADDED, sent=sent.decode("latin-1"))
    return finding(Mistake.CONTENT_TYPE_OTHER, sent=sent.decode("latin-1"), signed=signed.decode("latin-1"))


def _paths(draft: RequestDraft) -> Iterator[Way]:
    request = draft.request
    path, prefix = request.path, b"/" + request.account.encode()
    below = path[len(prefix) :] if path == prefix or path.startswith(prefix + b"/") else None
    if draft.is_path_style and below is not None:
        yield finding(Mistake.ACCOUNT_NOT_DOUBLED, account=request.account), _path(draft, below or b"/")
        yield (
            finding(Mistake.ACCOUNT_NOT_DOUBLED, account=request.account),
            replace(draft, resource=below.lstrip(b"/")),
        )
    yield finding(Mistake.ACCOUNT_DOUBLED, account=request.account), _path(draft, prefix + path)
    decoded = unquote_to_bytes(path)
    if decoded != path:
        yield finding(Mistake.PATH_DECODED), _path(draft, decoded)
        if below is not None:
            yield (
                finding(Mistake.PATH_DECODED),
                _path(draft, unquote_to_bytes(below)),
            )
    encoded = quote(path, safe="/").encode()
    if encoded != path:
        yield finding(Mistake.PATH_ENCODED), _path(draft, encoded)
    other = path.rstrip(b"/") if path.endswith(b"/") else path + b"/"
    if other:
        yield finding(Mistake.TRAILING_SLASH), _path(draft, other)
    lower = path.lower()
    if lower != path:
        yield (
            finding(Mistake.TABLE_CASE, table=path.rpartition(b"/")[2].decode("latin-1")),
            _path(draft, lower),
        )


def _queries(draft: RequestDraft) -> Iterator[Way]:
    request = draft.request
    start = b"/%b%b" % (request.account.encode(), request.path or b"/")
    if request.query:
        yield finding(Mistake.QUERY_SIGNED), replace(draft, resource=start + b"?" + request.query)
        yield (
            finding(Mistake.QUERY_SIGNED),
            replace(draft, resource=start + b"?" + unquote_to_bytes(request.query)),
        )
        if b"comp" in request.query.lower():
            yield finding(Mistake.COMP_LEFT_OUT), replace(draft, resource=start)
    if draft.origin:
        url = draft.origin.encode() + request.path
        yield finding(Mistake.WHOLE_URL), replace(draft, resource=url)
        if request.query:
            yield finding(Mistake.WHOLE_URL), replace(draft, resource=url + b"?" + request.query)


def _accounts(draft: RequestDraft, facts: Facts) -> Iterator[Way]:
    own = draft.request.account
    for name in {f"{own}{SECONDARY}", *facts.accounts, DEVELOPMENT_ACCOUNT} - {own}:
        mistake = Mistake.SECONDARY_ACCOUNT if name.endswith(SECONDARY) else Mistake.OTHER_ACCOUNT
        signed = draft.request._replace(account=name)
        yield finding(mistake, account=name), replace(draft, request=signed)
        moved = b"/" + name.encode() + draft.request.path.removeprefix(b"/" + own.encode())
        if draft.is_path_style and moved != draft.request.path:
            yield finding(mistake, account=name), replace(draft, request=signed._replace(path=moved))


def _methods(draft: RequestDraft) -> Iterator[Way]:
    sent = draft.request.method
    if draft.scheme is Scheme.SHARED_KEY_LITE and not draft.is_as_of_blobs:
        return
    for signed in (*_METHODS, sent.lower()):
        if signed != sent:
            yield (
                finding(Mistake.METHOD, sent=sent, signed=signed),
                replace(draft, request=draft.request._replace(method=signed)),
            )


def _md5(draft: RequestDraft) -> Iterator[Way]:
    if b"content-md5" in draft.request.headers:
        yield finding(Mistake.CONTENT_MD5), _headers(draft, {b"content-md5": b""})


def _newlines(draft: RequestDraft) -> Iterator[Way]:
    yield finding(Mistake.NEWLINE), replace(draft, newline=b"\r\n")
    yield finding(Mistake.ESCAPED_NEWLINE), replace(draft, newline=b"\\n")
    yield finding(Mistake.FINAL_NEWLINE, wanted=""), replace(draft, has_final_newline=True)


def _path(draft: RequestDraft, path: bytes) -> RequestDraft:
    return replace(draft, request=draft.request._replace(path=path))


def _headers(draft: RequestDraft, values: dict[bytes, bytes]) -> RequestDraft:
    headers = {**draft.request.headers, **values}
    return replace(draft, request=draft.request._replace(headers=headers))
