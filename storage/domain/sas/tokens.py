"""A token as the parameters of a URL, and what each of them may be.

The text of every value is kept as it came, because the text is what is signed. An empty value is an absent one: the
signed text tells no difference.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache
from hashlib import sha256
from typing import Final
from urllib.parse import quote

from storage.domain.access.addresses import read_range
from storage.domain.access.policies import IDENTIFIER_LIMIT
from storage.domain.errors import AuthenticationFailed, OutOfRangeInput, StorageError
from storage.domain.values.edm import read_datetime
from storage.domain.values.names import KEY_LENGTH_LIMIT, fold_table_name

# the versions from which on the signed text is another
FIRST_VERSION: Final = "2012-02-12"
NAMED_SERVICE: Final = "2015-02-21"
RESTRICTED: Final = "2015-04-05"  # sip and spr; account SAS
SCOPED: Final = "2020-12-06"  # ses

WRITTEN_VERSION: Final = "2019-02-02"  # of the tokens made here: that of the SDKs for tables

MISSING_PARAMETERS: Final = "Missing mandatory parameters for valid Shared Access Signature."


@dataclass(frozen=True, slots=True)
class TableSas:
    """A token for the entities of one table; between two keys, both inclusive, if it says so."""

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
    def folded(self) -> str:
        """The table as it is known; the name is ASCII, so that no other letter folds into it."""
        return self.table.lower()


@dataclass(frozen=True, slots=True)
class AccountSas:
    """A token for the services of an account; what concerns other services stays in it and means nothing here."""

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
    """The token among decoded query parameters; AuthenticationFailed for a malformed one, None without ``sig``."""
    if "sig" not in options:
        return None
    sent = {name: options[name] for name in SAS_NAMES & options.keys() if options[name]}
    kind = AccountSas if "ss" in sent and "srt" in sent else TableSas
    token = kind(**{_attribute(kind, name): value for name, value in sent.items()})
    check(token)
    return token


def write(token: TableSas | AccountSas) -> str:
    """The query string."""
    signed = (*to_parameters(token), ("sig", token.signature))
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in signed)


def to_parameters(token: TableSas | AccountSas) -> tuple[tuple[str, str], ...]:
    """Names and values as they may be shown and logged: all but the signature."""
    found = ((name, getattr(token, attribute)) for name, (attribute, _) in _FIELDS[type(token)].items())
    return tuple((name, value) for name, value in found if value)


def from_parameters(pairs: Iterable[tuple[str, str]]) -> TableSas | AccountSas | None:
    """The inverse of parameters; other names mean nothing. None for what makes no token."""
    options = dict(pairs)
    found = {name: value for name, value in options.items() if name in SAS_NAMES and name != "sig"}
    try:
        return read({**found, "sig": ""})
    except AuthenticationFailed:
        return None


def read_leniently(options: Mapping[str, str]) -> TableSas | AccountSas:
    """What somebody may have meant for a token, however malformed; for nobody but who is to be told what is wrong."""
    kind = AccountSas if options.get("ss") and options.get("srt") else TableSas
    return with_parameters(kind(signature=options.get("sig", "")), options)


def with_parameters(token: TableSas | AccountSas, options: Mapping[str, str]) -> TableSas | AccountSas:
    """With other values of some parameters, unchecked; what the kind does not have means nothing."""
    fields = _FIELDS[type(token)]
    changed = {fields[name][0]: options[name] for name in fields if name in options}
    if isinstance(token, TableSas):  # each by itself, for the types
        return replace(token, **changed)
    return replace(token, **changed)


def fingerprint(token: TableSas | AccountSas) -> str:
    """Hexadecimal SHA-256 of the signature, by which a token is known without being kept."""
    return sha256(token.signature.encode()).hexdigest()


def _attribute(kind: type[TableSas] | type[AccountSas], name: str) -> str:
    if name == "sig":
        return "signature"
    if name not in _FIELDS[kind]:
        raise _malformed(name)  # it looks like a restriction, but the signature does not cover it
    return _FIELDS[kind][name][0]


# what a token may say


def check(token: TableSas | AccountSas) -> None:
    """Refuses what no client writes, and whatever could be taken for something else than was signed."""
    for name, (attribute, _) in _FIELDS[type(token)].items():
        if not is_well_formed(type(token), name, getattr(token, attribute)):
            raise _malformed(name)
    if isinstance(token, TableSas):
        _check_table_sas(token)
    else:
        _check_account_sas(token)


def is_well_formed(kind: type[TableSas] | type[AccountSas], name: str, value: str) -> bool:
    """Whether a parameter of a token may have this value; an empty one is as good as none."""
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
    """Any day since the first version: what is newer than we are signs like the newest that we know."""
    try:
        return _DAY.fullmatch(text) is not None and bool(date.fromisoformat(text)) and text >= FIRST_VERSION
    except ValueError:
        return False


@lru_cache(maxsize=1024)
def _is_table_name(text: str) -> bool:
    try:
        return text.isascii() and bool(fold_table_name(text))
    except StorageError:
        return False


@lru_cache(maxsize=1024)
def read_instant(text: str) -> int | None:
    """Ticks since 1970; a day alone is its midnight. None if the text is no instant."""
    try:
        return read_datetime(text) if _INSTANT.fullmatch(text) else None
    except OutOfRangeInput:
        # no property may hold these years, but a policy or a token that is good since for ever
        return _LONG_AGO if "0001" <= text[:4] < "1601" else None
    except StorageError:
        return None


def _is_instant(text: str) -> bool:
    return read_instant(text) is not None


def _is_identifier(text: str) -> bool:
    return len(text) <= IDENTIFIER_LIMIT


def _is_protocol(text: str) -> bool:
    return text in ("https", "https,http", "http,https")


def _is_range(text: str) -> bool:
    return read_range(text) is not None


def _is_anything(text: str) -> bool:
    return True


def _made_of(letters: str) -> Callable[[str], bool]:
    pattern = re.compile(f"[{letters}]+")
    return lambda text: pattern.fullmatch(text) is not None


# by parameter, in the order of `parameters`: the attribute, and whether a text may be its value
_Fields = Mapping[str, tuple[str, Callable[[str], bool]]]
_SHARED: Final[_Fields] = {
    "st": ("start", _is_instant),
    "se": ("expiry", _is_instant),
    "sip": ("address", _is_range),
    "spr": ("protocol", _is_protocol),
}
_FIELDS: Final[Mapping[type[TableSas] | type[AccountSas], _Fields]] = {
    TableSas: {
        "sv": ("version", _is_version),
        "tn": ("table", _is_table_name),
        "sp": ("permissions", _made_of("raud")),
        **_SHARED,
        "si": ("identifier", _is_identifier),
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
# of each kind, without the signature
PARAMETERS: Final[Mapping[type[TableSas] | type[AccountSas], Sequence[str]]] = {
    kind: tuple(fields) for kind, fields in _FIELDS.items()
}
# user delegation SAS, which there are none of for tables
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
# none may come twice: readers could differ on which of them was signed
SAS_NAMES: Final = frozenset(("sig", *_DELEGATED, *_FIELDS[TableSas], *_FIELDS[AccountSas]))
