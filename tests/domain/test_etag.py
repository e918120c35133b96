"""Entity tags: written as clients rebuild them, read as clients spell them."""

from urllib.parse import quote

import pytest
from hypothesis import given

from storage.domain.errors import InvalidInput
from storage.domain.values.edm import read_datetime, write_datetime
from storage.domain.values.etag import ANY, NEVER, Precondition, read_if_match, write_etag
from tests.strategies import ticks

INSTANT = read_datetime("2017-08-30T13:20:33.413914Z")


@given(ticks)
def test_clients_without_metadata_can_rebuild_the_tag_and_it_matches(instant):
    tag = write_etag(instant)

    assert tag == f"W/\"datetime'{quote(write_datetime(instant), safe='')}'\""
    assert read_if_match(tag) == Precondition(instant)


@pytest.mark.parametrize(
    "value",
    [
        "W/\"datetime'2017-08-30T13:20:33.413914Z'\"",
        "W/\"datetime'2017-08-30T13%3a20%3a33.413914Z'\"",
        "W/\"datetime'2017-08-30T13%3A20%3A33.4139140Z'\"",
        'W/"datetime%272017-08-30T13%3A20%3A33.413914Z%27"',
    ],
)
def test_other_spellings_of_the_instant_match(value):
    assert read_if_match(value) == Precondition(INSTANT)


def test_a_star_matches_whatever_is_there():
    assert read_if_match("*") == ANY == Precondition(None)


@pytest.mark.parametrize(
    "value",
    [
        'W/"wrong"', 'W/""', "W/\"datetime''\"", "W/\"datetime'wrong'\"",
        "W/\"datetime'0001-01-01T00%3A00%3A00Z'\"", 'W/"0x5B168C7B6E589D2"', 'W/"*"', 'W/"%ff"',
    ],
)  # fmt: skip
def test_a_well_formed_tag_that_is_none_of_ours_matches_nothing(value):
    assert read_if_match(value) == Precondition(NEVER)


@pytest.mark.parametrize(
    "value",
    [
        "", " ", "wrong", '"wrong"', "\"datetime'2017-08-30T13%3A20%3A33.413914Z'\"", "W/wrong",
        'W/"a", W/"b"', 'W/"a"b"', 'w/"a"', 'W/"a', "**", '*, W/"a"', 'W/"a"\n',
    ],
)  # fmt: skip
def test_refuses_malformed_tags(value):
    with pytest.raises(InvalidInput) as refusal:
        read_if_match(value)

    assert refusal.value.text == (
        f"The etag value '{value}' specified in one of the request headers is not valid. "
        "Please make sure only one etag value is specified and is valid."
    )
