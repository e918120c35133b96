"""Query options and continuation tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.errors import (
    AuthenticationFailed,
    InvalidInput,
    InvalidQueryParameterValue,
    InvalidUri,
    NotImplemented,
    OutOfRangeQueryParameterValue,
)
from storage.domain.filters import parse
from storage.domain.filters.query import EntityQuery, Position, TableQuery
from storage.domain.requests.options import read_options
from storage.protocol.query_options import (
    check_options,
    read_entity_query,
    read_select,
    read_table_query,
    read_token,
    write_token,
)
from tests.strategies import keys

A, B = write_token("a"), write_token("b")


def query(text):
    return read_entity_query(read_options(text.encode()), annotations=True)


# reading a query string


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("$top=5", {"$top": "5"}),
        ("%24top=5", {"$top": "5"}),
        ("$top=5&$filter=A%20eq%201", {"$top": "5", "$filter": "A eq 1"}),
        ("$filter=A+eq+'a%2Bb'", {"$filter": "A eq 'a+b'"}),
        ("$filter=A eq 'x=y'", {"$filter": "A eq 'x=y'"}),
        ("$filter=%C3%A9", {"$filter": "é"}),
        ("$filter=\xe9".encode().decode(), {"$filter": "é"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("a=1&a=2", {"a": "2"}),
        ("nextpartitionkey=x&NEXTROWKEY=y", {"NextPartitionKey": "x", "NextRowKey": "y"}),
        ("Comp=acl&RESTYPE=service&Timeout=5", {"comp": "acl", "restype": "service", "timeout": "5"}),
        ("%=1", {"%": "1"}),
    ],
)
def test_reads_parameters(text, expected):
    assert read_options(text.encode()) == expected


def test_keeps_the_selection_also_as_it_was_sent():
    assert read_options(b"$select=A,%20B+C") == {"$select": "A, B C", "raw:$select": "A,%20B+C"}


def test_ignores_separators_too_many():
    assert read_options(b"&&$top=5&")["$top"] == "5"


@pytest.mark.parametrize("text", ["$top=1&$top=1", "$filter=&$filter=", "$top=1&%24top=2"])
def test_refuses_a_system_option_that_comes_twice(text):
    with pytest.raises(InvalidInput):
        read_options(text.encode())


@pytest.mark.parametrize("text", [b"$filter=%ff", b"%ff=1", b"a=\xff", b"a=%ed%a0%80"])
def test_refuses_what_is_not_utf8(text):
    with pytest.raises(InvalidUri):
        read_options(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "$filter=x&$top=1&$select=A&$format=json",
        "unknown=1&se=2",
        "timeout=1",
        "timeout=99999",
        "orderby=A",
    ],
)
def test_accepts_options(text):
    check_options(read_options(text.encode()))


@pytest.mark.parametrize(
    "name", ["$orderby", "$skip", "$inlinecount", "$count", "$expand", "$skiptoken", "$Top", "$"]
)
def test_refuses_options_that_the_service_has_not(name):
    with pytest.raises(NotImplemented):
        check_options(read_options(f"{name}=1".encode()))


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("", InvalidQueryParameterValue),
        ("x", InvalidQueryParameterValue),
        ("1.5", InvalidQueryParameterValue),
        ("9" * 100, InvalidQueryParameterValue),
        ("0", OutOfRangeQueryParameterValue),
        ("-1", OutOfRangeQueryParameterValue),
    ],
)
def test_refuses_a_bad_timeout(value, error):
    with pytest.raises(error) as refusal:
        check_options(read_options(f"timeout={value}".encode()))

    assert refusal.value.details == {"QueryParameterName": "timeout", "QueryParameterValue": value}


# queries


def test_a_query_that_asks_for_nothing_in_particular():
    assert query("") == EntityQuery()
    assert query("$filter=&$select=&$top=&NextPartitionKey=&NextRowKey=") == EntityQuery()
    assert read_table_query({}) == TableQuery()


def test_a_query_with_everything():
    text = f"$filter=A%20eq%201&$select=A,B&$top=7&NextPartitionKey={A}&NextRowKey={B}"

    assert query(text) == EntityQuery(parse("A eq 1"), ("A", "B"), 7, Position("a", "b"))
    assert read_table_query(read_options(f"$filter=A eq 1&$top=7&NextTableName={A}".encode())) == TableQuery(
        parse("A eq 1"), 7, "a"
    )


@pytest.mark.parametrize(("text", "expected"), [("0", 0), ("1", 1), ("1000", 1000), ("007", 7), ("", 1000)])
def test_top(text, expected):
    assert query(f"$top={text}").top == expected


@pytest.mark.parametrize("text", ["1001", "-1", "x", "1.0", "1e2", "+5", " 5", "0x1", "٣", "9" * 50, "%00"])
def test_refuses_a_bad_top(text):
    with pytest.raises(InvalidInput):
        query(f"$top={text}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A", ("A",)),
        ("A,B", ("A", "B")),
        (" A , B ", ("A", "B")),
        ("B,A,B", ("B", "A")),
        ("a,A", ("a", "A")),
        ("PartitionKey", ("PartitionKey",)),
        ("*", None),
        ("A,*", None),
        ("", None),
        (" ", None),
        ("é", ("é",)),
    ],
)
def test_select(text, expected):
    assert read_select({"$select": text}) == expected


def test_select_of_255_names_and_no_more():
    names = [f"P{number}" for number in range(256)]

    assert len(read_select({"$select": ",".join(names[:255])}) or ()) == 255
    with pytest.raises(InvalidInput):
        read_select({"$select": ",".join(names)})


@pytest.mark.parametrize("text", ["A,", ",A", "A,,B"])
def test_refuses_a_selection_with_a_gap(text):
    with pytest.raises(InvalidInput):
        read_select({"$select": text})


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
    [
        "",
        "x",
        "Smith",
        "1!8!",
        "1!7!U21pdGg-",
        "1!9!U21pdGg-",
        "2!8!U21pdGg-",
        "1!8!U21pdGg=",
        "1!8!U21p/Gg-",
        "1!8!U21p Gg-",
        "1!7!U21pdGg",
        "1!4!/w==",
        "1!4!_w--",
        "1!4!AA--",
        "1!-1!",
        "1!999999!x",
        "1!8!U21pdGg-\n",
        "1!4!é---",
    ],
)
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
    "text",
    [
        f"NextRowKey={B}",
        "NextPartitionKey=x",
        f"NextPartitionKey={A}&NextRowKey=x",
        "NextPartitionKey=&NextRowKey=x",
    ],
)
def test_refuses_to_go_on_from_nowhere(text):
    with pytest.raises(InvalidInput):
        query(text)


def test_refuses_to_go_on_with_a_bad_table():
    with pytest.raises(InvalidInput):
        read_table_query({"NextTableName": "people"})


@pytest.mark.parametrize(
    "text", ["comp=acl&comp=acl", "comp=x&%63omp=acl", "COMP=&comp=acl", "restype=service&restype=service"]
)
def test_refuses_a_second_choice_of_the_resource(text):
    with pytest.raises(InvalidQueryParameterValue):
        read_options(text.encode())


@pytest.mark.parametrize("text", ["sp=r&sp=raud&sig=x", "SP=r&sp=r&sig=x", "%73p=&sp=r&sig=x", "sig=x&SIG=x"])
def test_refuses_a_token_that_says_something_twice(text):
    with pytest.raises(AuthenticationFailed):
        read_options(text.encode())


def test_what_is_no_token_may_come_twice():
    assert read_options(b"st=1&st=2&x=3&x=4") == {"st": "2", "x": "4"}
