"""The address a request came from, and whether it is among the allowed ones."""

from storage.domain.access.addresses import is_within, read_network


def networks(*texts):
    return [read_network(text) for text in texts]


def test_is_within():
    allowed = networks("10.0.0.0/8", "2001:db8::/32", "192.0.2.7")
    for client in (
        "10.1.2.3", "10.1.2.3:4711", "::ffff:10.1.2.3", "[2001:db8::5]:443", "2001:db8::5", "192.0.2.7",
    ):  # fmt: skip
        assert is_within(client, allowed)
    for client in ("11.1.2.3", "192.0.2.8", "2001:db9::5", "", "unknown", "10.0.0.0/8"):
        assert not is_within(client, allowed)


def test_invalid_networks_are_refused():
    for text in ("", "x", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0-10.0.0.9", "1.2.3"):
        assert read_network(text) is None
