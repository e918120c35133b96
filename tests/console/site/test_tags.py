"""Filters of the templates."""

import pytest

from console.site.tags import initials


@pytest.mark.parametrize(
    ("name", "expected"),
    [("ada", "a"), ("ada@example.org", "a"), ("ada.lovelace@x", "al"), ("a-b-c", "ab"), ("@", ""), ("", "")],
)
def test_initials(name, expected):
    assert initials(name) == expected
