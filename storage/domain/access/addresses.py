"""Client addresses, and the ranges and networks that tokens or accounts allow."""

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class AddressRange(NamedTuple):
    first: Address
    last: Address

    def covers(self, address: Address) -> bool:
        same_family = address.version == self.first.version
        return same_family and int(self.first) <= int(address) <= int(self.last)


@lru_cache(maxsize=256)
def read_range(text: str) -> AddressRange | None:
    """Parse an address range ``a`` or ``a-b``, inclusive; None if it is malformed."""
    low, dash, high = text.partition("-")
    first, last = _read(low), _read(high if dash else low)
    if first is None or last is None or first.version != last.version:
        return None
    return AddressRange(first, last)


def read_network(text: str) -> Network | None:
    """Parse a network such as ``192.0.2.0/24`` or an address; None if malformed or with bits beyond the prefix."""
    try:
        return ip_network(text)
    except ValueError:
        return None


def is_within(client: str, networks: Iterable[Network]) -> bool:
    address = read_client(client)
    return address is not None and any(address in network for network in networks)


@lru_cache(maxsize=256)
def read_client(text: str) -> Address | None:
    """Parse a client address such as ``192.0.2.1:443``, ``2001:db8::1``, ``fe80::1%eth0`` or ``[2001:db8::1]:443``."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    return _read(text.partition("%")[0])


def _read(text: str) -> Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return address
    if address.scope_id is not None:
        return None  # a zone is meaningful on one machine only
    # an IPv4 client as a dual-stack socket shows it
    return address.ipv4_mapped or address
