"""Tokens changed without the key: none is accepted, and the answer is only a refusal."""

import base64
import itertools
from urllib.parse import quote

import pytest

from tests.faults import tokens
from tests.faults.connection import Connection, Request
from tests.wire.tokens import ACCOUNT_FIELDS, TABLE_FIELDS

REFUSED = (403, "AuthenticationFailed")
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
# well-formed values that would help the holder of the token
OTHERS = {
    "sv": ["2012-02-12", "2015-02-21", "2015-04-05", "2019-02-03", "2020-12-06", "2099-01-01"],
    "st": ["2019-01-01", "2020-01-01", "2020-01-01T00:00Z", "2020-01-01T00:00:00.0Z", "2020-01-01T01:00:00+01:00"],
    "se": ["2099-01-01", "2099-01-01T00:00Z", "2099-01-01T00:00:01Z", "9999-12-31", "2099-01-01T00:00:00.0Z"],
    "sp": ["raud", "rr", "ra", "d"],
    "sip": ["127.0.0.1", "0.0.0.0-255.255.255.255", "127.0.0.0-127.0.0.10", "::ffff:127.0.0.0-127.0.0.9"],
    "spr": ["https", "http,https"],
    "spk": ["a", "b ", "B", "ｂ"],
    "srk": ["1", "0", "02", "２"],
    "epk": ["c", "bb", "z"],
    "erk": ["5", "40", "9"],
    "si": ["readers", "0"],
    "ss": ["bqtf", "tt"],
    "srt": ["sco", "oo"],
    "ses": ["vault"],
    "sig": ["", "A" * 43 + "=", "null", "=", "é", "A" * 8000],
}  # fmt: skip


@pytest.fixture(scope="module")
def connection(server):
    with Connection(server) as connection:
        yield connection


@pytest.fixture(scope="module")
def people(connection):
    """Make a table with the partitions a to c of five rows each, next to another table."""
    connection.create_table("OtherKept")
    connection.create_table("PeopleKept")
    for partition, row in itertools.product("abc", "12345"):
        connection.insert("PeopleKept", {"PartitionKey": partition, "RowKey": row})
    connection.insert("OtherKept", {"PartitionKey": "b", "RowKey": "3"})
    return "PeopleKept"


@pytest.fixture(params=["table", "account"])
def token(request, connection, people):
    make = {
        "table": lambda: tokens.of_table(people, connection.account),
        "account": lambda: tokens.of_account(connection.account),
    }
    return make[request.param]()


@pytest.fixture
def status(connection, people):
    return lambda options: tokens.status(connection, people, options)


def test_unchanged_tokens_are_valid(token, status):
    assert status(token) == (200, "")


# field by field


def test_no_field_can_be_changed(token, status):
    for name, value in token.items():
        variants = [value + " ", " " + value, value + value, value[:-1], value + "\n", value + "\0"]
        for other in OTHERS.get(name, []) + variants:
            if other != value:
                assert status({**token, name: other}) == REFUSED, (name, other)


def test_no_field_can_be_left_out(token, status):
    for name in token:
        left = {other: value for other, value in token.items() if other != name}
        assert status(left) == REFUSED, name


def test_no_field_can_be_added(token, status):
    for name in tokens.FIELDS:
        if name not in token:
            for value in OTHERS.get(name, ["PeopleKept"]):
                assert status({**token, name: value}) == REFUSED, (name, value)


def test_no_field_comes_twice(token, status):
    """A reader of the first value and a reader of the last one would see two tokens."""
    for name, value in token.items():
        for other_name in (name, name.upper(), name.title(), f"%{ord(name[0]):02x}{name[1:]}"):
            for other in (value, "", *OTHERS.get(name, [])[:2]):
                doubled = f"{other_name}={quote(other, safe='')}".encode()
                whole = tokens.query(token)
                assert status(whole + b"&" + doubled) == REFUSED, doubled
                assert status(doubled + b"&" + whole) == REFUSED, doubled


# spellings


def test_the_same_token_in_another_spelling_stays_the_same_token(token, status):
    """Order, percent-encoding and the letter case of names are the URL's, not the token's."""
    pairs = list(token.items())
    assert status(pairs[::-1]) == (200, "")
    for shift in range(len(pairs)):
        assert status(pairs[shift:] + pairs[:shift]) == (200, "")
    everything = "&".join(f"{escaped(name)}={escaped(value)}" for name, value in pairs).encode()
    assert status(everything) == (200, "")
    assert status(everything.lower()) == (200, "")
    assert status(tuple((name.upper(), value) for name, value in pairs)) == (200, "")
    assert status((("", ""), *pairs, ("x", "1"), ("x", "2"))) == (200, "")
    assert status((*pairs, ("si", ""), ("skoid", ""))) == (200, "")


def escaped(text):
    return "".join(f"%{byte:02X}" for byte in text.encode())


