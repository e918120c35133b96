"""What a client may get wrong when it signs a request, as variations of the right text."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote_to_bytes

from storage.domain.access.signature import Scheme, SignedRequest, string_to_sign
from storage.inspector.facts import Facts
from storage.inspector.reports import Finding, Mistake, finding
from storage.inspector.signatures import Draft, Variation, other_accounts, vary, vary_newlines

_LINES: Final = {
    Scheme.SHARED_KEY: ("{method}", "{content-md5}", "{content-type}", "{date}", "{prefix}{path}{query}"),
    Scheme.SHARED_KEY_LITE: ("{date}", "{prefix}{path}{query}"),
}
# of blobs and queues, which have another date, the x-ms- headers, and the options of the query
_BLOB_LINES: Final = {
    Scheme.SHARED_KEY: (
        *("{method}", "{content-encoding}", "{content-language}", "{content-length}", "{content-md5}"),
        *("{content-type}", "{blob-date}", "{if-modified-since}", "{if-match}", "{if-none-match}"),
        *("{if-unmodified-since}", "{range}", "{x-ms-headers}{prefix}{path}{options}"),
    ),
    Scheme.SHARED_KEY_LITE: (
        *("{method}", "{content-md5}", "{content-type}", "{blob-date}", "{x-ms-headers}{prefix}{path}"),
    ),
}
_METHODS: Final = ("GET", "POST", "PUT", "MERGE", "PATCH", "DELETE", "HEAD")
_TYPES: Final = (
    "",
    "application/json",
    "application/json;odata=nometadata",
    "application/json; odata=nometadata",
    "application/json;odata=minimalmetadata",
    "application/json;charset=utf-8",
    "application/json; charset=utf-8",
    "application/atom+xml",
    "application/atom+xml;charset=utf-8",
    "application/xml",
    "application/octet-stream",
    "application/x-www-form-urlencoded",
    "text/plain",
    "text/plain;charset=utf-8",
)


def draft_request(request: SignedRequest, scheme: Scheme) -> Draft:
    """Draft the right text of a request: its headers by name, and what else is signed."""
    headers = {name.decode("latin-1"): _text(value) for name, value in request.headers.items()}
    own = sorted((name, value) for name, value in headers.items() if name.startswith("x-ms-"))
    options = (part.partition(b"=") for part in sorted(filter(None, request.query.split(b"&"))))
    prefix, path = f"/{request.account}", _text(request.path or b"/")
    resource = _text(string_to_sign(request, Scheme.SHARED_KEY_LITE)).rpartition("\n")[2]
    names = [line[1:-1] for line in _BLOB_LINES[Scheme.SHARED_KEY]]
    fields = {
        **dict.fromkeys(names, ""),
        **headers,
        "content-length": headers.get("content-length", "").removeprefix("0"),
        "method": request.method,
        "date": headers.get("x-ms-date", headers.get("date", "")),
        "blob-date": "" if "x-ms-date" in headers else headers.get("date", ""),
        "prefix": prefix,
        "path": path,
        "query": resource.removeprefix(prefix + path),
        "x-ms-headers": "".join(f"{name}:{value}\n" for name, value in own),
        "options": "".join(
            f"\n{_text(name.lower())}:{_text(unquote_to_bytes(value))}" for name, _, value in options
        ),
    }
    return Draft(fields, _LINES[scheme])


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def usual_mistakes(request: SignedRequest, scheme: Scheme, origin: str, facts: Facts) -> list[Variation]:
    """``origin`` is the beginning of the URL, before the path."""
    other = Scheme.SHARED_KEY if scheme is Scheme.SHARED_KEY_LITE else Scheme.SHARED_KEY_LITE
    names = {"signed": other.value.decode(), "sent": scheme.value.decode()}
    return [
        vary(finding(Mistake.OTHER_SCHEME, **names), lines=_LINES[other]),
        vary(finding(Mistake.BLOB_LAYOUT), lines=_BLOB_LINES[scheme]),
        vary(finding(Mistake.NO_DATE_SIGNED), {"date": ""}),
        *_types(_text(request.headers.get(b"content-type", b""))),
        *_paths(request),
        *_queries(request, origin),
        *_accounts(request, facts),
        *(
            vary(finding(Mistake.METHOD, sent=request.method, signed=signed), {"method": signed})
            for signed in (*_METHODS, request.method.lower())
            if signed != request.method
        ),
        *vary_newlines(has_final_newline=False),
    ]


def _types(sent: str) -> Iterator[Variation]:
    plain = sent.partition(";")[0].strip()
    for signed in dict.fromkeys((*_TYPES, plain, plain + ";charset=utf-8", plain + "; charset=utf-8")):
        if signed != sent:
            yield vary(_type_mistake(sent, signed), {"content-type": signed})


def _type_mistake(sent: str, signed: str) -> Finding:
    if not sent:
        return finding(Mistake.CONTENT_TYPE_MISSING, signed=signed)
    if not signed:
        return finding(Mistake.CONTENT_TYPE_ADDED, sent=sent)
    return finding(Mistake.CONTENT_TYPE_OTHER, sent=sent, signed=signed)


def _paths(request: SignedRequest) -> Iterator[Variation]:
    account, path = request.account, request.path
    prefix = b"/" + account.encode()
    below = path[len(prefix) :] if path == prefix or path.startswith(prefix + b"/") else None
    if below is not None:
        yield vary(finding(Mistake.ACCOUNT_NOT_DOUBLED, account=account), {"path": _text(below or b"/")})
    for mistake, signed in (
        (finding(Mistake.ACCOUNT_DOUBLED, account=account), prefix + path),
        (finding(Mistake.PATH_DECODED), unquote_to_bytes(path)),
        (finding(Mistake.PATH_DECODED), unquote_to_bytes(below or path)),
        (finding(Mistake.TRAILING_SLASH), path.rstrip(b"/") if path.endswith(b"/") else path + b"/"),
        (finding(Mistake.TABLE_CASE, table=path.rpartition(b"/")[2].decode("latin-1")), path.lower()),
    ):
        if signed != path:
            yield vary(mistake, {"path": _text(signed)})


def _queries(request: SignedRequest, origin: str) -> Iterator[Variation]:
    query = "?" + _text(request.query) if request.query else ""
    if query:
        yield vary(finding(Mistake.QUERY_SIGNED), {"query": query})
        yield vary(finding(Mistake.QUERY_SIGNED), {"query": "?" + _text(unquote_to_bytes(request.query))})
    if "comp" in query.lower():
        yield vary(finding(Mistake.COMP_LEFT_OUT), {"query": ""})
    if origin:
        for signed in dict.fromkeys(("", query)):
            yield vary(finding(Mistake.WHOLE_URL), {"prefix": origin, "query": signed})


def _accounts(request: SignedRequest, facts: Facts) -> Iterator[Variation]:
    own, path = f"/{request.account}", _text(request.path)
    for name, mistake in other_accounts(request.account, facts):
        yield vary(mistake, {"prefix": f"/{name}"})
        if path.startswith(own):
            yield vary(mistake, {"prefix": f"/{name}", "path": f"/{name}{path.removeprefix(own)}"})
