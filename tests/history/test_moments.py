"""The state at a moment: the same whenever it is read, despite concurrent writers and clock changes."""

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest
from django.conf import settings
from django.db import connection, transaction
from psycopg.types.string import BytesBinaryDumper

from storage.accounts import account_settings, accounts
from storage.compare import applying, comparing
from storage.compare.applying import Selection, Target
from storage.compare.sides import SideNotFound
from storage.domain.access.actor import SERVER
from storage.domain.entities.changes import Delete, Insert, Update, Upsert
from storage.domain.entities.entity import Entity, EntityKey, read_stored
from storage.domain.entities.moments import Moment, read_moment_token
from storage.domain.entities.restoring import Skip, Skipped
from storage.domain.errors import ChangeSetError, OutOfRangeInput, ServerBusy, StorageError
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import TICKS_PER_SECOND, Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.entities import edits, entities
from storage.history import past
from storage.relations import history
from storage.runtime.service import Service
from storage.runtime.threads import in_thread
from storage.sql import entities as statements
from storage.sql import snapshots
from storage.sql.django import execute, fetch, run
from storage.sql.history import writers_name
from storage.sql.relations import relation_name
from storage.sql.restoring import Images
from storage.tables import tables
from storage.undo import reverting
from tests.compare.test_operations import side

pytestmark = pytest.mark.django_db(transaction=True)

KEY, OTHER = EntityKey("p", "ada"), EntityKey("p", "bob")
FIRST, LAST = EntityKey("p", "a"), EntityKey("p", "z")
LOCK = 7_000_001  # an advisory lock of these tests
CHANGED = [Skipped(None, Skip.CHANGED)]


@pytest.fixture
def table():
    table = tables.create(accounts.add("acme"), "people")
    yield table
    execute("SELECT setval('moment_floor', 1)")  # no transaction takes it back


def entity(number, key=KEY):
    return Entity(key, {"A": EdmValue(Edm.INT32, number)})


def upsert(number, key=KEY):
    return Upsert(entity(number, key), merge=False)


def write(table, *changes):
    return edits.apply(table, changes, by=SERVER)


def number_at(table, moment, key=KEY):
    stored = entities.get(table, key, past.find(table, moment))
    return None if stored is None else read_stored(stored).properties["A"].value


def recorded(table, change):
    return statements.change(relation_name(table.pk), change, history.recorder(table.account, SERVER))


class EncodedDumper(BytesBinaryDumper):
    oid = 0  # the server knows the type from the statement


@contextmanager
def another(*statements):
    """Another connection, in a transaction in which these statements were executed."""
    with psycopg.connect(settings.LANES_CONNINFO, cursor_factory=psycopg.RawCursor) as connection:
        connection.adapters.register_dumper(bytes, EncodedDumper)
        for statement in statements:
            connection.execute(statement.text.encode(), statement.parameters)
        yield connection
        connection.rollback()


def raise_floor(seconds):
    """Close the moments up to some time from now, as if the clock had been set back by so much."""
    floor = past.present().ticks + seconds * TICKS_PER_SECOND
    execute("SELECT setval('moment_floor', %s)", floor)
    return floor


# a moment and the writes that are in flight


def test_a_moment_waits_for_its_writes(table, monkeypatch):
    write(table, Insert(entity(1)))
    with another(recorded(table, Update(entity(2), ANY, merge=False))) as writer:
        moment = past.present()
        # the write is committed while it is waited for
        monkeypatch.setattr("time.sleep", lambda seconds: writer.commit())
        assert number_at(table, moment) == 2
    assert number_at(table, moment) == 2


def test_a_moment_is_refused_while_a_write_of_it_goes_on(table, monkeypatch):
    write(table, Insert(entity(1)))
    earlier = past.present()
    monkeypatch.setattr(past, "_PATIENCE", 0.0)
    with another(recorded(table, Update(entity(2), ANY, merge=False))) as writer:
        moment = past.present()
        with pytest.raises(ServerBusy, match="have not ended"):
            past.find(table, moment)
        with pytest.raises(SideNotFound, match="have not ended"):
            side(f"acme/people@{moment}")
        assert number_at(table, earlier) == 1  # it began later
        writer.commit()
    assert (number_at(table, earlier), number_at(table, moment)) == (1, 2)


