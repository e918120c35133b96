"""What a query asks for, what it gets, and how it will reach the rows."""

from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from storage.domain.filters import Filter

Row_co = TypeVar("Row_co", covariant=True)

PAGE_LIMIT: Final = 1000  # entities
PAGE_BYTES: Final = 4 * 1024 * 1024  # of ready text; the entity that passes it is the last of its page


class Position(NamedTuple):
    """The key of the first row not returned; if it is gone meanwhile, the next greater one."""

    partition_key: str
    row_key: str


@dataclass(frozen=True, slots=True)
class EntityQuery:
    """From ``start`` up to, not including, ``end``.

    ``select`` None means all properties; ``annotations`` says whether the answer will carry EDM types.
    """

    filter: Filter | None = None
    select: tuple[str, ...] | None = None
    top: int = PAGE_LIMIT
    start: Position | None = None
    end: Position | None = None
    annotations: bool = True


@dataclass(frozen=True, slots=True)
class TableQuery:
    """``start`` is the folded name of the first table that the page before did not return."""

    filter: Filter | None = None
    top: int = PAGE_LIMIT
    start: str = ""


class Page(NamedTuple, Generic[Row_co]):
    """A page may be empty and still have a next position."""

    entities: list[Row_co]
    next: Position | None
