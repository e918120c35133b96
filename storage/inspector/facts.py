"""The facts of an inspection: the accounts that its reader manages, and how a request would arrive."""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from storage.domain.access.addresses import Network
from storage.domain.access.signature import SignedRequest
from storage.domain.requests.routes import Address
from storage.domain.sas.known import Policies
from storage.domain.values.kinds import AccountKind

Parameters = tuple[tuple[str, str], ...]


class Key(NamedTuple):
    """An account key; one that is not accepted was replaced."""

    name: str
    value: bytes
    is_accepted: bool = True


@dataclass(frozen=True, slots=True)
class ManagedAccount:
    """An account; ``policies`` has every table by its lower-case name.

    ``blocked`` contains fingerprints; ``known`` returns the fields of an issued or used token by its fingerprint.
    """

    name: str
    keys: tuple[Key, ...] = field(repr=False)
    policies: Policies = field(default_factory=dict)
    known: Callable[[str], Parameters | None] = lambda fingerprint: None
    blocked: Container[str] = frozenset()
    networks: tuple[Network, ...] = ()
    is_enabled: bool = True
    accepts_keys: bool = True
    is_read_only: bool = False
    kind: AccountKind = AccountKind.STORAGE

    @property
    def accepted_keys(self) -> list[Key]:
        return [key for key in self.keys if key.is_accepted]


@dataclass(frozen=True, slots=True)
class Facts:
    """``now`` is in seconds since 1970; ``scheme`` and ``client`` are those of a request that would arrive."""

    accounts: Mapping[str, ManagedAccount]
    now: float
    scheme: str
    client: str
    host: str = ""
    suffixes: tuple[str, ...] = ()
    development: Key | None = None
    takes_bearer: bool = False


@dataclass(frozen=True, slots=True)
class IncomingRequest:
    """Request to explain; ``is_a_request`` is false for a URL that only carries a token."""

    address: Address
    method: str
    path: bytes
    query: bytes
    headers: Mapping[bytes, bytes] = field(repr=False)
    scheme: str
    client: str
    is_a_request: bool = True

    @property
    def signed(self) -> SignedRequest:
        return SignedRequest(self.method, self.path, self.query, self.headers, self.address.account)

    @property
    def effective_method(self) -> str:
        """The method, even if tunnelled through POST."""
        tunnelled = self.headers.get(b"x-http-method", b"")
        return tunnelled.decode("latin-1").upper() if tunnelled and self.method == "POST" else self.method