def test_a_running_write_stays_out_of_a_closed_moment(table):
    """It took the time before, and locks the relation afterwards."""
    write(table, Insert(entity(1)))
    write(table, upsert(2))
    ticks = entities.get(table, KEY).timestamp
    statement = recorded(table, Update(entity(3), ANY, merge=False))
    with psycopg.connect(settings.LANES_CONNINFO, cursor_factory=psycopg.ClientCursor) as writer:
        literal = psycopg.ClientCursor(writer).mogrify
        text = statement.text
        for place in range(len(statement.parameters), 0, -1):
            text = text.replace(f"${place}", literal("%s", [statement.parameters[place - 1]]))
        execute("SELECT pg_advisory_lock(%s)", LOCK)
        with ThreadPoolExecutor(1) as pool:
            # one message, so one time of the statement
            written = pool.submit(writer.execute, f"SELECT pg_advisory_xact_lock({LOCK}); {text}")
            while not fetch("SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"):
                execute("SELECT pg_sleep(0.01)")
            moment = past.present()
            assert number_at(table, moment) == 2
            execute("SELECT pg_advisory_unlock(%s)", LOCK)
            written.result()
        writer.commit()
    assert read_stored(entities.get(table, KEY)).properties["A"].value == 3
    assert (number_at(table, moment), number_at(table, Moment(ticks))) == (2, 2)


def test_the_future_is_that_of_the_database(table):
    write(table, Insert(entity(1)))
    present = past.present()
    assert number_at(table, present) == 1
    with pytest.raises(OutOfRangeInput, match="is in the future"):
        past.find(table, Moment(present.ticks + 3600 * TICKS_PER_SECOND))


# applying a comparison despite writes that were in flight


@pytest.mark.parametrize("target", list(Target))
def test_applying_skips_what_the_comparison_had_not_seen(table, target):
    other = tables.create(accounts.add("branch"), "people")
    write(table, upsert(1), upsert(1, OTHER))
    write(other, upsert(2), upsert(2, OTHER))
    changes = (Update(entity(3), ANY, merge=False), Delete(OTHER, ANY))
    with another(*(recorded(other, change) for change in changes)) as writer:
        read_at = comparing.compare(side("acme"), side("branch")).read_at
        writer.commit()
    comparison = comparing.compare(side("acme"), side("branch"))

    read_at = read_moment_token(read_at.token)
    done = applying.apply(comparison, target, Selection(), by=SERVER, read_at=read_at)

    [people] = done.tables
    assert (done.written, done.skipped) == (0, 2)
    assert {it.reason for it in people.examples} == {Skip.CHANGED}
    assert read_stored(entities.get(other, KEY)).properties["A"].value == 3
    assert entities.get(other, OTHER) is None


def test_an_account_younger_than_a_running_transaction_is_unchanged(table):
    with another() as old:
        old.execute("SELECT 1")
        write(table, upsert(1), upsert(1, OTHER))
        branch = tables.create(accounts.add("branch"), "people")
        write(branch, upsert(2), upsert(2, OTHER))
        comparison = comparing.compare(side("branch"), side("acme"))
        write(branch, upsert(3))
        done = applying.apply(comparison, Target.RIGHT, Selection(), by=SERVER, read_at=comparison.read_at)
    assert (done.written, [it.key for it in done.tables[0].examples]) == (1, [KEY])


def test_a_history_younger_than_its_account_is_incomplete(table):
    for days in (0, 7):
        account_settings.change(table.account, history_days=days)
    with another() as old:
        old.execute("SELECT 1")
        branch = tables.create(accounts.add("branch"), "people")
        write(branch, upsert(2))
        for days in (0, 7):
            account_settings.change(branch.account, history_days=days)
        comparison = comparing.compare(side("branch"), side("acme"))
        done = applying.apply(comparison, Target.RIGHT, Selection(), by=SERVER, read_at=comparison.read_at)
    assert (done.written, [it.key for it in done.tables[0].examples]) == (0, [KEY])


