"""Hypothesis strategies for requests that range from nearly valid to absurd, all to the account they are signed for."""

import json
from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

from tests.faults.connection import Change, Request, write_batch

ACCOUNT = "devstoreaccount1"
TABLE = "fuzz"

Fields = list[tuple[bytes, bytes]]

METHODS = st.sampled_from([b"GET", b"POST", b"PUT", b"MERGE", b"PATCH", b"DELETE", b"HEAD"])
ODD_METHODS = st.sampled_from([b"OPTIONS", b"TRACE", b"CONNECT", b"LOCK", b"PURGE", b"get", b"FOO", b"PRI"])
ACCEPTS: list[tuple[bytes, bytes]] = [
    (b"Accept", b"application/json;odata=nometadata"),
    (b"Accept", b"application/json;odata=minimalmetadata"),
    (b"Accept", b"application/json;odata=fullmetadata"),
    (b"Accept", b"application/atom+xml"),
    (b"Accept", b"*/*"),
]
ODD_TEXTS = [
    "", " ", "a", "'", "''", '"', "\\", "/", "#", "?", "%", "+", "&", "=", ",", "(", ")", ";", "é",
    "中", "😀",
    "\x00", "\x01", "\x1f", "\x7f", "\x85", "\ufeff", "\uffff", "\ud800", "\udc00", "\u202e", "ab'c",
    "a" * 300,
    "中" * 512, "x" * 1024, "x" * 1025, "x" * 33_000, "${7*7}", "'; DROP TABLE entity_1; --",
    "%s%s%n", "$1", "{relation}",
]  # fmt: skip
texts = st.one_of(
    st.sampled_from(ODD_TEXTS),
    st.lists(st.sampled_from(ODD_TEXTS[:31]), max_size=4).map("".join),
    st.text(max_size=6),
)


def escaped(text: str) -> bytes:
    return quote(text.encode("utf-8", "surrogatepass"), safe="'()$,=").encode()


def to(path: bytes) -> bytes:
    return b"/%b/%b" % (ACCOUNT.encode(), path)


keys = st.one_of(st.sampled_from(["p", "r", "s"]), st.sampled_from(["p", "r"]), texts)
entity_paths = st.builds(
    lambda partition, row: (
        b"%b(PartitionKey='%b',RowKey='%b')" % (TABLE.encode(), escaped(partition), escaped(row))
    ),
    keys.map(lambda key: key.replace("'", "''")),
    keys,
)
usual_paths = st.one_of(
    st.sampled_from(
        [b"fuzz", b"fuzz()", b"FUZZ()", b"Tables", b"Tables()", b"Tables('fuzz')", b"Tables('none')"]
    ),
    entity_paths,
)
small_bodies = st.sampled_from(
    [None, b"", b"{}", b'{"n":1}', b'{"PartitionKey":"p","RowKey":"r"}', b"[]", b"null"]
)
JSON_TYPE = (b"Content-Type", b"application/json")


# paths

PATH_PIECES = [
    b"fuzz", b"fuzz()", b"(PartitionKey='a',RowKey='b')", b"(RowKey='b', PartitionKey='a')", b"('x')",
    b"PartitionKey",
    b"RowKey", b"Tables", b"tables('", b"$batch", b"%24batch", b"$metadata", b"$Metrics", b"%27", b"%2F",
    b"%5C", b"%00",
    b"%zz", b"%", b"%2", b"..", b".", b"/", b"//", b"\\", b"'", b"''", b'"', b"%22", b"(", b")", b"((((",
    b",", b"=",
    b"%C3%A9", b"%FF", b"%ED%A0%80", b"%F0%9F%98%80", b"%E2%80%AE", b"%0D%0A", b"%0a", b"+", b"%2B", b"%25",
    b"%2525",
    b"*", b"~", b"[", b"{", b"|", b"^", b"`", b"<", b">", b";", b":", b"@", b"-secondary", b"%20",
    b"A" * 3000, b"%41" * 999,
    b"(PartitionKey='" + b"%27%27" * 700 + b"',RowKey='')", b"http://other/", b"/ui/", b"null", b"undefined",
]  # fmt: skip
UNSENDABLE_PIECES = [b"\xc3\xa9", b"\xff", b"\x01", b"\x7f", b"#", b"\xed\xa0\x80"]


