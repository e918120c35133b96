"""Access plan of a filter: the rows to scan, why they cannot be narrowed further, and possible improvements."""

from collections.abc import Collection
from enum import StrEnum
from itertools import product
from math import prod
from typing import Final, NamedTuple, assert_never

from storage.domain.entities.entity import EntityKey
from storage.domain.filters.ast import (
    And,
    Comparison,
    Filter,
    Operator,
    Or,
    all_of,
    conjuncts,
    fold,
    mentioned_properties,
)
from storage.domain.filters.keys import KeyBounds, key_range
from storage.domain.translation import mark as _
from storage.domain.values.edm import Edm


class AccessPath(StrEnum):
    """Part of a table that a filter has to read, cheapest first."""

    POINT = "point"  # one entity
    RANGE = "range"  # some rows of one partition
    PARTITION_SCAN = "partition-scan"
    PARTITION_RANGE = "partition-range"  # several partitions
    TABLE_SCAN = "table-scan"


class AccessReason(StrEnum):
    """Reason why the filter has to read that much, in English."""

    BOTH_KEYS = _("The filter sets PartitionKey and RowKey, which identify one entity.")
    CONTRADICTION = _("These key conditions contradict each other, so the query returns nothing.")
    ROW_KEY_RANGE = _("The filter sets PartitionKey and limits RowKey to a range.")
    NO_ROW_KEY = _("The filter sets PartitionKey but not RowKey.")
    ROW_KEY_ALTERNATIVES = _("The filter sets PartitionKey, but lists alternatives for RowKey.")
    ROW_KEY_UNUSABLE = _(
        "Only PartitionKey narrows this query. The RowKey condition cannot be used as a range because it is"
        " negated or not a string."
    )
    PARTITION_KEY_RANGE = _("The filter limits PartitionKey to a range, not to one value.")
    NO_FILTER = _("There is no filter, so every entity matches.")
    NO_PARTITION_KEY = _("The filter doesn't set PartitionKey.")
    ROW_KEY_ONLY = _("The filter sets RowKey but not PartitionKey, which comes first in the key.")
    PARTITION_KEY_ALTERNATIVES = _(
        "The filter lists alternatives for PartitionKey, or an “or” leaves it open."
    )
    PARTITION_KEY_UNUSABLE = _(
        "The PartitionKey condition cannot be used as a range because it is negated or not a string."
    )


class Improvement(StrEnum):
    """Smallest change of a query that reduces its reads."""

    READ_POINTS = "read-points"  # read each of AccessPlan.point_keys by itself
    ADD_ROW_KEY = "add-row-key"
    EQUAL_PARTITION_KEY = "equal-partition-key"
    SPLIT_BY_PARTITION = "split-by-partition"  # one query for each alternative
    ADD_PARTITION_KEY = "add-partition-key"