def test_the_signature_has_one_spelling(token, status):
    sig = token["sig"]
    twin = sig[:-2] + ALPHABET[ALPHABET.index(sig[-2]) ^ 1] + "="
    assert base64.b64decode(twin) == base64.b64decode(sig)
    spellings = [
        twin, sig.rstrip("="), sig + "=", sig + "==", sig + "\n", " " + sig, sig[:20] + "\n" + sig[20:],
        sig[:20] + " " + sig[20:],
        sig.replace("+", "-").replace("/", "_"), sig.replace("+", " "), sig.lower(), sig.upper(),
        quote(sig, safe=""), f'"{sig}"',
        base64.b64decode(sig).hex(), base64.b64encode(sig.encode()).decode(), sig + "\0", sig + "é",
        "=" + sig, sig * 2,
        sig.translate(str.maketrans("ABCabc012", "ＡＢＣａｂｃ０１２")),
    ]  # fmt: skip
    for other in spellings:
        if other != sig:
            assert status({**token, "sig": other}) == REFUSED, other


# newlines


def test_no_newline_shifts_a_field_into_its_neighbour(connection, people):
    """Fields are joined by newlines: one that held a newline could be read as two."""
    given = {"sv": "2019-02-02", "tn": people, "sp": "r", "se": "2099-01-01", "si": ""}
    moved = 0
    for order, fields in ((TABLE_FIELDS, {**given, **tokens.BOUNDS}), (ACCOUNT_FIELDS, tokens.ACCOUNT)):
        good = tokens.signed(fields, connection.account)
        for one, other in itertools.pairwise(order):
            if "tn" in (one, other):
                continue
            joined = {**good, one: f"{good.get(one, '')}\n{good.get(other, '')}"}
            for shifted in (joined | {other: ""}, {k: v for k, v in joined.items() if k != other}):
                assert tokens.status(connection, people, shifted) == REFUSED, (one, other)
                moved += 1
    assert moved > 20


# shapes of requests

METHODS = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "MERGE",
    "PATCH",
    "DELETE",
    "get",
    "Put",
    "OPTIONS",
    "COPY",
    "CONNECT",
]
PATHS = [
    "", "Tables", "Tables()", "tables", "Tables('PeopleKept')", "$batch", "PeopleKept", "PeopleKept()",
    "peoplekept('b')",
    "PeopleKept(PartitionKey='b',RowKey='3')", "PeopleKept(RowKey='3',PartitionKey='b')", "PeopleKept/$batch",
    "PeopleKept/Tables('PeopleKept')", "OtherKept()", "OtherKept('b')", "OtherKept/Tables('OtherKept')",
    "$MetricsHourPrimaryTransactionsTable",
]  # fmt: skip
EXTRAS = [
    "", "comp=", "comp=acl", "COMP=acl", "restype=service", "restype=&comp=properties",
    "restype=service&comp=properties", "comp=acl&comp=none", "comp=none&comp=acl",
]  # fmt: skip
HEADERS = [
    {},
    {"If-Match": "*"},
    {"X-HTTP-Method": "MERGE"},
    {"X-HTTP-Method": "DELETE", "If-Match": "*"},
    {"X-HTTP-Method": "PUT"},
]


@pytest.mark.long
def test_no_shape_of_a_request_does_more_than_the_token_grants(connection, people):
    reading = [tokens.of_table(people, connection.account), tokens.of_account(connection.account)]
    # an entity with the key in the body already exists
    nothing = [
        tokens.of_table(people, connection.account, sp="a"),
        tokens.of_account(connection.account, sp="aw"),
    ]
    before = everything(connection, people)
    for token, method, path, extra, headers in itertools.product(
        (*reading, *nothing), METHODS, PATHS, EXTRAS, HEADERS
    ):
        if "X-HTTP-Method" in headers and method not in ("POST", "GET"):
            continue
        options = tokens.query(token) + b"&" + extra.encode()
        fields = [
            (b"Content-Type", b"application/json"),
            *((k.encode(), v.encode()) for k, v in headers.items()),
        ]
        target = f"/{connection.account}/{path}?".encode() + options
        body = None if method in ("GET", "HEAD") else b'{"PartitionKey":"b","RowKey":"3","x":1}'
        connection.send_bytes(
            connection.written(Request(method.encode(), target, fields, body, signed=False))
        )
        answer = connection.read(head=method == "HEAD")
        readable = (people, "OtherKept") if "ss" in token else people
        may_read = (
            token in reading and method == "GET" and path.startswith(readable) and "comp" not in extra.lower()
        )
        assert answer.status >= 400 or may_read, (method, path, extra, headers, answer)
        assert answer.status < 500 or answer.status == 501, (method, path, extra, headers, answer)
    assert everything(connection, people) == before


def everything(connection, table):
    return (
        connection.entities(table),
        connection.request("GET", table, query="comp=acl").body,
        connection.request("GET", "", query="restype=service&comp=properties").body,
        connection.request("GET", "Tables").json()["value"],
    )


# stored data


def test_no_log_holds_a_signature(server, token, status):
    wrong = {**token, "sig": base64.b64encode(b"forged signature of 32 bytes long").decode()}
    assert status(wrong) == REFUSED
    log = "\n".join(server.output)
    assert token["sig"] not in log and wrong["sig"] not in log and "sig=" not in log
