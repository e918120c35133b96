"""Tokens as URL parameters, and the valid values of each parameter.

Values keep their text, because the text is signed. An empty value counts as absent: the signed text is the same.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from hashlib import sha256
from typing import Final
from urllib.parse import quote

from storage.domain.access.addresses import read_range
from storage.domain.access.policies import IDENTIFIER_LIMIT
from storage.domain.errors import AuthenticationFailed, OutOfRangeInput, StorageError
from storage.domain.values.dialects import KEY_LENGTH_LIMIT
from storage.domain.values.edm import read_datetime
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_table_name

# the versions that changed the signed text
FIRST_VERSION: Final = "2012-02-12"
NAMED_SERVICE: Final = "2015-02-21"
RESTRICTED: Final = "2015-04-05"  # sip and spr; account SAS
SCOPED: Final = "2020-12-06"  # ses

WRITTEN_VERSION: Final = "2019-02-02"  # version of tokens issued here, the same as in the SDKs for tables

MISSING_PARAMETERS: Final = "Missing mandatory parameters for valid Shared Access Signature."


@dataclass(frozen=True, slots=True)
class TableSas:
    """SAS for the entities of one table, optionally limited to a key range, both ends inclusive."""

    version: str = ""
    table: str = ""
    permissions: str = ""
    start: str = ""
    expiry: str = ""
    identifier: str = ""
    address: str = ""
    protocol: str = ""
    start_partition: str = ""
    start_row: str = ""
    end_partition: str = ""
    end_row: str = ""
    signature: str = field(default="", repr=False)

    @property
    def has_range(self) -> bool:
        """Return whether the token is limited to a key range."""
        return any((self.start_partition, self.start_row, self.end_partition, self.end_row))

    @property
    def folded(self) -> str:
        """Return the table name in lower case."""
        return self.table.lower()


@dataclass(frozen=True, slots=True)
class AccountSas:
    """Account SAS; parts for other services are kept and ignored."""

    version: str = ""
    services: str = ""
    resource_types: str = ""
    permissions: str = ""
    start: str = ""
    expiry: str = ""
    address: str = ""
    protocol: str = ""
    encryption_scope: str = ""
    signature: str = field(default="", repr=False)


def read(options: Mapping[str, str]) -> TableSas | AccountSas | None:
    """Parse a token from decoded query parameters, None without ``sig``; raises AuthenticationFailed."""
    if "sig" not in options:
        return None
    sent = {name: options[name] for name in SAS_NAMES & options.keys() if options[name]}
    kind = AccountSas if "ss" in sent and "srt" in sent else TableSas
    token = kind(**{_attribute(kind, name): value for name, value in sent.items()})
    check(token)
    return token


def write(token: TableSas | AccountSas) -> str:
    """Serialize a token to a query string."""
    signed = (*to_parameters(token), ("sig", token.signature))
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in signed)


def to_parameters(token: TableSas | AccountSas) -> tuple[tuple[str, str], ...]:
    """Return the parameters that may be shown and logged, all but the signature."""
    found = ((name, getattr(token, attribute)) for name, (attribute, _) in _FIELDS[type(token)].items())
    return tuple((name, value) for name, value in found if value)


def from_parameters(pairs: Iterable[tuple[str, str]]) -> TableSas | AccountSas | None:
    """Parse the result of to_parameters, ignoring other names; None if they do not form a token."""
    options = dict(pairs)
    parameters = {name: value for name, value in options.items() if name in SAS_NAMES and name != "sig"}
    try:
        return read({**parameters, "sig": ""})
    except AuthenticationFailed:
        return None


def read_leniently(options: Mapping[str, str]) -> TableSas | AccountSas:
    """Parse a token without validation, to explain its mistakes; never use the result to grant access."""
    kind = AccountSas if options.get("ss") and options.get("srt") else TableSas
    fields = {attribute: options[name] for name, (attribute, _) in _FIELDS[kind].items() if name in options}
    return kind(signature=options.get("sig", ""), **fields)


def fingerprint(token: TableSas | AccountSas) -> str:
    """Return the SHA-256 of the signature in hexadecimal, to identify a token without storing it."""
    return sha256(token.signature.encode()).hexdigest()


def _attribute(kind: type[TableSas] | type[AccountSas], name: str) -> str:
    if name == "sig":
        return "signature"
    if name not in _FIELDS[kind]:
        raise _malformed(name)  # looks like a restriction, but is not signed
    return _FIELDS[kind][name][0]


# valid values


def check(token: TableSas | AccountSas) -> None:
    """Validate all fields of a token, refusing every value that is ambiguous in the signed text."""
    for name, (attribute, _) in _FIELDS[type(token)].items():
        if not is_well_formed(type(token), name, getattr(token, attribute)):
            raise _malformed(name)
    if isinstance(token, TableSas):
        _check_table_sas(token)
    else:
        _check_account_sas(token)


def is_well_formed(kind: type[TableSas] | type[AccountSas], name: str, value: str) -> bool:
    """Return whether a value is valid for a parameter; an empty one counts as absent."""
    return not value or bool(_PRINTABLE.fullmatch(value) and _FIELDS[kind][name][1](value))


def _check_table_sas(token: TableSas) -> None:
    if not token.version or not token.table:
        raise AuthenticationFailed(AuthenticationErrorDetail=MISSING_PARAMETERS)
    if token.version < RESTRICTED and (token.address or token.protocol):
        raise _malformed("sip" if token.address else "spr")
    if token.start_row and not token.start_partition:
        raise _malformed("srk")
    if token.end_row and not token.end_partition:
        raise _malformed("erk")


def _check_account_sas(token: AccountSas) -> None:
    if not all((token.version, token.services, token.resource_types, token.permissions, token.expiry)):
        raise AuthenticationFailed(AuthenticationErrorDetail=MISSING_PARAMETERS)
    if token.version < RESTRICTED:
        raise _malformed("sv")
    if token.version < SCOPED and token.encryption_scope:
        raise _malformed("ses")


def _malformed(name: str) -> AuthenticationFailed:
    return AuthenticationFailed(AuthenticationErrorDetail=f"Signature fields not well formed: {name}.")


# a newline would move what follows it into the next field of the signed text; nothing is longer than a key
_PRINTABLE = re.compile(f"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{{0,{KEY_LENGTH_LIMIT}}}")
_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INSTANT = re.compile(
    rf"{_DAY.pattern}(?:T[0-9]{{2}}:[0-9]{{2}}(?::[0-9]{{2}}(?:\.[0-9]{{1,7}})?)?(?:Z|[+-][0-9]{{2}}:[0-9]{{2}}))?"
)

_LONG_AGO: Final = read_datetime("1601-01-01")


@lru_cache(maxsize=256)
def _is_version(text: str) -> bool:
    """Accept any date since the first version, as newer versions sign like the newest one known here."""
    try:
        return _DAY.fullmatch(text) is not None and bool(date.fromisoformat(text)) and text >= FIRST_VERSION
    except ValueError:
        return False


@lru_cache(maxsize=1024)
def _is_table_name(text: str) -> bool:
    try:
        return text.isascii() and bool(fold_table_name(text, AccountKind.STORAGE))
    except StorageError:
        return False


@lru_cache(maxsize=1024)
def read_instant(text: str) -> int | None:
    """Parse a date or time to ticks since 1970; None if it is malformed."""
    try:
        return read_datetime(text) if _INSTANT.fullmatch(text) else None
    except OutOfRangeInput:
        # a property cannot hold these years, but a policy or token without a real start can
        return _LONG_AGO if "0001" <= text[:4] < "1601" else None
    except StorageError:
        return None


def _is_instant(text: str) -> bool:
    return read_instant(text) is not None


def _is_anything(text: str) -> bool:
    return True


def _made_of(letters: str) -> Callable[[str], bool]:
    pattern = re.compile(f"[{letters}]+")
    return lambda text: pattern.fullmatch(text) is not None


# by parameter, in the order of `to_parameters`: the attribute, and whether a text is a valid value
_Fields = Mapping[str, tuple[str, Callable[[str], bool]]]
_SHARED: Final[_Fields] = {
    "st": ("start", _is_instant),
    "se": ("expiry", _is_instant),
    "sip": ("address", lambda text: read_range(text) is not None),
    "spr": ("protocol", lambda text: text in ("https", "https,http", "http,https")),
}
_FIELDS: Final[Mapping[type[TableSas] | type[AccountSas], _Fields]] = {
    TableSas: {
        "sv": ("version", _is_version),
        "tn": ("table", _is_table_name),
        "sp": ("permissions", _made_of("raud")),
        **_SHARED,
        "si": ("identifier", lambda text: len(text) <= IDENTIFIER_LIMIT),
        "spk": ("start_partition", _is_anything),
        "srk": ("start_row", _is_anything),
        "epk": ("end_partition", _is_anything),
        "erk": ("end_row", _is_anything),
    },
    AccountSas: {
        "sv": ("version", _is_version),
        "ss": ("services", _made_of("bqtf")),
        "srt": ("resource_types", _made_of("sco")),
        "sp": ("permissions", _made_of("a-z")),
        **_SHARED,
        "ses": ("encryption_scope", _is_anything),
    },
}
# parameters of each kind, without the signature
PARAMETERS: Final[Mapping[type[TableSas] | type[AccountSas], Sequence[str]]] = {
    kind: tuple(fields) for kind, fields in _FIELDS.items()
}
# user delegation SAS, which tables do not have
_DELEGATED: Final = (
    "skoid",
    "sktid",
    "skt",
    "ske",
    "sks",
    "skv",
    "saoid",
    "suoid",
    "scid",
    "skdutid",
    "sduoid",
)
# none may be repeated: readers could differ on which value was signed
SAS_NAMES: Final = frozenset(("sig", *_DELEGATED, *_FIELDS[TableSas], *_FIELDS[AccountSas]))
