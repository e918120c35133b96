"""Indexes of properties: asked for, made and dropped beside writers, and made again after a crash."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from django.conf import settings
from django.db import connection

from storage.accounts import account_settings, accounts
from storage.activity.undoing import CannotUndo, Reason
from storage.core.quotas import INDEXES
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import InsufficientAccountPermissions, PropertyNameInvalid
from storage.domain.filters.parser import parse
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import Edm, EdmValue
from storage.entities import entities
from storage.models import PropertyIndex
from storage.runtime import job_runner
from storage.sql import batch
from storage.sql import entities as sql
from storage.sql import indexes as statements
from storage.sql.django import execute, fetch, run
from storage.sql.relations import INDEXING, relation_name
from storage.tables import indexes, tables
from storage.tables.index_rules import IndexOrigin, IndexState
from storage.tables.indexes import IndexExists, IndexMissing, TooManyIndexes
from storage.tables.subject import TableVerb
from storage.undo.undo import undo

# indexes are made outside of transactions
pytestmark = pytest.mark.django_db(transaction=True)

ADA = Actor(ActorKind.USER, "ada")
ROWS = 300


@pytest.fixture
def account():
    return accounts.add("acme")


@pytest.fixture
def people(account):
    """Score says the number of an entity."""
    table = tables.create(account, "People")
    for start in range(0, ROWS, 100):
        inserts = [Insert(entity(number)) for number in range(start, start + 100)]
        run(batch.apply(relation_name(table.pk), inserts))
    return table


def entity(number):
    return Entity(EntityKey("p", f"{number:04}"), {"Score": EdmValue(Edm.INT32, number)})


def states(table):
    return dict(PropertyIndex.objects.filter(table=table).values_list("name", "state"))


def stored(table):
    """Return whether each of PostgreSQL's indexes of the table's properties is valid."""
    result = fetch(
        "SELECT c.relname, i.indisvalid FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid"
        " WHERE i.indrelid = to_regclass(%s) AND starts_with(c.relname, %s)",
        relation_name(table.pk),
        statements.index_name(table.pk, 0)[:-1],
    )
    return [is_valid for _, is_valid in result]


def found(table, text):
    page = entities.page(table, EntityQuery(filter=parse(text)))
    return [int(stored.key.row_key) for stored in page.entities]


def reason(done):
    with pytest.raises(CannotUndo) as caught:
        undo(done, ADA)
    return caught.value.reason


def test_is_made_and_dropped_in_the_background_and_undone(people):
    added = indexes.add(people, "Score", by=ADA, origin=IndexOrigin.ADVICE)
    assert states(people) == {"Score": IndexState.BUILDING}
    assert not stored(people)
    with pytest.raises(IndexExists):
        indexes.add(people, "Score")

    job_runner.run_all()
    assert states(people) == {"Score": IndexState.READY}
    assert stored(people) == [True]
    assert indexes.indexed(people.pk) == {"Score"}
    [details] = indexes.describe(people)
    assert details.size > 0
    assert (added.verb, added.detail) == (TableVerb.INDEX_ADD, {"property": "Score", "origin": "advice"})
    assert found(people, "Score ge 297") == [297, 298, 299]
    entity_query = EntityQuery(filter=parse("Score ge 5 and Score lt 200 or Score eq 250"), top=7)
    pages = [[int(it.key.row_key) for it in page] for page in entities.all_pages(people, entity_query)]
    assert {len(page) for page in pages[:-1]} == {7}
    assert [number for page in pages for number in page] == [*range(5, 200), 250]

    dropped = indexes.drop(people, "Score", by=ADA)
    assert indexes.indexed(people.pk) == frozenset()
    job_runner.run_all()
    assert not states(people)
    assert not stored(people)
    assert dropped.verb == TableVerb.INDEX_DROP
    with pytest.raises(IndexMissing):
        indexes.drop(people, "Score")
    assert reason(added) is Reason.GONE

    again = undo(dropped, ADA)
    job_runner.run_all()
    assert states(people) == {"Score": IndexState.READY}
    assert PropertyIndex.objects.get().origin == IndexOrigin.ADVICE
    undo(again, ADA)
    assert states(people) == {"Score": IndexState.DROPPING}


def test_refuses_keys_names_that_no_property_has_too_many_and_read_only_accounts(account, people):
    for name in ("PartitionKey", "RowKey", "a b", "'"):
        with pytest.raises(PropertyNameInvalid):
            indexes.add(people, name)
    for number in range(INDEXES.default):
        indexes.add(people, f"Property{number}")
    with pytest.raises(TooManyIndexes):
        indexes.add(people, "Score")

    account_settings.change(account, read_only=True)
    with pytest.raises(InsufficientAccountPermissions):
        indexes.drop(people, "Property0")


def test_an_invalid_index_after_a_crash_is_built_again(people):
    indexes.add(people, "Score")
    [index] = PropertyIndex.objects.all()
    name = statements.index_name(people.pk, index.pk)
    execute(f"CREATE INDEX {name} ON {relation_name(people.pk)} (ts)")
    execute(f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{name}'::regclass")

    job_runner.run_all()

    assert states(people) == {"Score": IndexState.READY}
    assert stored(people) == [True]
    assert "Score" in fetch("SELECT pg_get_indexdef(%s::regclass)", name)[0][0]


def test_only_one_of_two_servers_builds_the_index(people):
    indexes.add(people, "Score")
    with psycopg.connect(settings.LANES_CONNINFO) as other:
        other.execute("SELECT pg_advisory_lock(%s, %s)", (INDEXING, people.pk))
        job_runner.run_all()
        assert states(people) == {"Score": IndexState.BUILDING}
        # A closed connection's locks are let go a moment after it; these are gone at once.
        other.execute("SELECT pg_advisory_unlock(%s, %s)", (INDEXING, people.pk))

    job_runner.run_all()
    assert states(people) == {"Score": IndexState.READY}


def test_a_failure_is_told_and_tried_again(people):
    indexes.add(people, "Score")
    [index] = PropertyIndex.objects.all()
    name = statements.index_name(people.pk, index.pk)
    execute(f"CREATE TABLE {name} (in_the_way int)")

    job_runner.run_all()
    index.refresh_from_db()
    assert index.state == IndexState.FAILED
    assert "already exists" in index.error

    execute(f"DROP TABLE {name}")
    indexes.add(people, "Score")
    job_runner.run_all()
    assert states(people) == {"Score": IndexState.READY}


def test_deleting_a_table_does_not_wait_for_its_index(account, people):
    """Building an index takes as long as its table is large; here it waits for a transaction that writes to the
    table.
    """
    indexes.add(people, "Score")
    with psycopg.connect(settings.LANES_CONNINFO) as writer, ThreadPoolExecutor() as threads:
        writer.execute(f"LOCK TABLE {relation_name(people.pk)} IN ROW EXCLUSIVE MODE")
        making = threads.submit(run_pending)
        while not making.done() and not fetch(IS_MAKING)[0][0]:
            pass
        assert not making.done()
        deleting = threads.submit(delete, account)
        making.result()
        writer.rollback()
        deleting.result()

    job_runner.run_all()
    tables.restore(people)
    job_runner.run_all()
    assert states(people) == {"Score": IndexState.READY}
    assert stored(people) == [True]


IS_MAKING = "SELECT EXISTS (SELECT FROM pg_stat_progress_create_index WHERE datname = current_database())"


def run_pending():
    job_runner.run_all()
    connection.close()


def delete(account):
    tables.delete(account, "People", keep=tables.DELETED_TABLE_RETENTION)
    connection.close()


LONGEST = ["\U0010ffff" * 8000, "\x00" * 16_000, "\ud800" * 16_000, "x" * 32_000]


def test_no_write_fails_because_of_an_index(people):
    """The longest texts, binaries, keys and numbers; an entry of an index has a limit of 2,704 bytes."""
    for name in ("Text", "Binary", "Number", "Timestamp"):
        indexes.add(people, name)
    job_runner.run_all()
    relation = relation_name(people.pk)
    values = [
        *({"Text": EdmValue(Edm.STRING, text)} for text in LONGEST),
        {"Binary": EdmValue(Edm.BINARY, bytes(range(256)) * 256)},
        *(
            {"Number": EdmValue(Edm.DOUBLE, number)}
            for number in (5e-324, -1.7976931348623157e308, float("inf"))
        ),
    ]

    for number, properties in enumerate(values):
        key = EntityKey("k" * 1024, f"{number}" + "r" * 1000)
        run(sql.change(relation, Insert(Entity(key, properties))))

    assert states(people) == dict.fromkeys(("Text", "Binary", "Number", "Timestamp"), IndexState.READY)
    text = "Text ge '\U0010ffff' or Binary ge X'0001' or Number lt 1 and Number ne 5 or Number gt 1e300"
    entity_query = EntityQuery(filter=parse(text))
    assert len(entities.page(people, entity_query).entities) == 5