@st.composite
def wild_paths(draw: st.DrawFn) -> Request:
    pieces = st.sampled_from(PATH_PIECES)
    path = draw(
        st.one_of(
            st.lists(pieces, min_size=1, max_size=5).map(b"".join),
            entity_paths,
            st.builds(
                lambda path, piece: path + piece,
                entity_paths,
                st.sampled_from(PATH_PIECES + UNSENDABLE_PIECES),
            ),
        )
    )
    headers = [draw(st.sampled_from(ACCEPTS)), JSON_TYPE]
    if draw(st.booleans()):
        headers.append((b"If-Match", b"*"))
    target = to(path) if draw(st.integers(0, 9)) else b"/" + path
    return Request(draw(st.one_of(METHODS, METHODS, ODD_METHODS)), target, headers, draw(small_bodies))


# queries

PROPERTIES = [
    "PartitionKey",
    "RowKey",
    "Timestamp",
    "n",
    "s",
    "missing",
    "É",
    "_",
    "TableName",
    "a b",
    "2x",
    "odata.type",
]
LITERALS = [
    "'p'", "''", "'it''s'", "'", "1", "-1", "0", "2147483648", "9223372036854775807L",
    "9223372036854775808L", "1L", "1.5",
    "1e400", "-0.0", "NaN", "INF", "-INF", "true", "false", "null", "datetime'2020-01-01T00:00:00Z'",
    "datetime'x'",
    "datetime'0001-01-01'", "guid'c9da6455-213d-42c9-9a79-3e9149a57833'", "guid'x'", "X'0aff'", "X'0'",
    "binary''", '"p"',
    "'\x00'", "'\ud800'", "'😀'", "1" * 400, "'" + "x" * 2000 + "'", "startswith(s,'a')",
    "length(s)", "1 add 2", "%27",
]  # fmt: skip
OPERATORS = ["eq", "ne", "gt", "ge", "lt", "le", "eq", "ge", "lt", "EQ", "==", "=", "and", "in", "has", ""]
comparisons = st.one_of(
    st.builds(
        lambda left, operator, right: f"{left} {operator} {right}",
        st.sampled_from(PROPERTIES[:6]),
        st.sampled_from(OPERATORS[:9]),
        st.sampled_from(LITERALS),
    ),
    st.builds(
        lambda left, operator, right: f"{left} {operator} {right}",
        st.sampled_from(PROPERTIES + LITERALS),
        st.sampled_from(OPERATORS),
        st.sampled_from(LITERALS + PROPERTIES),
    ),
)
SHAPES = ["{0} and {1}", "{0} or {1}", "not ({0})", "not {0}", "({0}) and ({1})",
    "{0} and not ({1} or {0})", "{0} {1}", "(({0})",
          "{0} and", "or {0}", "{0}and{1}", "not not ({0})", "({0}) eq ({1})", "()", "{0}\t\n and  {1}",
          "{0}"]  # fmt: skip
