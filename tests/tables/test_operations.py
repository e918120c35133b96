"""Tables of an account: made, found, listed, deleted, and their space given back."""

import asyncio
from datetime import timedelta
from time import monotonic

import psycopg
import pytest
from django.conf import settings
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from storage.access import policies
from storage.accounts import account_settings, accounts, removal
from storage.accounts.refusals import AccountHasTables
from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import ServerBusy, TableAlreadyExists
from storage.domain.filters.parser import parse
from storage.domain.filters.query import TableQuery
from storage.domain.requests.strictness import TABLE_DELETION, Strictness
from storage.metrics import remembered, totals
from storage.metrics.table_use import TableWrites
from storage.models import Table
from storage.runtime.threads import in_thread
from storage.sql import background, batch
from storage.sql.django import run
from storage.sql.relations import relation_name
from storage.tables import table_list, tables
from storage.tables.list_columns import COLUMNS, SORTABLE, Size, columns_of
from tests.metrics.test_table_use import count_requests


@pytest.fixture
def account(db):
    return accounts.add("tablesofmine")


@pytest.fixture
def other(db):
    return accounts.add("tablesofothers")


def names(account, **query):
    return tables.query(account, TableQuery(**query))


def is_there(relation):
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [relation])
        return cursor.fetchone()[0]


# create


def test_every_account_has_names_of_its_own(account, other):
    mine, theirs = tables.create(account, "people"), tables.create(other, "People")

    assert mine.pk != theirs.pk
    assert names(other) == (["People"], None)
    assert tables.counts([account.pk, other.pk]) == {account.pk: 1, other.pk: 1}
    tables.delete(other, "people")
    assert names(account) == (["people"], None)


def test_a_failed_relation_leaves_no_table(account):
    following = tables.create(account, "first").pk + 1
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {relation_name(following)} (in_the_way int)")

    with pytest.raises(Exception, match="already exists"), transaction.atomic():
        tables.create(account, "second")

    assert names(account) == (["first"], None)


@pytest.mark.django_db(transaction=True)
def test_a_table_of_an_account_that_is_gone_cannot_be_made():
    account = accounts.add("goneforgood")
    removal.remove("goneforgood")

    with pytest.raises(ServerBusy):
        tables.create(account, "people")
    assert not Table.objects.exists()


@pytest.mark.django_db(transaction=True)
async def test_no_account_goes_while_a_table_is_being_made_in_it():
    account = await in_thread(accounts.add, "inthemaking")
    connect = psycopg.AsyncConnection.connect
    async with (
        await connect(settings.LANES_CONNINFO) as maker,
        await connect(settings.LANES_CONNINFO, autocommit=True) as watcher,
    ):
        await maker.execute(
            "INSERT INTO storage_table (account_id, name, folded_name, created_at, description, tags)"
            " VALUES (%s, 'people', 'people', now(), '', '[]')",
            [account.pk],
        )
        await maker.execute("SET CONSTRAINTS ALL IMMEDIATE")  # as its end does
        removing = asyncio.create_task(in_thread(removal.remove, "inthemaking"))
        async with asyncio.timeout(60):
            while not await is_waiting(watcher):  # noqa: ASYNC110 - the event is PostgreSQL's
                await asyncio.sleep(0.005)
        await maker.commit()
        with pytest.raises(AccountHasTables):
            await removing


async def is_waiting(watcher):
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    (number,) = await (await watcher.execute(query)).fetchone()
    return number > 0


@pytest.mark.django_db(transaction=True)
async def test_only_one_of_concurrent_creations_of_a_table_succeeds():
    account = await in_thread(accounts.add, "atonce")

    results = await asyncio.gather(
        *(in_thread(tables.create, account, name) for name in ("People", "people", "PEOPLE", "peoplE")),
        return_exceptions=True,
    )

    made = [result for result in results if isinstance(result, Table)]
    assert len(made) == 1
    assert sum(isinstance(result, TableAlreadyExists) for result in results) == 3
    assert await in_thread(tables.query, account, TableQuery()) == ([made[0].name], None)