@pytest.fixture
def slack(monkeypatch):
    """Let snapshots read the state of a few seconds ago, however busy the machine is."""
    longer = snapshots._MOMENT.replace(f"'{snapshots.SLACK} seconds'", "'600 seconds'")
    assert longer != snapshots._MOMENT
    monkeypatch.setattr(snapshots, "_MOMENT", longer)


def test_without_history_timestamps_decide(table, slack):
    account_settings.change(table.account, history_days=0)
    other = tables.create(accounts.add("branch"), "people")
    write(table, upsert(1), upsert(1, OTHER))
    write(other, upsert(2), upsert(2, OTHER))
    execute(f"UPDATE {relation_name(table.pk)} SET ts = ts - {3600 * TICKS_PER_SECOND} WHERE rk = 'bob'")
    read_at = comparing.compare(side("branch"), side("acme")).read_at
    comparison = comparing.compare(side("branch"), side("acme"))
    done = applying.apply(comparison, Target.RIGHT, Selection(), by=SERVER, read_at=read_at)
    # the change of a few seconds ago may have been committed later
    assert [it.key for it in done.tables[0].examples] == [KEY]
    assert done.written == 1


def test_applying_skips_a_table_changed_since_the_comparison(table):
    """A table that the source lacks is deleted only as the comparison saw it."""
    branch = accounts.add("branch")
    names = ("changed", "deleted", "inserted", "untouched")
    for name in names:
        write(tables.create(branch, name), upsert(1))
    read_at = comparing.compare(side("acme"), side("branch")).read_at
    write(tables.get(branch, "changed"), upsert(2))
    write(tables.get(branch, "deleted"), Delete(KEY, ANY))
    write(tables.get(branch, "inserted"), upsert(1, OTHER))
    tables.create(branch, "created")
    comparison = comparing.compare(side("acme"), side("branch"))

    selection, read_at = Selection(tables=[*names, "created"]), read_moment_token(read_at.token)
    planned, done = (
        applying.apply(comparison, Target.RIGHT, selection, by=SERVER, read_at=read_at, dry_run=dry_run)
        for dry_run in (True, False)
    )

    for applied in (planned, done):
        assert {it.name: (it.is_deleted, it.examples) for it in applied.tables} == {
            "changed": (False, CHANGED),
            "created": (False, CHANGED),
            "deleted": (False, CHANGED),
            "inserted": (False, CHANGED),
            "untouched": (True, []),
        }
    assert tables.find(branch, "untouched") is None and tables.find(branch, "created") is not None
    assert number_at(tables.get(branch, "changed"), past.present()) == 2


def test_applying_waits_for_writes_to_a_table_before_it_deletes_it(table):
    branch = accounts.add("branch")
    old = tables.create(branch, "old")
    write(old, Insert(entity(1)))
    comparison = comparing.compare(side("acme"), side("branch"))

    def apply():
        try:
            selection = Selection(tables=["old"])
            return applying.apply(comparison, Target.RIGHT, selection, by=SERVER, read_at=comparison.read_at)
        finally:
            connection.close()

    with another(recorded(old, Update(entity(2), ANY, merge=False))) as writer, ThreadPoolExecutor(1) as pool:
        applied = pool.submit(apply)
        while not applied.done() and not fetch(
            "SELECT FROM pg_locks WHERE locktype = 'relation' AND NOT granted"
        ):
            execute("SELECT pg_sleep(0.01)")
        writer.commit()
        assert applied.result().tables[0].examples == CHANGED
    assert number_at(tables.get(branch, "old"), past.present()) == 2


