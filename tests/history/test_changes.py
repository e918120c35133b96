"""The recorded changes of an account: by request, filtered, in pages, and counted by time."""

import pytest

from storage.accounts import accounts
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Delete, Insert, Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.domain.values.ticks import to_datetime
from storage.history import changes
from storage.history.changes import ChangeFilter
from storage.models import HistorySegment, RegisteredSas
from storage.relations import history
from storage.sql import batch, entities
from storage.sql.django import execute, fetch, run
from storage.sql.history import Op
from storage.sql.record import segment_name
from storage.sql.relations import relation_name
from storage.tables import tables

REQUESTS = [f"7f3a19c0-0000-4000-8000-{number:012}" for number in range(100)]
SECOND = 10_000_000
START = 1_700_000_000 * SECOND


@pytest.fixture
def account(db):
    account = accounts.add("acme")
    HistorySegment.objects.update(started_at=at(-1000))
    return account


@pytest.fixture
def people(account):
    return tables.create(account, "people")


def actor(request, name="key1", kind=ActorKind.KEY):
    return Actor(kind, name, "10.0.0.1", "curl", REQUESTS[request])


def entity(row_key, number=0):
    return Entity(EntityKey("p", row_key), {"N": EdmValue(Edm.INT32, number)})


def write(table, by, *several):
    recorder = history.recorder(table.account, by)
    if len(several) > 1:
        run(batch.apply(relation_name(table.pk), several, recorder))
    else:
        run(entities.change(relation_name(table.pk), several[0], recorder))


def record(table, number, seconds, request=None, by=None, op=Op.INSERT):
    """Record inserts at a time, as if they had been made then."""
    by = by or actor(0)
    recorder = history.recorder(table.account, by)
    execute(
        f"INSERT INTO {segment_name(table.account_id, 1)} (tbl, op, ts, actor, request, pk, rk)"
        " SELECT %s, %s, %s, %s, coalesce(%s::uuid, gen_random_uuid()), 'p', i::text FROM generate_series(1, %s) AS i",
        table.pk,
        op,
        START + int(seconds * SECOND),
        recorder.actor,
        request,
        number,
    )


def at(seconds):
    return to_datetime(START + int(seconds * SECOND))


def page(account, **wanted):
    return changes.page(account, ChangeFilter(**wanted)).entries


def test_one_entry_for_each_request(account, people):
    write(people, actor(1), Insert(entity("a")), Insert(entity("b")))
    write(people, actor(2, "0f5a", ActorKind.SAS), Upsert(entity("a", 1), merge=False))
    write(people, actor(3), Delete(EntityKey("p", "a"), ANY))
    RegisteredSas.objects.create(
        account=account, fingerprint="0f5a", kind="table", parameters=[], label="Nightly import", author=""
    )

    deleted, changed, inserted = page(account)

    assert (inserted.inserted, inserted.changed, inserted.deleted, inserted.number) == (2, 0, 0, 2)
    assert (changed.changed, changed.number, changed.key) == (1, 1, EntityKey("p", "a"))
    assert (deleted.deleted, deleted.actor) == (1, actor(3))
    assert (changed.actor.label, changed.actor.kind) == ("Nightly import", ActorKind.SAS)
    assert (inserted.actor.label, inserted.table) == ("", people)
    assert not any(it.is_open for it in (deleted, changed, inserted))
    assert inserted.earliest <= inserted.latest <= changed.latest


def test_filters(account, people):
    others = tables.create(account, "others")
    write(people, actor(1), Insert(entity("a")))
    write(people, actor(2, "0f5a", ActorKind.SAS), Upsert(entity("a", 1), merge=False))
    write(others, actor(3, "ada", ActorKind.USER), Insert(entity("50%")))
    RegisteredSas.objects.create(
        account=account, fingerprint="0f5a", kind="table", parameters=[], label="Nightly import", author=""
    )

    def requests(**criteria):
        return [REQUESTS.index(it.request) for it in page(account, **criteria)]

    assert requests() == [3, 2, 1]
    assert requests(table="OTHERS") == [3]
    assert requests(table="none") == []
    assert requests(table_id=people.pk) == [2, 1]
    assert requests(actor="KEY") == [1]
    assert requests(actor="nightly") == [2]
    assert requests(actor="nobody") == []
    assert requests(actors=(("user", "ada"), ("key", "key1"))) == [3, 1]
    assert requests(doors=(ActorKind.USER, ActorKind.SAS)) == [3, 2]
    assert requests(ops=(Op.UPDATE,)) == [2]
    assert requests(requests=(REQUESTS[1], REQUESTS[3])) == [3, 1]
    assert requests(key="0%") == [3]
    assert requests(key="A") == []
    middle = page(account)[1].latest
    assert requests(since=middle) == [3, 2]
    assert requests(until=middle) == [1]
    [(number,)] = fetch(f"SELECT seq FROM {segment_name(account.pk, 1)} WHERE op = 'u'")
    assert requests(numbers=(number,)) == [2]