# query


@pytest.fixture
def many(account):
    """Tables made in no order; their names as they will be listed."""
    results = ["a1b", "Abc", "aBD", "b00", "B10", "Zzz"]
    for name in reversed(results):
        tables.create(account, name)
    return results


def test_lists_tables_page_by_page(account, many):
    for top in [1, 2, 3, 5, 6, 7]:
        pages, start = [], ""
        while start is not None:
            page, start = names(account, top=top, start=start)
            pages.append(page)

        assert sum(pages, []) == many, top  # noqa: RUF017
        assert max(map(len, pages)) <= top, top


def test_lists_the_tables_that_a_filter_wants(account, many):
    table_filter = parse("TableName ge 'b' and TableName lt 'c'")

    assert names(account, filter=table_filter) == (["b00", "B10"], None)
    assert names(account, filter=table_filter, top=1) == (["b00"], "b10")
    assert names(account, filter=table_filter, start="b05") == (["B10"], None)
    assert names(account, filter=parse("TableName eq 'Missing'")) == ([], None)
    assert names(account, filter=parse("TableName gt 'B00~' or TableName eq 'ABC'")) == (
        ["Abc", "B10", "Zzz"],
        None,
    )
    assert names(account, filter=parse("TableName ge 'A1B!' and TableName lt 'B~'")) == (
        ["Abc", "aBD", "b00", "B10"],
        None,
    )


# delete


def test_the_space_of_deleted_tables_is_given_back(account):
    kept = tables.create(account, "kept")
    gone = [tables.create(account, name) for name in ("gone1", "gone2")]
    for table in gone:
        tables.delete(account, table.name)
    assert all(is_there(f"deleted_{relation_name(table.pk)}") for table in gone)

    assert tables.drop_expired_tables() == 2

    assert not any(is_there(f"deleted_{relation_name(table.pk)}") for table in gone)
    assert list(Table.objects.all()) == [kept]
    assert tables.drop_expired_tables() == 0


def test_a_drop_locks_no_account(account):
    """Creations of its tables would wait for that, and these two deadlock in a cluster."""
    tables.create(account, "gone")
    tables.delete(account, "gone")
    with CaptureQueriesContext(connection) as queries:
        assert tables.drop_expired_tables() == 1
    locking = [it["sql"] for it in queries if "FOR UPDATE" in it["sql"]]
    assert locking and all('FOR UPDATE OF "storage_table"' in it for it in locking)


def test_a_strict_account_remembers_a_deleted_table_for_as_long_as_its_name_is_taken(account):
    account_settings.change(account, strictness=Strictness.AZURE)
    tables.create(account, "gone")
    tables.delete(account, "gone")
    before = timezone.now() - timedelta(minutes=1)
    assert tables.drop_expired_tables() == 0
    assert tables.is_name_of_deleted(account, "gone", before)

    Table.objects.update(deleted_at=timezone.now() - timedelta(seconds=TABLE_DELETION))
    assert tables.is_name_of_deleted(account, "gone", before)
    assert tables.drop_expired_tables() == 1
    assert not tables.is_name_of_deleted(account, "gone", before)


def test_tables_deleted_by_clients_are_kept_like_the_history_unless_empty(account, monkeypatch):
    def delete(name, count):
        table = tables.create(account, name)
        add_entities(table, count)
        tables.delete(account, name)
        return table

    delete("empty", 0)
    full = delete("full", 2)
    [kept] = tables.deleted(account)
    assert (kept, kept.kept_until - kept.deleted_at) == (full, timedelta(days=7))
    tables.restore(full)
    assert [it.name for it in tables.deleted(account)] == []
    assert background.has_rows(full)

    monkeypatch.setattr(tables, "_MOST_KEPT", 2)
    for number in range(3):
        delete(f"many{number}", 1)
    assert [it.name for it in tables.deleted(account)] == ["many2", "many1"]

    account_settings.change(accounts.by_name("tablesofmine"), history_days=0)
    delete("unrecorded", 1)
    assert len(tables.deleted(account)) == 2


