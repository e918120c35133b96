"""Selection of the database that answers a read: the primary, unless a subject provides others (Hook.READ_ROUTER).

A watch monitors the servers that hold relations of other forms than the local one.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from storage.domain.requests.consistency import ReadTerms


class SourceAddress(NamedTuple):
    """``name`` is the host and port, ``alias`` the name among Django's databases."""

    name: str
    conninfo: str
    alias: str = ""


class ReadSource(Protocol):
    """A database that answers reads beside the primary; ``alias`` is its name among Django's databases."""

    alias: str
    lanes: Any  # storage.sql.lanes.Lanes

    def mark_suspect(self) -> None:
        """Stop reads here for a moment, because one has failed."""


T = TypeVar("T")
# the partition that a request is about, None if it is about several; asked only while a server is silent
Partition = Callable[[], str | None]


class RelationWatch(ABC):
    """Runner of statements on relations of one form; ends statements that wait for a server that does not respond."""

    @abstractmethod
    def __init__(self, conninfo: str, lanes: Any) -> None:
        """``lanes``: the storage.sql.lanes.Lanes of this process."""

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def run(self, relation: str, partition: Partition, operation: Callable[[], Awaitable[T]]) -> T:
        """Run an operation on a relation; raises ServerBusy if the servers that have its rows do not answer."""


class Synchronization(NamedTuple):
    """State of a database: whether reads use it, and how current it is."""

    is_in_use: bool
    at: float | None  # it has everything acknowledged before, in seconds since 1970; None if never


class ReadRouter(ABC):
    """Chooses among databases beside the primary, which it looks after."""

    primary_answers: bool

    @abstractmethod
    def open(self) -> None:
        """Begin to look after the databases; nothing waits for one."""

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def choose(self, terms: ReadTerms, *, is_required: bool = False) -> ReadSource | None:
        """Return a database that may answer a read now; None: the primary is to answer.

        One that ``is_required`` is waited for as if the primary did not answer.
        """

    @abstractmethod
    async def look_again(self) -> None:
        """Wait until the primary has been looked at from now on."""

    @abstractmethod
    def synchronizations(self) -> Sequence[Synchronization]: ...