ODD_FILTERS = [
    "(" * 5000, "not " * 3000 + "true", "(" * 60 + "n eq 1" + ")" * 60, " or ".join(["n eq 1"] * 150), "n",
    "not n", "true", "1",
    "'x'", "*", "$", "\x00", "n eq 1;", "n eq 1 -- ", "n eq 1 or 1 eq 1", "((((((((((n eq 1))))))))))",
    "/n eq 1", "n/m eq 1",
    "s/any(x: x eq 1)", "cast(n,'Edm.Int64') eq 1L", "n eq @p", "'a' eq 'a'", "PartitionKey eq PartitionKey",
]  # fmt: skip
filters = st.one_of(
    st.builds(
        lambda shape, left, right: shape.format(left, right),
        st.sampled_from(SHAPES),
        comparisons,
        comparisons,
    ),
    st.sampled_from(ODD_FILTERS),
    texts,
)
TOPS = ["0", "1", "1000", "1001", "-1", "", "x", "1e3", "٣", "9" * 30, "1.0", "+5", " 7 ", "0x10", "NaN"]
SELECTS = [
    "",
    "n",
    "n,s",
    "*",
    "PartitionKey,n",
    "n,,s",
    ",",
    "missing",
    "É",
    "a b",
    "n" * 300,
    ",".join("abcdef") * 60,
    "\x00",
    "'",
]
TOKENS = [
    "",
    "1!4!cA--",
    "1!4!cg--",
    "1!0!",
    "1!8!U21pdGg-",
    "1!3!abc",
    "1!4!////",
    "1!99999!x",
    "2!4!cA--",
    "x",
    "1!4!AA--",
    "1!8!7aCA7bCA",
]
FORMATS = [
    "json",
    "atom",
    "application/json;odata=fullmetadata",
    "text/html",
    "",
    "application/json;odata=verbose",
    "\x00",
]
OPTION_NAMES = [
    "$filter",
    "$orderby",
    "$skip",
    "$count",
    "$x",
    "timeout",
    "comp",
    "restype",
    "api-version",
    "sv",
    "sig",
    "",
    "x",
    "$Filter",
]
options = st.one_of(
    st.tuples(st.just("$filter"), filters),
    st.tuples(st.just("$filter"), filters),
    st.tuples(st.just("$top"), st.one_of(st.sampled_from(TOPS), texts)),
    st.tuples(st.just("$select"), st.one_of(st.sampled_from(SELECTS), texts)),
    st.tuples(
        st.sampled_from(["NextPartitionKey", "NextRowKey", "NextTableName"]),
        st.one_of(st.sampled_from(TOKENS), texts),
    ),
    st.tuples(st.just("$format"), st.sampled_from(FORMATS)),
    st.tuples(st.sampled_from(OPTION_NAMES), st.one_of(st.sampled_from(TOPS), texts)),
)
raw_queries = st.lists(
    st.sampled_from(
        [
            b"&",
            b"=",
            b"%",
            b"%zz",
            b"%00",
            b"%FF",
            b"+",
            b"$filter",
            b"$filter=",
            b"?",
            b"n%20eq%201",
            b";",
            b"comp=acl",
        ]
    ),
    max_size=6,
).map(b"".join)


def write_query(chosen: list[tuple[str, str]]) -> bytes:
    return b"&".join(b"%b=%b" % (name.encode(), escaped(value[:3000])) for name, value in chosen)


queries = st.one_of(st.lists(options, min_size=1, max_size=3).map(write_query), raw_queries)


@st.composite
def wild_queries(draw: st.DrawFn) -> Request:
    target = to(draw(usual_paths)) + b"?" + draw(queries)
    method = draw(st.sampled_from([b"GET"] * 18 + [b"POST", b"HEAD"]))
    return Request(method, target, [draw(st.sampled_from(ACCEPTS[:3] * 4 + ACCEPTS))])


# headers