# news


def add_entities(table, count, start=0):
    entities = [Insert(Entity(EntityKey("se", f"{number:05}"), {})) for number in range(start, start + count)]
    for first in range(0, count, 100):
        run(batch.apply(relation_name(table.pk), entities[first : first + 100]))


def listed(account, **options):
    return [table.name for table in table_list.page(account, **options).tables]


def test_overview_is_by_name(account, other):
    for name in ("Carts", "people", "audit"):
        tables.create(account, name)
    tables.create(other, "foreign")
    tables.delete(account, "audit")
    tables.create(account, "notes", description="Who likes tea")
    assert listed(account, containing="LIKES t") == ["notes"]
    tables.delete(account, "notes")
    assert listed(account) == ["Carts", "people"]
    assert listed(account, containing="AR") == ["Carts"]
    assert listed(account, start="carts1") == ["people"]
    listing = table_list.overview(account, top=1)
    assert (len(listing.tables), listing.total, listing.next) == (1, 2, "people")


def test_tables_in_another_order(account, monkeypatch):
    for name, entities in (("bbb", 3), ("aaa", 0), ("ccc", 7)):
        add_entities(tables.create(account, name), entities)
    assert listed(account, descending=True) == ["ccc", "bbb", "aaa"]
    assert listed(account, column=COLUMNS["created"]) == ["bbb", "aaa", "ccc"]
    assert listed(account, column=COLUMNS["entities"], descending=True) == ["ccc", "bbb", "aaa"]
    assert listed(account, column=COLUMNS["entities"], containing="bbb") == ["bbb"]
    first = table_list.page(account, column=COLUMNS["entities"], top=2)
    assert ([table.name for table in first.tables], first.total, first.next) == (["aaa", "bbb"], 3, "2")
    rest = table_list.page(account, column=COLUMNS["entities"], top=2, start=first.next)
    assert ([table.name for table in rest.tables], rest.next) == (["ccc"], None)
    assert listed(account, column=COLUMNS["size"], start="nonsense", descending=True)[0] in ("bbb", "ccc")

    # statistics of many tables
    monkeypatch.setattr(table_list, "PAGE", 2)
    add_entities(tables.get(account, "ccc"), 400, start=7)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    for column in (COLUMNS["entities"], COLUMNS["size"]):
        assert listed(account, column=column, descending=True)[0] == "ccc"
        assert listed(account, column=column)[-1] == "ccc"


def test_figures_of_an_account_with_very_many_tables_are_cached(account, other, monkeypatch):
    for module in (table_list, totals):
        monkeypatch.setattr(module, "MANY_TABLES", 1)
    for owner, names_of in ((account, ("a1a", "b1b", "c1c")), (other, ("alone",))):
        for name in names_of:
            tables.create(owner, name)
    known = [table.name for table in table_list.largest(account, 2).tables]
    assert (totals.contents([account.pk, other.pk])[account.pk].tables, len(known)) == (3, 2)

    tables.delete(account, known[0])
    tables.create(other, "second")

    assert [table.name for table in table_list.largest(account, 2).tables] == known[1:]
    assert {pk: it.tables for pk, it in totals.contents([account.pk, other.pk]).items()} == {
        account.pk: 3,
        other.pk: 2,
    }
    monkeypatch.setattr(remembered, "monotonic", lambda: monotonic() + 61)
    assert totals.contents([account.pk])[account.pk].tables == 2
    assert known[0] not in [table.name for table in table_list.largest(account, 5).tables]


def test_sizes_that_order_a_page_are_not_read_again(account):
    add_entities(tables.create(account, "people"), 3)
    assert table_list.page(account, column=COLUMNS["size"]).sizes["people"].entities == 3
    assert table_list.page(account).sizes == {}


