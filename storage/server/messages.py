"""Settings of outgoing connections: e-mail, webhooks and copies; and the console's address in messages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parseaddr
from typing import Final
from urllib.parse import unquote, urlsplit

from storage.domain.access.addresses import Network, read_network
from storage.server.refusal import Refusal

# the port, whether TLS is from the beginning, and whether it begins after STARTTLS
_SCHEMES: Final = {
    "smtp": (25, False, False),
    "smtp+starttls": (587, False, True),
    "smtps": (465, True, False),
}
_NAMES: Final = ("SMTP_URL", "MAIL_FROM", "CONSOLE_URL")


@dataclass(frozen=True, slots=True)
class Smtp:
    """SMTP server and sender address for e-mail."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    is_tls: bool
    starts_tls: bool
    sender: str


@dataclass(frozen=True, slots=True)
class MessageOptions:
    """Options of messages and copies to other hosts."""

    smtp: Smtp | None
    webhook_networks: tuple[Network, ...]  # private networks that webhooks may reach
    copy_networks: tuple[Network, ...]  # private networks that copies from and to other services may reach
    console_url: str  # without a slash at its end


def read(value: Mapping[str, str]) -> MessageOptions:
    smtp, sender, console = (value[name] for name in _NAMES)
    if bool(smtp) != bool(sender):
        raise Refusal("E-mail needs both TABLERO_SMTP_URL and TABLERO_MAIL_FROM; only one of them is set.")
    return MessageOptions(
        _read_smtp(smtp, sender) if smtp else None,
        _read_networks(value, "WEBHOOK_NETWORKS"),
        _read_networks(value, "COPY_NETWORKS"),
        _read_console(console),
    )


def _read_smtp(text: str, sender: str) -> Smtp:
    try:
        url = urlsplit(text)
        port, is_tls, starts_tls = _SCHEMES[url.scheme]
        if not url.hostname or url.path not in ("", "/") or url.query:
            raise ValueError
        port = url.port or port
    except (ValueError, KeyError):
        # it may have a password in it
        raise Refusal(
            "TABLERO_SMTP_URL must be smtp://, smtp+starttls:// or smtps:// with a host, such as"
            " smtp+starttls://user:password@mail.example.com:587."
        ) from None
    local, at, domain = parseaddr(sender)[1].rpartition("@")
    if not (local and at and domain) or not sender.isprintable():
        raise Refusal(f"TABLERO_MAIL_FROM is {sender!r}; it must be an e-mail address.")
    user, password = unquote(url.username or ""), unquote(url.password or "")
    return Smtp(url.hostname, port, user, password, is_tls=is_tls, starts_tls=starts_tls, sender=sender)


def _read_networks(value: Mapping[str, str], name: str) -> tuple[Network, ...]:
    texts = [text.strip() for text in value[name].split(",") if text.strip()]
    return tuple(_read_network(name, text) for text in texts)


def _read_network(name: str, text: str) -> Network:
    found = read_network(text)
    if found is None:
        raise Refusal(f"TABLERO_{name} has {text!r}; write networks as 10.0.0.0/8, separated by commas.")
    return found


def _read_console(text: str) -> str:
    try:
        url = urlsplit(text)
        is_good = (
            url.scheme in {"http", "https"}
            and bool(url.hostname)
            and url.port != 0
            and "@" not in url.netloc
            and url.path.rstrip("/") in ("", "/ui")
            and not (url.query or url.fragment)
            and not any(map(str.isspace, text))
        )
    except ValueError:
        is_good = False
    if text and not is_good:
        # it may have a password in it
        raise Refusal(
            "TABLERO_CONSOLE_URL must be a URL of a scheme, a host and a port, such as https://tables.example.com."
        )
    return text.rstrip("/").removesuffix("/ui")
