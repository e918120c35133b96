"""The names of tests, by which the processes of a run know them."""

import gzip

import pytest

from tests.distribution import name_of_parameter


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (gzip.compress(b"a,b"), "body"),
        (b"a\n", "body"),
        (b"\xff", "body"),
        (b"a,b", None),
        ("a\n", None),
        (1, None),
    ],
)
def test_bytes_that_nobody_can_read_are_in_no_name(request, value, name):
    assert name_of_parameter(value, "body") == name
    assert name is None or request.node.callspec.id.startswith("value")
