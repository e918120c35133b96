"""Connect to hosts that users name, and to no private network by mistake.

An address is checked where it is connected to, not before: a name whose address changes between a check and its use
(DNS rebinding) gains nothing. No proxy is used and no redirect is followed, because both would evade the check.
"""

import socket
import ssl
from collections.abc import Callable, Sequence
from functools import cache
from http.client import HTTPConnection
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

from storage.domain.access.addresses import Address, Network

_NAT64: Final = IPv6Network("64:ff9b::/96")

# whether a host at an address may be connected to, with TLS or without
IsAllowed = Callable[[Address, bool], bool]


class AddressRefused(OSError):
    """No address of a host may be connected to; ``has_public``: one could be with TLS."""

    def __init__(self, *, has_public: bool) -> None:
        self.has_public = has_public
        super().__init__("The host is in a private network, or would be reached without TLS.")


def allow_all(address: Address, is_tls: bool) -> bool:
    return True


def allow_public(networks: Sequence[Network]) -> IsAllowed:
    """Return a check that allows public addresses with TLS, and what is in these networks."""

    def is_allowed(address: Address, is_tls: bool) -> bool:
        return any(address in network for network in networks) or (is_tls and is_public(address))

    return is_allowed


def is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address):
        if address.is_site_local:  # which is global for Python
            return False
        if (inner := _inner(address)) is not None:
            return is_public(inner)
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _inner(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 one stands for, behind which a private network may be."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)


class CheckedConnection(HTTPConnection):
    """An HTTP connection to the first address of a host that answers, of those that are allowed."""

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
        found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        addresses = [str(it[4][0]).partition("%")[0] for it in found]
        allowed = [text for text in addresses if self._is_allowed(ip_address(text), self._is_tls)]
        if not allowed:
            raise AddressRefused(has_public=any(is_public(ip_address(text)) for text in addresses))
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
