"""Moments and the change feed of a table whose rows are on several nodes: the same whenever they are read."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction
from django.utils import timezone

from storage.accounts import accounts
from storage.cluster import ddl, distribution
from storage.domain.access.actor import SERVER
from storage.domain.entities.changes import Delete, Insert, Update
from storage.domain.entities.entity import EntityKey
from storage.domain.entities.moments import Moment
from storage.domain.errors import ServerBusy
from storage.domain.filters.query import EntityQuery
from storage.domain.history.feed import ExpiredToken
from storage.domain.values.etag import ANY
from storage.entities import entities
from storage.history import feed, node_feed, past, versions
from storage.history.feed import Feed, Start
from storage.models import Table
from storage.relations import history
from storage.sql import batch
from storage.sql import node_feed as node_statements
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


def test_a_deletion_in_the_change_set_does_not_overtake_its_insertion(table):
    write(table, *(Insert(entity(1, key)) for key in (FIRST, KEY, LAST)))

    def change():
        try:
            return run(applied(table, Insert(entity(2, FIRST)), Delete(KEY, ANY)))
        finally:
            connection.close()

    with another(applied(table, Delete(FIRST, ANY))) as deleter, ThreadPoolExecutor(1) as pool:
        changed = pool.submit(change)
        while not fetch("SELECT FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted"):
            execute("SELECT pg_sleep(0.01)")
        raise_floor(2)
        deleter.commit()
        changed.result(20)
    assert [it.kind for it in versions.page(table, KEY).entries] == ["delete", "insert"]


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


# the change feed


def read_all(followed, token, top=2):
    changes, has_more = [], True
    while has_more:
        page, token = feed.read(followed, token, top)
        changes += page.changes
        has_more = page.has_more
    return changes, token


def test_a_feed_has_each_change_once_and_in_order(table, monkeypatch):
    followed = Feed(table.account_id, (table.pk,))
    token = feed.present_token(followed)
    write(table, *(Insert(entity(1, EntityKey(partition, "r"))) for partition in "pqs"))
    write(table, Insert(entity(1)), Insert(entity(1, LAST)))
    monkeypatch.setattr(node_feed, "_LOOKS", 1)
    with another(applied(table, Update(entity(2), ANY, merge=False))) as writer:
        write(table, Delete(LAST, ANY))  # later, and committed before
        with pytest.raises(ServerBusy):
            feed.read(followed, token)
        writer.commit()
    first, after_first = read_all(followed, token)
    assert [it.op.word for it in first] == ["insert"] * 5 + ["update", "delete"]
    assert [it.ticks for it in first] == sorted(it.ticks for it in first)
    page, last = feed.read(followed, token, 10)
    assert page.changes == first
    for place, each in enumerate(feed.tokens(followed, page, last), start=1):
        assert read_all(followed, each)[0] == first[place:]

    write(table, Update(entity(3), ANY, merge=False), Insert(entity(3, LAST)))
    second, _ = read_all(followed, after_first)
    copy = {}
    for it in first + second:
        assert it.before == copy.get(it.key)
        copy[it.key] = it.after
    now = entities.page(table, EntityQuery()).entities
    assert {it.key: (it.ticks, it.content) for it in now} == {
        key: (it.ticks, it.content) for key, it in copy.items() if it
    }
    assert read_all(followed, feed.OLDEST)[0] == first + second


def test_a_feed_page_ends_where_entities_have_no_room(table, monkeypatch):
    followed = Feed(table.account_id, (table.pk,))
    write(table, *(Insert(entity(1, EntityKey("p", str(number)))) for number in range(5)))
    monkeypatch.setattr(node_feed, "PAGE_BYTES", 20)
    page, _ = feed.read(followed, feed.OLDEST)
    assert (len(page.changes), page.has_more) == (2, True)
    assert len(read_all(followed, feed.OLDEST, 10)[0]) == 5


def test_a_token_expires_with_the_history_of_the_table_and_with_a_node(table):
    followed = Feed(table.account_id, (table.pk,))
    local = tables.create(table.account, "local")
    for mixed in (Feed(table.account_id), Feed(table.account_id, (table.pk, local.pk))):
        with pytest.raises(feed.TableWithoutFeed):
            feed.read(mixed, feed.OLDEST)
    token = feed.present_token(followed)
    with pytest.raises(ExpiredToken):
        feed.read(followed, Start(is_now=False, since=table.created_at))
    write(table, Insert(entity(1)))
    Table.objects.filter(pk=table.pk).update(changes_since=timezone.now())
    with pytest.raises(ExpiredToken, match="kept"):
        feed.read(followed, token)
    Table.objects.filter(pk=table.pk).update(changes_since=None)
    assert len(read_all(followed, token)[0]) == 1
    with pytest.MonkeyPatch.context() as patch:  # a standby has become a node
        patch.setattr(node_statements, "_IDENTITY", "SELECT 'another'")
        with pytest.raises(ExpiredToken):
            feed.read(followed, token)
    table.refresh_from_db()
    distribution.undistribute(table)
    distribution.distribute(table)
    with pytest.raises(ExpiredToken):
        feed.read(followed, token)


def test_a_write_that_waits_for_the_distribution_takes_its_time_on_the_node(table):
    """It was planned before, to run on the coordinator; from now on all writes take the time of their node."""
    execute("INSERT INTO pg_dist_local_group VALUES (0)")
    execute("INSERT INTO pg_dist_placement VALUES (1, 1), (2, 1)")
    execute("TRUNCATE pg_dist_partition")

    def insert():
        try:
            return run(applied(table, Insert(entity(1))))
        finally:
            connection.close()

    with another() as distributor, ThreadPoolExecutor(1) as pool:
        for command in ddl.spread(table.pk):
            distributor.execute(command)
        inserted = pool.submit(insert)
        while not fetch("SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"):
            execute("SELECT pg_sleep(0.01)")
        distributor.commit()
        with pytest.raises(ServerBusy):
            inserted.result(20)
    assert fetch(f"SELECT FROM {relation_of(table)}") == []
    with transaction.atomic():
        # as that of a call on a node
        execute("SET LOCAL application_name = 'citus_internal gpid=10000000001'")
        write(table, Insert(entity(1)))
    assert [it.kind for it in versions.page(table, KEY).entries] == ["insert"]
