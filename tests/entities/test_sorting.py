"""Entities in the order of a property."""

import math
from datetime import timedelta
from decimal import Decimal

import pytest

from storage.accounts import accounts
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import OperationTimedOut, TableNotFound
from storage.domain.filters.parser import parse
from storage.domain.filters.query import SORTED_TEXT_LENGTH, EntityQuery, Sort, SortedPosition
from storage.domain.values.edm import Edm, EdmValue
from storage.entities import entities
from storage.models import PropertyIndex
from storage.sql import batch, previews
from storage.sql.django import execute, run
from storage.sql.relations import relation_name
from storage.sql.statement import Lane, Statement
from storage.tables import tables
from storage.tables.index_rules import IndexOrigin, IndexState

RANKS = {
    Edm.BOOLEAN: 0,
    Edm.INT32: 1,
    Edm.INT64: 1,
    Edm.DOUBLE: 1,
    Edm.STRING: 2,
    Edm.DATETIME: 3,
    Edm.GUID: 4,
    Edm.BINARY: 5,
}
VALUES = [
    *(EdmValue(Edm.BOOLEAN, truth) for truth in (True, False, True)),
    *(EdmValue(Edm.INT32, number) for number in (5, -1, 0, 2**31 - 1, 100, 20)),
    *(EdmValue(Edm.INT64, number) for number in (5, 2**53 + 1, -(2**63), 2**63 - 1)),
    *(EdmValue(Edm.DOUBLE, number) for number in (5.5, -0.0, 1e300, 5e-324, 2.0**53, math.inf, -math.inf, math.nan)),
    *(EdmValue(Edm.STRING, text) for text in ("", "a", "B", "é", "\x00", "\ud800", "\uffff", "😀", "5", "a" * 5000)),
    *(EdmValue(Edm.DATETIME, ticks) for ticks in (0, -1, 10_000_000)),
    *(EdmValue(Edm.GUID, f"{digit * 8}-0000-0000-0000-000000000000") for digit in "9a0"),
    *(EdmValue(Edm.BINARY, octets) for octets in (b"", b"\xff", b"\x00a")),
    *(None, None, None),
]  # fmt: skip


@pytest.fixture(params=[False, True], ids=["scanned", "indexed"])
def table(db, request):
    table = tables.create(accounts.add("acme"), "people")
    if request.param:  # the order does not depend on whether the index is there
        PropertyIndex.objects.create(table=table, name="V", state=IndexState.READY, origin=IndexOrigin.HAND)
    inserts = []
    for number, value in enumerate(VALUES):
        properties = {} if value is None else {"V": value}
        # keys in another order than the values
        key = EntityKey("p", f"{(number * 17) % len(VALUES):03}")
        inserts.append(Insert(Entity(key, properties | {"Even": EdmValue(Edm.BOOLEAN, number % 2 == 0)})))
    run(batch.apply(relation_name(table.pk), inserts))
    return table


def place(glance):
    """Return the sort key of a value, in plain Python."""
    value = glance.properties["V"]
    rank = RANKS[value.type]
    if rank == 1:
        is_nan = math.isnan(value.value)
        return (1, Decimal("Infinity") if is_nan else Decimal(repr(value.value)), "~" if is_nan else "")
    if rank == 2:
        return (2, 0, value.value[:SORTED_TEXT_LENGTH])
    return (rank, value.value, "")


def all_of(table, entity_query, sort):
    previews, start = [], None
    while True:
        page = entities.sorted_preview_page(table, entity_query, sort, start)
        assert len(page.entities) <= entity_query.top
        previews += page.entities
        if page.next is None:
            return previews
        start = SortedPosition.read(list(page.next))
        assert start == page.next


def test_pages_are_sorted_by_type_and_value_with_missing_ones_last(table):
    for descending in (False, True):
        for top in (1, 7, 1000):
            result = all_of(table, EntityQuery(top=top), Sort("V", descending=descending))

            by_key = sorted(result, key=lambda glance: glance.key)
            present = sorted((it for it in by_key if "V" in it.properties), key=place, reverse=descending)
            absent = [it for it in by_key if "V" not in it.properties]
            assert len(result) == len({it.key for it in result}) == len(VALUES)
            assert [it.properties.get("V") for it in result] == [
                it.properties.get("V") for it in [*present, *absent]
            ]
            assert [it.key for it in result[-3:]] == [it.key for it in absent]
            if not descending:
                assert result == [*present, *absent]


def test_sorting_by_system_properties_and_by_missing_ones(table):
    for name in ("PartitionKey", "RowKey", "Timestamp", "Missing"):
        for descending in (False, True):
            result = all_of(table, EntityQuery(top=9), Sort(name, descending=descending))

            assert len({glance.key for glance in result}) == len(VALUES)
            if name == "RowKey":
                assert result == sorted(result, key=lambda glance: glance.key, reverse=descending)


def test_filtered_entities_are_sorted(table):
    result = all_of(table, EntityQuery(filter=parse("Even and V ge 5"), top=2), Sort("V", descending=True))

    numbers = [glance.properties["V"].value for glance in result]
    assert numbers == sorted(numbers, reverse=True)
    assert len(numbers) > 2


def test_large_values_are_cut_as_in_a_page_by_key(table):
    large = EdmValue(Edm.STRING, "x" * 30_000)
    run(batch.apply(relation_name(table.pk), [Insert(Entity(EntityKey("p", "large"), {"V": large}))]))
    result = all_of(table, EntityQuery(), Sort("V"))

    [glance] = [glance for glance in result if glance.key.row_key == "large"]
    assert glance.sizes == {"V": 30_000}


def test_gives_up_when_the_time_is_up_or_the_table_is_gone(table, monkeypatch):
    sleep = Statement("SELECT pg_sleep(60)", (), Lane.FILTER, int)
    with monkeypatch.context() as patch:
        patch.setattr(entities, "SORT_LIMIT", timedelta(milliseconds=500))
        patch.setattr(previews, "sorted_page", lambda *given: sleep)
        with pytest.raises(OperationTimedOut):
            entities.sorted_preview_page(table, EntityQuery(), Sort("V"))
    execute(f"DROP TABLE {relation_name(table.pk)}")

    with pytest.raises(TableNotFound):
        entities.sorted_preview_page(table, EntityQuery(), Sort("V"))


def test_a_position_that_is_none_of_ours():
    assert SortedPosition.read([1, "0", "", "p", "r"])
    for forged in (None, [], {}, "12345", [1, "0", "", "p"]):
        assert SortedPosition.read(forged) is None
    for place, values in {
        0: ["1", 10, -1],
        1: ["one", "1e5", "0" * 2000],
        2: ["\x00", "\ud800"],
        3: ["p/"],
        4: ["\ud800"],
    }.items():
        for value in values:
            forged = [1, "0", "", "p", "r"]
            forged[place] = value
            assert SortedPosition.read(forged) is None, forged
