"""Connections to hosts from users, with protection of private networks."""

import socket
import ssl
from collections.abc import Callable, Sequence
from functools import cache
from http.client import HTTPConnection
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

from storage.domain.access.addresses import Address, Network

_NAT64: Final = IPv6Network("64:ff9b::/96")
_UNICAST: Final = IPv6Network("2000::/3")  # all of IPv6 that is assigned for the public network
# addresses that the registries of IANA reserve, reachable or not, and the addresses of clouds for their own machines;
# Python's `is_global` knows fewer, and others in each version
# https://www.iana.org/assignments/iana-ipv4-special-registry
_SPECIAL_IPV4: Final = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # shared by carriers; 100.100.100.200 is the metadata service of Alibaba Cloud
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's host, for each virtual machine
        "169.254.0.0/16",  # link-local: the metadata services of most clouds
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocol assignments; 192.0.0.192 is the metadata service of Oracle Cloud
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
# https://www.iana.org/assignments/iana-ipv6-special-registry
_SPECIAL_IPV6: Final = tuple(
    IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2620:4f:8000::/48", "3fff::/20")
)

# whether a host at an address may be connected to, with TLS or without
IsAllowed = Callable[[Address, bool], bool]


class AddressRefused(OSError):
    """No address of the host is allowed."""

    def __init__(self, *, has_public: bool) -> None:
        self.has_public = has_public  # one could be connected to with TLS
        super().__init__("The host is in a private network, or would be reached without TLS.")


def allow_all(address: Address, is_tls: bool) -> bool:
    return True


def allow_public(networks: Sequence[Network]) -> IsAllowed:
    """Return a check that allows public addresses with TLS, and all addresses in these networks."""

    def is_allowed(address: Address, is_tls: bool) -> bool:
        return any(address in network for network in networks) or (is_tls and is_public(address))

    return is_allowed


def is_public(address: Address) -> bool:
    """Return whether an address is publicly routable."""
    if isinstance(address, IPv4Address):
        return address.is_global and not any(address in network for network in _SPECIAL_IPV4)
    if (inner := _inner(address)) is not None:
        return is_public(inner)
    return address in _UNICAST and address.is_global and not any(address in it for it in _SPECIAL_IPV6)


def _inner(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address embedded in an IPv6 address, as it may be private; None without one."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


def allowed_addresses(host: str, port: int, is_allowed: IsAllowed, *, is_tls: bool) -> list[str]:
    """Return the allowed addresses of a host; raises AddressRefused without one, and OSError for unknown names."""
    resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(it[4][0]).partition("%")[0] for it in resolved]
    allowed = [text for text in addresses if is_allowed(ip_address(text), is_tls)]
    if not allowed:
        raise AddressRefused(has_public=any(is_public(ip_address(text)) for text in addresses))
    return allowed


class CheckedConnection(HTTPConnection):
    """HTTP connection to the first allowed address of a host that responds."""

    def __init__(self, host: str, port: int, is_allowed: IsAllowed, *, is_tls: bool, timeout: float) -> None:
        super().__init__(host, port, timeout=timeout)
        self._is_allowed = is_allowed
        self._is_tls = is_tls

    def connect(self) -> None:
        plain = self._connect()
        try:
            self.sock = _context().wrap_socket(plain, server_hostname=self.host) if self._is_tls else plain
        except BaseException:
            plain.close()
            raise

    def _connect(self) -> socket.socket:
        assert self.timeout is not None
        allowed = allowed_addresses(self.host, self.port, self._is_allowed, is_tls=self._is_tls)
        failure: OSError | None = None
        for text in allowed:
            try:
                connected = socket.create_connection((text, self.port), timeout=self.timeout / 2)
                connected.settimeout(self.timeout)
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connected
            except OSError as error:
                failure = error
        assert failure is not None
        raise failure


@cache
def _context() -> ssl.SSLContext:
    return ssl.create_default_context()