class AccessPlan(NamedTuple):
    """Access plan of a filter. The protocol needs only the bounds; the rest is computed on demand."""

    filter: Filter | None
    bounds: KeyBounds

    @property
    def is_by_keys(self) -> bool:
        """Return whether every row inside the bounds matches."""
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
    def reason(self) -> AccessReason:
        if self.bounds.is_empty:
            return AccessReason.CONTRADICTION
        match self.path:
            case AccessPath.POINT:
                return AccessReason.BOTH_KEYS
            case AccessPath.RANGE:
                return AccessReason.ROW_KEY_RANGE
            case AccessPath.PARTITION_SCAN:
                if not self._tests("RowKey"):
                    return AccessReason.NO_ROW_KEY
                alternatives = self._tests("RowKey", among_alternatives=True)
                return AccessReason.ROW_KEY_ALTERNATIVES if alternatives else AccessReason.ROW_KEY_UNUSABLE
            case AccessPath.PARTITION_RANGE:
                return AccessReason.PARTITION_KEY_RANGE
            case AccessPath.TABLE_SCAN:
                return self._why_whole_table()
            case _ as unknown:
                assert_never(unknown)

    def _why_whole_table(self) -> AccessReason:
        if self.filter is None:
            return AccessReason.NO_FILTER
        if self._tests("PartitionKey", among_alternatives=True):
            return AccessReason.PARTITION_KEY_ALTERNATIVES
        if self._tests("PartitionKey"):
            return AccessReason.PARTITION_KEY_UNUSABLE
        return AccessReason.ROW_KEY_ONLY if self._tests("RowKey") else AccessReason.NO_PARTITION_KEY

    def _tests(self, name: str, *, among_alternatives: bool = False) -> bool:
        """Return whether a key is compared without setting a bound."""
        conditions = conjuncts(self.bounds.residual) if self.bounds.residual is not None else []
        return any(
            name in mentioned_properties(condition)
            for condition in conditions
            if isinstance(condition, Or) or not among_alternatives
        )

    @property
    def improvement(self) -> Improvement | None:
        reason = self.reason
        if reason is AccessReason.CONTRADICTION or self.path in (AccessPath.POINT, AccessPath.RANGE):
            return None
        if self.point_keys:
            return Improvement.READ_POINTS
        match self.path:
            case AccessPath.PARTITION_SCAN:
                return Improvement.ADD_ROW_KEY
            case AccessPath.PARTITION_RANGE:
                return Improvement.EQUAL_PARTITION_KEY
        is_split = reason is AccessReason.PARTITION_KEY_ALTERNATIVES
        return Improvement.SPLIT_BY_PARTITION if is_split else Improvement.ADD_PARTITION_KEY

    def index_candidates(self, indexed: Collection[str] = ()) -> frozenset[str] | None:
        """Return the properties whose index would find the matching rows; None if an existing index does."""
        if self.bounds.residual is None:
            return None
        return fold(self.bounds.residual, lambda node, operands: _candidates(node, operands, indexed))

    @property
    def point_keys(self) -> tuple[EntityKey, ...]:
        """Return the keys of all possible results, if the filter consists of full keys only."""
        if self.filter is None:
            return ()
        keys = [_key(conditions) for conditions in fold(self.filter, _alternatives)]
        points = dict.fromkeys(key for key in keys if key is not None)
        return tuple(points) if None not in keys else ()


def _candidates(
    node: Filter, operands: list[frozenset[str] | None], indexed: Collection[str]
) -> frozenset[str] | None:
    match node:
        case Comparison():
            return _candidate(node, indexed)
        case And() if None in operands:
            return None
        case And():
            return _union(operands)
        case Or() if frozenset() in operands:  # a part that no index finds: all rows are read for it
            return frozenset()
        case Or():
            return _union(operands) or None
        case _:
            return frozenset()


def _candidate(comparison: Comparison, indexed: Collection[str]) -> frozenset[str] | None:
    name, operator = comparison.property, comparison.operator
    is_boolean = comparison.literal.type is Edm.BOOLEAN
    if name in ("PartitionKey", "RowKey") or (operator is Operator.NE and not is_boolean):
        return frozenset()  # nearly everything differs from a value
    if name in indexed or (name != "Timestamp" and (operator is Operator.EQ or is_boolean)):
        return None
    return frozenset({name})


def _union(operands: list[frozenset[str] | None]) -> frozenset[str]:
    return frozenset(name for names in operands for name in names or ())


def plan_access(root: Filter | None) -> AccessPlan:
    return AccessPlan(root, key_range(root))


# entities named one by one, so that each can be read by its key

POINT_LIMIT: Final = 100  # entities; more are not worth a request each

_Alternatives = list[tuple[Filter, ...]]  # one of them must hold, all its conditions together


def _alternatives(node: Filter, operands: list[_Alternatives]) -> _Alternatives:
    match node:
        case Or():
            alternatives = [alternative for operand in operands for alternative in operand]
            return alternatives if len(alternatives) <= POINT_LIMIT else [(node,)]
        case And():
            if prod(map(len, operands)) > POINT_LIMIT:
                return [(node,)]
            return [tuple(part for parts in choice for part in parts) for choice in product(*operands)]
        case _:
            return [(node,)]


def _key(conditions: tuple[Filter, ...]) -> EntityKey | None:
    bounds = key_range(all_of(conditions))
    partition, row = bounds.partition.single, bounds.row.single
    if partition is None or row is None or bounds.residual is not None:
        return None
    return EntityKey(partition, row)
