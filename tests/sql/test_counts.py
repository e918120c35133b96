"""How many, expected or counted, and which properties they have."""

import pytest

from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.filters import parse
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import Edm, EdmValue
from storage.sql import counts, entities, relations
from storage.sql.django import execute, run
from tests.sql.test_previews import EVERY

NAN = EdmValue(Edm.DOUBLE, float("nan"))
ALSO = {"Inf": EdmValue(Edm.DOUBLE, float("inf")), "NaN": NAN, "Tiny": EdmValue(Edm.DOUBLE, 5e-324)}


@pytest.fixture
def relation(db):
    execute(relations.create(1_000_003))
    name = relations.relation_name(1_000_003)
    for number in range(6):
        rare = EVERY | ALSO if number == 5 else {}
        properties = {"Age": EdmValue(Edm.INT32, number), **rare}
        run(entities.change(name, Insert(Entity(EntityKey("p", str(number)), properties))))
    return name


@pytest.mark.parametrize(("text", "count"), [("", 6), ("Age ge 4", 2), ("PartitionKey eq 'q'", 0)])
def test_count(relation, text, count):
    query = EntityQuery(filter=parse(text) if text else None)
    assert run(counts.count(relation, query)) == count


def test_estimate(relation):
    execute(f"ANALYZE {relation}")
    assert run(counts.estimate(relation, EntityQuery())) == 6
    assert run(counts.estimate(relation, EntityQuery(filter=parse("Age eq 1 and Name eq '%'")))) >= 0


def test_names(relation):
    assert set(run(counts.names(relation, EntityQuery()))) == {"Age", *EVERY, *ALSO}
    assert run(counts.names(relation, EntityQuery(filter=parse("Age lt 5")))) == ["Age"]


def test_sample(relation):
    found = run(counts.sample(relation, share=100, limit=1000))
    assert found.entities == 6
    expected = {name: (value.type, 1) for name, value in (EVERY | ALSO).items()} | {"Age": (Edm.INT32, 6)}
    assert {it.name: (it.type, it.entities) for it in found.occurrences} == expected


def test_a_sample_of_pages(relation):
    assert run(counts.sample(relation, share=50.5, limit=3)).entities <= 3
