"""Streaming reader of Azurite's table database, ``__azurite_db_table__.json``, which may exceed memory.

It is a database of LokiJS: a JSON object with ``collections``, each with a ``name`` and its documents as
``data``. One collection has the tables of all accounts, one their service properties, and each table one of
its own, in the order of changes.
"""

import codecs
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from json import JSONDecodeError, JSONDecoder
from typing import IO, Any, Final

from storage.domain.access.policies import SignedIdentifier, read_policy
from storage.domain.entities.annotations import described_name
from storage.domain.errors import StorageError
from storage.domain.refusals import Reason, Refused
from storage.domain.service_properties.properties import (
    DEFAULT_PROPERTIES,
    CorsRule,
    Logging,
    Metrics,
    ServiceProperties,
)

FILE_NAME: Final = "__azurite_db_table__.json"
_TABLES: Final = "$TABLES_COLLECTION$"
_SERVICES: Final = "$SERVICES_COLLECTION$"
_MOST_DAYS: Final = 365
_PIECE: Final = 1 << 20  # bytes that are read at once
_SPACE: Final = " \t\r\n"
_LONGEST: Final = 32 << 20  # characters of a document, or of blanks between two
_FIRST: Final = 8 << 20  # bytes in which the tables of all accounts are looked for
# errors that reading a document may raise if Azurite did not write it
_OTHER_DOCUMENT: Final = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)


class NotAzurite(Refused):
    """The file is not from Azurite's table service."""


class _IsFar(Exception):
    """The value is beyond the part of the file that the reader may read."""


class AzuriteFile:
    """Azurite file; ``opening`` opens it at the beginning, ``name`` is for messages."""

    def __init__(
        self,
        opening: Callable[[], IO[bytes]],
        name: str,
        check: Callable[[], object] = lambda: None,
        *,
        has_accounts_only: bool = False,
    ) -> None:
        self._opening = opening
        self._name = name
        self._check = check
        self._read = 0  # bytes
        self._has_accounts_only = has_accounts_only
        self._tables: dict[str, dict[str, Mapping[str, Any]]] = {}
        self._services: dict[str, Mapping[str, Any]] = {}
        self._starts: dict[str, int] = {}  # where the documents of a collection begin, in bytes
        self._read_index()
        if _TABLES.lower() not in self._starts:
            raise NotAzurite(Reason.FILE_NOT_AZURITE, path=name)

    def accounts(self) -> list[str]:
        return sorted(self._tables)

    def tables(self, account: str) -> list[str]:
        return sorted(self._tables.get(account, {}))

    def policies(self, account: str, table: str) -> list[SignedIdentifier]:
        with self._refusing_others():
            return [_read_policy(it) for it in self._tables[account][table].get("tableAcl") or ()]

    def service_properties(self, account: str) -> ServiceProperties:
        stored = self._services.get(account, {})
        default = DEFAULT_PROPERTIES
        with self._refusing_others():
            return ServiceProperties(
                _read_logging(stored["logging"]) if stored.get("logging") else default.logging,
                _read_metrics(stored["hourMetrics"]) if stored.get("hourMetrics") else default.hour_metrics,
                _read_metrics(stored["minuteMetrics"])
                if stored.get("minuteMetrics")
                else default.minute_metrics,
                tuple(_read_rule(it) for it in stored.get("cors") or ()),
            )

    def entities(self, account: str, table: str) -> Iterator[Mapping[str, Any]]:
        """Yield the entities of a table as JSON objects, in file order."""
        start = self._starts.get(f"{account}${table}".lower())
        if start is None:
            return
        with self._scanning(start) as scanner:
            for _ in scanner.elements():
                yield _read_members(_read_object(scanner.value()["properties"]))

    def _read_index(self) -> None:
        with self._scanning() as scanner:
            for member in scanner.members():
                if member != "collections":
                    scanner.skip()
                    continue
                for _ in scanner.elements():
                    self._read_collection(scanner)
                    if self._has_accounts_only and _TABLES.lower() in self._starts:
                        return

    def _read_collection(self, scanner: "_Scanner") -> None:
        name = ""
        for member in scanner.members():
            if member == "name":
                name = _read_text(scanner.value())
            elif member == "data":  # LokiJS writes it after the name
                self._starts[name.lower()] = scanner.offset  # older versions kept the case of a table here
                for _ in scanner.elements():
                    self._note(name, scanner)
            else:
                scanner.skip()

    def _note(self, collection: str, scanner: "_Scanner") -> None:
        if collection not in (_TABLES, _SERVICES):
            scanner.skip()
            return
        document = _read_object(scanner.value())
        if collection == _TABLES:
            account, table = _read_text(document["account"]), _read_text(document["table"])
            self._tables.setdefault(account, {})[table] = document
        else:
            self._services[_read_text(document["accountName"])] = document

    @contextmanager
    def _refusing_others(self) -> Iterator[None]:
        """Convert errors of a document that is not Azurite's to NotAzurite."""
        try:
            yield
        except _OTHER_DOCUMENT:
            raise NotAzurite(Reason.FILE_NOT_AZURITE, path=self._name) from None

    @contextmanager
    def _scanning(self, start: int = 0) -> Iterator["_Scanner"]:
        with self._refusing_others(), self._opening() as stream:
            stream.seek(start)
            yield _Scanner(stream, start, self._count)

    def _count(self, size: int) -> None:
        """Count bytes before they are read; raises _IsFar, and whatever ``check`` raises."""
        self._check()
        self._read += size
        if self._has_accounts_only and self._read > _FIRST:
            raise _IsFar