def test_without_history_a_table_is_deleted_only_if_its_timestamps_are_old(table, slack):
    branch = accounts.add("branch")
    account_settings.change(branch, history_days=0)
    for name in ("new", "old"):
        write(tables.create(branch, name), Insert(entity(1)))
    old = relation_name(tables.get(branch, "old").pk)
    execute(f"UPDATE {old} SET ts = ts - {3600 * TICKS_PER_SECOND}")
    comparison = comparing.compare(side("acme"), side("branch"))
    selection = Selection(tables=["new", "old"])
    done = applying.apply(comparison, Target.RIGHT, selection, by=SERVER, read_at=comparison.read_at)
    # the change of a few seconds ago may have been committed later
    assert [(it.name, it.is_deleted) for it in done.tables] == [("new", False), ("old", True)]


# Timestamps


@pytest.fixture
async def service():
    await in_thread(accounts.add, "owner")
    service = Service(settings.LANES_CONNINFO)
    await service.open()
    yield service
    await service.close()
    await in_thread(execute, "SELECT setval('moment_floor', 1)")


def delete_ahead(table):
    """Return a connection that has deleted the entity, with a Timestamp that is later than the insertion's will be."""
    connection = psycopg.connect(settings.LANES_CONNINFO)
    ahead = past.present().ticks + 60 * TICKS_PER_SECOND
    connection.execute(f"DELETE FROM {relation_name(table.pk)}")
    connection.execute(
        f"INSERT INTO {writers_name(table.account_id)} (tbl, op, ts, was, actor, request, pk, rk)"
        f" VALUES ({table.pk}, 'd', {ahead}, {ahead - 1}, 1, gen_random_uuid(), 'p', 'ada')"
    )
    return connection, ahead


def wait_for_waiting():
    while not fetch("SELECT FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted"):
        execute("SELECT pg_sleep(0.01)")


@pytest.mark.parametrize(
    "kind", ["insert", "upsert", "merge", "batch", "batch of insertions", "first half", "second half"]
)
async def test_an_insertion_that_waited_for_a_deletion_has_a_later_timestamp(service, kind):
    account = await service.account("owner")
    await service.create_table(account, "people")
    table = await in_thread(lambda: tables.get(account.row, "people"))
    await service.change(account, "people", Insert(entity(1)))
    connection, deleted = await in_thread(delete_ahead, table)
    match kind:
        case "insert":
            waiting = service.change(account, "people", Insert(entity(2)))
        case "upsert" | "merge":
            waiting = service.change(account, "people", Upsert(entity(2), merge=kind == "merge"))
        case "batch":
            waiting = service.apply(account, "people", [upsert(2), upsert(2, OTHER)])
        case "first half":
            waiting = service.apply(account, "people", [Insert(entity(2))], lambda: [Insert(entity(2, LAST))])
        case "second half":
            waiting = service.apply(
                account, "people", [Insert(entity(2, FIRST))], lambda: [Insert(entity(2))]
            )
        case _:
            waiting = service.apply(account, "people", [Insert(entity(2)), Insert(entity(2, OTHER))])
    waiting = asyncio.create_task(waiting)
    await in_thread(wait_for_waiting)
    await in_thread(connection.commit)
    await in_thread(connection.close)

    written = await waiting
    timestamps = written if isinstance(written, list) else [written]
    assert len(set(timestamps)) == 1 and timestamps[0] > deleted
    stored = await service.get(account, "people", KEY, EntityQuery())
    assert stored.timestamp == timestamps[0]
    then = await service.get(account, "people", KEY, EntityQuery(), Moment(timestamps[0]))
    assert then.content == stored.content


def insert_alone(table):
    return run(recorded(table, Insert(entity(2))))


def insert_image(table):
    text = "SELECT $1::text, $2::text, NULL::bigint, $3::text"
    reverting.apply_images(table, Images(text, (*KEY, entity(2).fragments.content)), by=SERVER)


