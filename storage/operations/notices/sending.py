"""Send a message to a URL that a user gave: signed, within a time limit, and to no private network by mistake.

The signature is that of Standard Webhooks, for which receivers have libraries: https://www.standardwebhooks.com

The address is checked where it is connected to, not before: a name whose address changes between a check and its use
(DNS rebinding) gains nothing. No proxy is used and no redirect is followed, because both would evade the check. The
standard library's client is enough for that, and has the one method that needs to be replaced.
"""

import base64
import hashlib
import hmac
import http.client
import socket
import ssl
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from threading import Timer
from typing import Final
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from storage.domain.access.addresses import Address, Network

TIMEOUT: Final = 10.0  # seconds for the whole exchange
_URL_LENGTH: Final = 2000
_SCHEMES: Final = frozenset({"http", "https"})
_NAT64: Final = IPv6Network("64:ff9b::/96")
_PREFIX: Final = "whsec_"


@dataclass(frozen=True, slots=True)
class Message:
    url: str
    secret: bytes = field(repr=False)
    message_id: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """``error`` is empty if the receiver has accepted the message."""

    status: int | None = None
    error: str = ""

    @property
    def is_gone(self) -> bool:
        """Whether the receiver wants no more messages."""
        return self.status == http.client.GONE


class AddressRefused(OSError):
    """The host of a URL is in a network that webhooks may not reach."""


def write_secret(secret: bytes) -> str:
    return _PREFIX + base64.b64encode(secret).decode()


def sign(secret: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    signed = b".".join((message_id.encode(), str(timestamp).encode(), body))
    return "v1," + base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()


def read_url(text: str) -> SplitResult | None:
    """Return a URL that a webhook may have; None for any other. Its host is looked at when it is connected to."""
    try:
        url = urlsplit(text)
        is_valid = url.scheme in _SCHEMES and bool(url.hostname) and url.port != 0
    except ValueError:
        return None
    is_plain = text.isascii() and text.isprintable() and " " not in text and len(text) <= _URL_LENGTH
    has_user = "@" in url.netloc
    return url if is_valid and is_plain and not has_user and not url.fragment else None


def send(message: Message) -> Answer:
    """Send a message, and return what the receiver answers; never raises for what the network does."""
    if not message.secret:
        return Answer(error="The secret was sealed with another secret of this server; make a new one.")
    url = read_url(message.url)
    if url is None:
        return Answer(error="The URL is not valid.")
    connection = _connection(url)
    # the timeout of a socket is of one wait: a receiver that answers a byte at a time would never reach it
    limit = Timer(TIMEOUT, connection.give_up)
    limit.daemon = True
    limit.start()
    try:
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        connection.request("POST", target, message.body, _headers(message))
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Answer(error=_explain(error, is_late=connection.has_given_up))
    finally:
        limit.cancel()
        connection.close()
    return Answer(status, "" if 200 <= status < 300 else f"The receiver answered {status}.")


def _headers(message: Message) -> dict[str, str]:
    timestamp = int(time.time())
    return {
        "Content-Type": "application/json; charset=utf-8",
        "User-Agent": "Tablero-Webhook",
        "Accept": "*/*",
        "webhook-id": message.message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(message.secret, message.message_id, timestamp, message.body),
    }


def _explain(error: Exception, *, is_late: bool) -> str:
    if is_late or isinstance(error, TimeoutError):
        return f"The receiver did not answer within {TIMEOUT:g} seconds."
    if isinstance(error, socket.gaierror):
        return "The name of the host cannot be resolved."
    return str(error) or type(error).__name__


def _connection(url: SplitResult) -> "_Connection":
    assert url.hostname is not None
    is_tls = url.scheme == "https"
    return _Connection(url.hostname, url.port or (443 if is_tls else 80), is_tls=is_tls)


class _Connection(http.client.HTTPConnection):
    """A connection to an address that was checked."""

    def __init__(self, host: str, port: int, *, is_tls: bool) -> None:
        super().__init__(host, port, timeout=TIMEOUT)
        self._is_tls = is_tls
        self.has_given_up = False

    def connect(self) -> None:
        plain = _connect(self.host, self.port, is_tls=self._is_tls)
        try:
            self.sock = _context().wrap_socket(plain, server_hostname=self.host) if self._is_tls else plain
        except BaseException:
            plain.close()
            raise
        if self.has_given_up:
            raise TimeoutError

    def give_up(self) -> None:
        """End the exchange, from another thread."""
        self.has_given_up = True
        found = self.sock
        if found is not None:
            with suppress(OSError):
                found.shutdown(socket.SHUT_RDWR)


@cache
def _context() -> ssl.SSLContext:
    return ssl.create_default_context()


def _connect(host: str, port: int, *, is_tls: bool) -> socket.socket:
    """Connect to the first address of a host that answers, of those that webhooks may reach."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(it[4][0]).partition("%")[0] for it in found]
    allowed = [text for text in addresses if is_allowed(ip_address(text), is_tls=is_tls)]
    if not allowed:
        raise AddressRefused(_explain_refusal(addresses))
    failure: OSError | None = None
    for text in allowed:
        try:
            return socket.create_connection((text, port), timeout=TIMEOUT / 2)
        except OSError as error:
            failure = error
    assert failure is not None
    raise failure


def _explain_refusal(addresses: Sequence[str]) -> str:
    if any(_is_public(ip_address(text)) for text in addresses):
        return "Use https: http is for the networks in TABLERO_WEBHOOK_NETWORKS only."
    return "The host is in a private network. TABLERO_WEBHOOK_NETWORKS names those that webhooks may reach."


def is_allowed(address: Address, *, is_tls: bool) -> bool:
    """Return whether a webhook may be sent to an address; without TLS only within the networks that are set."""
    return _is_within(address, settings.WEBHOOK_NETWORKS) or (is_tls and _is_public(address))


def _is_within(address: Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address):
        if address.is_site_local:  # which is global for Python
            return False
        if (inner := _inner(address)) is not None:
            return _is_public(inner)
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _inner(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 one stands for, behind which a private network may be."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)
