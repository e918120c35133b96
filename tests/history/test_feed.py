"""The change feed: nothing is missing, nothing comes twice, and the changes of an entity come in order."""

import json
from contextlib import contextmanager
from datetime import timedelta

import psycopg
import pytest
from django.conf import settings
from django.utils import timezone

from storage.accounts import accounts
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Delete, Insert, Update, Upsert
from storage.domain.entities.entity import Entity, EntityKey, read_members
from storage.domain.errors import ServerBusy
from storage.domain.history.feed import ExpiredToken, InvalidToken, write_change, write_cosmos_change
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.domain.values.ticks import to_ticks
from storage.history import feed
from storage.history.feed import NOW, OLDEST, Feed, NoHistory, Start
from storage.models import FeedMark, HistorySegment
from storage.relations import history
from storage.sql import django as sql
from storage.sql import entities
from storage.sql import feed as statements
from storage.sql.relations import relation_name
from storage.tables import tables

pytestmark = pytest.mark.django_db(transaction=True)

ADA = Actor(ActorKind.USER, "ada", "10.0.0.1", "Firefox", "7f3a19c0-0000-4000-8000-000000000001")


@pytest.fixture
def account():
    return accounts.add("acme")


@pytest.fixture
def people(account):
    return tables.create(account, "people")


@pytest.fixture
def write(account, people):
    """Return `write(change, table=…, on=…)`, which applies a change, optionally on a connection of its own."""

    def write(change, *, table=people, on=None):
        statement = entities.change(relation_name(table.pk), change, history.recorder(account, ADA))
        if on is None:
            sql.run(statement)
        else:
            with psycopg.RawCursor(on) as cursor:
                cursor.execute(statement.text, statement.parameters)

    return write


@contextmanager
def transaction():
    with psycopg.connect(settings.LANES_CONNINFO) as connection:
        yield connection


def entity(row_key, number, size=0):
    return Entity(
        EntityKey("p", row_key),
        {"Number": EdmValue(Edm.INT64, number), "Text": EdmValue(Edm.STRING, "x" * size)},
    )


def put(row_key, number, size=0):
    return Upsert(entity(row_key, number, size), merge=False)


def remove(row_key):
    return Delete(EntityKey("p", row_key), ANY)


def number(image):
    return None if image is None else int(read_members(image)["Number"])


def told(page):
    return [(it.op, it.key.row_key, number(it.before), number(it.after)) for it in page.changes]


def read_all(followed, after, top):
    """Read pages until there is no more; return what they tell, and the last token."""
    results = []
    while True:
        page, after = feed.read(followed, after, top)
        assert len(page.changes) <= top
        results += told(page)
        if not page.has_more:
            return results, after


def test_both_images_of_every_change_in_order(account, people, write):
    followed = Feed(account.pk)
    page, token = feed.read(followed, NOW)
    assert (page.changes, page.has_more) == ([], False)

    write(Insert(entity("a", 1)))
    write(Update(entity("a", 2), ANY, merge=False))
    write(put("b", 10))
    write(Update(Entity(EntityKey("p", "a"), {"Number": EdmValue(Edm.INT64, 3)}), ANY, merge=True))
    write(remove("a"))
    write(put("a", 4))

    everything = [
        ("i", "a", None, 1),
        ("u", "a", 1, 2),
        ("i", "b", None, 10),
        ("u", "a", 2, 3),
        ("d", "a", 3, None),
        ("i", "a", None, 4),
    ]
    page, following = feed.read(followed, token)
    assert told(page) == everything
    assert not page.has_more
    assert told(feed.read(followed, following)[0]) == []
    # a token stays valid, and a table has a feed of its own
    assert told(feed.read(followed, token)[0]) == everything
    other = tables.create(account, "other")
    write(put("c", 20), table=other)
    assert read_all(Feed(account.pk, (people.pk,)), OLDEST, 2)[0] == everything
    assert read_all(followed, following, 10)[0] == [("i", "c", None, 20)]
    assert read_all(Feed(account.pk, (other.pk,)), OLDEST, 2)[0] == [("i", "c", None, 20)]

    first = page.changes[0]
    assert (first.actor.kind, first.actor.name, first.actor.request_id) == (
        ActorKind.USER,
        "ada",
        ADA.request_id,
    )
    written = json.loads(write_change(page.changes[1]))
    assert (written["operation"], written["table"], written["row_key"]) == ("update", "people", "a")
    assert written["before"]["Number@odata.type"] == "Edm.Int64"
    assert written["after"] == {
        "PartitionKey": "p",
        "RowKey": "a",
        "Timestamp": written["timestamp"],
        "Number@odata.type": "Edm.Int64",
        "Number": "2",
        "Text": "",
    }
    deleted = json.loads(write_cosmos_change(page.changes[4]))
    assert deleted["metadata"]["operationType"] == "delete"
    assert (deleted["current"], deleted["previous"]["Number"]) == ({}, "3")


