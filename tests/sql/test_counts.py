"""Counts of entities, estimated or exact, and the properties they have."""

import pytest

from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.filters.parser import parse
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import Edm, EdmValue
from storage.sql import counts, entities
from storage.sql.django import execute, run
from storage.sql.sampling import Sampling
from tests.sql.test_previews import EVERY

NAN = EdmValue(Edm.DOUBLE, float("nan"))
ALSO = {"Inf": EdmValue(Edm.DOUBLE, float("inf")), "NaN": NAN, "Tiny": EdmValue(Edm.DOUBLE, 5e-324)}


@pytest.fixture
def filled(relation):
    for number in range(6):
        rare = EVERY | ALSO if number == 5 else {}
        properties = {"Age": EdmValue(Edm.INT32, number), **rare}
        run(entities.change(relation, Insert(Entity(EntityKey("p", str(number)), properties))))
    return relation


def query(text):
    return EntityQuery(filter=parse(text))


def test_counts_and_estimates(filled):
    for text, count in (("", 6), ("Age ge 4", 2), ("PartitionKey eq 'q'", 0)):
        assert run(counts.count(filled, query(text))) == count
    execute(f"ANALYZE {filled}")
    assert run(counts.estimate(filled, query(""))) == 6
    assert run(counts.estimate(filled, query("Age eq 1 and Name eq '%'"))) >= 0


def test_names_and_samples(filled):
    assert set(run(counts.names(filled, query("")))) == {"Age", *EVERY, *ALSO}
    assert run(counts.names(filled, query("Age lt 5"))) == ["Age"]
    result = run(counts.sample(filled, Sampling(100, 1000)))
    assert result.entities == 6
    expected = {name: (value.type, 1) for name, value in (EVERY | ALSO).items()} | {"Age": (Edm.INT32, 6)}
    assert {it.name: (it.type, it.entities) for it in result.occurrences} == expected
    assert run(counts.sample(filled, Sampling(50.5, 3))).entities <= 3
