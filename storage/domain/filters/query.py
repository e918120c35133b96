"""What a query asks for, what it gets, and how it will reach the rows."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, NamedTuple, TypeVar, assert_never

from storage.domain.entities.entity import EntityKey
from storage.domain.filters import Filter, KeyBounds, Or, conjuncts, key_range, mentions
from storage.domain.filters.points import point_keys

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


class AccessPath(StrEnum):
    """What of a table has to be read for a filter, the cheapest first."""

    POINT = "point"  # one entity
    RANGE = "range"  # some rows of one partition
    PARTITION_SCAN = "partition-scan"
    PARTITION_RANGE = "partition-range"  # several partitions
    TABLE_SCAN = "table-scan"


class Reason(StrEnum):
    """Why no less has to be read."""

    BOTH_KEYS = "both-keys"
    CONTRADICTION = "contradiction"  # no key meets all conditions
    ROW_KEY_RANGE = "row-key-range"
    NO_ROW_KEY = "no-row-key"
    ROW_KEY_ALTERNATIVES = "row-key-alternatives"
    ROW_KEY_UNUSABLE = "row-key-unusable"  # ne, not, another type
    PARTITION_KEY_RANGE = "partition-key-range"
    NO_FILTER = "no-filter"
    NO_PARTITION_KEY = "no-partition-key"
    ROW_KEY_ONLY = "row-key-only"
    PARTITION_KEY_ALTERNATIVES = "partition-key-alternatives"
    PARTITION_KEY_UNUSABLE = "partition-key-unusable"


class Improvement(StrEnum):
    """The smallest change after which less has to be read."""

    READ_POINTS = "read-points"  # the keys of Access.point_keys, each by itself
    ADD_ROW_KEY = "add-row-key"
    EQUAL_PARTITION_KEY = "equal-partition-key"
    SPLIT_BY_PARTITION = "split-by-partition"  # one query for each alternative
    ADD_PARTITION_KEY = "add-partition-key"


class Access(NamedTuple):
    """How a filter reaches its rows. The protocol asks for no more than the bounds: the rest is found when asked."""

    filter: Filter | None
    bounds: KeyBounds

    @property
    def is_by_keys(self) -> bool:
        """Whether every row inside the bounds matches."""
        return self.bounds.residual is None

    @property
    def path(self) -> AccessPath:
        partition, row = self.bounds.partition, self.bounds.row
        if partition.single is not None:
            if row.single is not None:
                return AccessPath.POINT
            return AccessPath.PARTITION_SCAN if row.is_unbounded else AccessPath.RANGE
        return AccessPath.TABLE_SCAN if partition.is_unbounded else AccessPath.PARTITION_RANGE

    @property
    def reason(self) -> Reason:
        if self.bounds.is_empty:
            return Reason.CONTRADICTION
        match self.path:
            case AccessPath.POINT:
                return Reason.BOTH_KEYS
            case AccessPath.RANGE:
                return Reason.ROW_KEY_RANGE
            case AccessPath.PARTITION_SCAN:
                return self._why_whole_partition()
            case AccessPath.PARTITION_RANGE:
                return Reason.PARTITION_KEY_RANGE
            case AccessPath.TABLE_SCAN:
                return self._why_whole_table()
            case _ as unknown:
                assert_never(unknown)

    def _why_whole_partition(self) -> Reason:
        if not self._tests("RowKey"):
            return Reason.NO_ROW_KEY
        alternatives = self._tests("RowKey", among_alternatives=True)
        return Reason.ROW_KEY_ALTERNATIVES if alternatives else Reason.ROW_KEY_UNUSABLE

    def _why_whole_table(self) -> Reason:
        if self.filter is None:
            return Reason.NO_FILTER
        if self._tests("PartitionKey", among_alternatives=True):
            return Reason.PARTITION_KEY_ALTERNATIVES
        if self._tests("PartitionKey"):
            return Reason.PARTITION_KEY_UNUSABLE
        return Reason.ROW_KEY_ONLY if self._tests("RowKey") else Reason.NO_PARTITION_KEY

    def _tests(self, name: str, *, among_alternatives: bool = False) -> bool:
        """Whether the key is compared without setting a bound."""
        conditions = conjuncts(self.bounds.residual) if self.bounds.residual is not None else []
        return any(
            name in mentions(condition)
            for condition in conditions
            if isinstance(condition, Or) or not among_alternatives
        )

    @property
    def improvement(self) -> Improvement | None:
        reason = self.reason
        if reason is Reason.CONTRADICTION or self.path in (AccessPath.POINT, AccessPath.RANGE):
            return None
        if self.point_keys:
            return Improvement.READ_POINTS
        match self.path:
            case AccessPath.PARTITION_SCAN:
                return Improvement.ADD_ROW_KEY
            case AccessPath.PARTITION_RANGE:
                return Improvement.EQUAL_PARTITION_KEY
        is_split = reason is Reason.PARTITION_KEY_ALTERNATIVES
        return Improvement.SPLIT_BY_PARTITION if is_split else Improvement.ADD_PARTITION_KEY

    @property
    def point_keys(self) -> tuple[EntityKey, ...]:
        """The entities that together are the answer, if the filter says no more than their keys."""
        return point_keys(self.filter) if self.filter is not None else ()


def access_path(root: Filter | None) -> Access:
    return Access(root, key_range(root))
