"""Sending of messages to URLs from users: signed, with a timeout, and not into private networks."""

import base64
import hashlib
import hmac
import http.client
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Timer
from typing import Final
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from storage.domain.access.addresses import Address
from storage.remote.addresses import AddressRefused, CheckedConnection, allow_public

TIMEOUT: Final = 10.0  # seconds for the whole exchange
_URL_LENGTH: Final = 2000
_SCHEMES: Final = frozenset({"http", "https"})
_PREFIX: Final = "whsec_"


@dataclass(frozen=True, slots=True)
class Message:
    url: str
    secret: bytes = field(repr=False)
    message_id: str
    body: bytes
    is_signed: bool = True  # Slack and Teams check no signature


@dataclass(frozen=True, slots=True)
class Answer:
    """Response of a receiver; ``error`` is empty if it has accepted the message."""

    status: int | None = None
    error: str = ""

    @property
    def is_gone(self) -> bool:
        """Return whether the receiver responded 410 Gone."""
        return self.status == http.client.GONE


def write_secret(secret: bytes) -> str:
    return _PREFIX + base64.b64encode(secret).decode()


def sign(secret: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    signed = b".".join((message_id.encode(), str(timestamp).encode(), body))
    return "v1," + base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()


def read_url(text: str) -> SplitResult | None:
    """Parse the URL of a webhook; None if it is not allowed. The host is checked on connecting."""
    try:
        url = urlsplit(text)
        is_valid = url.scheme in _SCHEMES and bool(url.hostname) and url.port != 0
    except ValueError:
        return None
    is_plain = text.isascii() and text.isprintable() and " " not in text and len(text) <= _URL_LENGTH
    has_user = "@" in url.netloc
    return url if is_valid and is_plain and not has_user and not url.fragment else None


def send(message: Message) -> Answer:
    """Send a message and return the response; network errors become its ``error``."""
    if message.is_signed and not message.secret:
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
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "User-Agent": "Tablero-Webhook",
        "Accept": "*/*",
    }
    if not message.is_signed:
        return headers
    timestamp = int(time.time())
    return headers | {
        "webhook-id": message.message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(message.secret, message.message_id, timestamp, message.body),
    }


def _explain(error: Exception, *, is_late: bool) -> str:
    if is_late or isinstance(error, TimeoutError):
        return f"The receiver did not answer within {TIMEOUT:g} seconds."
    if isinstance(error, AddressRefused) and error.has_public:
        return "Use https: http is for the networks in TABLERO_WEBHOOK_NETWORKS only."
    if isinstance(error, AddressRefused | socket.gaierror | UnicodeError):
        # the same for both, or who sets up webhooks could find out which names there are in the network of the server
        return (
            "The host cannot be resolved, or it is in a private network. TABLERO_WEBHOOK_NETWORKS names those that"
            " webhooks may reach."
        )
    return str(error) or type(error).__name__


def _connection(url: SplitResult) -> "_Connection":
    assert url.hostname is not None
    is_tls = url.scheme == "https"
    port = url.port or (443 if is_tls else 80)
    return _Connection(url.hostname, port, is_allowed, is_tls=is_tls, timeout=TIMEOUT)


class _Connection(CheckedConnection):
    """Connection that another thread can close."""

    has_given_up = False

    def connect(self) -> None:
        super().connect()
        if self.has_given_up:
            raise TimeoutError

    def give_up(self) -> None:
        """Abort the exchange from another thread."""
        self.has_given_up = True
        sock = self.sock
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


def is_allowed(address: Address, is_tls: bool) -> bool:
    """Return whether a webhook address is allowed; without TLS, only in configured networks."""
    return allow_public(settings.WEBHOOK_NETWORKS)(address, is_tls)
