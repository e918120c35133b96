"""Requests, counted: what is kept of them when they are over."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from storage.domain.access.grants import Operation
from storage.domain.requests.observed import Authentication

# seconds; a request is counted at the first bound that it does not exceed, or after the last
LATENCY_BOUNDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class RequestKind(NamedTuple):
    """What requests that are counted together have in common; the fields are those of domain.observed."""

    account_id: int  # 0: of none that exists
    secondary: bool
    operation: Operation | None
    authentication: Authentication
    status: int
    error: str


@dataclass(slots=True)
class Tally:
    """Requests of a kind: how many, bytes in and out, seconds until they were answered and until they were over."""

    requests: int = 0
    ingress: int = 0
    egress: int = 0
    server_time: float = 0.0
    total_time: float = 0.0
    latencies: list[int] = field(default_factory=lambda: [0] * (len(LATENCY_BOUNDS) + 1))

    def add(self, other: "Tally") -> None:
        self.requests += other.requests
        self.ingress += other.ingress
        self.egress += other.egress
        self.server_time += other.server_time
        self.total_time += other.total_time
        self.latencies = [mine + more for mine, more in zip(self.latencies, other.latencies, strict=True)]


class CredentialClient(NamedTuple):
    """Who used which key or token: an address and a user agent; all empty for those that are too many to tell apart."""

    account_id: int
    authentication: Authentication
    credential: str
    address: str = ""
    agent: str = ""


@dataclass(frozen=True, slots=True)
class UseCount:
    """How often within a while, and when last."""

    count: int
    last: datetime