ODD_VALUES = [
    b"", b" ", b"*", b"x", b"0", b"-1", b"\xff", b"caf\xc3\xa9", b"a,b", b";", b"=", b'"', b"'", b"\t",
    b"a" * 2000, b"application/json",
    b"application/json;odata=verbose", b"application/json;q=x", b"text/plain", b"*/*;q=0",
    b"multipart/mixed", b"multipart/mixed; boundary=",
]  # fmt: skip
HEADER_VALUES: dict[bytes, list[bytes]] = {
    b"If-Match": [b"*", b'W/"x"', b'"x"', b"W/", b"W/\"datetime'2020-01-01T00%3A00%3A00Z'\"",
    b"W/\"datetime'x'\"",
                  b"W/\"datetime'2020-13-45T00%3A00%3A00Z'\"", b'W/"a", W/"b"',
                  b"W/\"datetime'9999-12-31T23%3A59%3A59.99999999Z'\""],
    b"If-None-Match": [b"*", b'W/"x"'],
    b"Prefer": [b"return-no-content", b"return-content", b"return-content, return-no-content",
    b"respond-async"],
    b"Accept": [value for _, value in ACCEPTS] + [b"application/json; odata = nometadata",
    b"application/xml, application/json;q=0.1"],
    b"x-ms-version": [b"2019-02-02", b"2009-04-14", b"2012-02-12", b"2015-12-11", b"1999-01-01",
    b"2019-02-30", b"9999-12-31", b"20190202"],
    b"Content-Type": [b"application/json", b"application/atom+xml", b"application/xml",
    b"APPLICATION/JSON; charset=utf-16"],
    b"X-HTTP-Method": [b"MERGE", b"PUT", b"DELETE", b"PATCH", b"merge", b"GET", b"POST", b"FOO"],
    b"Content-MD5": [b"1B2M2Y8AsgTpgAmY7PhCfg==", b"AAAA", b"!!!!", b"d41d8cd98f00b204e9800998ecf8427e"],
    b"x-ms-date": [b"Thu, 01 Jan 1970 00:00:00 GMT", b"yesterday", b"2026-01-01T00:00:00Z",
    b"Fri, 31 Feb 2026 25:61:61 GMT", b"9" * 50],
    b"Date": [b"Thu, 01 Jan 1970 00:00:00 GMT", b"x"],
    b"DataServiceVersion": [b"3.0", b"3.0;NetFx", b"1.0", b"9.9", b"x"],
    b"MaxDataServiceVersion": [b"3.0;NetFx", b"x"],
    b"x-ms-client-request-id": [b"id", b"x" * 1024, b"x" * 1025],
    b"Host": [b"", b"localhost", b"[::1]:80", b"a b", b"devstoreaccount1.table.localhost", b"x:99999",
    b"\xff", b"a@b", b"a/b"],
    b"Expect": [b"100-continue", b"200-ok"],
    b"Accept-Charset": [b"UTF-8", b"utf-7"],
    b"Accept-Encoding": [b"gzip, br", b"*"],
    b"Content-Encoding": [b"gzip"],
    b"Range": [b"bytes=0-1"],
    b"Origin": [b"http://example.com", b"null"],
    b"Access-Control-Request-Method": [b"PUT", b"FOO"],
    b"Upgrade": [b"h2c", b"websocket"],
    b"Connection": [b"keep-alive", b"close", b"upgrade", b"Upgrade, HTTP2-Settings"],
    b"X-Forwarded-For": [b"1.2.3.4"],
    b"Cookie": [b"a=b"],
    b"x-ms-weird": [b"1"],
}  # fmt: skip
header_fields = st.sampled_from(sorted(HEADER_VALUES)).flatmap(
    lambda name: st.tuples(st.just(name), st.sampled_from(HEADER_VALUES[name] * 3 + ODD_VALUES))
)


@st.composite
def wild_headers(draw: st.DrawFn) -> Request:
    headers = draw(st.lists(header_fields, min_size=1, max_size=4))
    if draw(st.booleans()):
        headers.append(JSON_TYPE)
    return Request(
        draw(st.one_of(METHODS, METHODS, METHODS, ODD_METHODS)),
        to(draw(usual_paths)),
        headers,
        draw(small_bodies),
    )


# JSON bodies

NAMES = ["PartitionKey", "RowKey", "Timestamp", "n", "s", "É", "x" * 256, "a-b", "2x", "", "odata.type",
    "odata.etag", "odata.x",
         "PartitionKey@odata.type", "n@odata.type", "s@odata.type", "n@odata.type@odata.type",
         "@odata.type", "n@", "\x00", "\ud800", "😀"]  # fmt: skip
