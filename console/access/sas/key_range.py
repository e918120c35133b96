"""Key range that a SAS token needs for selected rows or a filter."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from storage.domain.entities.entity import EntityKey
from storage.domain.filters.ast import Filter
from storage.domain.filters.keys import Bound, KeyInterval, key_range
from storage.domain.sas.explain import KeyLimits


class Fit(StrEnum):
    """Degree to which a range covers the selection."""

    EXACT = "exact"
    WIDER = "wider"  # it includes other entities too
    ALL = "all"  # the keys are not limited


@dataclass(frozen=True, slots=True)
class KeyRange:
    keys: KeyLimits
    fit: Fit


def cover_rows(rows: Sequence[EntityKey]) -> KeyRange:
    """Return the range from the first to the last row, including all between."""
    if not rows:
        return KeyRange(KeyLimits(), Fit.ALL)
    first, last = min(rows), max(rows)
    # an empty key sets no bound
    keys = KeyLimits(
        first.partition_key,
        first.row_key if first.partition_key else "",
        last.partition_key,
        last.row_key if last.partition_key else "",
    )
    is_exact = len(set(rows)) == 1 and all((*first, *last))
    return KeyRange(keys, Fit.EXACT if is_exact else Fit.WIDER)


def cover_filter(root: Filter | None) -> KeyRange:
    """Return the smallest range that covers a filter.

    The bounds of a token are included, so a filter that excludes its bounds is covered with them.
    """
    bounds = key_range(root)
    partition, row = bounds.partition, bounds.row
    if partition.is_unbounded:
        return KeyRange(KeyLimits(), Fit.ALL)
    is_exact = bounds.residual is None and all(map(_is_expressible, (partition, row)))
    is_single = partition.single is not None and partition.single != ""
    return KeyRange(
        KeyLimits(
            _key(partition.lower),
            _key(row.lower) if is_single else "",
            _key(partition.upper),
            _key(row.upper) if is_single else "",
        ),
        Fit.EXACT if is_exact else Fit.WIDER,
    )


def _is_expressible(interval: KeyInterval) -> bool:
    return all(bound is None or (bound.inclusive and bound.key) for bound in (interval.lower, interval.upper))


def _key(bound: Bound | None) -> str:
    return "" if bound is None else bound.key
