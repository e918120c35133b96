"""Filters that name entities one by one, so that each could be read by its key."""

from itertools import product
from typing import Final

from storage.domain.entities.entity import EntityKey
from storage.domain.filters.ast import And, Filter, Or, all_of, fold
from storage.domain.filters.keys import key_range

MOST: Final = 100  # entities; more are not worth a request each

_Alternatives = list[tuple[Filter, ...]]  # one of them must hold, all its conditions together


def point_keys(root: Filter) -> tuple[EntityKey, ...]:
    """The keys of all entities that can match, if being one of them is all that the filter asks."""
    keys = [_key(conditions) for conditions in fold(root, _alternatives)]
    found = dict.fromkeys(key for key in keys if key is not None)
    return tuple(found) if None not in keys else ()


def _alternatives(node: Filter, operands: list[_Alternatives]) -> _Alternatives:
    match node:
        case Or():
            found = [alternative for operand in operands for alternative in operand]
            return found if len(found) <= MOST else [(node,)]
        case And():
            count = 1
            for operand in operands:
                count *= len(operand)
            if count > MOST:
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
