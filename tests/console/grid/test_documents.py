"""JSON that is kept in a text, as people read it."""

import pytest

from console.grid.documents import indent_json


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            '{"a":[1.10,{},[ ]],"b":"x:{},\\""}',
            '{\n  "a": [\n    1.10,\n    {},\n    []\n  ],\n  "b": "x:{},\\""\n}',
        ),
        ("[]", "[]"),
        ('{"a": 1E400, "b": -0.0}', '{\n  "a": 1E400,\n  "b": -0.0\n}'),
        ("{oops", ""),
        ('"text"', ""),
        ("12", ""),
        ("", ""),
        ("[" * 100_000, ""),
        ("[" * 500 + "1" + ",1" * 10_000 + "]" * 500, ""),
    ],
)
def test_every_piece_is_as_it_is_written(text, shown):
    assert indent_json(text) == shown