@pytest.mark.parametrize("insert", [insert_alone, insert_image, transaction.atomic(insert_image)])
async def test_a_delayed_insert_by_django_has_a_later_timestamp(table, insert):
    await in_thread(write, table, Insert(entity(1)))
    connection, deleted = await in_thread(delete_ahead, table)
    waiting = asyncio.create_task(in_thread(insert, table))
    await in_thread(wait_for_waiting)
    await in_thread(connection.commit)
    await in_thread(connection.close)

    await waiting
    stored = await in_thread(entities.get, table, KEY)
    assert stored.timestamp > deleted and read_stored(stored) == entity(2)


def test_closed_moments_survive_a_clock_set_back(table):
    write(table, Insert(entity(1)))
    floor = raise_floor(120)
    former = Moment(floor)
    assert (number_at(table, former), number_at(table, former, OTHER)) == (1, None)

    for change in (Delete(KEY, ANY), Insert(entity(2)), upsert(3), Delete(KEY, ANY), upsert(4)):
        edits.apply_one(table, change, by=SERVER)
    write(table, Delete(KEY, ANY), upsert(5, OTHER))
    write(table, Insert(entity(6)))

    assert (number_at(table, former), number_at(table, former, OTHER)) == (1, None)
    assert_in_order(table)
    assert_history_is_read_as_recorded(table)


def changes_of(table):
    each = past.find(table, past.present()).record.changes("*", "true")
    return fetch(
        f"SELECT pk, rk, op::text, ts, was, request::text FROM ({each}) AS h WHERE tbl = {table.pk} ORDER BY seq"
    )


def assert_in_order(table):
    last = {}
    for pk, rk, op, ts, was, _ in changes_of(table):
        before, is_there = last.get((pk, rk), (0, False))
        assert ts > before, (rk, op)
        assert was == (before if is_there else None)
        last[pk, rk] = ts, op != "d"


def assert_history_is_read_as_recorded(table):
    """Check that reads as of the Timestamp of each change return the written content."""
    for pk, rk, op, ts, _, _ in changes_of(table):
        stored = entities.get(table, EntityKey(pk, rk), past.find(table, Moment(ts)))
        assert (stored is None) == (op == "d"), (rk, ts)
        assert stored is None or stored.timestamp == ts


async def test_any_writes_of_several_clients(service):
    """Timestamps grow, moments that were read stay as they were, and no change set is ever seen in part."""
    account = await service.account("owner")
    await service.create_table(account, "people")
    table = await in_thread(lambda: tables.get(account.row, "people"))
    keys = [EntityKey("p", name) for name in "abc"]
    draw = random.Random(17)
    seen = []

    async def change(number):
        key = draw.choice(keys)
        kinds = (
            lambda: service.change(account, "people", Insert(entity(number, key))),
            lambda: service.change(account, "people", upsert(number, key)),
            lambda: service.change(account, "people", Update(entity(number, key), ANY, merge=True)),
            lambda: service.change(account, "people", Delete(key, ANY)),
            lambda: service.change(account, "people", Delete(key, ANY)),
            lambda: service.apply(account, "people", [upsert(number, it) for it in keys]),
            lambda: service.apply(account, "people", [Delete(it, ANY) for it in keys]),
        )
        try:
            await draw.choice(kinds)()
        except (StorageError, ChangeSetError):
            pass

    async def write_many(first):
        for number in range(first, first + 30):
            await change(number)

    async def read_many():
        for _ in range(20):
            moment = await in_thread(past.present)
            seen.append((moment, await read(moment)))

    async def read(moment):
        page = await service.query(account, "people", EntityQuery(), moment)
        return [(it.key, it.timestamp, it.content) for it in page.entities]

    await asyncio.gather(*(write_many(1000 * place) for place in range(1, 6)), read_many(), read_many())

    for moment, content in seen:
        assert await read(moment) == content
    await in_thread(assert_in_order, table)
    await in_thread(assert_history_is_read_as_recorded, table)
    await in_thread(assert_change_sets_are_whole, table)


def assert_change_sets_are_whole(table):
    by_request = {}
    for *_, ts, _, request in changes_of(table):
        by_request.setdefault(request, set()).add(ts)
    assert all(len(times) == 1 for times in by_request.values())
