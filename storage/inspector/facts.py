"""Facts for an inspection: the user's managed accounts, and the circumstances of a request."""

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
    """Account key; one that is not accepted was replaced."""

    name: str
    value: bytes
    is_accepted: bool = True


@dataclass(frozen=True, slots=True)
class ManagedAccount:
    """Managed account; ``policies`` has every table by its lower-case name."""

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
    """Facts; ``now`` is in seconds since 1970, ``scheme`` and ``client`` are those of an arriving request."""

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
        """Return the method, also if tunnelled through POST."""
        tunnelled = self.headers.get(b"x-http-method", b"")
        return tunnelled.decode("latin-1").upper() if tunnelled and self.method == "POST" else self.method