def test_a_late_commit_is_not_lost(account, write):
    followed = Feed(account.pk)
    _, token = feed.read(followed, NOW)
    with transaction() as late:
        write(Insert(entity("late", 1)), on=late)
        write(put("early", 2))
        assert read_all(followed, OLDEST, 10)[0] == [("i", "early", None, 2)]
        read_changes, token = read_all(followed, token, 10)
        assert read_changes == [("i", "early", None, 2)]
    assert read_all(followed, token, 10)[0] == [("i", "late", None, 1)]


def test_the_changes_of_an_entity_come_in_order_whoever_began_first(account, write):
    followed = Feed(account.pk)
    _, token = feed.read(followed, NOW)
    with transaction() as older:
        write(Insert(entity("other", 0)), on=older)  # it has an earlier transaction id now
        write(put("k", 1))
        read_changes, token = read_all(followed, token, 10)
        write(put("k", 2))
        write(Update(entity("k", 3), ANY, merge=False), on=older)
    read_changes += read_all(followed, token, 1)[0]
    assert [it for it in read_changes if it[1] == "k"] == [
        ("i", "k", None, 1),
        ("u", "k", 1, 2),
        ("u", "k", 2, 3),
    ]


def test_pages_go_on_while_others_write(account, write):
    followed = Feed(account.pk)
    _, token = feed.read(followed, NOW)
    for row in range(7):
        write(put(f"{row}", row))
    page, token = feed.read(followed, token, 3)
    assert page.has_more
    result = told(page)
    with transaction() as late:
        write(Insert(entity("late", 100)), on=late)
        write(put("0", 10))
        write(remove("5"))
        page, token = feed.read(followed, token, 3)
        result += told(page)
    result += read_all(followed, token, 3)[0]

    assert result == [
        *((("i", f"{row}", None, row)) for row in range(7)),
        ("i", "late", None, 100),
        ("u", "0", 0, 10),
        ("d", "5", 5, None),
    ]


def interfering(steps, before, act):
    """Run the steps of an operation, and do something before one of them."""

    def run(statement):
        if before in statement.text:
            act()
        return sql.run_in_lane(statement)

    return sql.walk(steps, run)


def test_an_entity_that_is_changed_while_a_page_is_read(account, write):
    for row in "abc":
        write(put(row, 1))
    steps = feed.read_steps(Feed(account.pk), OLDEST)

    def change_two():
        write(put("a", 2))
        write(remove("b"))

    page, token = interfering(steps, "JOIN entity_", change_two)
    assert told(page) == [("i", row, None, 1) for row in "abc"]
    assert read_all(Feed(account.pk), token, 5)[0] == [("u", "a", 1, 2), ("d", "b", 1, None)]


def test_a_segment_that_is_started_while_a_page_is_read(account, write):
    history.go_on(account.pk)
    history.prepare_next(account.pk)
    write(put("a", 1))

    def go_on():
        if HistorySegment.objects.filter(account=account, ended_at=None, number=2).exists():
            history.go_on(account.pk)
            history.prepare_next(account.pk)
            write(put("b", 2))

    page, token = interfering(feed.read_steps(Feed(account.pk), OLDEST), "unseen AS", go_on)
    assert told(page) == [("i", "a", None, 1), ("i", "b", None, 2)]
    write(put("a", 3))
    assert read_all(Feed(account.pk), token, 5)[0] == [("u", "a", 1, 3)]


