"""Shared access signatures as they should be, and as somebody would change them who has no key."""

import random
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
    """A token to read a table between two keys, with every field that a token may have."""
    return signed({**FULL, "tn": table, **BOUNDS, **changes}, account, key)


def of_account(account: str, key: str = KEY, **changes: str) -> dict[str, str]:
    return signed({**ACCOUNT, **changes}, account, key)


def signed(fields: Mapping[str, str], account: str, key: str = KEY) -> dict[str, str]:
    """An empty field is left out."""
    given = {name: value or False for name, value in fields.items()}
    return tokens.parameters({"sas": given}, account, key)


def query(options: Options) -> bytes:
    pairs = options.items() if isinstance(options, Mapping) else options
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in pairs).encode()


def written(
    path: str, account: str, options: bytes, method: str = "GET", body: bytes | None = None
) -> Request:
    target = f"/{account}/{path}?".encode() + options
    headers = [(b"Accept", b"application/json;odata=nometadata")]
    if body is not None:
        headers.append((b"Content-Type", b"application/json"))
    if method == "DELETE":
        headers.append((b"If-Match", b"*"))
    return Request(method.encode(), target, headers, body, signed=False)


def status(connection: Connection, table: str, options: bytes | Options) -> tuple[int, str]:
    """Status and code of a query of the table with such a query string."""
    text = options if isinstance(options, bytes) else query(options)
    answer = connection.send(written(f"{table}()", connection.account, text))
    return answer.status, answer.code


# changes at random

PIECES = [
    "", " ", "\n", "\r\n", "\t", "\0", "\x7f", "=", "&", "?", "#", "%", "+", "/", ",", "-", "0", "1", "a",
    "r", "z", "~", "'",
    "raud", "rwdlacu", "t", "bqtf", "sco", "o", "*", "1970-01-01", "2099-01-01",
    "9999-12-31T23:59:59.9999999Z", "0001-01-01",
    "2012-02-12", "2015-02-21", "2015-04-05", "2020-12-06", "https", "http", "127.0.0.1",
    "0.0.0.0-255.255.255.255", "::1", "::",
    "-", "é", "ſ", "\u212a", "İ", "ａ", "\u200b", "\ufeff", "😀", "null", "true", "[]", "{}", "../", "%00",
    "%0a", "%252B", "A" * 300,
]  # fmt: skip
RAW = [
    b"&", b"=", b"%", b"%zz", b"%00", b"%FF", b"%C3", b"%ED%A0%80", b"+", b"?", b";", b"#", b"&&", b"==",
    b"sig", b"sig=", b"&sig",
    b"&sv=2019-02-02", b"&tn=", b"&ss=t&srt=sco", b"\xff", b"comp=acl", b"&comp=acl", b"&restype=service",
    b"&api-version=2014-02-14",
]  # fmt: skip


class Forger:
    """Makes other tokens of good ones; the same in every run."""

    def __init__(self, seed: int, goods: Sequence[Mapping[str, str]]) -> None:
        self._random = random.Random(seed)
        self._goods = goods

    def forge(self) -> bytes:
        pairs = list(self._random.choice(self._goods).items())
        for _ in range(self._random.choice((1, 1, 1, 2, 3))):
            change = self._random.choice(self._CHANGES)
            change(self, pairs)
        return self._raw(query(pairs))

    def _alter(self, pairs: list[tuple[str, str]]) -> None:
        index = self._random.randrange(len(pairs))
        name, value = pairs[index]
        where = self._random.randint(0, len(value))
        cut = where + self._random.choice((0, 0, 1, 2, 300))
        pairs[index] = name, value[:where] + self._random.choice(PIECES) + value[cut:]

    def _replace(self, pairs: list[tuple[str, str]]) -> None:
        index = self._random.randrange(len(pairs))
        pairs[index] = pairs[index][0], self._random.choice(PIECES)

    def _rename(self, pairs: list[tuple[str, str]]) -> None:
        index = self._random.randrange(len(pairs))
        pairs[index] = self._random.choice(FIELDS), pairs[index][1]

    def _swap(self, pairs: list[tuple[str, str]]) -> None:
        one, other = self._random.randrange(len(pairs)), self._random.randrange(len(pairs))
        (name, value), (other_name, other_value) = pairs[one], pairs[other]
        pairs[one], pairs[other] = (name, other_value), (other_name, value)

    def _drop(self, pairs: list[tuple[str, str]]) -> None:
        if len(pairs) > 1:
            del pairs[self._random.randrange(len(pairs))]

    def _double(self, pairs: list[tuple[str, str]]) -> None:
        name, value = self._random.choice(pairs)
        name = self._random.choice((name, name.upper(), name.title()))
        pairs.insert(self._random.randint(0, len(pairs)), (name, self._random.choice((value, *PIECES))))

    def _add(self, pairs: list[tuple[str, str]]) -> None:
        name = self._random.choice((*FIELDS, "skoid", "sktid", "api-version", "sr"))
        pairs.append((name, self._random.choice(PIECES)))

    def _graft(self, pairs: list[tuple[str, str]]) -> None:
        """A field, perhaps the signature, of another good token."""
        donor = self._random.choice(self._goods)
        name = self._random.choice(list(donor))
        pairs[:] = [pair for pair in pairs if pair[0] != name] + [(name, donor[name])]

    def _flip(self, pairs: list[tuple[str, str]]) -> None:
        for index, (name, value) in enumerate(pairs):
            if name == "sig" and value:
                where = self._random.randrange(len(value))
                pairs[index] = name, value[:where] + self._random.choice("ABCabc019+/=") + value[where + 1 :]

    def _raw(self, text: bytes) -> bytes:
        if self._random.random() < 0.85:
            return text
        where = self._random.randint(0, len(text))
        return text[:where] + self._random.choice(RAW) + text[where + self._random.choice((0, 0, 1, 3)) :]

    _CHANGES = (_alter, _alter, _replace, _rename, _swap, _drop, _double, _add, _graft, _flip)
