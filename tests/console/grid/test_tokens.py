"""Keys and cursors in addresses."""

import pytest

from console.grid import tokens
from console.grid.tokens import EARLIER_CUT, Cursor
from storage.domain.filters.query import Position


@pytest.mark.parametrize("key", ["", "se", "a b&c=d%", "é👩‍👧", "'\"<>", "x" * 1024])
def test_round_trip(key):
    result = Cursor(Position(key, key[::-1]), 50)
    token = tokens.encode_cursor(result)
    assert tokens.decode_cursor(token) == result
    assert all(character.isalnum() or character in "-_" for character in token)


@pytest.mark.parametrize(
    "token", ["", "-", "é", "bnVsbA", "W10", "WzEsMiwzXQ", "WyJhXHUwMDAwIiwiYiIsMV0", "W" * 5000]
)
def test_forged_ones_are_none(token):
    assert tokens.decode_cursor(token) is None


def test_the_oldest_go_first():
    starts = ["a" * 700, "b" * 700, "c" * 700]
    assert tokens.shorten_cursors(starts[:2]) == starts[:2]
    assert tokens.shorten_cursors(starts) == [EARLIER_CUT, *starts[1:]]
    assert tokens.shorten_cursors([EARLIER_CUT, *starts]) == [EARLIER_CUT, *starts[1:]]
    assert tokens.shorten_cursors(["a" * 5000]) == ["a" * 5000]