def drop_segment(account, number):
    sql.execute(f"DROP TABLE history_{account.pk}_{number}")
    HistorySegment.objects.filter(account=account, number=number).update(dropped_at=timezone.now())


def test_a_token_expires_with_its_unseen_changes(account, write):
    followed = Feed(account.pk)
    write(put("a", 1))
    _, early = feed.read(followed, NOW)
    history.go_on(account.pk)
    history.prepare_next(account.pk)
    write(put("b", 2))
    assert read_all(followed, early, 1)[0] == [("i", "b", None, 2)]
    _, late = feed.read(followed, early)
    drop_segment(account, 1)

    with pytest.raises(ExpiredToken, match="no longer kept"):
        feed.read(followed, early)
    with pytest.raises(ExpiredToken, match="Changes are kept since"):
        feed.read(followed, Start(is_now=False, since=timezone.now() - timedelta(days=30)))
    assert read_all(followed, OLDEST, 10)[0] == [("i", "b", None, 2)]
    write(put("b", 3))
    assert read_all(followed, late, 10)[0] == [("u", "b", 2, 3)]


def test_a_token_does_not_span_a_time_without_history(account, write):
    _, token = feed.read(Feed(account.pk), NOW)
    history.end(account)
    with pytest.raises(NoHistory):
        feed.read(Feed(account.pk), token)
    history.start(account)
    with pytest.raises(ExpiredToken):
        feed.read(Feed(account.pk), token)


def test_tokens_of_others_are_refused(account, people, write, monkeypatch):
    _, token = feed.read(Feed(account.pk), NOW)
    for text in ("", "x", "é", token[:-2], token[:-4] + "AAAA", "A" * 5000):
        with pytest.raises(InvalidToken):
            feed.read(Feed(account.pk), text)
    for other in (Feed(account.pk, (people.pk,)), Feed(accounts.add("other").pk)):
        with pytest.raises(InvalidToken, match="another account or of other tables"):
            feed.read(other, token)

    monkeypatch.setattr(statements, "_STATE", statements._STATE.replace("'.'", "'!'"))
    with pytest.raises(ExpiredToken, match="another database"):
        feed.read(Feed(account.pk), token)


def test_a_token_from_the_future(account):
    """This happens after a restore of the files of an older state."""
    position = feed.FeedPosition(1, "999999999:999999999:")
    with pytest.raises(ExpiredToken, match="restored"):
        sql.walk(
            feed._page(Feed(account.pk), position, sql.run(statements.state(account.pk, None)).segments, 1),
            sql.run_in_lane,
        )


def test_a_feed_since_a_time(account, write):
    write(put("a", 1))
    since = timezone.now()
    write(put("a", 2))
    write(put("b", 3))
    read_changes, token = read_all(Feed(account.pk), Start(is_now=False, since=since), 1)
    assert read_changes == [("u", "a", 1, 2), ("i", "b", None, 3)]
    later = Start(is_now=False, since=timezone.now() + timedelta(days=1))
    read_changes, token = read_all(Feed(account.pk), later, 10)
    assert read_changes == []
    write(put("b", 4))
    assert read_all(Feed(account.pk), token, 10)[0] == [("u", "b", 3, 4)]


def test_a_page_is_limited_in_bytes(account, write, monkeypatch):
    monkeypatch.setattr(statements, "PAGE_BYTES", 10_000)
    for row in range(4):
        write(put(f"{row}", row, size=6000))
    for row in range(4):
        write(put(f"{row}", row + 10, size=6000))
    sizes, token, read_changes = [], OLDEST, []
    while True:
        page, token = feed.read(Feed(account.pk), token, 100)
        sizes.append(len(page.changes))
        read_changes += told(page)
        if not page.has_more:
            break
    assert max(sizes) <= 3
    assert read_changes == [
        *(("i", f"{row}", None, row) for row in range(4)),
        *(("u", f"{row}", row, row + 10) for row in range(4)),
    ]


def test_a_deleted_table_keeps_its_changes(account, people, write):
    write(put("a", 1))
    tables.delete(account, "people")
    assert read_all(Feed(account.pk), OLDEST, 10)[0] == [("i", "a", None, 1)]


