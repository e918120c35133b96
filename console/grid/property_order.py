"""Stable order of a table's properties, from their first display."""

from collections.abc import Iterable
from typing import Final

from django.db import transaction

from console.models import PropertyOrder
from storage.models import Table

_MOST: Final = (
    1_000  # names of a table; the properties of entities without any schema are in alphabetical order
)
_MOST_SHOWN: Final = (
    100  # names that stay without a value; more belong to entities that have little in common
)


def order_properties(table: Table, seen: Iterable[str], *, is_part: bool = False) -> list[str]:
    """Return the names in the table's stored order, extended by new ones.

    With ``is_part``, properties known from other entities of the table are included.
    """
    names = list(dict.fromkeys(seen))
    order = PropertyOrder.objects.filter(table=table).first() or PropertyOrder(table=table)
    if len(order.names) < _MOST and not set(order.names) >= set(names):
        order = _extend(table, names)
    if is_part and len(order.names) <= _MOST_SHOWN:
        names = [*names, *(name for name in order.names if name not in names)]
    places = {name: place for place, name in enumerate(order.names)}
    return sorted(names, key=lambda name: (places.get(name, _MOST), name))


@transaction.atomic
def _extend(table: Table, names: list[str]) -> PropertyOrder:
    """Append new names under a lock, as concurrent requests may add others."""
    PropertyOrder.objects.get_or_create(table=table)
    order = PropertyOrder.objects.select_for_update().get(table=table)
    order.names = list(dict.fromkeys([*order.names, *names]))[:_MOST]
    order.save(update_fields=["names"])
    return order
