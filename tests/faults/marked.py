"""Requests with marked secrets where a server may write them down: signatures in wrong places, malformed keys.

Each mark is a word of letters and digits that occurs nowhere else, so that it is found in any encoding.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from urllib.parse import quote

from tests.faults.connection import Request

JSON = (b"Accept", b"application/json;odata=nometadata")
TYPED = (JSON, (b"Content-Type", b"application/json"))
# query options that may carry a value
OPTIONS = (
    "comp",
    "restype",
    "timeout",
    "api-version",
    "$select",
    "$top",
    "$format",
    "$filter",
    "$orderby",
    "$skip",
    "$expand",
    "$inlinecount",
    "$skiptoken",
    "$count",
    "$search",
    "NextPartitionKey",
    "NextRowKey",
    "NextTableName",
    "prefix",
    "_",
)
FIELDS = (
    "sv",
    "tn",
    "sp",
    "st",
    "se",
    "sip",
    "spr",
    "si",
    "spk",
    "srk",
    "epk",
    "erk",
    "ss",
    "srt",
    "ses",
    "skoid",
)
HEADERS = (
    "Referer",
    "User-Agent",
    "Cookie",
    "Origin",
    "From",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Original-URL",
    "Forwarded",
    "x-ms-copy-source",
    "x-ms-copy-source-authorization",
    "x-ms-rename-source",
    "x-ms-client-request-id",
    "x-ms-version",
    "x-ms-date",
    "Date",
    "Content-Type",
    "Content-MD5",
    "Content-Encoding",
    "Content-Language",
    "If-Match",
    "If-None-Match",
    "If-Modified-Since",
    "Prefer",
    "Accept",
    "Accept-Language",
    "Accept-Charset",
    "DataServiceVersion",
    "MaxDataServiceVersion",
    "X-HTTP-Method",
    "Range",
    "traceparent",
    "baggage",
    "x-tablero-as-of",
    "x-ms-consistency-level",
    "x-ms-session-token",
    "x-request-id",
    "Idempotency-Key",
    "X-Anything",
)


@dataclass(frozen=True, slots=True)
class Sent:
    """A request, or bytes as they are, with a secret in it."""

    mark: str  # the secret
    where: str
    request: Request | bytes
    is_understood: bool = False  # whether it is in a value, as in Azure's request files and partition counts


class Marks:
    """Marks, each given once."""

    def __init__(self, prefix: str) -> None:
        self.given: list[str] = []
        self._prefix = prefix
        self._numbers = count()

    def new(self) -> str:
        self.given.append(f"{self._prefix}{next(self._numbers):04}x")
        return self.given[-1]


def signature(mark: str) -> str:
    """Return 32 bytes in base64 that begin with the mark, with the characters that have to be escaped in a URL."""
    text = f"{mark}/+{mark[::-1]}"
    return (text + "A" * 43)[:43] + "="


def token(mark: str, *, table: str = "people", before: bool = False) -> str:
    fields = f"sv=2019-02-02&tn={table}&sp=raud&se=2099-01-01T00%3A00%3A00Z"
    signed = f"sig={quote(signature(mark), safe='')}"
    return f"{signed}&{fields}" if before else f"{fields}&{signed}"


def escaped(text: str, times: int) -> str:
    for _ in range(times):
        text = quote(text, safe="")
    return text


def every_letter(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode())


def write_all(account: str, marks: Marks) -> Iterator[Sent]:
    """Yield every request to the Table service; the marks are signatures, then keys."""
    yield from _in_query(account, marks)
    yield from _in_path(account, marks)
    yield from _in_headers(account, marks)
    yield from _in_keys(account, marks)
    yield from _in_names(account, marks)
    yield from _in_filters(account, marks)
    yield from _in_bodies(account, marks)
    yield from _in_batches(account, marks)
    yield from _in_bytes(account, marks)


def _get(marks: Marks, where: str, target: str | bytes, mark: str, *, signed: bool = False) -> Sent:
    raw = target if isinstance(target, bytes) else target.encode()
    return Sent(mark, where, Request(b"GET", raw, [JSON], signed=signed))


def _in_query(account: str, marks: Marks) -> Iterator[Sent]:
    base = f"/{account}/people()?"
    for signed in (False, True):
        for name in (*OPTIONS, *FIELDS):
            for times in (1, 2):
                mark = marks.new()
                value = escaped(f"v&{token(mark, before=times == 2)}", times)
                yield _get(marks, f"behind {name}", f"{base}{name}={value}", mark, signed=signed)
        for name in ("$select", "$top", "comp", "$filter", "sp", "anything"):
            mark = marks.new()
            yield _get(
                marks, f"alone in {name}", f"{base}{name}=sig%3D{signature(mark)}", mark, signed=signed
            )
            mark = marks.new()
            yield _get(
                marks,
                f"its value in {name}",
                f"{base}{name}={quote(signature(mark), safe='')}",
                mark,
                signed=signed,
            )
        for times in (1, 2, 3):
            mark = marks.new()
            yield _get(marks, "as a name", base + escaped(token(mark), times), mark, signed=signed)
            mark = marks.new()
            yield _get(
                marks, "as a name with a value", f"{base}{escaped(token(mark), times)}=1", mark, signed=signed
            )
        for spelled in (
            "SIG",
            "Sig",
            "%73ig",
            "s%69g",
            every_letter("sig"),
            "s%2569g",
            "?sig",
            "%3Fsig",
            ";sig",
            "sig%20",
            "sig%00",
        ):
            mark = marks.new()
            yield _get(
                marks,
                f"as {spelled}",
                f"{base}sv=2019-02-02&{spelled}={quote(signature(mark), safe='')}",
                mark,
                signed=signed,
            )
    mark = marks.new()
    yield _get(marks, "beyond a long option", f"{base}$filter={'a' * 1990}&{token(mark)}", mark)
    mark = marks.new()
    yield _get(marks, "cut within its name", f"{base}$filter={'a' * 2036}&sig={signature(mark)}", mark)


def _in_path(account: str, marks: Marks) -> Iterator[Sent]:
    connectors = ("", "?", "&", ";", "/", "/?", "()", "()?", "()&", "#", "=", ":", "$", ",", " ", "\\")
    for connector in connectors:
        for times in (0, 1, 2):
            mark = marks.new()
            text = token(mark, before=times != 1)
            tail = f"{connector}{text}" if times == 0 else escaped(connector + text, times)
            tail = tail.replace(" ", "%20").replace("#", "%23")
            if connector.endswith("?") and times == 0:
                tail = tail.replace("?", "%3F")
            yield _get(marks, f"in the path after {connector!r} x{times}", f"/{account}/people{tail}", mark)
    for path in (
        "{sig}",
        "people/{sig}",
        "people/x/{sig}",
        "Tables/{sig}",
        "Tables({sig})",
        "Tables('{sig}')",
        "$batch/{sig}",
        "$batch{sig}",
        "$metadata{sig}",
        "people/$batch{sig}",
        "people/Tables{sig}",
        "people/Tables('{sig}')",
        "people('{sig}')",
        "people(PartitionKey='p',RowKey='r'){sig}",
        "people(PartitionKey='p',RowKey='r'{sig}",
        "people()/{sig}",
    ):
        for spelled in ("sig={}", "SIG%3D{}", "s%2569g%253D{}"):
            mark = marks.new()
            text = spelled.format(quote(signature(mark), safe=""))
            yield _get(
                marks,
                f"in the path {path}",
                f"/{account}/{path.replace('{sig}', text)}",
                mark,
                signed=len(path) % 2 == 0,
            )


def _in_headers(account: str, marks: Marks) -> Iterator[Sent]:
    for name in HEADERS:
        for form in ("http://host/alpha/people?{}", "{}", "{}&x=1"):
            mark = marks.new()
            value = form.format(
                token(mark, before=form == "{}") if form != "{}&x=1" else escaped(token(mark), 1)
            )
            headers = [(name.encode(), value.encode()), *(() if name == "Accept" else (JSON,))]
            request = Request(
                b"GET", f"/{account}/people()".encode(), headers, signed=name not in ("Date", "x-ms-date")
            )
            yield Sent(mark, f"in the header {name}", request)
    for form in (
        "SharedKey {a}:{s}",
        "SharedKeyLite {a}:{s}",
        "SharedKey {s}",
        "SharedKey {s}:{a}",
        "sharedkey\t{a}:{s}",
        "Basic {s}",
        "Bearer {s}",
        "Bearer ey{s}.ey{s}.{s}",
        "SharedKey {a} {s}",
        "{s}",
        "SharedAccessSignature sig={s}",
        "Digest sig={s}",
    ):
        mark = marks.new()
        value = form.format(a=account, s=signature(mark)).encode()
        yield Sent(
            mark,
            f"in Authorization as {form}",
            Request(b"GET", f"/{account}/people()".encode(), [(b"Authorization", value), JSON], signed=False),
        )


# {k} and {r} are the keys
MALFORMED_KEYS = (
    'people(PartitionKey="{k}",RowKey="{r}")',
    "people(PartitionKey=“{k}”,RowKey=“{r}”)",
    "people(PartitionKey=‘{k}’,RowKey=‘{r}’)",
    "people(PartitionKey=’{k}’,RowKey=’{r}’)",
    "people(PartitionKey=`{k}`,RowKey=`{r}`)",
    "people(PartitionKey=«{k}»,RowKey=«{r}»)",
    "people(PartitionKey={k},RowKey={r})",
    "people(PartitionKey='{k},RowKey={r}')",
    "people(PartitionKey={k}',RowKey={r}')",
    "people(PartitionKey='{k}',RowKey={r})",
    "people(PartitionKey={k},RowKey='{r}')",
    "people('{k}','{r}')",
    "people('{k}')",
    "people({k})",
    "people({k},{r})",
    'people("{k}")',
    'people("{k}","{r}")',
    "people/{k}/{r}",
    "people/{k}",
    "people('{k}')/{r}",
    "people/'{k}'/'{r}'",
    "people(PartitionKey='{k}',RowKey='a')/{r}",
    "people(PartitionKey='a',RowKey='b')/{k}",
    "people(PartitionKey='a',RowKey='b'){k}",
    "people(PartitionKey='{k}'",
    "people(PartitionKey='{k}',RowKey='{r}'",
    "people(PartitionKey='{k}',RowKey='{r}",
    "people(PartitionKey='{k}'RowKey='{r}')",
    "people(PartitionKey:'{k}',RowKey:'{r}')",
    "people(partitionkey='{k}',rowkey='{r}')",
    "people(PartitionKey='{k}';RowKey='{r}')",
    "people(PartitionKey eq '{k}',RowKey eq '{r}')",
    "people(PartitionKey='{k}',RowKey='{r}',X='{k}')",
    "people(RowKey='{k}',RowKey='{r}')",
    "people[PartitionKey='{k}',RowKey='{r}']",
    "people{{PartitionKey='{k}',RowKey='{r}'}}",
    "people%28PartitionKey%3D%22{k}%22%2CRowKey%3D%22{r}%22%29",
    "people(PartitionKey=%2527{k}%2527,RowKey=%2527{r}%2527)",
    "people(PartitionKey=%252527{k}%252527,RowKey='{r}')",
    "people(PartitionKey='%00{k}%00',RowKey='%00{r}')",
    "people(PartitionKey=%00'{k}',RowKey='{r}')",
    "people(PartitionKey=%FF'{k}',RowKey='{r}')",
    "people(PartitionKey='{k}%FF',RowKey='{r}%C3')",
    "people%C3(PartitionKey='{k}',RowKey='{r}')",
    "people(PartitionKey='{k}',RowKey='O'{r}')",
    "people(PartitionKey='{k}%2F{r}',RowKey='a/b')",
    "people(PartitionKey='{k}/{r}',RowKey='b')",
    "people(PartitionKey=%E2%80%9C{k}%E2%80%9D,RowKey='{r}')",
    "people(PartitionKey=' {k} ' , RowKey = {r} )",
    "people(PartitionKey='{k}',%20RowKey='{r}'%20)x",
    "people(\\'{k}\\',\\'{r}\\')",
    "people(PartitionKey=''{k}'',RowKey=''{r}'')",
    "people(PartitionKey='''{k}''',RowKey='''{r}''",
    "people(key='{k}')",
    "people(Id='{k}',Name='{r}')",
    "people.({k})",
    "people-{k}",
    "people_{k}('{r}')",
    "people {k}",
    "people@{k}",
    "people;{k}={r}",
    "people,{k},{r}",
    "people:{k}:{r}",
    "Tables('{k}/{r}')",
    "Tables({k})",
    'Tables("{k}")',
    "Tables(TableName='{k}')",
    "Tables/{k}",
    "Tables('{k}",
    "Tables('peo{k}ple-{r}')",
    "$batch/{k}/{r}",
    "$metadata/{k}",
    "$links/{k}",
    "people/$count({k})",
    "people/$value/{k}",
    "people()/{k}",
    "people()({k})",
    "people(){k}",
    "{k}-/{r}",
    "people%2F{k}%2F{r}",
    "people%5C{k}",
    "people(PartitionKey='{k}',RowKey='{r}')%20",
    "people//{k}//{r}",
    "people/../{k}",
)


def _in_keys(account: str, marks: Marks) -> Iterator[Sent]:
    for number, form in enumerate(MALFORMED_KEYS):
        for method in (b"GET", b"DELETE") if number % 3 else (b"GET", b"PUT", b"MERGE"):
            partition, row = marks.new(), marks.new()
            path = form.format(k=f"key-{partition}", r=f"{row}-key")
            target = f"/{account}/{quote(path, safe=CHARACTERS)}".encode()
            headers = [*TYPED, (b"If-Match", b"*")]
            body = None if method in (b"GET", b"DELETE") else b"{}"
            sent = Request(method, target, headers, body, signed=number % 4 != 1)
            yield Sent(partition, f"in the key {form}", sent)
    for length in (600, 3000, 20_000):
        mark = marks.new()
        path = f"people(PartitionKey={'x' * length}{mark},RowKey='{mark}')"
        yield _get(marks, f"in a long key of {length}", f"/{account}/{path}", mark, signed=True)
        mark = marks.new()
        yield _get(
            marks,
            f"in a long path of {length}",
            f"/{account}/people/{mark}{'/x' * (length // 2)}",
            mark,
            signed=True,
        )


# characters that a client without escapes sends as they are; `%` begins an escape in the form
CHARACTERS = "/?:@!$&'()*+,;=-._~%[]{}`\\"


def _in_names(account: str, marks: Marks) -> Iterator[Sent]:
    for form in (
        "t-{}",
        "1{}",
        "{}_x",
        "{}.x",
        "ä{}",
        "{}%20x",
        "a%09{}",
        "{}%00",
        "x'{}",
        "sig={}",
        "{}==",
        "a/{}",
        "a\\{}",
        "x" * 70 + "{}",
        "@{}",
        "{}!",
    ):
        mark = marks.new()
        name = form.format(mark)
        yield _get(marks, f"as a table {form[-12:]}", f"/{account}/{name}", mark, signed=True)
        mark = marks.new()
        body = json.dumps({"TableName": form.format(mark)}).encode()
        yield Sent(
            mark, f"as a new table {form[-12:]}", Request(b"POST", f"/{account}/Tables".encode(), TYPED, body)
        )
        mark = marks.new()
        target = f"/{account}/Tables('{form.format(mark)}')".encode()
        yield Sent(mark, f"as a deleted table {form[-12:]}", Request(b"DELETE", target, TYPED))
    for name in ("comp=acl", "restype=service&comp=properties"):
        mark = marks.new()
        policy = f"<Id>sig={mark}</Id><AccessPolicy><Expiry>{mark}</Expiry></AccessPolicy>"
        body = f"<SignedIdentifiers><SignedIdentifier>{policy}</SignedIdentifier></SignedIdentifiers>"
        target = f"/{account}/{'people' if 'acl' in name else ''}?{name}".encode()
        yield Sent(
            mark,
            f"in XML for {name}",
            Request(b"PUT", target, [(b"Content-Type", b"application/xml")], body.encode()),
        )
    mark = marks.new()
    yield _get(marks, "as an account", f"/{mark.lower()}/people?sig={mark}", mark)
    mark = marks.new()
    yield _get(marks, "as an account that is none", f"/x-{mark}/people", mark, signed=True)


# filters that can be read, some with a value in the place of a name
VALID = (
    "Name eq '{}'",
    "'{}' eq Name",
    "PartitionKey eq %27{}%27",
    "not {}",
    "{}",
    "{} and Age gt 5",
    "Age gt 5 or {}",
)


def _in_filters(account: str, marks: Marks) -> Iterator[Sent]:
    forms = (
        "Name eq '{}'",
        "Name eq '{}",
        'Name eq "{}"',
        "Name eq {}",
        "Name eq {} eq",
        "Name eq {} and Age gt 5",
        "Name eq “{}”",
        "Name eq ‘{} x’",
        "Name = '{}'",
        "Name eq datetime'{}'",
        "Name eq guid'{}'",
        "Name eq X'{}'",
        "startswith(Name,'{}')",
        "startswith(Name,{})",
        "contains({},'x')",
        "substringof('{}',Name)",
        "Name in ('{}')",
        "Name eq '{}' UND Age gt 5",
        "'{}' eq Name",
        "not {}",
        "{}",
        "{} and Age gt 5",
        "Age gt 5 or {}",
        "PartitionKey eq '{}' && RowKey eq '{}'",
        "(PartitionKey eq '{}'",
        "PartitionKey eq %27{}%27",
        "Name eq 'O'{}'",
        "Name eq 5{}",
        "Name eq -{}",
        "Name eq '{}' and",
        "Name like '{}%25'",
        "Name eq @{}",
        "Name eq ${}",
        "Name eq [{}]",
        "Name eq {}/x",
        'Name eq datetime"{}"',
        "cast(Name,{}) eq 1",
    )
    for form in forms:
        mark = marks.new()
        text = quote(form.replace("{}", mark), safe="%'()=")
        sent = _get(marks, f"in the filter {form}", f"/{account}/people()?$filter={text}", mark, signed=True)
        yield replace(sent, is_understood=form in VALID)
    mark = marks.new()
    target = f"/{account}/people(PartitionKey='{mark}',RowKey='none')"
    yield replace(_get(marks, "as a key", target, mark, signed=True), is_understood=True)
    for option in (
        "$orderby",
        "$skiptoken",
        "NextPartitionKey",
        "NextRowKey",
        "NextTableName",
        "$top",
        "$expand",
        "$inlinecount",
        "timeout",
        "$select",
    ):
        mark = marks.new()
        yield _get(
            marks, f"as the value of {option}", f"/{account}/people()?{option}=key-{mark}", mark, signed=True
        )


def _in_bodies(account: str, marks: Marks) -> Iterator[Sent]:
    bodies = (
        '{{"PartitionKey":"{k}","RowKey":"{k}",?}}',
        '{{"PartitionKey":"{k}","RowKey":1}}',
        '{{"PartitionKey":"{k}/","RowKey":"r"}}',
        '{{"PartitionKey":"p","RowKey":"r","sig={k}":1}}',
        '{{"PartitionKey":"p","RowKey":"r","{k} value":1}}',
        '{{"PartitionKey":"p","RowKey":"r","a-{k}":"x"}}',
        '{{"PartitionKey":"p","RowKey":"r","A@odata.type":"Edm.{k}","A":"1"}}',
        '{{"PartitionKey":"p","RowKey":"r","A@odata.type":"Edm.Int64","A":"{k}"}}',
        '{{"PartitionKey":"p","RowKey":"r","A@odata.type":"Edm.Guid","A":"{k}"}}',
        '{{"PartitionKey":"p","RowKey":"r","A":{{"b":"{k}"}}}}',
        '{{"PartitionKey":"p","RowKey":"r","A":["{k}"]}}',
        '["{k}"]',
        '"{k}"',
        "{k}",
        '{{"{k}',
        "<entry>{k}</entry>",
        '{{"PartitionKey":"p","RowKey":"r","@{k}":1}}',
    )
    for body in bodies:
        mark = marks.new()
        content = body.format(k=mark).encode()
        yield Sent(
            mark, f"in the body {body}", Request(b"POST", f"/{account}/people".encode(), TYPED, content)
        )
        mark = marks.new()
        content = body.format(k=mark).encode()
        yield Sent(
            mark,
            f"in the merged body {body}",
            Request(b"MERGE", f"/{account}/people(PartitionKey='p',RowKey='none')".encode(), TYPED, content),
        )


def _in_batches(account: str, marks: Marks) -> Iterator[Sent]:
    targets = ("people?{s}", "people{s}", "people/{s}", "people%3F{s}", *MALFORMED_KEYS[:40])
    for number, form in enumerate(targets):
        mark = marks.new()
        path = form.replace("{s}", token(mark)) if "{s}" in form else form.format(k=mark, r=mark)
        path = quote(path, safe=CHARACTERS)
        address = (f"http://127.0.0.1/{account}/{path}", f"/{account}/{path}", path)[number % 3]
        method = ("PUT", "DELETE", "GET", "POST")[number % 4]
        body = "" if method in ("GET", "DELETE") else json.dumps({"PartitionKey": "p", "RowKey": "r"})
        lines = [f"{method} {address} HTTP/1.1", "Content-Type: application/json", "Accept: application/json"]
        lines += (
            [f"If-Match: {mark}", f"Content-ID: {mark}", f"x-ms-copy-source: sig={mark}"]
            if number % 5 == 0
            else []
        )
        part = "\r\n".join(
            ["Content-Type: application/http", "Content-Transfer-Encoding: binary", "", *lines, "", body]
        )
        inner = (
            part
            if method == "GET"
            else f"Content-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n{part}\r\n--c--"
        )
        content = f"--b\r\n{inner}\r\n--b--\r\n".encode()
        headers = [(b"Content-Type", b"multipart/mixed; boundary=b"), (b"Accept", b"application/json")]
        yield Sent(
            mark,
            f"in a batch of {method} {form}",
            Request(b"POST", f"/{account}/$batch".encode(), headers, content),
        )
    for content in (
        "{}",
        "--b\r\n{}\r\n--b--\r\n",
        "--b\r\nContent-Type: {}\r\n\r\nx\r\n--b--\r\n",
        "--b\r\nContent-Type: multipart/mixed; boundary={}\r\n\r\n--b--\r\n",
    ):
        mark = marks.new()
        headers = [
            (b"Content-Type", f"multipart/mixed; boundary={'b' if content != '{}' else mark}".encode())
        ]
        yield Sent(
            mark,
            "in a batch that is none",
            Request(b"POST", f"/{account}/$batch".encode(), headers, content.format(mark).encode()),
        )


def _in_bytes(account: str, marks: Marks) -> Iterator[Sent]:
    forms = (
        "GET /{a}/people?{t} HTTP/9.9\r\n\r\n",
        "SIG{m} /{a}/people HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /{a}/people {t} HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /{a}/people?{t} HTTP/1.1\r\nsig={m}\r\n\r\n",
        "GET /{a}/people?{t} HTTP/1.1\r\n: {m}\r\n\r\n",
        "GET /{a}/people?{t} HTTP/1.1\r\nHost: sig={m}\r\n\r\n",
        "GET http://127.0.0.1/{a}/people?{t} HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET http://[{m}/{a} HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET {a}/people?{t} HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /{a}/people?{t} HTTP/1.1\r\nHost: h\r\nContent-Length: {m}\r\n\r\n",
        "POST /{a}/people?{t} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: {m}\r\n\r\n",
        "GET /{a}/people\x01{t} HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /{a}/people?{t}\r\n\r\n",
        "{t}\r\n\r\n",
        "POST /{a}/people?{t} HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nx",
        "GET /{a}/people(PartitionKey='{m}',RowKey='ÿ') HTTP/1.1\r\nHost: h\r\n\r\n",
        "OPTIONS /{a}/people?{t} HTTP/1.1\r\nHost: h\r\nOrigin: http://{m}\r\n\r\n",
        "TRACE /{a}/people?{t} HTTP/1.1\r\nHost: h\r\n\r\n",
        "CONNECT {m}:443 HTTP/1.1\r\nHost: h\r\n\r\n",
        "PUT /{a}/people?{t} HTTP/1.1\r\nHost: h\r\nExpect: {m}\r\n\r\n",
        "HEAD /{a}/people/{t} HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /{a}/people?{t} HTTP/1.1\r\nHost: h\r\nUpgrade: {m}\r\nConnection: Upgrade\r\n\r\n",
        "GET //{a}/people?{t} HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /{a}/people?{t} HTTP/1.1\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: {m}\r\n\r\n",
    )
    for form in forms:
        mark = marks.new()
        content = form.replace("{a}", account).replace("{t}", token(mark)).replace("{m}", mark)
        yield Sent(mark, f"in the bytes {form[:40]!r}", content.encode("latin-1"))


# the console and the management API
PAGES = (
    "/ui/a/{a}/t/t-{m}/",
    "/ui/a/{a}/t/sig={m}/",
    "/ui/a/{a}/t/people/e/{m}/{m}/",
    "/ui/a/{a}/t/people/?filter={m}",
    "/ui/a/{a}/requests/?table={m}",
    "/ui/a/{m}/",
    "/ui/{m}",
    "/ui/login/?next=/ui/?{t}",
    "/ui/api/v1/accounts/{a}/tables/t-{m}",
    "/ui/api/v1/accounts/{a}/tables/people/entities?{t}",
    "/ui/api/v1/accounts/{a}/requests?code={m}",
    "/ui/api/v1/accounts/{a}/requests/{m}",
    "/ui/api/v1/{m}",
    "/ui/api/v1/accounts/{m}",
    "/ui/invitations/{m}/",
    "/ui/setup/{m}/",
    "/ui/password/reset/key/{m}/",
    "/ui/api/v1/accounts/{a}/tables/people{e}",
    "/ui/static/{m}.js",
    "/ui/accounts/{a}/sas/{m}/",
    "/ui/l/{m}",
    "/ui/a/{a}/t/people{e}/",
    "/ui/search/?q={m}",
    "/ui/%C3/{m}",
    "/ui/a/{a}/jobs/{m}/",
    "/ui/metrics?{t}",
)


def write_pages(account: str, marks: Marks, bearer: str) -> Iterator[Sent]:
    """Yield every request to the console and the management API: of strangers, with a wrong token, and with a right
    one.
    """
    for form in PAGES:
        for authorization in (None, "Bearer tbl_{m}", f"Bearer {bearer}"):
            for method in (b"GET", b"POST"):
                mark = marks.new()
                target = form.format(a=account, m=mark, t=token(mark), e=escaped("?" + token(mark), 1))
                headers = [
                    (b"Referer", f"http://127.0.0.1/ui/?{token(mark)}".encode()),
                    (b"Accept", b"text/html"),
                ]
                if authorization is not None:
                    headers.append((b"Authorization", authorization.replace("{m}", mark).encode()))
                body = None if method == b"GET" else f"password={mark}&sig={mark}".encode()
                yield Sent(
                    mark, f"on the page {form}", Request(method, target.encode(), headers, body, signed=False)
                )