TYPES = ["Edm.String", "Edm.Int32", "Edm.Int64", "Edm.Double", "Edm.Boolean", "Edm.DateTime", "Edm.Guid",
    "Edm.Binary",
         "Edm.Single", "Edm.Byte", "Collection(Edm.String)", "", "edm.int32", "x"]  # fmt: skip
RAW_VALUES = [
    "1", "0", "-1", "1.0", "-0.0", "1e400", "-1e400", "5e-324", "2147483648", "9223372036854775808",
    "1" * 500, "0." + "1" * 500,
    "NaN", "Infinity", "-Infinity", "01", "+1", ".5", "1.", "0x10", "true", "false", "null", "True", "[]",
    "{}", "[1,[2]]", '{"a":{}}', "",
    '"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '"\\x"', '"\x01"', '"unterminated',
    '"9223372036854775808"', '"2020-01-01T00:00:00Z"',
    '"0001-01-01T00:00:00Z"', '"9999-12-31T23:59:59.99999999Z"', '"c9da6455-213d-42c9-9a79-3e9149a57833"',
    '"AA=="', '"AA="', '"NaN"',
    "[" * 1000 + "]" * 1000, '"' + "x" * 33_000 + '"', "1e5", "1E+16",
]  # fmt: skip
members = st.one_of(
    st.builds(
        lambda name, value: f"{json.dumps(name)}:{value}", st.sampled_from(NAMES), st.sampled_from(RAW_VALUES)
    ),
    st.builds(
        lambda name, kind, value: f'"{name}":{value},"{name}@odata.type":"{kind}"',
        st.sampled_from(["n", "s", "t", "PartitionKey"]),
        st.sampled_from(TYPES),
        st.sampled_from(RAW_VALUES),
    ),
    st.builds(
        lambda name, text: f'"{name}":{json.dumps(text)}', st.sampled_from(["n", "s", "u", "RowKey"]), texts
    ),
)
entities = st.builds(
    lambda row, more: "{" + ",".join([f'"PartitionKey":"p","RowKey":{json.dumps(row)}', *more]) + "}",
    st.one_of(st.integers(0, 60).map(str), texts),
    st.lists(members, max_size=3),
)
ODD_BODIES: list[bytes] = [
    b"", b" ", b"{", b"}", b"{}", b"[]", b"null", b"1", b'"x"', b"{}{}", b"{,}", b"{'a':1}", b"\x00",
    b"\xff\xfe{\x00}\x00", b"\xef\xbb\xbf{}",
    b'\xef\xbb\xbf{"PartitionKey":"p","RowKey":"bom"}', b'{"PartitionKey":"p","RowKey":"\xff"}',
    b'{"PartitionKey":"p","RowKey":"\xed\xa0\x80"}',
    b"[" * 100_000, b'{"a":' * 100_000, b'{"a":' * 5000 + b"1" + b"}" * 5000, b"<entry/>", b"a=b",
    b"{" + b" " * 100_000 + b"}",
    b'{"PartitionKey":"p","RowKey":"r"', b'{"PartitionKey":"p","PartitionKey":"q","RowKey":"r"}',
    b"\x1f\x8b\x08\x00", b"{/*c*/}",
    b"{" + b",".join(b'"p%d":%d' % (n, n) for n in range(260)) + b"}", b'{"TableName":"fuzz"}',
    b'{"TableName":5}', b'{"TableName":"\\u0000"}',
]  # fmt: skip


@st.composite
def _mutated(draw: st.DrawFn, content: bytes) -> bytes:
    """One accident: a piece is lost, doubled, moved or replaced."""
    if not content:
        return content
    start = draw(st.integers(0, len(content) - 1))
    end = min(len(content), start + draw(st.integers(1, 30)))
    piece = content[start:end]
    accidents = [
        b"",
        piece + piece,
        piece[::-1],
        b"\x00",
        b"\xff",
        b"\r\n",
        b"\n",
        b"--",
        b'"',
        b"\r\n\r\n",
        b"9" * 40,
        b":",
        b"{",
    ]
    return content[:start] + draw(st.sampled_from(accidents)) + content[end:]


