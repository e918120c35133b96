"""A statement as a value: its text, its lane, and how to read the result. Two executors run it: lanes and django."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Lane(Enum):
    """The planner settings that a statement needs; lanes.SETTINGS explains them."""

    KEY = "key"
    FILTER = "filter"


class Result(Protocol):
    """The part of psycopg.pq.PGresult that statements use; values are text."""

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


Parameters = tuple[str | bytes | None, ...]


@dataclass(frozen=True, slots=True)
class Combination:
    """How several statements of one text run as one, each on another entity: see combining.

    The first two parameters are the keys. ``statement`` makes one of the parameters of several; its result has what was
    found for each key. ``outcome`` is the result of a single one, given what was found for it, or raises its error.
    """

    statement: "Callable[[Sequence[Parameters]], Statement[dict[Parameters, int]]]"
    outcome: Callable[[int | None], int]


@dataclass(slots=True)
class Statement(Generic[T_co]):
    """One statement with ``$1`` placeholders.

    Texts among the ``parameters`` are in PostgreSQL's text format, bytes in its binary one.
    """

    text: str
    parameters: Parameters
    lane: Lane
    read: Callable[[Result], T_co]
    combination: Combination | None = None
