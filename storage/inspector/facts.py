"""What an inspection may know: the accounts that its reader manages, with their keys, and how a request would come."""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from storage.domain.access.addresses import Network
from storage.domain.sas.known import Policies

Parameters = tuple[tuple[str, str], ...]


class Key(NamedTuple):
    """``is_accepted``: of an account's own that opens it; otherwise one that was replaced."""

    name: str
    value: bytes
    is_accepted: bool = True


def _unknown(fingerprint: str) -> Parameters | None:
    return None


@dataclass(frozen=True, slots=True)
class ManagedAccount:
    """``policies`` has every table, by its folded name.

    ``blocked`` are fingerprints; ``known`` finds the fields of a token that was made or used by its fingerprint.
    """

    name: str
    keys: tuple[Key, ...] = field(repr=False)
    policies: Policies = field(default_factory=dict)
    known: Callable[[str], Parameters | None] = _unknown
    blocked: Container[str] = frozenset()
    networks: tuple[Network, ...] = ()
    is_enabled: bool = True
    accepts_keys: bool = True
    is_read_only: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """``now`` in seconds since 1970; ``scheme`` and ``client`` are how and from where a request would come."""

    accounts: Mapping[str, ManagedAccount]
    now: float
    scheme: str
    client: str
    host: str = ""
    suffixes: tuple[str, ...] = ()
    development: Key | None = None
    takes_bearer: bool = False
