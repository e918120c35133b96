"""Counts of queries by the shape of their filters."""

from datetime import UTC, datetime, timedelta

import pytest

from storage.domain.filters.access_plan import AccessPath
from storage.domain.filters.parser import parse
from storage.metrics import query_shapes
from storage.metrics.query_shapes import QuerySample, QueryShapes
from storage.models import QueryShape

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def count(account):
    """Return `count(table, *queries)`, to count filters with their clients and entities."""

    def count(name, *queries, at=NOON, shapes=None):
        sample = QuerySample()
        for text, agent, entities in queries:
            sample.add(parse(text) if text else None, agent, entities)
        shapes = shapes or QueryShapes()
        shapes.add(at, {(account.pk, name): sample})
        shapes.write()
        return shapes

    return count


def test_queries_with_the_same_shape_are_counted_together(table, count):
    count("people", ("Age gt 5", b"a", 3), ("Age gt 70", b"a", 1), ("Age gt 1", b"b", 0), ("", b"b", 1000))
    count("PEOPLE", ("Age gt 5", b"a", 10))
    assert [
        (it.shape, it.path, it.requests, it.entities, it.clients)
        for it in query_shapes.read(table.pk, NOON.date())
    ] == [
        ("Age gt …", AccessPath.TABLE_SCAN, 4, 14, (("a", 3), ("b", 1))),
        ("", AccessPath.TABLE_SCAN, 1, 1000, (("b", 1),)),
    ]


def test_a_sample_stands_for_all(table, count):
    count("people", *[("Age gt 5", b"a", 2)] * 320)
    [shape] = query_shapes.read(table.pk, NOON.date())
    assert (shape.requests, shape.entities) == (320, 640)


def test_further_pages_belong_to_their_query(table, account):
    sample = QuerySample()
    for number in range(4):
        sample.add(None, b"a", 1_000, is_first=number == 0)
    shapes = QueryShapes()
    shapes.add(NOON, {(account.pk, "people"): sample})
    shapes.write()
    [shape] = query_shapes.read(table.pk, NOON.date())
    assert (shape.requests, shape.entities) == (1, 4_000)


def test_invented_shapes_are_counted_together(table, count):
    shapes = QueryShapes()
    for number in range(12):
        count("people", *[(f"P{number * 25 + place} eq 1", b"a", 0) for place in range(25)], shapes=shapes)
    counted = query_shapes.read(table.pk, NOON.date())
    assert sum(it.requests for it in counted) == 300
    assert [it.requests for it in counted if it.is_rest] == [100]
    assert QueryShape.objects.count() == 201


def test_missing_tables_are_not_counted_and_old_days_are_forgotten(table, count):
    count("nothing", ("Age gt 5", b"a", 1))
    assert not QueryShape.objects.exists()
    count("people", ("Age gt 5", b"a", 1), at=NOON - timedelta(days=15))
    count("people", ("Age gt 5", b"a", 1), at=NOON - timedelta(days=14))
    query_shapes.tidy(NOON)
    assert [it.day for it in QueryShape.objects.all()] == [(NOON - timedelta(days=14)).date()]


def test_secrets_in_names_of_clients_are_left_out(table, count):
    count("people", ("Age gt 5", b"tool sig=abcdefgh", 1))
    [shape] = query_shapes.read(table.pk, NOON.date())
    assert "abcdefgh" not in shape.clients[0][0]


def test_bare_names_are_left_out_as_they_may_be_values():
    text = query_shapes.shape_of(parse("Age gt 5 or Secret"))
    assert text == "Age gt … or … eq …"
