"""Stable order and widths of a table's columns, from their first display."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from django.db import transaction

from console.models import PropertyOrder
from storage.models import Table

_MOST: Final = (
    1_000  # names of a table; the properties of entities without any schema are in alphabetical order
)


_MOST_SHOWN: Final = (
    100  # names that stay without a value; more belong to entities that have little in common
)


class TableColumns(NamedTuple):
    names: list[str]
    widths: Mapping[str, int]  # pixels, of columns that were displayed with values before


def find_columns(table: Table, seen: Iterable[str], *, is_part: bool = False) -> TableColumns:
    """Return the names in the table's stored order, extended by new ones, with the column widths.

    With ``is_part``, properties known from other entities of the table are included.
    """
    names = list(dict.fromkeys(seen))
    order = PropertyOrder.objects.filter(table=table).first() or PropertyOrder(table=table)
    if len(order.names) < _MOST and not set(order.names) >= set(names):
        order = _extend(table, names, {})
    if is_part and len(order.names) <= _MOST_SHOWN:
        names = [*names, *(name for name in order.names if name not in names)]
    places = {name: place for place, name in enumerate(order.names)}
    return TableColumns(sorted(names, key=lambda name: (places.get(name, _MOST), name)), order.widths)


def keep_widths(table: Table, kept: Mapping[str, int], new: Mapping[str, int]) -> None:
    """Store the widths of columns that have none yet."""
    if new and len(kept) < _MOST:
        _extend(table, [], new)


@transaction.atomic
def _extend(table: Table, names: list[str], widths: Mapping[str, int]) -> PropertyOrder:
    """Append new names under a lock, as concurrent requests may add others."""
    PropertyOrder.objects.get_or_create(table=table)
    order = PropertyOrder.objects.select_for_update().get(table=table)
    order.names = list(dict.fromkeys([*order.names, *names]))[:_MOST]
    order.widths = {**widths, **order.widths}
    order.save(update_fields=["names", "widths"])
    return order
