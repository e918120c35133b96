"""Batches in the layouts of real clients, in generated ones, and as no layout at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.errors import InvalidHeaderValue, InvalidInput, MediaTypeNotSupported, StorageError
from storage.protocol.multipart import MAX_CHANGES, ChangeSet, read_batch
from tests.cost import costs_less_than

ENVELOPE = b"multipart/mixed; boundary=batch_1"

PYTHON = b"""\
--batch_1
Content-Type: multipart/mixed; boundary=changeset_1

--changeset_1
Content-Type: application/http
Content-Transfer-Encoding: binary
Content-ID: 0

POST https://acct.table.core.windows.net/people HTTP/1.1
x-ms-version: 2019-02-02
Content-Type: application/json;odata=nometadata
Content-Length: 999

{"PartitionKey":"p","RowKey":"r"}
--changeset_1
Content-Type: application/http
Content-Transfer-Encoding: binary
Content-ID: 1

DELETE https://acct.table.core.windows.net/people(PartitionKey='p',RowKey='s') HTTP/1.1
If-Match: *


--changeset_1--

--batch_1--
""".replace(b"\n", b"\r\n")
QUERY = b"""\
--batch_1
content-type: application/http

GET https://acct.table.core.windows.net/people(PartitionKey='p',RowKey='r') HTTP/1.1
Accept: application/json

