"""Query options and continuation tokens."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.errors import AuthenticationFailed, InvalidInput, InvalidUri
from storage.domain.filters.query import Position
from storage.domain.requests.options import read_options
from storage.protocol.query_options import read_entity_query, read_token, write_token
from tests.strategies import keys

A, B = write_token("a"), write_token("b")


def query(text):
    return read_entity_query(read_options(text.encode()), annotations=True)


# reading a query string


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("&&$top=5&", {"": "", "$top": "5"}),
        ("$select=A,%20B+C", {"$select": "A, B C", "raw:$select": "A,%20B+C"}),
        ("%24top=5", {"$top": "5"}),
        ("$filter=A+eq+'a%2Bb'", {"$filter": "A eq 'a+b'"}),
        ("$filter=A eq 'x=y'", {"$filter": "A eq 'x=y'"}),
        ("$filter=%C3%A9", {"$filter": "é"}),
        ("a", {"a": ""}),
        ("st=1&st=2&x=3&x=4", {"st": "2", "x": "4"}),
        ("nextpartitionkey=x&NEXTROWKEY=y", {"NextPartitionKey": "x", "NextRowKey": "y"}),
        ("Comp=acl&RESTYPE=service&Timeout=5", {"comp": "acl", "restype": "service", "timeout": "5"}),
        ("%=1", {"%": "1"}),
    ],
)
def test_reads_parameters(text, expected):
    assert read_options(text.encode()) == expected


def test_keeps_nothing_of_a_long_query():
    tracemalloc.start()
    try:
        for number in range(10):
            read_options(f"{number}={'x' * 1_000_000}".encode())
        assert tracemalloc.get_traced_memory()[0] < 3_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("text", ["$top=1&$top=1", "$filter=&$filter=", "$top=1&%24top=2"])
def test_refuses_a_system_option_that_comes_twice(text):
    with pytest.raises(InvalidInput):
        read_options(text.encode())


@pytest.mark.parametrize("text", [b"$filter=%ff", b"%ff=1", b"a=\xff", b"a=%ed%a0%80"])
def test_refuses_what_is_not_utf8(text):
    with pytest.raises(InvalidUri):
        read_options(text)


# continuation tokens


@given(keys)
def test_a_token_comes_back(key):
    assert read_token(write_token(key)) == key


@given(keys)
def test_a_token_needs_no_escape_in_a_url_or_a_header(key):
    token = write_token(key)

    assert token.isascii()
    assert all(character.isalnum() or character in "!._-" for character in token)
    assert read_options(f"NextRowKey={token}".encode())["NextRowKey"] == token


def test_tokens_are_those_of_the_service():
    assert write_token("Smith") == "1!8!U21pdGg-"
    assert read_token("1!8!U21pdGg-") == "Smith"
    assert write_token("") == "1!0!"


@pytest.mark.parametrize(
    "token",
    ["", "Smith", "1!7!U21pdGg-", "2!8!U21pdGg-", "1!8!U21pdGg=", "1!8!U21p Gg-", "1!7!U21pdGg", "1!4!_w--",
     "1!4!AA--", "1!-1!", "1!999999!x", "1!8!U21pdGg-\n", "1!4!é---"],
)  # fmt: skip
def test_refuses_a_bad_token(token):
    with pytest.raises(InvalidInput):
        read_token(token)


@given(st.text(max_size=30))
def test_any_other_text_is_a_bad_token_or_none_of_our_business(text):
    try:
        key = read_token(text)
    except InvalidInput:
        return
    assert "\x00" not in key


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"NextPartitionKey={A}&NextRowKey={B}", Position("a", "b")),
        (f"NextPartitionKey={A}&NextRowKey=1!0!", Position("a", "")),
        (f"NextPartitionKey={A}&NextRowKey=", Position("a", "")),
        (f"NextPartitionKey={A}", Position("a", "")),
        ("NextPartitionKey=1!0!&NextRowKey=1!0!", Position("", "")),
        (f"NextPartitionKey=1%210%21&NextRowKey={B.replace('!', '%21')}", Position("", "b")),
    ],
)
def test_where_a_query_goes_on(text, expected):
    assert query(text).start == expected


@pytest.mark.parametrize(
    "text", [f"NextRowKey={B}", "NextPartitionKey=x", f"NextPartitionKey={A}&NextRowKey=x"]
)
def test_refuses_to_go_on_from_nowhere(text):
    with pytest.raises(InvalidInput):
        query(text)


@pytest.mark.parametrize("text", ["sp=r&sp=raud&sig=x", "SP=r&sp=r&sig=x", "%73p=&sp=r&sig=x", "sig=x&SIG=x"])
def test_refuses_a_token_that_says_something_twice(text):
    with pytest.raises(AuthenticationFailed):
        read_options(text.encode())
