"""Statement as a value: its SQL, lane and result reader; executed by lanes or django."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeVar

from storage.domain.entities.entity import EntityKey

T_co = TypeVar("T_co", covariant=True)


class Lane(Enum):
    """Planner settings that a statement needs; lanes.SETTINGS explains them."""

    KEY = "key"
    FILTER = "filter"


class Result(Protocol):
    """Protocol of psycopg.pq.PGresult as statements use it; values are text."""

    @property
    def ntuples(self) -> int: ...

    def get_value(self, row_number: int, column_number: int) -> bytes | None: ...


def text_at(result: Result, row: int, column: int) -> str:
    value = result.get_value(row, column)
    assert value is not None
    return value.decode()


def integer_at(result: Result, row: int, column: int) -> int:
    value = result.get_value(row, column)
    assert value is not None
    return int(value)


def read_numbers(result: Result) -> dict[int, int]:
    """Read rows of two numbers: the second by the first."""
    return {integer_at(result, row, 0): integer_at(result, row, 1) for row in range(result.ntuples)}


def read_keys(result: Result) -> list[EntityKey]:
    return [EntityKey(text_at(result, row, 0), text_at(result, row, 1)) for row in range(result.ntuples)]


Parameters = tuple[str | bytes | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Combination(Generic[T_co]):
    """Combination of statements that differ only in their parameters; see storage.sql.combining.

    The first two parameters are the keys of an entity. ``statement`` makes one statement from the parameters of several
    with different keys. Its result maps keys to the results of the single statements; a statement without a result
    there must run alone.
    """

    statement: "Callable[[Sequence[Parameters]], Statement[Mapping[EntityKey, T_co]]]"
    is_write: bool = True


class ChangedMeanwhile(Exception):
    """A concurrent change came between a statement and the look-up of its reason."""


@dataclass(slots=True)
class Statement(Generic[T_co]):
    """SQL statement with ``$1`` placeholders, its lane, and the reader of its result."""

    text: str
    parameters: Parameters
    lane: Lane
    read: Callable[[Result], T_co]
    combination: Combination[T_co] | None = None
    reason: "Statement[T_co] | None" = None
    locking: "Callable[[], Statement[T_co]] | None" = None
