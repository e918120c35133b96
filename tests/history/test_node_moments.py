"""The state at a moment of a table whose rows are on several nodes: the same whenever it is read."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from storage.accounts import accounts
from storage.cluster import distribution
from storage.domain.access.actor import SERVER
from storage.domain.entities.changes import Delete, Insert, Update
from storage.domain.entities.entity import EntityKey
from storage.domain.entities.moments import Moment
from storage.domain.errors import ServerBusy
from storage.domain.values.etag import ANY
from storage.entities import entities
from storage.history import past, versions
from storage.relations import history
from storage.sql import batch
from storage.sql.django import execute, fetch, run
from storage.sql.relations import relation_of
from storage.tables import tables
from tests.history.test_moments import (
    FIRST,
    KEY,
    LAST,
    another,
    entity,
    number_at,
    raise_floor,
    upsert,
    write,
)
from tests.sql import citus

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def table():
    with citus.installed():
        table = tables.create(accounts.add("acme"), "people")
        distribution.distribute(table)
        yield table
        execute("SELECT setval('moment_floor', 1)")  # no transaction takes it back


def applied(table, *changes):
    return batch.apply(relation_of(table), changes, history.recorder(table.account, SERVER))


def test_a_moment_waits_for_its_writes(table, monkeypatch):
    write(table, Insert(entity(1)))
    earlier = past.present()
    monkeypatch.setattr(past, "_PATIENCE", 0.0)
    with another(applied(table, Update(entity(2), ANY, merge=False))) as writer:
        moment = past.present()
        with pytest.raises(ServerBusy, match="have not ended"):
            past.find(table, moment)
        assert number_at(table, earlier) == 1  # it began later
        monkeypatch.setattr(past, "_PATIENCE", 3.0)
        # the write is committed while it is waited for
        monkeypatch.setattr("time.sleep", lambda seconds: writer.commit())
        assert number_at(table, moment) == 2
    assert (number_at(table, moment), number_at(table, earlier)) == (2, 1)


def test_a_moment_of_a_table_does_not_wait_for_writes_to_others(table, monkeypatch):
    other = tables.create(table.account, "others")
    distribution.distribute(other)
    monkeypatch.setattr(past, "_PATIENCE", 0.0)
    with another(applied(table, Insert(entity(1)))) as writer:
        moment = past.present()
        past.find(other, moment)
        [(locks,)] = fetch("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock'")
        assert locks == 1
        with pytest.raises(ServerBusy):
            past.find(table, moment)
        writer.rollback()
    assert number_at(table, moment) is None


def test_writes_come_after_a_moment_that_was_read(table):
    """The clock of a node that is behind does not go back into it."""
    write(table, Insert(entity(1)))
    floor = raise_floor(20)
    for change in (Update(entity(2), ANY, merge=False), upsert(3), Delete(KEY, ANY), Insert(entity(4))):
        write(table, change)
    assert [it.ticks > floor for it in versions.page(table, KEY).entries] == [True] * 4 + [False]
    assert number_at(table, Moment(floor)) == 1


def test_an_insertion_is_later_than_a_deletion_that_overtook_it(table):
    """It took its time, and then waited for the deletion of another entity of its change set."""
    write(table, Insert(entity(1, FIRST)), Insert(entity(1, LAST)))
    relation = relation_of(table)

    def insert():
        try:
            return run(applied(table, Insert(entity(2, FIRST)), Insert(entity(2, LAST))))
        finally:
            connection.close()

    with another(applied(table, Delete(FIRST, ANY))) as deleter, ThreadPoolExecutor(1) as pool:
        inserted = pool.submit(insert)
        while not fetch("SELECT FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted"):
            execute("SELECT pg_sleep(0.01)")
        write(table, Delete(LAST, ANY))
        deleter.commit()
        first, last = inserted.result()
    assert first == last  # no moment has a part of a change set
    [(deleted,)] = fetch(f"SELECT ts FROM {relation}_history WHERE rk = %s AND op = 'd'", LAST.row_key)
    assert first > deleted
    assert number_at(table, Moment(deleted), LAST) is None
    assert [it.kind for it in versions.page(table, LAST).entries] == ["insert", "delete", "insert"]


def test_a_change_set_has_one_timestamp(table):
    """Though an entity of it has one that is ahead of the clock."""
    keys = [FIRST, KEY, LAST]
    write(table, *(Insert(entity(1, key)) for key in keys))
    ahead = past.present().ticks + 600_000_000
    execute(f"UPDATE {relation_of(table)} SET ts = %s WHERE rk = %s", ahead, KEY.row_key)
    made = run(applied(table, *(Update(entity(2, key), ANY, merge=True) for key in keys)))
    assert set(made) == {ahead + 1}
    assert {it.timestamp for it in entities.get_many(table, keys)} == {ahead + 1}


def test_a_new_node_gets_a_floor_with_its_first_write(table):
    execute(
        "ALTER SEQUENCE moment_floor RENAME TO former; ALTER SEQUENCE moment_noted RENAME TO former_noted"
    )
    try:
        write(table, Insert(entity(1, EntityKey("p", "new"))))
        assert fetch("SELECT last_value FROM moment_floor") > [(0,)]
    finally:
        execute("DROP SEQUENCE moment_floor, moment_noted")
        execute(
            "ALTER SEQUENCE former RENAME TO moment_floor; ALTER SEQUENCE former_noted RENAME TO moment_noted"
        )