def test_pages_in_both_directions(account, people):
    for number in range(7):
        record(people, 1, number)
    first = changes.page(account, ChangeFilter(), top=3)
    second = changes.page(account, ChangeFilter(until=first.entries[-1].latest), top=3)
    third = changes.page(account, ChangeFilter(until=second.entries[-1].latest), top=3)
    times = [[it.latest for it in shown.entries] for shown in (first, second, third)]
    assert times == [[at(6), at(5), at(4)], [at(3), at(2), at(1)], [at(0)]]
    assert [shown.next is None for shown in (first, second, third)] == [False, False, True]

    back = changes.page(account, ChangeFilter(since=at(1)), top=3, oldest_first=True)
    assert [it.latest for it in back.entries] == [at(3), at(2), at(1)]
    assert back.next is not None


def test_a_large_request_does_not_hide_others(account, people, monkeypatch):
    monkeypatch.setattr(changes, "_WINDOWS", (10, 100))
    record(people, 1, 0)
    record(people, 60, 1, REQUESTS[1])
    large, small = page(account)
    assert (large.number, large.is_open, small.number) == (60, False, 1)

    record(people, 200, 2, REQUESTS[2])
    (huge,) = page(account)
    assert (huge.number, huge.is_open) == (100, True)
    following = changes.page(account, ChangeFilter(), before=huge.latest)
    assert [it.number for it in following.entries] == [60, 1]


def test_a_request_is_on_one_page(account, people):
    for seconds in range(4):
        record(people, 1, seconds)
        record(people, 1, 1 + seconds / 2, REQUESTS[1])
    first = changes.page(account, ChangeFilter(), top=2)
    assert [(it.latest, it.number) for it in first.entries] == [(at(3), 1), (at(2.5), 4)]
    second = changes.page(account, ChangeFilter(), before=first.entries[-1].latest, top=9)
    assert [(it.latest, it.number) for it in second.entries] == [(at(2), 1), (at(1), 1), (at(0), 1)]


def test_the_requests_of_a_load_are_one_entry_a_minute(account, people, monkeypatch):
    """However many they are, the rows that are read are bounded, and every change is on one page."""
    others, ada = tables.create(account, "others"), actor(0, "ada", ActorKind.USER)
    start = -at(0).second  # where a minute begins
    for number in range(90):  # in three minutes
        record(people, 10, start + 2 * number)
        record(others, 1, start + 2 * number + 1, by=ada)

    def read(**criteria):
        result = changes.page(account, ChangeFilter(), by_minute=True, **criteria)
        return result.next, [(it.table.name, it.number, it.requests, it.is_open) for it in result.entries]

    end, result = read()
    assert end is None and [it for it in result if it[0] == "people"] == [("people", 300, 300, False)] * 3
    assert [it for it in result if it[0] == "others"] == [
        ("others", 1, 1, False)
    ] * 90  # activities, each its own

    # windows that end within a minute leave it to the next page
    monkeypatch.setattr(changes, "_WINDOWS", (10, 20))
    monkeypatch.setattr(changes, "_LARGEST_WINDOW", 400)
    for direction in ({}, {"oldest_first": True}):
        end, seen = read(**direction)
        while end is not None:
            if direction:
                result = changes.page(
                    account, ChangeFilter(since=to_datetime(end + 10)), by_minute=True, oldest_first=True
                )
                end, more = result.next, result.entries
                seen += [(it.table.name, it.number, it.requests, it.is_open) for it in more]
            else:
                end, more = read(before=to_datetime(end))
                seen += more
        assert seen.count(("people", 300, 300, False)) == 3 and len(seen) == 93

    # if one minute is larger than any window, the page says that there is more
    monkeypatch.setattr(changes, "_LARGEST_WINDOW", 100)
    assert [(it[0], it[3]) for it in read()[1] if it[0] == "people"] == [("people", True)]
    # a few requests are entries of their own
    record(people, 40, 400)
    assert read()[1][0] == ("people", 1, 1, False)


def test_histogram(account, people):
    record(people, 3, 0)
    record(people, 5, 59.9)
    record(people, 2, 60, by=actor(0, "ada", ActorKind.USER))
    record(people, 4, 120)

    def numbers(**criteria):
        buckets = changes.histogram(account, ChangeFilter(**criteria), at(0), at(120), 2)
        assert [(it.start, it.end) for it in buckets] == [(at(0), at(60)), (at(60), at(120))]
        return [it.counts["changes"] for it in buckets]

    assert numbers() == [8, 2]
    assert numbers(actor="ada") == [0, 2]
    assert numbers(actor="nobody") == [0, 0]
    assert changes.count_by_table(account, ChangeFilter(until=at(60))) == {people.pk: 8}
