"""Frequent values."""

import pytest

from storage.accounts import accounts
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.filters.parser import parse
from storage.domain.filters.query import EntityQuery, Position
from storage.domain.values import dialects
from storage.domain.values.edm import Edm, EdmValue
from storage.entities import facets
from storage.entities.facets import Facet
from storage.sql import entities as sql
from storage.sql.django import execute, run
from storage.sql.relations import relation_name
from storage.tables import tables


def text(value):
    return EdmValue(Edm.STRING, value)


def number(value):
    return EdmValue(Edm.INT32, value)


@pytest.fixture
def table(db):
    table = tables.create(accounts.add("acme"), "people")
    for n in range(12):
        properties = {
            "Kind": text("abc"[n % 3]),
            "Flag": EdmValue(Edm.BOOLEAN, n < 9),
            "Level": number(5) if n % 2 else EdmValue(Edm.INT64, 5),
            "Id": number(n),
            "Same": text("x"),
            "Long": text("x" * 500),
        }
        if n < 4:
            properties["Rare"] = text("\x00\ue000\ud800")
        key = EntityKey("p\ue000" if n < 6 else "q", str(n))
        run(sql.change(relation_name(table.pk), Insert(Entity(key, properties))))
    return table


def query(written=""):
    return EntityQuery(filter=parse(written, dialects.CONSOLE))


def named(found):
    return {facet.name: facet.values for facet in found}


def test_facets_are_of_properties_with_few_values(table):
    result = facets.facets(table, query())

    assert named(result) == {
        "Kind": ((text("a"), 4), (text("b"), 4), (text("c"), 4)),
        "Flag": ((EdmValue(Edm.BOOLEAN, True), 9), (EdmValue(Edm.BOOLEAN, False), 3)),
        "Level": ((number(5), 6), (EdmValue(Edm.INT64, 5), 6)),
        "PartitionKey": ((text("p\ue000"), 6), (text("q"), 6)),
        "Rare": ((text("\x00\ue000\ud800"), 4),),
    }
    assert {value.type for value, _ in named(result)["Level"]} == {Edm.INT32, Edm.INT64}
    assert {(facet.entities, facet.is_sample) for facet in result} == {(12, False)}
    assert [facet.name for facet in result] == ["Rare", "Flag", "Level", "PartitionKey", "Kind"]


def test_facets_cover_the_whole_query_regardless_of_the_page(table):
    wanted = EntityQuery(filter=parse("Flag"), start=Position("q", "9"), top=1)

    assert named(facets.facets(table, wanted))["Kind"] == ((text("a"), 3), (text("b"), 3), (text("c"), 3))
    assert named(facets.facets(table, wanted))["PartitionKey"] == ((text("p\ue000"), 6), (text("q"), 3))


def test_facets_of_requested_properties(table):
    result = facets.facets(table, query("Id ge 10"), ("Id", "PartitionKey", "Missing", "Same"))

    assert result == [
        Facet("Id", ((number(10), 1), (number(11), 1)), 2, 2, is_sample=False),
        Facet("PartitionKey", ((text("q"), 2),), 1, 2, is_sample=False),
        Facet("Same", ((text("x"), 2),), 1, 2, is_sample=False),
    ]


def test_at_most_ten_values_and_no_long_texts(table):
    [facet] = facets.facets(table, query(), ("Id", "Long"))

    assert (facet.name, len(facet.values), facet.distinct) == ("Id", 10, 12)
    assert facets.facets(table, query("Id gt 100")) == []


def test_facets_mark_samples_and_are_empty_for_deleted_tables(table, monkeypatch):
    monkeypatch.setattr(facets, "_SAMPLE", 5)
    result = facets.facets(table, query(), ("Kind",))

    assert [(facet.entities <= 5, facet.is_sample) for facet in result] == [(True, True)]
    execute(f"DROP TABLE {relation_name(table.pk)}")
    assert facets.facets(table, query()) == []
