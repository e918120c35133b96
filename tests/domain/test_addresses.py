"""Which address a request came from, and whether it is among those allowed."""

import pytest

from storage.domain.access.addresses import is_within, read_network


def networks(*texts):
    return [read_network(text) for text in texts]


@pytest.mark.parametrize(
    "client",
    ["10.1.2.3", "10.1.2.3:4711", "::ffff:10.1.2.3", "[2001:db8::5]:443", "2001:db8::5", "192.0.2.7"],
)
def test_is_within(client):
    assert is_within(client, networks("10.0.0.0/8", "2001:db8::/32", "192.0.2.7"))


@pytest.mark.parametrize("client", ["11.1.2.3", "192.0.2.8", "2001:db9::5", "", "unknown", "10.0.0.0/8"])
def test_is_not_within(client):
    assert not is_within(client, networks("10.0.0.0/8", "2001:db8::/32", "192.0.2.7"))


@pytest.mark.parametrize("text", ["", "x", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0-10.0.0.9", "1.2.3"])
def test_what_is_no_network(text):
    assert read_network(text) is None
