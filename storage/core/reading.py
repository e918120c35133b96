"""Which database answers a read: the primary, unless a subject knows others (Hook.READ_ROUTER)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from storage.domain.requests.consistency import ReadTerms


class ReadSource(Protocol):
    """A database that answers reads beside the primary; ``alias`` is its name among Django's databases."""

    alias: str
    lanes: Any  # storage.sql.lanes.Lanes

    def mark_suspect(self) -> None:
        """Stop reads here for a moment, because one has failed."""


class Synchronization(NamedTuple):
    """``at``: the database has everything that was acknowledged before, in seconds since 1970; None if never."""

    is_in_use: bool
    at: float | None


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
