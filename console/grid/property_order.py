"""The order of a table's columns: properties keep the place that they got when they were first displayed."""

from collections.abc import Iterable
from typing import Final

from django.db import transaction

from console.models import PropertyOrder
from storage.models import Table

_MOST: Final = (
    1_000  # names of a table; the properties of entities without any schema are in alphabetical order
)


def arrange_properties(table: Table, seen: Iterable[str]) -> list[str]:
    """Return the names in the order of the table, and add those that are new to it."""
    names = list(dict.fromkeys(seen))
    known = _known(table)
    if not known.keys() >= set(names) and len(known) < _MOST:
        known = _extend(table, names)
    return sorted(names, key=lambda name: (known.get(name, _MOST), name))


def _known(table: Table) -> dict[str, int]:
    names = PropertyOrder.objects.filter(table=table).values_list("names", flat=True).first()
    return _places(names or [])


def _places(names: list[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(names)}


@transaction.atomic
def _extend(table: Table, names: list[str]) -> dict[str, int]:
    """Append new names; locked, because another request may just add others."""
    PropertyOrder.objects.get_or_create(table=table)
    order = PropertyOrder.objects.select_for_update().get(table=table)
    order.names = list(dict.fromkeys([*order.names, *names]))[:_MOST]
    order.save(update_fields=["names"])
    return _places(order.names)
