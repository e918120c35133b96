"""Selection of the database that answers a read: the primary, unless a subject provides others (Hook.READ_ROUTER).

A watch monitors the servers that hold relations of other forms than the local one.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from storage.domain.requests.consistency import ReadTerms


class SourceAddress(NamedTuple):
    """Address of a read source: ``name`` is host and port, ``alias`` its name among Django's databases."""

    name: str
    conninfo: str
    alias: str = ""


class ReadSource(Protocol):
    """Database that answers reads beside the primary; ``alias`` is its name among Django's databases."""

    alias: str
    lanes: Any  # storage.sql.lanes.Lanes

    def mark_suspect(self) -> None:
        """Suspend reads here for a moment after a failure."""


T = TypeVar("T")
# the partition that a request is about, None if it is about several; asked only while a server is silent
Partition = Callable[[], str | None]


class RelationWatch(ABC):
    """Runner of statements on relations of one form; ends statements that wait for a server that does not respond."""

    @abstractmethod
    def __init__(self, conninfo: str, lanes: Any) -> None:
        """Create a watch; ``lanes`` are the storage.sql.lanes.Lanes of this process."""

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def run(self, relation: str, partition: Partition, operation: Callable[[], Awaitable[T]]) -> T:
        """Run an operation on a relation; raises ServerBusy if the servers with its rows do not respond."""


class Synchronization(NamedTuple):
    """State of a database: whether reads use it, and how current it is."""

    is_in_use: bool
    at: float | None  # it has everything acknowledged before, in seconds since 1970; None if never


class ReadRouter(ABC):
    """Router of reads to databases beside the primary, which it monitors."""

    primary_answers: bool

    @abstractmethod
    def open(self) -> None:
        """Start monitoring the databases, without waiting for any."""

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def choose(self, terms: ReadTerms, *, is_required: bool = False) -> ReadSource | None:
        """Return a database for a read; None for the primary."""

    @abstractmethod
    async def look_again(self) -> None:
        """Wait for a new health check of the primary."""

    @abstractmethod
    def synchronizations(self) -> Sequence[Synchronization]: ...