def test_a_page_is_on_disk_before_it_is_handed_out(account, write):
    """The session's commits do not wait for the disk."""
    [(mode,)] = sql.fetch("SHOW synchronous_commit")
    assert mode == "off"
    for start in (NOW, OLDEST):
        write(put("a", 1))
        [(written,)] = sql.fetch("SELECT pg_current_wal_insert_lsn()::text")
        feed.read(Feed(account.pk), start)
        assert sql.fetch("SELECT pg_current_wal_flush_lsn() >= %s::pg_lsn", written) == [(True,)]


def test_an_account_without_changes_or_history(account):
    assert read_all(Feed(account.pk), OLDEST, 10)[0] == []
    HistorySegment.objects.filter(account=account).delete()
    for start in (NOW, OLDEST):
        with pytest.raises(NoHistory):
            feed.read(Feed(account.pk), start)


def test_a_reader_who_is_far_behind_reads_up_to_marks(account, people, write, monkeypatch):
    """Each window between two marks is read by itself, also those without changes and over segments."""
    monkeypatch.setattr(feed, "_FAR", 0)
    monkeypatch.setattr(statements, "MARK_EVERY", 1)
    other = tables.create(account, "other")

    def write_and_mark(number):
        write(put("ab"[number % 2], number), table=other if number % 3 == 1 else people)
        feed.keep_mark()

    with transaction() as late:
        write(Insert(entity("late", 100)), on=late)
        for number in range(4):
            write_and_mark(number)
    history.go_on(account.pk)
    for number in range(4, 6):
        write_and_mark(number)
    feed.keep_mark()
    write(put("c", 1))
    assert FeedMark.objects.count() == 6

    numbers = [HistorySegment.objects.filter(account=account, ended_at=None).earliest("number").number - 1]
    numbers.append(numbers[0] + 1)
    everything = sorted(
        seq for number in numbers for [seq] in sql.fetch(f"SELECT seq FROM history_{account.pk}_{number}")
    )
    for top in (1, 3, 100):
        seen, token = [], OLDEST
        while True:
            page, token = feed.read(Feed(account.pk), token, top)
            seen += [it.sequence for it in page.changes]
            if not page.has_more:
                break
        assert sorted(seen) == everything and len(everything) == 8
    feed.tidy(timezone.now())
    assert FeedMark.objects.count() == 6


def test_marks_made_while_the_clock_is_behind_are_kept_with_their_segment(account, write, monkeypatch):
    monkeypatch.setattr(statements, "MARK_EVERY", 1)
    sql.execute("SELECT setval('moment_floor', %s)", to_ticks(timezone.now() + timedelta(minutes=2)))
    try:
        history.go_on(account.pk)
        write(put("a", 1))
        feed.keep_mark()
        HistorySegment.objects.exclude(ended_at=None).update(dropped_at=timezone.now())
        feed.tidy(timezone.now())
        mark = FeedMark.objects.get()
        # a segment that starts later has a later time
        history.prepare_next(account.pk)
        history.go_on(account.pk)
        assert to_ticks(HistorySegment.objects.latest("started_at").started_at) > mark.at
    finally:
        sql.execute("SELECT setval('moment_floor', 1)")  # no transaction takes it back


def test_the_feed_of_a_database_restored_from_a_dump_starts_over(account, write):
    """Changes recorded elsewhere have the transaction numbers of another cluster."""
    write(put("a", 1))
    sql.execute(f"UPDATE history_{account.pk}_1 SET xid = '99999999'")
    HistorySegment.objects.filter(account=account).update(cluster=1)
    with pytest.raises(ServerBusy):
        feed.read(Feed(account.pk), OLDEST)
    for _ in range(2):
        history.begin_in_this_cluster()
        assert HistorySegment.objects.filter(account=account).count() == 2
    read_changes, token = read_all(Feed(account.pk), OLDEST, 10)
    assert read_changes == []
    write(put("a", 2))
    assert read_all(Feed(account.pk), token, 10)[0] == [("u", "a", 1, 2)]