def test_tables_by_what_clients_do(account):
    quiet, busy, written = (tables.create(account, name) for name in ("quiet", "busy", "written"))
    now = timezone.now()
    count_requests("one", busy, now, 5)
    count_requests("one", quiet, now, 1)
    count_requests("one", written, now - timedelta(hours=30), 100)
    writes = TableWrites()
    writes.add(now, [written.pk])
    writes.write()
    assert listed(account, column=COLUMNS["requests"], descending=True) == ["busy", "quiet", "written"]
    assert listed(account, column=COLUMNS["written"], descending=True) == ["written", "busy", "quiet"]
    assert listed(account, column=COLUMNS["written"]) == ["busy", "quiet", "written"]


def test_large_accounts_can_be_sorted_by_each_sortable_column(account, monkeypatch):
    monkeypatch.setattr(table_list, "PAGE", 1)
    for name in ("one", "two"):
        tables.create(account, name)
    for name, column in SORTABLE.items():
        for descending in (False, True):
            assert sorted(listed(account, column=column, descending=descending)) == ["one", "two"], name


def test_unknown_values_are_sorted_like_the_least(account, monkeypatch):
    sizes = {"one": Size(1, True, 0, None), "three": Size(1, True, 0, 3), "two": Size(1, True, 0, 2)}
    for name in sizes:
        tables.create(account, name)
    monkeypatch.setattr(table_list, "sizes", lambda _: sizes)
    assert listed(account, column=COLUMNS["partitions"]) == ["one", "two", "three"]
    assert listed(account, column=COLUMNS["partitions"], descending=True) == ["three", "two", "one"]


def test_columns_show_what_is_known_of_a_table(account):
    people = tables.create(account, "people")
    add_entities(people, 3)
    policies.replace_by_name(account, "people", [SignedIdentifier("reader", AccessPolicy(permission="r"))])
    now = timezone.now()
    count_requests("one", people, now, 5)
    writes = TableWrites()
    writes.add(now, [people.pk])
    writes.write()
    result = table_list.page(account).tables
    sizes = table_list.sizes(result)
    (unmeasured,) = table_list.read_rows(result, {})
    assert {column.read(unmeasured) for column in COLUMNS.values() if column.is_measured} == {None}
    (row,) = table_list.read_rows(result, sizes)
    shown = {name: column.read(row) for name, column in COLUMNS.items()}
    assert sum(shown.pop("requests")) == 5
    assert shown == {
        "name": "people",
        "entities": 3,
        "partitions": 1,
        "size": sizes["people"].bytes,
        "written": now,
        "policies": 1,
        "created": people.created_at,
    }
    assert COLUMNS.keys() - {column.name for column in columns_of("cosmos")} == {"policies"}


def test_overview_counts_small_tables_and_estimates_large_ones(account, monkeypatch):
    for name, count in (("few", 7), ("empty", 0), ("people", 100)):
        add_entities(tables.create(account, name), count)
    results = {table.name: (table.entities, table.is_exact) for table in table_list.overview(account).tables}
    assert results == {"few": (7, True), "empty": (0, True), "people": (100, True)}

    monkeypatch.setattr(table_list, "_COUNTED", 50)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    large = table_list.describe(tables.get(account, "people"))
    assert (large.is_exact, large.entities >= 100, large.size > 0) == (False, True, True)


def test_a_table_that_is_deleted_while_it_is_counted(account):
    table = tables.create(account, "people")
    tables.delete(account, "people")
    for count in (background.count_up_to, background.partitions_up_to):
        assert table_list._counted({table.pk: table_list.NOTHING}, count) == {}
    assert table_list.sizes([table])["people"].entities == 0


def test_creating_a_table_of_a_checked_account_takes_four_queries(account, django_assert_num_queries):
    # a savepoint, which is the test's, the row that is loaded, and the kind of its account for its relation
    with django_assert_num_queries(4):
        tables.create(account, "people", is_checked=True)
