"""Interface between the Table service and rehearsals of failures.

A `Rehearser` chooses what happens to a request; storage.protocol.rehearsal does it, and describes the exchange.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from storage.domain.access.grants import Operation
from storage.domain.access.policies import AccessPolicy
from storage.domain.errors import StorageError

HEADER: Final = "x-tablero-rehearse"  # by which a request asks for a fault itself


class Run(Protocol):
    """Function that runs a storage.sql.statement.Statement."""

    def __call__(self, statement: Any, /) -> Awaitable[Any]: ...


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """Facts of an authorized request that rules ask for."""

    operation: Operation | None
    table: str = ""  # folded
    partition: str | None = None  # the only one that the request is about
    row: str | None = None
    agent: str = ""
    credential: str = ""  # its kind and name; empty for an unknown one
    secondary: bool = False
    is_continued: bool = False  # it sends a continuation token
    cost: int = 1  # entities that it writes, at least 1
    asked: str | None = None  # the fault that the request itself asks for


class Delivery(StrEnum):
    """Way in which an answer does not reach the client as a whole."""

    CLOSE = "close"  # the connection is closed before the answer
    RESET = "reset"  # the connection is reset before the answer
    SILENCE = "silence"  # nothing is sent for a while, then the connection is closed
    CUT = "cut"  # the connection is closed after a half of the body
    SLOW = "slow"  # the body is sent in pieces


WITHHELD: Final = frozenset({Delivery.CLOSE, Delivery.RESET, Delivery.SILENCE})


class PageCut(NamedTuple):
    """Shortening of a page; ``place`` chooses among the possible ends, from 0 to below 1."""

    place: float
    is_empty: bool = False
    at_partition: bool = False  # before the first entity of a partition, if the page has several

    def length(self, partitions: Sequence[str]) -> int:
        """Return how many entities stay, given their PartitionKeys.

        Only an empty page makes no progress: others keep an entity, so one of a single entity stays as it is.
        """
        if self.is_empty or not partitions:
            return 0
        if self.at_partition:
            ends = [i for i in range(1, len(partitions)) if partitions[i] != partitions[i - 1]]
            if ends:
                return ends[int(self.place * len(ends))]
        return min(len(partitions), 1 + int(self.place * (len(partitions) - 1)))


class Treatment(Enum):
    """Part of a fault. It may have no effect on a request, so a fault names the rules of each."""

    DELAY = auto()
    SKEW = auto()
    FAILURE = auto()  # another answer, or another delivery of it
    CUT = auto()
    LAG = auto()


@dataclass(frozen=True, slots=True)
class Fault:
    """Treatment of a request; the defaults leave it as it is."""

    rules: tuple[tuple[Treatment, str], ...] = ()  # names of the rules that ask for each part
    delay: float = 0.0  # seconds before the operation
    skew: float = 0.0  # seconds by which the server's clock is ahead
    before: StorageError | None = None  # answers instead of the operation, which is not run
    after: StorageError | None = None  # answers instead of the operation's result
    delivery: Delivery | None = None
    is_run: bool = True  # False: the operation is not run, and the answer not delivered
    seconds: float = 0.0  # duration of the silence or of a slow answer
    cut: PageCut | None = None
    lag: float = 0.0  # seconds by which the secondary is behind

    def names(self, treatment: Treatment) -> tuple[str, ...]:
        """Return the names of the rules that ask for a part."""
        return tuple(name for part, name in self.rules if part is treatment)


class ExchangedChange(NamedTuple):
    """Change that a request asked for."""

    verb: str  # insert, replace, merge, delete, insert_or_replace or insert_or_merge
    table: str
    partition: str
    row: str
    condition: str = ""  # If-Match
    content: str = ""  # digest of its properties
    numbers: Mapping[str, float] = MappingProxyType({})  # its numeric properties


@dataclass(slots=True)
class Exchange:
    """Request and answer, as reports read them; times are in seconds since 1970."""

    began: float = 0.0
    ended: float = 0.0
    operation: str = ""
    method: str = ""
    client_id: str = ""  # digest of x-ms-client-request-id
    table: str = ""
    partition: str | None = None
    row: str | None = None
    secondary: bool = False
    changes: Sequence[ExchangedChange] = ()
    body: str = ""  # digest of a body that is not described by changes
    query: str = ""  # digest of the options without a continuation token
    top: int | None = None
    token: str = ""  # digest of the continuation token that was sent
    next_token: str = ""  # digest of the one that was answered
    entities: int | None = None  # in the answer
    etag: str = ""  # in the answer
    status: int = 0  # 0: the client disconnected
    error: str = ""
    detail: str = ""  # why access was refused
    retry_after: float | None = None  # seconds, as answered
    rules: Sequence[str] = ()
    faulted: bool = False  # one of them did more than delay the request
    delivery: str = ""
    lag: float = 0.0
    applied: bool | None = None  # whether a write was committed; None for reads, or if it is not known
    warnings: Sequence[str] = ()  # names of storage.domain.requests.strictness


class RehearsedCall(ABC):
    """Request under a rehearsal."""

    fault: Fault | None

    @abstractmethod
    async def finish(self, exchange: Exchange, request_id: str) -> None:
        """Record what was sent and answered, before the client can know the answer."""


class Rehearser(ABC):
    """Chooser of faults for the requests of an account."""

    @abstractmethod
    def is_wanted(self, asked: bytes | None) -> bool:
        """Return whether a request is rehearsed; ``asked`` is the fault it asks for itself."""

    @abstractmethod
    async def begin(self, facts: RequestFacts, run: Run) -> RehearsedCall:
        """Count a request and choose its fault; raises InvalidHeaderValue."""

    @abstractmethod
    def policy_delay(self, table: str) -> float:
        """Return for how many seconds a changed policy of a table, named folded, does not hold yet."""

    @abstractmethod
    def former_policies(self, table_id: int, delay: float) -> Mapping[str, AccessPolicy] | None:
        """Return the policies that a table had so many seconds ago; None if they are the same. Uses the ORM."""
