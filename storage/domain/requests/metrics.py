"""Request counts, by kind and by client."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from storage.domain.access.grants import Operation
from storage.domain.requests.observed import Authentication

# seconds; a request counts for the first bound that it does not exceed, or after the last
LATENCY_BOUNDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class RequestKind(NamedTuple):
    """Fields by which requests are counted together, as in ObservedRequest."""

    account_id: int  # 0: the account does not exist
    secondary: bool
    operation: Operation | None
    authentication: Authentication
    status: int
    error: str


@dataclass(slots=True)
class Tally:
    """Totals of a kind of request: count, bytes in and out, seconds until the response was ready and was sent."""

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
    """Client that used a key or token, by address and user agent; both are empty beyond a number of clients."""

    account_id: int
    authentication: Authentication
    credential: str
    address: str = ""
    agent: str = ""


@dataclass(frozen=True, slots=True)
class UseCount:
    """Number of uses of a credential in a period, and the time of the last one."""

    count: int
    last: datetime
