"""The versions of an entity: what every change made of it, and whose it was."""

import pytest

from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Delete, Insert, Update
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.history import versions
from storage.relations import history
from storage.sql import entities as sql
from storage.sql.django import run
from storage.sql.relations import relation_name
from storage.tables import tables

KEY = EntityKey("p", "r")
REQUEST = "7f3a19c0-0000-4000-8000-000000000001"


@pytest.fixture
def write(table):
    def write(change, name="ada"):
        by = Actor(ActorKind.USER, name, "10.0.0.1", "Firefox", REQUEST)
        return run(sql.change(relation_name(table.pk), change, history.recorder(table.account, by)))

    return write


def entity(number, text=""):
    return Entity(KEY, {"A": EdmValue(Edm.INT32, number), "B": EdmValue(Edm.STRING, text)})


def content(stored):
    return stored and stored.content


def test_the_life_of_an_entity(table, write):
    inserted = write(Insert(entity(1)))
    write(Insert(Entity(EntityKey("p", "other"), {})))
    updated = write(Update(entity(2), ANY, merge=False), "bob")
    history.go_on(table.account_id)  # to a new segment
    history.prepare_next(table.account_id)
    write(Delete(KEY, ANY))
    again = write(Insert(entity(3)))

    newest, deletion, change, first = versions.page(table, KEY).entries
    assert [it.kind for it in (newest, deletion, change, first)] == ["insert", "delete", "update", "insert"]
    assert (newest.ticks, change.ticks, first.ticks) == (again, updated, inserted)
    assert updated < deletion.ticks <= again
    one, two, three = b'\n,"A":1\n,"B":""', b'\n,"A":2\n,"B":""', b'\n,"A":3\n,"B":""'
    images = [(content(it.before), content(it.after)) for it in (newest, deletion, change, first)]
    assert images == [(None, three), (two, None), (one, two), (None, one)]
    assert change.before.timestamp == inserted and change.after.timestamp == updated
    assert change.actor == Actor(ActorKind.USER, "bob", "10.0.0.1", "Firefox", REQUEST)
    assert versions.page(table, EntityKey("p", "none")).entries == []


def test_pages_know_what_came_after_their_first_version(table, write):
    write(Insert(entity(0)))
    for number in range(1, 5):
        write(Update(entity(number), ANY, merge=False))
    everything = versions.page(table, KEY)
    assert everything.next is None
    read, start = [], None
    while True:
        page = versions.page(table, KEY, first=start, top=2)
        read += page.entries
        start = page.next
        if start is None:
            break
        assert len(page.entries) == 2
    assert read == list(everything.entries) and len(read) == 5


def test_a_page_of_large_versions_is_short(table, write):
    text = "x" * 500_000
    write(Insert(entity(0, text)))
    for number in range(1, 12):
        write(Update(entity(number, text), ANY, merge=False))
    page = versions.page(table, KEY)
    assert 0 < len(page.entries) < 12
    rest = versions.page(table, KEY, first=page.next)
    assert len(page.entries) + len(rest.entries) == 12
    assert rest.entries[0].after == page.entries[-1].before


def test_a_deleted_table_has_versions_and_an_account_without_history_none(table, write):
    write(Insert(entity(1)))
    tables.delete(table.account, table.name)
    table.refresh_from_db()
    [version] = versions.page(table, KEY).entries
    assert content(version.after) == b'\n,"A":1\n,"B":""'
    history.end(table.account)
    assert versions.page(table, KEY).entries == []
