"""Shared access signatures, and what a server answers to them."""

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from tests.faults.connection import Connection, Request
from tests.live_server import KEY
from tests.wire import tokens

Options = Mapping[str, str] | Sequence[tuple[str, str]]

FULL = {
    "sv": "2019-02-02", "st": "2020-01-01T00:00:00Z", "se": "2099-01-01T00:00:00Z", "sp": "r",
    "sip": "127.0.0.0-127.0.0.9", "spr": "https,http",
}  # fmt: skip
BOUNDS = {"spk": "b", "srk": "2", "epk": "b", "erk": "4"}
ACCOUNT = {**FULL, "ss": "t", "srt": "o"}
FIELDS = (*FULL, "tn", "si", "ss", "srt", "ses", *BOUNDS)


def of_table(table: str, account: str, key: str = KEY, **changes: str) -> dict[str, str]:
    """Return a token to read a table between two keys, with every field that a token may have."""
    return signed({**FULL, "tn": table, **BOUNDS, **changes}, account, key)


def of_account(account: str, key: str = KEY, **changes: str) -> dict[str, str]:
    return signed({**ACCOUNT, **changes}, account, key)


def signed(fields: Mapping[str, str], account: str, key: str = KEY) -> dict[str, str]:
    """Return the signed parameters of a token; an empty field is left out."""
    given = {name: value or False for name, value in fields.items()}
    return tokens.parameters({"sas": given}, account, key)


def query(options: Options) -> bytes:
    pairs = options.items() if isinstance(options, Mapping) else options
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in pairs).encode()


def status(connection: Connection, table: str, options: bytes | Options) -> tuple[int, str]:
    """Status and code of a query of the table with such a query string."""
    text = options if isinstance(options, bytes) else query(options)
    target = f"/{connection.account}/{table}()?".encode() + text
    headers = [(b"Accept", b"application/json;odata=nometadata")]
    answer = connection.send(Request(b"GET", target, headers, signed=False))
    return answer.status, answer.code