--batch_1--""".replace(b"\n", b"\r\n")


def changes(*parts, before=b"", after=b""):
    return (
        b"--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n"
        + before
        + b"".join(b"--changeset_1\r\n" + part + b"\r\n" for part in parts)
        + b"--changeset_1--\r\n"
        + after
        + b"--batch_1--\r\n"
    )


def change(request=b"DELETE /people(PartitionKey='p',RowKey='r') HTTP/1.1", headers=b"", body=b""):
    return b"Content-Type: application/http\r\n\r\n" + request + b"\r\n" + headers + b"\r\n" + body


def read_one(part):
    batch = read_batch(ENVELOPE, changes(part))
    assert isinstance(batch, ChangeSet)
    (only,) = batch.parts
    return only


def test_reads_a_change_set():
    insert, delete = read_batch(ENVELOPE, PYTHON).parts
    assert insert.head.method == "POST"
    assert insert.target == b"https://acct.table.core.windows.net/people"
    assert insert.head.headers == {
        b"x-ms-version": b"2019-02-02",
        b"content-type": b"application/json;odata=nometadata",
        b"content-length": b"999",
    }
    assert insert.body == b'{"PartitionKey":"p","RowKey":"r"}'
    assert delete.head.method == "DELETE"
    assert delete.target == b"https://acct.table.core.windows.net/people(PartitionKey='p',RowKey='s')"
    assert delete.head.headers == {b"if-match": b"*"}
    assert delete.body == b""


def test_keeps_only_a_content_id_that_stands_among_the_http_headers():
    assert read_batch(ENVELOPE, PYTHON).parts[1].head.content_id is None
    assert read_one(change(headers=b"Content-ID: 7\r\n")).head.content_id == b"7"


@pytest.mark.parametrize(
    "envelope",
    [
        b'multipart/mixed; boundary="batch_1"',
        b"Multipart/Mixed;charset=utf-8 ; BOUNDARY = batch_1 ; x=y",
        b'multipart/mixed; x="a;boundary=no"; boundary=batch_1',
        b"multipart/mixed;flag;boundary=batch_1",
    ],
)
def test_reads_the_boundary_in_every_form(envelope):
    assert len(read_batch(envelope, PYTHON).parts) == 2


@pytest.mark.parametrize("boundary", [b"a b", b"(=?:/+,')", b"--", b"batch_\xe9"])
def test_takes_any_characters_for_a_boundary(boundary):
    body = PYTHON.replace(b"batch_1", boundary)
    assert len(read_batch(b'multipart/mixed; boundary="%b"' % boundary, body).parts) == 2


@pytest.mark.parametrize(
    "body",
    [
        PYTHON.replace(b"\r\n", b"\n"),
        PYTHON.replace(b"\r\n\r\n", b"\n\n"),
        PYTHON.replace(b"\r\n\r\n", b"\r\n\r\n\r\n"),
        PYTHON.replace(b"\r\n--", b"\r\n\r\n\r\n--"),
        b"\r\n" + PYTHON + b"\r\n\r\n",
        b"a preamble\r\n" + PYTHON + b"an epilogue",
        PYTHON.removesuffix(b"--batch_1--\r\n"),
        PYTHON.removesuffix(b"--changeset_1--\r\n\r\n--batch_1--\r\n"),
        PYTHON.replace(b"_1--", b"_1"),
        PYTHON.replace(b"Content-Type: application/http\r\n", b""),
        PYTHON.replace(b"binary\r\n", b"binary\r\n\t(folded)\r\n"),
        PYTHON.replace(b"HTTP/1.1\r\n", b"HTTP/1.1\r\n\r\n"),
        PYTHON.replace(b"If-Match: *\r\n\r\n\r\n", b"If-Match: *\r\n"),
        PYTHON.replace(b"boundary=changeset_1", b'boundary="changeset_1"'),
    ],
)
def test_reads_the_layouts_of_all_clients(body):
    parts = read_batch(ENVELOPE, body).parts
    assert [part.head.method for part in parts] == ["POST", "DELETE"]
    assert parts[0].body == b'{"PartitionKey":"p","RowKey":"r"}'
    assert parts[1].head.headers == {b"if-match": b"*"}


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":"--changeset_1--"}',
        b'{"a":"\\n--changeset_1"}',
        b'{\n--changeset_12\n"a":1}',
        b'{\n--changeset_1-- x\n"a":1}',
        b'{\n --changeset_1\n"a":1}',
    ],
)
def test_text_resembling_a_delimiter_belongs_to_the_body(body):
    assert read_one(change(b"PUT /people(PartitionKey='',RowKey='') HTTP/1.1", body=body)).body == body


def test_splits_the_request_line_at_the_first_and_the_last_space():
    assert read_one(change(b"MERGE http://h/people(PartitionKey='a b',RowKey='') HTTP/1.1")).target == (
        b"http://h/people(PartitionKey='a b',RowKey='')"
    )


def test_parts_with_equal_heads_share_one_that_cannot_be_changed():
    parts = [change(headers=b"A: b\r\n", body=b"1"), change(headers=b"A: b\r\n", body=b"2")]
    first, second = read_batch(ENVELOPE, changes(*parts)).parts
    assert first.head is second.head
    assert (first.body, second.body) == (b"1", b"2")
    with pytest.raises(TypeError):
        first.head.headers[b"x"] = b"y"


def test_reads_a_head_of_65_536_bytes():
    path = b"x" * (65_536 - len(b"POST / HTTP/1.1\r\na: b\r\n\r\n"))
    assert read_one(change(b"POST /%b HTTP/1.1" % path, headers=b"a: b\r\n")).target == b"/" + path


def test_reads_one_part_more_than_may_be():
    for count, read in [
        (MAX_CHANGES, MAX_CHANGES),
        (MAX_CHANGES + 1, MAX_CHANGES + 1),
        (500, MAX_CHANGES + 1),
    ]:
        assert len(read_batch(ENVELOPE, changes(*[change()] * count)).parts) == read


@pytest.mark.parametrize("body", [changes(), changes(b"")], ids=["nothing", "a blank part"])
def test_a_change_set_may_be_empty(body):
    assert read_batch(ENVELOPE, body) == ChangeSet([])


@pytest.mark.parametrize(
    ("content_type", "error"),
    [
        (None, MediaTypeNotSupported),
        (b"", MediaTypeNotSupported),
        (b"multipart/form-data; boundary=batch_1", MediaTypeNotSupported),
        (b"multipart/mixed", InvalidHeaderValue),
        (b"multipart/mixed; boundary=", InvalidHeaderValue),
        (b"multipart/mixed; boundary", InvalidHeaderValue),
        (b"multipart/mixed; x=boundary", InvalidHeaderValue),
        pytest.param(b"multipart/mixed; boundary=" + b"b" * 2000, InvalidHeaderValue, id="too long"),
        (b"multipart/mixed; boundary=batch_2", InvalidInput),
    ],
)
def test_refuses_envelopes(content_type, error):
    with pytest.raises(error):
        read_batch(content_type, PYTHON)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--batch_1\r\n--batch_1--",
        b"{}",
        changes().replace(b"changeset_1--", b""),
        changes(change(b"GET /people HTTP/1.1")),
        changes(change(b"FOO /people HTTP/1.1")),
        changes(change(b"POST /people")),
        changes(change(b"POST HTTP/1.1")),
        changes(change().replace(b"application/http", b"application/json")),
        pytest.param(changes(change(), change(headers=b"a: b\r\n" * 1000)), id="1000 headers"),
        pytest.param(changes(change(), change(headers=b"a: %b\r\n" % (b"b" * 65_536))), id="long header"),
        pytest.param(changes(change(), change(b"POST /%b HTTP/1.1" % (b"%" * 65_536))), id="long line"),
        pytest.param(
            changes(*(change(b"DELETE /t(%b) HTTP/1.1" % (key * 65_536)) for key in (b"a", b"b"))),
            id="long keys",
        ),
        PYTHON.replace(b"; boundary=changeset_1", b""),
        PYTHON.replace(b"mixed; boundary=changeset_1", b"related; boundary=changeset_1"),
        QUERY.replace(b"GET", b"POST"),
        QUERY.removesuffix(b"--batch_1--") + PYTHON,
        PYTHON.removesuffix(b"--batch_1--\r\n") + PYTHON,
    ],
)
def test_refuses_batches_other_than_a_change_set_or_a_query(body):
    with pytest.raises(InvalidInput):
        read_batch(ENVELOPE, body)


LINE_END = st.sampled_from([b"\r\n", b"\n"])
BLANK_LINES = st.lists(st.sampled_from([b"\r\n", b"\n", b" \r\n", b"\t\n"]), max_size=3).map(b"".join)
PADDING = st.sampled_from([b"", b" ", b"\t", b"  "])
BODY = st.sampled_from([b"", b"{}", b'{"a":"--b--"}', b'{\r\n\r\n"a": 1\n}', b'{\n--bx\n"a":1}', b"[\xff\0]"])
CHANGE = st.tuples(
    st.sampled_from([b"POST", b"PUT", b"MERGE", b"PATCH", b"DELETE"]),
    st.sampled_from([b"/people", b"http://h:1/a/people(PartitionKey='--b',RowKey=':')", b"people('a b')"]),
    st.dictionaries(
        st.sampled_from([b"if-match", b"prefer", b"content-id"]), st.sampled_from([b"*", b'W/"x:y"', b""])
    ),
    BODY,
)


@st.composite
def layouts(draw):
    """Draw changes, and a batch that holds them with arbitrary line ends, blank lines and padding."""
    parts = draw(st.lists(CHANGE, min_size=1, max_size=4))
    lines = [b"--o" + draw(PADDING), b"Content-Type:" + draw(PADDING) + b'multipart/mixed; boundary="b"']
    lines += [draw(BLANK_LINES)]
    for method, target, headers, body in parts:
        lines += [b"--b" + draw(PADDING), b"Content-Type: application/http", draw(BLANK_LINES)]
        lines += [method + b" " + target + b" HTTP/1.1"]
        lines += [name + b":" + draw(PADDING) + value for name, value in headers.items()]
        lines += [b"" + draw(BLANK_LINES), body, draw(BLANK_LINES)]
    lines += draw(
        st.sampled_from([[], [b"--b"], [b"--b--"], [b"--b--", b"--o--"], [b"--b--", b"", b"--o", b""]])
    )
    return parts, draw(BLANK_LINES) + b"".join(line + draw(LINE_END) for line in lines)


@given(layouts())
def test_reads_every_layout(layout):
    expected, body = layout
    read = read_batch(b"multipart/mixed; boundary=o", body).parts
    assert [
        (part.head.method.encode(), part.target, part.head.headers, part.body) for part in read
    ] == expected


PIECES = st.sampled_from([
    b"--o", b"--b", b"--", b"\r\n", b"\n", b" ", b":", b"=", b'"', b";", b"{}", b"\0", b"\xff",
    b"Content-Type: multipart/mixed; boundary=b", b"Content-Type: application/http", b"POST /people HTTP/1.1",
    b"GET", b"HTTP/1.1",
])  # fmt: skip


@given(
    st.one_of(st.none(), st.binary(max_size=60), st.lists(PIECES, max_size=6).map(b"".join)),
    st.one_of(st.binary(max_size=200), st.lists(PIECES, max_size=40).map(b"".join)),
)
def test_bad_batches_only_raise_the_service_s_errors(content_type, body):
    for envelope in (
        content_type,
        b"multipart/mixed;boundary=" + (content_type or b"o"),
        b"multipart/mixed;boundary=o",
    ):
        try:
            read_batch(envelope, body)
        except StorageError:
            pass


HOSTILE = {
    "blank lines": b"\n" * 4_000_000,
    "headers": b"--o\n" + b"a:\n" * 1_300_000,
    "delimiters": b"--o\n" * 1_000_000,
    "delimiters within a line": b"--o\nx" + b"--o" * 1_300_000,
    "delimiters of a longer boundary": b"--o\n" + b"\n--ox" * 800_000,
    "delimiters of a change set": b"--o\nContent-Type: multipart/mixed; boundary=b\n\n" + b"--b\n" * 900_000,
    "parameters": b"--o\nContent-Type: multipart/mixed;" + b"a=b;" * 900_000,
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_takes_no_longer_than_the_body_is_long(body):
    with costs_less_than(5), pytest.raises(InvalidInput):
        read_batch(b"multipart/mixed; boundary=o", body)
