"""The addresses that ``sip`` allows, and the one a request came from."""

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple

Address = IPv4Address | IPv6Address


class AddressRange(NamedTuple):
    first: Address
    last: Address

    def covers(self, address: Address) -> bool:
        same_family = address.version == self.first.version
        return same_family and int(self.first) <= int(address) <= int(self.last)


@lru_cache(maxsize=256)
def read_range(text: str) -> AddressRange | None:
    """``a`` or ``a-b``, both inclusive; None if it is neither."""
    low, dash, high = text.partition("-")
    first, last = _read(low), _read(high if dash else low)
    if first is None or last is None or first.version != last.version:
        return None
    return AddressRange(first, last)


@lru_cache(maxsize=256)
def read_client(text: str) -> Address | None:
    """Of ``192.0.2.1``, ``192.0.2.1:443``, ``2001:db8::1``, ``fe80::1%eth0`` or ``[2001:db8::1]:443``."""
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
        return None  # a zone has a meaning on one machine only
    # how a socket of both families shows an IPv4 client
    return address.ipv4_mapped or address
