"""A statement as a value: what to run, where, and how to read the rows. Two executors run it: lanes, django."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Lane(Enum):
    """Which planner settings a statement needs; see lanes.SETTINGS for why there are two."""

    KEY = "key"
    FILTER = "filter"


class Result(Protocol):
    """The part of psycopg.pq.PGresult that readers use; values are text."""

    @property
    def ntuples(self) -> int: ...

    def get_value(self, row_number: int, column_number: int) -> bytes | None: ...


@dataclass(frozen=True, slots=True)
class Statement(Generic[T_co]):
    """One statement with ``$1`` placeholders; ``parameters`` are in PostgreSQL's text format."""

    text: str
    parameters: tuple[str | None, ...]
    lane: Lane
    read: Callable[[Result], T_co]
