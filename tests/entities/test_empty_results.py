"""Why a query finds nothing."""

from datetime import UTC, datetime, timedelta

import pytest

from storage.accounts import accounts
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.values.edm import Edm, EdmValue
from storage.entities import empty_results, properties
from storage.sql import entities as sql
from storage.sql.django import run
from storage.sql.relations import relation_name
from storage.tables import tables

CITIES = ("Oslo", "Oslo", "OSLO", "Bergen\x01")


@pytest.fixture(scope="module")
def cities(django_db_setup, django_db_blocker):
    """Yield a table that all tests of this file only read."""
    with django_db_blocker.unblock():
        account = accounts.add("cities")
        table = tables.create(account, "people")
        for n, city in enumerate(CITIES):
            values = {
                "City": EdmValue(Edm.STRING, city),
                "Age": EdmValue(Edm.INT32, 40 + n * 16),
                "Big": EdmValue(Edm.INT64, n),
                "Since": EdmValue(Edm.DATETIME, 17_424_217_150_000_000 + n),
                "Active": EdmValue(Edm.BOOLEAN, True),
            }
            run(sql.change(relation_name(table.pk), Insert(Entity(EntityKey("de", f"R{n}"), values))))
        yield table
        table.delete()
        account.delete()


def explain(table, text):
    return [
        (str(it.refusal), it.repaired, it.removed, it.entities)
        for it in empty_results.explain_empty(table, text, datetime.now(UTC))
    ]


CASE = "Text is case-sensitive: did you mean"


@pytest.mark.parametrize(
    ("text", "sentence", "repaired", "entities"),
    [
        ("City eq 'oslo'", f"No City is 'oslo'. {CASE} 'Oslo'?", "City eq 'Oslo'", 2),
        ("City eq 'bergen\x01'", f"No City is 'bergen\x01'. {CASE} 'Bergen\x01'?", "City eq 'Bergen\x01'", 1),
        ("PartitionKey eq 'DE'", f"No PartitionKey is 'DE'. {CASE} 'de'?", "PartitionKey eq 'de'", 4),
        ("RowKey eq 'r1'", f"No RowKey is 'r1'. {CASE} 'R1'?", "RowKey eq 'R1'", 1),
        ("City eq 'Rome'", "No City is 'Rome'.", "", None),
        ("Active eq false", "No Active is false.", "", None),
        ("Age gt 200", "Age is at most 88.", "Age ge 88", 1),
        ("Age gt 88", "Age is at most 88.", "Age ge 88", 1),
        ("Age eq 200", "Age is at most 88.", "Age eq 88", 1),
        ("Age lt 3", "Age is at least 40.", "Age le 40", 1),
        ("Age eq 3", "Age is at least 40.", "Age eq 40", 1),
        ("Age eq 41", "No Age is 41.", "", None),
        ("Big ge 9L", "Big is at most 3L.", "Big ge 3L", 1),
        (
            "Since ge datetime'2030-01-01T00:00:00Z'",
            "Since is at most datetime'2025-03-19T22:01:55.0000003Z'.",
            "Since ge datetime'2025-03-19T22:01:55.0000003Z'",
            1,
        ),
        ("not (Active eq true)", "No entity meets not (Active eq true).", "", None),
        ("Age eq '40'", "Age is stored as Int32, not String.", "Age eq 40", None),
        ("city eq 'Oslo'", "“city” wasn't found in any entity.", "City eq 'Oslo'", None),
    ],
)
def test_a_condition(cities, text, sentence, repaired, entities):
    assert explain(cities, text) == [(sentence, repaired, "", entities)]


def test_the_condition_of_several_that_empties_the_result(cities):
    # its fix is offered where it helps, otherwise to remove it
    assert explain(cities, "Age gt 50 and City eq 'oslo'") == [
        (f"No City is 'oslo'. {CASE} 'Oslo'?", "Age gt 50 and City eq 'Oslo'", "", 1)
    ]
    assert explain(cities, "Age gt 50 and City eq 'Rome'") == [
        ("No City is 'Rome'.", "Age gt 50", "City eq 'Rome'", 3)
    ]
    together = "Each of the conditions is met by some entities, but no entity meets them all."
    assert explain(cities, "Age lt 50 and City eq 'OSLO' and Active eq true") == [
        (together, "City eq 'OSLO' and Active eq true", "Age lt 50", 1),
        (together, "Age lt 50 and Active eq true", "City eq 'OSLO'", 1),
    ]


def test_no_explanation_takes_longer_than_its_limit(cities, monkeypatch):
    assert explain(cities, "") == []
    properties.sample(cities)  # kept, because it has a limit of its own
    monkeypatch.setattr(empty_results, "LIMIT", timedelta(0))
    assert explain(cities, "Age lt 50 and City eq 'OSLO'") == []
    assert explain(cities, "City eq 'oslo'") == [("No City is 'oslo'.", "", "", None)]