def find_accounts(opening: Callable[[], IO[bytes]], name: str) -> list[str] | None:
    """Return the accounts with tables; None if they are too far into the file. Raises NotAzurite."""
    try:
        return AzuriteFile(opening, name, has_accounts_only=True).accounts()
    except _IsFar:
        return None


class _Scanner:
    """Streaming JSON scanner: iterates over objects and arrays, or reads a value at once."""

    def __init__(self, stream: IO[bytes], start: int, count: Callable[[int], None]) -> None:
        self._stream = stream
        self._count = count
        self._start = start  # start of the text, in bytes
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._decoder = JSONDecoder()
        self._text, self._at = "", 0
        self._has_ended = False

    @property
    def offset(self) -> int:
        """Return the current position in bytes."""
        return self._start + len(self._text[: self._at].encode())

    def members(self) -> Iterator[str]:
        """Yield the member names of an object; the caller must read each value."""
        for _ in self._items("{", "}"):
            name = self.value()
            self._expect(":")
            yield name

    def elements(self) -> Iterator[None]:
        """Iterate over an array; the caller must read each value."""
        for _ in self._items("[", "]"):
            yield

    def _items(self, opening: str, closing: str) -> Iterator[None]:
        self._expect(opening)
        if self._peek() == closing:
            self._at += 1
            return
        while True:
            yield
            if self._peek() == closing:
                self._at += 1
                return
            self._expect(",")

    def skip(self) -> None:
        """Skip a value of any size."""
        match self._peek():
            case "{":
                for _ in self.members():
                    self.skip()
            case "[":
                for _ in self.elements():
                    self.skip()
            case _:
                self.value()

    def value(self) -> Any:
        """Read a value; raises ValueError beyond the maximum size of a document."""
        self._peek()
        size = _PIECE
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
                if end < len(self._text) or self._has_ended:  # else it may be the beginning of a number
                    self._at = end
                    return value
            except JSONDecodeError:
                if self._has_ended or len(self._text) - self._at > _LONGEST:
                    raise
            self._fill(size)
            size *= 2  # a long value is not decoded many times

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise JSONDecodeError(f"{character} is missing", self._text[self._at : self._at + 20], 0)
        self._at += 1

    def _peek(self) -> str:
        """Return the next non-blank character, or an empty string at the end; raises ValueError for too many blanks."""
        passed = 0
        while passed <= _LONGEST:
            before = self._at
            while self._at < len(self._text):
                if self._text[self._at] not in _SPACE:
                    return self._text[self._at]
                self._at += 1
            passed += self._at - before
            if self._has_ended:
                return ""
            self._fill(_PIECE)
        raise ValueError("nothing but spaces")

    def _fill(self, size: int) -> None:
        self._count(size)
        piece = self._stream.read(size)
        self._has_ended = not piece
        self._start = self.offset
        self._text = self._text[self._at :] + self._decode(piece, self._has_ended)
        self._at = 0


# documents


def _read_text(value: object) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise TypeError
    value.encode()  # raises a ValueError for half of a surrogate pair
    return value


def _read_object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _read_members(stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert members to the protocol's form: Azurite stores a Guid as base64 text, and 1.0 as 1."""
    members = dict(stored)
    for name, type_ in stored.items():
        if (property_ := described_name(name)) is None:
            continue
        value = stored.get(property_)
        if type_ == "Edm.Guid" and isinstance(value, str) and "-" not in value:
            with suppress(ValueError):
                members[property_] = b64decode(value, validate=True).decode()
        elif type_ == "Edm.Double" and type(value) is int:
            with suppress(OverflowError):  # such a value does not fit
                members[property_] = float(value)
    return members


def _read_policy(stored: Mapping[str, Any]) -> SignedIdentifier:
    policy = stored.get("accessPolicy") or {}
    identifier = _read_text(stored["id"])
    if not policy:
        return SignedIdentifier(identifier)
    try:
        return SignedIdentifier(
            identifier, read_policy(*(policy.get(name) for name in ("start", "expiry", "permission")))
        )
    except StorageError as error:
        raise TypeError from error


def _read_logging(stored: Mapping[str, Any]) -> Logging:
    return Logging(
        read=bool(stored.get("read")),
        write=bool(stored.get("write")),
        delete=bool(stored.get("deleteProperty", stored.get("delete"))),
        retention=_read_retention(stored),
    )


def _read_metrics(found: Mapping[str, Any]) -> Metrics:
    enabled = bool(found.get("enabled"))
    return Metrics(enabled, enabled and bool(found.get("includeAPIs")), _read_retention(found))


def _read_retention(stored: Mapping[str, Any]) -> int | None:
    policy = stored.get("retentionPolicy") or {}
    days = policy.get("days") if policy.get("enabled") else None
    if days is not None and (type(days) is not int or not 1 <= days <= _MOST_DAYS):
        raise TypeError
    return days


def _read_rule(stored: Mapping[str, Any]) -> CorsRule:
    def read(name: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in (stored.get(name) or "").split(",") if part.strip())

    return CorsRule(
        read("allowedOrigins"),
        read("allowedMethods"),
        read("allowedHeaders"),
        read("exposedHeaders"),
        int(stored.get("maxAgeInSeconds") or 0),
    )
