"""The properties of a table."""

import pytest

from storage.domain.entities.entity import EntityKey
from storage.domain.filters.parser import parse
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import Edm, EdmValue
from storage.entities import entities, properties
from storage.sql.failures import Canceled

NUMBER = EdmValue(Edm.INT32, 1)
TEXT = EdmValue(Edm.STRING, "x")


def test_all_of_a_small_table(table, insert):
    insert("1", Name=TEXT, Age=NUMBER)
    insert("2", Name=TEXT, Age=TEXT)
    insert("3", Name=TEXT, Age=TEXT)
    insert("4", Rare=NUMBER)
    result = properties.sample(table)
    assert (result.entities, result.is_whole) == (4, True)
    assert [(it.name, it.types, it.share) for it in result.properties] == [
        ("Age", (Edm.STRING, Edm.INT32), 0.75), ("Name", (Edm.STRING,), 0.75), ("Rare", (Edm.INT32,), 0.25),
    ]  # fmt: skip


def test_is_looked_up_again_after_a_while(table, insert, monkeypatch):
    assert properties.sample(table).properties == ()
    insert("1", Name=TEXT)
    assert properties.sample(table).properties == ()
    monkeypatch.setattr(properties, "_KEPT", 0)
    assert [it.name for it in properties.sample(table).properties] == ["Name"]


@pytest.fixture
def limits(insert, monkeypatch):
    """Record the limits of the samples that are taken of a table with one property."""
    insert("1", Name=TEXT)
    real, limits = properties.counts.sample, []

    def sample(relation, sampling):
        limits.append(sampling.limit)
        return real(relation, sampling)

    monkeypatch.setattr(properties.counts, "sample", sample)
    return limits


def test_a_slow_sample_is_replaced_by_a_smaller_one(table, limits, monkeypatch):
    real = properties.counts.sample

    def sample(relation, sampling):
        result = real(relation, sampling)
        if sampling.limit > 50:
            raise Canceled
        return result

    monkeypatch.setattr(properties.counts, "sample", sample)
    assert [it.name for it in properties.sample(table).properties] == ["Name"]
    assert limits == [20_000, 1_000, 50]


def test_quick_samples_are_small(table, limits):
    for quickly in (True, True, False, True):
        result = properties.sample(table, quickly=quickly)
        assert ([it.name for it in result.properties], result.is_whole) == (["Name"], True)
    assert limits == [1_000, 20_000]


def test_names_of_all_matching_entities(table, insert, monkeypatch):
    monkeypatch.setattr(properties, "_WINDOW", 2)
    for number in range(5):
        insert(f"{number}", **{f"P{number}": NUMBER, "Age": NUMBER})
    assert properties.names(table, EntityQuery()) == ["Age", "P0", "P1", "P2", "P3", "P4"]
    assert properties.names(table, EntityQuery(filter=parse("RowKey ge '3'"))) == ["Age", "P3", "P4"]


def test_every_entity_however_many_pages(table, insert):
    for number in range(7):
        insert(f"{number}", Age=NUMBER)
    pages = list(entities.all_pages(table, EntityQuery(top=3)))
    assert [len(page) for page in pages] == [3, 3, 1]
    assert len(entities.get_many(table, [EntityKey("p", "1"), EntityKey("p", "nobody")])) == 1


def test_totals(table, insert, monkeypatch):
    for number in range(7):
        insert(f"{number}", Age=NUMBER)
    assert entities.total(table, EntityQuery()) == entities.Total(7, is_exact=True)

    def give_up(*arguments, **options):
        raise entities.OperationTimedOut

    monkeypatch.setattr(entities, "count", give_up)
    result = entities.total(table, EntityQuery())
    assert not result.is_exact
    assert result.number is not None