@st.composite
def wild_bodies(draw: st.DrawFn) -> Request:
    body = draw(
        st.one_of(entities.map(lambda text: text.encode("utf-8", "replace")), st.sampled_from(ODD_BODIES))
    )
    if draw(st.integers(0, 3)) == 0:
        body = draw(_mutated(body))
    method = draw(st.sampled_from([b"POST", b"POST", b"PUT", b"MERGE", b"PATCH"]))
    path = (
        draw(usual_paths)
        if draw(st.integers(0, 9)) == 0
        else b"fuzz"
        if method == b"POST"
        else draw(entity_paths)
    )
    headers = [
        draw(st.sampled_from(ACCEPTS[:3])),
        draw(st.sampled_from([JSON_TYPE] * 5 + [(b"Content-Type", b"application/json; charset=x")])),
    ]
    if draw(st.booleans()):
        headers.append((b"Prefer", b"return-no-content"))
    return Request(method, to(path), headers, body)


# batches

changes = st.builds(
    Change,
    st.sampled_from(["DELETE", "GET"] + ["POST", "PUT", "MERGE", "PATCH"] * 5),
    st.sampled_from([TABLE] * 40 + ["other", "Tables", "x", "$batch"]),
    st.tuples(st.sampled_from(["p"] * 40 + ["q", ""]), st.one_of(*[st.integers(0, 200).map(str)] * 7, texts)),
    st.sampled_from(
        [{}, {"n": 1}, {"s": "text"}, {"n": 1.5, "s": "é"}] * 6 + [None, {"bad name": 1}, {"n": [1]}]
    ),
    st.sampled_from([""] * 12 + ["*", 'W/"x"', "bad"]),
)


@st.composite
def wild_batches(draw: st.DrawFn) -> Request:
    chosen = draw(st.lists(changes, max_size=5))
    boundary, body = write_batch(ACCOUNT, chosen)
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 1, 2]))):
        body = draw(_mutated(body))
    if draw(st.integers(0, 7)) == 0:
        body = body.replace(b"\r\n", b"\n")
    types = [b"multipart/mixed; boundary=" + boundary] * 50 + [
        b'multipart/mixed;boundary="%b"' % boundary, b"multipart/mixed", b"multipart/mixed; boundary=",
        b"application/json",
        b"multipart/form-data; boundary=" + boundary, b"multipart/mixed; boundary=" + b"x" * 2000,
        b'multipart/mixed; boundary="',
    ]  # fmt: skip
    return Request(b"POST", to(b"$batch"), [(b"Content-Type", draw(st.sampled_from(types)))], body)


# signatures

AUTHORIZATIONS = [
    b"", b"SharedKey", b"SharedKey ", b"SharedKey devstoreaccount1", b"SharedKey devstoreaccount1:",
    b"SharedKey devstoreaccount1:AAAA",
    b"SharedKey devstoreaccount1:!!!", b"SharedKey :x",
    b"SharedKeyLite devstoreaccount1:" + b"A" * 43 + b"=", b"Basic dTpw", b"Bearer x",
    b"SharedKey nobody:" + b"A" * 43 + b"=", b"sharedkey devstoreaccount1:x",
    b"SharedKey devstoreaccount1:" + b"A" * 60_000, b"\xff", b"SharedKey \xff:\xff",
    b"SharedKey a:b:c", b"Negotiate", b"SharedKey devstoreaccount1:" + "é".encode(),
]  # fmt: skip


@st.composite
def wild_signatures(draw: st.DrawFn) -> Request:
    request: Any = draw(st.one_of(wild_paths(), wild_queries(), wild_bodies(), wild_batches()))
    headers = [*request.headers, (b"Authorization", draw(st.sampled_from(AUTHORIZATIONS)))]
    if draw(st.integers(0, 4)) == 0:
        headers = list(request.headers)
    return Request(request.method, request.target, headers, request.body, signed=False)
