"""Pages for a grid: short whatever they hold, and true in what they show."""

import math

import pytest

from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.filters.parser import parse
from storage.domain.filters.query import EntityQuery, Position
from storage.domain.values.edm import Edm, EdmValue
from storage.sql import entities, previews
from storage.sql.django import run

EVERY = {
    "Zeta": EdmValue(Edm.STRING, "z"),
    "Empty": EdmValue(Edm.STRING, ""),
    "Small": EdmValue(Edm.INT32, -5),
    "Large": EdmValue(Edm.INT64, 2**63 - 1),
    "Minus": EdmValue(Edm.DOUBLE, -0.0),
    "Least": EdmValue(Edm.DOUBLE, -math.inf),
    "True": EdmValue(Edm.BOOLEAN, True),
    "Since": EdmValue(Edm.DATETIME, 1),
    "Id": EdmValue(Edm.GUID, "c9da6455-213d-42c9-9a79-3e9149a57833"),
    "Alpha": EdmValue(Edm.BINARY, b"\x00\xff"),
}


@pytest.fixture
def insert(relation):
    def insert(row_key, **properties):
        run(entities.change(relation, Insert(Entity(EntityKey("p", row_key), properties))))

    return insert


def text(value):
    return EdmValue(Edm.STRING, value)


def page(relation, **wanted):
    return run(previews.page(relation, EntityQuery(**wanted)))


def test_small_rows_come_whole(relation, insert):
    insert("r", **EVERY)
    (shown_preview,) = page(relation).entities
    assert shown_preview.key == EntityKey("p", "r")
    assert shown_preview.timestamp > 0
    assert list(shown_preview.properties.items()) == list(EVERY.items())
    assert shown_preview.sizes == {}


def test_large_rows_are_cut(relation, insert):
    long = {"Text": text("x" * 32_000), "Data": EdmValue(Edm.BINARY, b"\xde\xad" * 20_000)}
    insert("r", **EVERY, **long)
    (shown_preview,) = page(relation).entities
    assert list(shown_preview.properties) == [*EVERY, *long]
    assert {name: shown_preview.properties[name] for name in EVERY} == EVERY
    assert shown_preview.sizes == {"Text": 32_000, "Data": 40_000}
    for name, value in long.items():
        shown = shown_preview.properties[name]
        assert shown.type is value.type
        assert 160 <= len(shown.value) < 700
        assert value.value.startswith(shown.value)


@pytest.mark.parametrize("part", ["\0", "\x01", "a\0", "\ud800", "x\ue000", "🦊", "é\0\ud83d", "\x01\0\0"])
def test_cuts_between_characters(relation, insert, part):
    whole = part * (30_000 // len(part))
    insert("r", Text=text(whole))
    (shown_preview,) = page(relation).entities
    shown = shown_preview.properties["Text"].value
    assert len(shown) >= 160
    assert whole.startswith(shown)


def test_only_what_is_asked_for(relation, insert):
    insert("r", Text=text("x" * 32_000), Other=text("y" * 32_000), Age=EdmValue(Edm.INT32, 5))
    (found,) = page(relation, select=("Text", "Age")).entities
    assert list(found.properties) == ["Text", "Age"]


def test_pages_are_as_long_as_was_asked_for(relation, insert):
    for number in range(7):
        insert(f"{number}", Text=text("x" * 32_000), Also=text("é" * 32_000))
    first = page(relation, top=4)
    assert ([shown_preview.key.row_key for shown_preview in first.entities], first.next) == (
        ["0", "1", "2", "3"],
        Position("p", "4"),
    )
    rest = page(relation, top=4, start=first.next)
    assert ([shown_preview.key.row_key for shown_preview in rest.entities], rest.next) == (
        ["4", "5", "6"],
        None,
    )
    assert [
        shown_preview.key.row_key for shown_preview in page(relation, filter=parse("RowKey ge '5'")).entities
    ] == ["5", "6"]


def test_hostile_values(relation, insert):
    insert("%s", été=text("' $1 % {} \\" * 2_000), _=text('"\n,"x":1'))
    (found,) = page(relation).entities
    assert found.properties["_"] == text('"\n,"x":1')
    assert found.properties["été"].value.startswith("' $1 % {} \\")
