"""Reading a table as of a moment: the available moments, and the support of every read."""

from datetime import timedelta

import pytest
from django.utils import timezone

from storage.domain.access.actor import SERVER
from storage.domain.entities.changes import Delete, Insert, Update
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.entities.moments import Moment, read_moment
from storage.domain.errors import OutOfRangeInput, TableNotFound
from storage.domain.filters.parser import parse
from storage.domain.filters.query import EntityQuery, Sort
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.domain.values.ticks import to_ticks
from storage.entities import entities
from storage.history import past
from storage.models import Account, HistorySegment, Table
from storage.relations import history
from storage.sql import entities as sql
from storage.sql.django import fetch, run
from storage.sql.relations import relation_name
from storage.tables import tables

KEY = EntityKey("p", "ada")


@pytest.fixture
def write(table):
    """Make a recorded change; return the moment after it."""

    def write(change):
        recorder = history.recorder(table.account, SERVER)
        run(sql.change(relation_name(table.pk), change, recorder))
        return now()

    return write


def now():
    [[ticks]] = fetch("SELECT (extract(epoch FROM clock_timestamp()) * 10000000)::bigint")
    return Moment(ticks)


def entity(number, key=KEY):
    return Entity(key, {"A": EdmValue(Edm.INT32, number)})


def test_every_read_can_be_of_the_past(table, write):
    other = EntityKey("p", "bob")
    write(Insert(entity(1)))
    moment = write(Insert(entity(2, other)))
    write(Update(entity(3), ANY, merge=False))
    write(Delete(other, ANY))
    then = past.find(table, moment)

    def number(stored):
        return stored and stored.content

    query = EntityQuery(filter=parse("A ge 2"))
    assert number(entities.get(table, KEY)) == b'\n,"A":3'
    assert number(entities.get(table, KEY, then)) == b'\n,"A":1'
    assert entities.get(table, EntityKey("p", "eve"), then) is None
    assert [it.key for it in entities.page(table, query, then).entities] == [other]
    assert [it.key for it in entities.preview_page(table, query, then).entities] == [other]
    by_number = entities.sorted_preview_page(table, EntityQuery(), Sort("A", descending=True), past=then)
    assert [it.key for it in by_number.entities] == [other, KEY]
    assert [[it.key for it in page] for page in entities.all_pages(table, EntityQuery(), then)] == [
        [KEY, other]
    ]
    assert [it.key for it in entities.get_many(table, [KEY, other], then)] == [KEY, other]
    assert [[it.key for it in page] for page in entities.get_many_paged(table, [other], then)] == [[other]]
    assert (entities.count(table, EntityQuery()), entities.count(table, EntityQuery(), then)) == (1, 2)
    assert entities.total(table, query, then) == entities.Total(1, is_exact=True)


def test_a_deleted_table_and_its_namesake(table, write):
    moment = write(Insert(entity(1)))
    tables.delete(table.account, table.name, keep=timedelta(days=1))
    between = now()
    new = tables.create(table.account, "People")
    after = now()

    old = past.find_table(table.account, "people", moment)
    assert old == table
    assert entities.get(old, KEY, past.find(old, moment)) is not None
    with pytest.raises(TableNotFound):
        past.find_table(table.account, "people", between)
    assert past.find_table(table.account, "people", after) == new
    for wrong, at in ((old, after), (new, moment)):
        with pytest.raises(TableNotFound):
            past.find(wrong, at)


def refusal(table, moment):
    with pytest.raises(OutOfRangeInput) as error:
        past.find(table, moment)
    return error.value.text


def test_only_what_is_kept(table, write):
    moment = write(Insert(entity(1)))
    started = past.kept_since(table.account)

    assert refusal(table, Moment(moment.ticks + 36_000_000_000)).endswith("is in the future.")
    Table.objects.update(created_at=started - timedelta(days=1))
    table.refresh_from_db()
    earlier = Moment(to_ticks(started) - 10)
    assert refusal(table, earlier) == f"Changes are kept since {started:%Y-%m-%dT%H:%M:%SZ}."
    # a segment that ended long before is not read; without it, less is kept
    history.go_on(table.account_id)
    history.prepare_next(table.account_id)
    assert len(past.find(table, moment).record.segments) == 3
    first = HistorySegment.objects.order_by("number").first()
    first.ended_at = timezone.now() - timedelta(hours=1)
    first.save()
    assert len(past.find(table, now()).record.segments) == 2
    first.dropped_at = timezone.now()
    first.save()
    assert past.kept_since(table.account) > started
    # while the history is off, remaining segments do not cover later changes; turned on again, it starts over
    history.end(table.account)
    assert past.kept_since(table.account) is None
    assert refusal(table, now()) == "The account keeps no history."
    history.start(Account.objects.get())
    assert refusal(table, moment).startswith("Changes are kept since")
    assert past.find(table, now())


@pytest.mark.parametrize("text", ["2026-11-22 09:00", "2026-11-22T09:14:03.5Z", "2026-11-22T09:14:03+01:00"])
def test_a_time_is_written_as_it_is_read(text):
    moment = read_moment(text)
    assert read_moment(str(moment)) == moment


@pytest.mark.parametrize(
    "text", ["", "2026-11-22", "yesterday", "2026-11-22T25:00:00Z", "1600-01-01T00:00:00Z"]
)
def test_invalid_times_are_refused(text):
    assert read_moment(text) is None
