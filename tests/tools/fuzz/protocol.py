"""Hypothesis strategies for requests that range from nearly valid to absurd, all to the account they are signed for."""

import json
from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

from tests.faults.connection import Change, Request, write_batch
from tests.tools.fuzz import values

ACCOUNT = "devstoreaccount1"
TABLE = "fuzz"

Fields = list[tuple[bytes, bytes]]

METHODS = st.sampled_from([b"GET", b"POST", b"PUT", b"MERGE", b"PATCH", b"DELETE", b"HEAD"])
ODD_METHODS = st.sampled_from([b"OPTIONS", b"TRACE", b"CONNECT", b"LOCK", b"PURGE", b"get", b"FOO", b"PRI"])
texts = st.one_of(
    st.sampled_from(values.ODD_TEXTS),
    st.lists(st.sampled_from(values.SHORT_TEXTS), max_size=4).map("".join),
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


@st.composite
def wild_paths(draw: st.DrawFn) -> Request:
    pieces = st.sampled_from(values.PATH_PIECES)
    path = draw(
        st.one_of(
            st.lists(pieces, min_size=1, max_size=5).map(b"".join),
            entity_paths,
            st.builds(
                lambda path, piece: path + piece,
                entity_paths,
                st.sampled_from(values.PATH_PIECES + values.UNSENDABLE_PIECES),
            ),
        )
    )
    headers = [draw(st.sampled_from(values.ACCEPTS)), JSON_TYPE]
    if draw(st.booleans()):
        headers.append((b"If-Match", b"*"))
    target = to(path) if draw(st.integers(0, 9)) else b"/" + path
    method = draw(st.one_of(METHODS, METHODS, ODD_METHODS))
    if method == b"HEAD" and any(piece in path for piece in values.UNSENDABLE_PIECES):
        method = b"GET"  # the connection is closed after an answer that may have a body
    return Request(method, target, headers, draw(small_bodies))


# queries

comparisons = st.one_of(
    st.builds(
        lambda left, operator, right: f"{left} {operator} {right}",
        st.sampled_from(values.PROPERTIES[:6]),
        st.sampled_from(values.OPERATORS[:9]),
        st.sampled_from(values.LITERALS),
    ),
    st.builds(
        lambda left, operator, right: f"{left} {operator} {right}",
        st.sampled_from(values.PROPERTIES + values.LITERALS),
        st.sampled_from(values.OPERATORS),
        st.sampled_from(values.LITERALS + values.PROPERTIES),
    ),
)
filters = st.one_of(
    st.builds(
        lambda shape, left, right: shape.format(left, right),
        st.sampled_from(values.SHAPES),
        comparisons,
        comparisons,
    ),
    st.sampled_from(values.ODD_FILTERS),
    texts,
)
options = st.one_of(
    st.tuples(st.just("$filter"), filters),
    st.tuples(st.just("$filter"), filters),
    st.tuples(st.just("$top"), st.one_of(st.sampled_from(values.TOPS), texts)),
    st.tuples(st.just("$select"), st.one_of(st.sampled_from(values.SELECTS), texts)),
    st.tuples(
        st.sampled_from(["NextPartitionKey", "NextRowKey", "NextTableName"]),
        st.one_of(st.sampled_from(values.TOKENS), texts),
    ),
    st.tuples(st.just("$format"), st.sampled_from(values.FORMATS)),
    st.tuples(st.sampled_from(values.OPTION_NAMES), st.one_of(st.sampled_from(values.TOPS), texts)),
)
raw_queries = st.lists(
    st.sampled_from(b"& = % %zz %00 %FF + $filter $filter= ? n%20eq%201 ; comp=acl".split()),
    max_size=6,
).map(b"".join)


def write_query(chosen: list[tuple[str, str]]) -> bytes:
    return b"&".join(b"%b=%b" % (name.encode(), escaped(value[:3000])) for name, value in chosen)


queries = st.one_of(st.lists(options, min_size=1, max_size=3).map(write_query), raw_queries)


@st.composite
def wild_queries(draw: st.DrawFn) -> Request:
    target = to(draw(usual_paths)) + b"?" + draw(queries)
    method = draw(st.sampled_from([b"GET"] * 18 + [b"POST", b"HEAD"]))
    return Request(method, target, [draw(st.sampled_from(values.ACCEPTS[:3] * 4 + values.ACCEPTS))])


# headers

header_fields = st.sampled_from(sorted(values.HEADER_VALUES)).flatmap(
    lambda name: st.tuples(st.just(name), st.sampled_from(values.HEADER_VALUES[name] * 3 + values.ODD_VALUES))
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

members = st.one_of(
    st.builds(
        lambda name, value: f"{json.dumps(name)}:{value}",
        st.sampled_from(values.NAMES),
        st.sampled_from(values.RAW_VALUES),
    ),
    st.builds(
        lambda name, kind, value: f'"{name}":{value},"{name}@odata.type":"{kind}"',
        st.sampled_from(["n", "s", "t", "PartitionKey"]),
        st.sampled_from(values.TYPES),
        st.sampled_from(values.RAW_VALUES),
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


@st.composite
def mutated(draw: st.DrawFn, content: bytes) -> bytes:
    """Return the content after one accident: a piece is lost, doubled, moved or replaced."""
    if not content:
        return content
    start = draw(st.integers(0, len(content) - 1))
    end = min(len(content), start + draw(st.integers(1, 30)))
    piece = content[start:end]
    accidents = [
        b"", piece + piece, piece[::-1], b"\x00", b"\xff", b"\r\n", b"\n", b"--", b'"', b"\r\n\r\n", b":", b"{",
    ]  # fmt: skip
    return content[:start] + draw(st.sampled_from(accidents)) + content[end:]


@st.composite
def wild_bodies(draw: st.DrawFn) -> Request:
    body = draw(
        st.one_of(
            entities.map(lambda text: text.encode("utf-8", "replace")), st.sampled_from(values.ODD_BODIES)
        )
    )
    if draw(st.integers(0, 3)) == 0:
        body = draw(mutated(body))
    method = draw(st.sampled_from([b"POST", b"POST", b"PUT", b"MERGE", b"PATCH"]))
    path = (
        draw(usual_paths)
        if draw(st.integers(0, 9)) == 0
        else b"fuzz"
        if method == b"POST"
        else draw(entity_paths)
    )
    headers = [
        draw(st.sampled_from(values.ACCEPTS[:3])),
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
        body = draw(mutated(body))
    if draw(st.integers(0, 7)) == 0:
        body = body.replace(b"\r\n", b"\n")
    types = [b"multipart/mixed; boundary=" + boundary] * 50 + [
        b'multipart/mixed;boundary="%b"' % boundary, b"multipart/mixed", b"multipart/mixed; boundary=",
        b"application/json", b"multipart/form-data; boundary=" + boundary,
        b"multipart/mixed; boundary=" + b"x" * 2000, b'multipart/mixed; boundary="',
    ]  # fmt: skip
    return Request(b"POST", to(b"$batch"), [(b"Content-Type", draw(st.sampled_from(types)))], body)


# signatures


@st.composite
def wild_signatures(draw: st.DrawFn) -> Request:
    request: Any = draw(st.one_of(wild_paths(), wild_queries(), wild_bodies(), wild_batches()))
    headers = [*request.headers, (b"Authorization", draw(st.sampled_from(values.AUTHORIZATIONS)))]
    if draw(st.integers(0, 4)) == 0:
        headers = list(request.headers)
    return Request(request.method, request.target, headers, request.body, signed=False)
