"""Where a page starts, in an address."""

import pytest

from console.grid import cursor
from console.grid.cursor import CUT, Cursor
from storage.domain.filters.query import Position


@pytest.mark.parametrize("key", ["", "se", "a b&c=d%", "é👩‍👧", "'\"<>", "x" * 1024])
def test_round_trip(key):
    found = Cursor(Position(key, key[::-1]), 50)
    token = cursor.write(found)
    assert cursor.read(token) == found
    assert all(character.isalnum() or character in "-_" for character in token)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "-",
        "x",
        "é",
        "bnVsbA",
        "W10",
        "WzEsMiwzXQ",
        "WyJhIiwiYiIsIngiXQ",
        "WyJhXHUwMDAwIiwiYiIsMV0",
        "W" * 5000,
    ],
)
def test_forged_ones_are_none(token):
    assert cursor.read(token) is None


def test_the_oldest_go_first():
    tokens = ["a" * 700, "b" * 700, "c" * 700]
    assert cursor.shortened(tokens[:2]) == tokens[:2]
    assert cursor.shortened(tokens) == [CUT, *tokens[1:]]
    assert cursor.shortened([CUT, *tokens]) == [CUT, *tokens[1:]]
    assert cursor.shortened(["a" * 5000]) == ["a" * 5000]
