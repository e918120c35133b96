"""The range of keys that a token would need for what somebody looks at: ticked rows, or what a filter finds."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from storage.domain.entities.entity import EntityKey
from storage.domain.filters import Filter, key_range
from storage.domain.filters.keys import Bound, KeyInterval
from storage.domain.sas.explain import KeyLimits


class Fit(StrEnum):
    """How much of it is what was asked for."""

    EXACT = "exact"
    WIDER = "wider"  # other entities are reached as well
    ALL = "all"  # there is nothing about keys in it


@dataclass(frozen=True, slots=True)
class Reach:
    keys: KeyLimits
    fit: Fit


def of_rows(rows: Sequence[EntityKey]) -> Reach:
    """From the first to the last of them, with whatever lies between."""
    if not rows:
        return Reach(KeyLimits(), Fit.ALL)
    first, last = min(rows), max(rows)
    # an empty key cannot be said: it is no bound
    keys = KeyLimits(
        first.partition_key,
        first.row_key if first.partition_key else "",
        last.partition_key,
        last.row_key if last.partition_key else "",
    )
    is_exact = len(set(rows)) == 1 and all((*first, *last))
    return Reach(keys, Fit.EXACT if is_exact else Fit.WIDER)


def of_filter(root: Filter | None) -> Reach:
    """A token's bounds are included, so that what a filter leaves out at the edge is not left out here."""
    bounds = key_range(root)
    partition, row = bounds.partition, bounds.row
    if partition.is_unbounded:
        return Reach(KeyLimits(), Fit.ALL)
    is_exact = bounds.residual is None and all(map(_is_sayable, (partition, row)))
    is_single = partition.single is not None and partition.single != ""
    return Reach(
        KeyLimits(
            _text(partition.lower),
            _text(row.lower) if is_single else "",
            _text(partition.upper),
            _text(row.upper) if is_single else "",
        ),
        Fit.EXACT if is_exact else Fit.WIDER,
    )


def _is_sayable(interval: KeyInterval) -> bool:
    return all(bound is None or (bound.inclusive and bound.key) for bound in (interval.lower, interval.upper))


def _text(bound: Bound | None) -> str:
    return "" if bound is None else bound.key
