"""An entity inside a form: it cannot be forged, and it opens no other table."""

import pytest

from console.entities.entity_draft import read_signed_entity, sign_entity
from storage.domain.entities.entity import Entity, EntityKey, read_stored, write_stored
from storage.domain.values.edm import Edm, EdmValue
from storage.tables import tables

KEY = EntityKey("", "a'\"é🦊")
VALUES = {"Text": EdmValue(Edm.STRING, "\x00 \ud800"), "Big": EdmValue(Edm.INT64, 2**63 - 1)}


@pytest.fixture
def table(account):
    return tables.create(account, "people")


def test_is_the_same_there_and_back(table):
    stored = write_stored(Entity(KEY, VALUES), 17_000_000_001_234_567)
    signed_entity = read_signed_entity(table, sign_entity(table, stored))
    assert signed_entity == stored
    assert (signed_entity.key, signed_entity.timestamp, dict(read_stored(signed_entity).properties)) == (
        KEY,
        17_000_000_001_234_567,
        VALUES,
    )


def test_drafts_cannot_be_forged(table):
    for change in (lambda t: t[:-1], lambda t: "A" + t, lambda t: "", lambda t: "é:\0", lambda t: t[5:]):
        token = sign_entity(table, write_stored(Entity(KEY, VALUES), 1))
        assert read_signed_entity(table, change(token)) is None


def test_is_of_its_table_only(account, table):
    token = sign_entity(table, write_stored(Entity(KEY, VALUES), 1))
    assert read_signed_entity(tables.create(account, "others"), token) is None


def test_is_of_this_secret_only(table, settings):
    token = sign_entity(table, write_stored(Entity(KEY, VALUES), 1))
    settings.SECRET_KEY = "another"
    assert read_signed_entity(table, token) is None
