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
def test_clients_without_metadata_can_rebuild_a_matching_etag(instant):
    tag = write_etag(instant)

    assert tag == f"W/\"datetime'{quote(write_datetime(instant), safe='')}'\""
    assert read_if_match(tag) == Precondition(instant)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("W/\"datetime'2017-08-30T13:20:33.413914Z'\"", INSTANT),
        ("W/\"datetime'2017-08-30T13%3a20%3a33.4139140Z'\"", INSTANT),
        ('W/"datetime%272017-08-30T13%3A20%3A33.413914Z%27"', INSTANT),
        # well formed, but none of ours: it matches nothing
        ('W/""', NEVER),
        ("W/\"datetime'wrong'\"", NEVER),
        ("W/\"datetime'0001-01-01T00%3A00%3A00Z'\"", NEVER),
        ('W/"*"', NEVER),
        ('W/"%ff"', NEVER),
    ],
)
def test_reads_other_spellings(value, expected):
    assert read_if_match(value) == Precondition(expected)
    assert read_if_match("*") == ANY == Precondition(None)


def test_refuses_malformed_tags():
    for value in (
        "", "wrong", '"a"', "W/wrong", 'W/"a", W/"b"', 'W/"a"b"', 'w/"a"', 'W/"a', "**", '*, W/"a"',
        'W/"a"\n',
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match="specified in one of the request headers is not valid"):
            read_if_match(value)
