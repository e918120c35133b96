"""Query Entities: the planner's way, and the walk in windows when that takes too long."""

from itertools import groupby, product

import pytest
from django.db import connection

from storage.accounts import accounts
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey, read_members
from storage.domain.errors import OperationTimedOut
from storage.domain.filters.parser import parse
from storage.domain.filters.query import EntityQuery, Page, Position
from storage.domain.values.edm import Edm, EdmValue
from storage.entities import entities as operation
from storage.sql import batch, pages, relations
from storage.sql.django import execute, run
from storage.sql.failures import Canceled
from storage.sql.statement import Lane
from storage.tables import tables

ROWS = 60


@pytest.fixture
def relation(db):
    """Entities in three partitions; Even says whether their number is even, Number what it is."""
    execute(relations.create(1_000_000, 1_000_000))
    name = relations.relation_name(1_000_000)
    for _, numbers in groupby(range(ROWS), lambda number: key(number).partition_key):
        run(batch.apply(name, [Insert(entity(number)) for number in numbers]))
    return name


def entity(number):
    properties = {"Number": EdmValue(Edm.INT32, number), "Even": EdmValue(Edm.BOOLEAN, number % 2 == 0)}
    return Entity(key(number), properties)


def key(number):
    return EntityKey(f"p{number // 25}", f"r{number:03}")


def numbers(page):
    """Return the numbers of the entities of a page."""
    return [read_members(entity)["Number"] for entity in page.entities]


@pytest.fixture
def small(monkeypatch):
    """Return `small(first, smallest)`, which sets windows of that many rows."""

    def small(first, smallest=1):
        monkeypatch.setattr(operation, "_FIRST_WINDOW", first)
        monkeypatch.setattr(operation, "_SMALLEST_WINDOW", smallest)

    return small


class Clock:
    """Every look at it takes so many seconds."""

    def __init__(self, step=0.0):
        self.now = 0.0
        self.step = step

    def __call__(self):
        self.now += self.step
        return self.now


def is_attempt(statement, number):
    """Return whether a statement follows the planner's own plan, which is tried before any window."""
    return number == 0 and not finds_an_end(statement)


def finds_an_end(statement):
    return "OFFSET" in statement.text


class Drive:
    """Runs the steps of a query; those statements that `cancels` wants run into their time limit."""

    def __init__(self, cancels=is_attempt):
        self.cancels = cancels
        self.statements = []

    def __call__(self, relation, entity_query, clock=None):
        steps = operation.query(relation, entity_query, clock or Clock())
        try:
            statement = next(steps)
            while True:
                canceled = self.cancels(statement, len(self.statements))
                self.statements.append(statement)
                statement = steps.throw(Canceled()) if canceled else steps.send(run(statement))
        except StopIteration as stop:
            return stop.value


def never(statement, number):
    return False


# the planner's way


def test_one_statement_is_enough_as_a_rule(relation):
    drive = Drive(never)

    page = drive(relation, EntityQuery(filter=parse("Even eq true"), top=10))

    assert numbers(page) == list(range(0, 20, 2))
    assert page.next == key(20)
    assert len(drive.statements) == 1


def test_no_query_for_an_empty_request(relation):
    drive = Drive(never)

    assert drive(relation, EntityQuery(top=0)) == Page([], None)
    assert drive.statements == []


def test_a_slow_key_range_is_not_walked(relation):
    drive = Drive()

    with pytest.raises(Canceled):
        drive(relation, EntityQuery())

    assert [statement.lane for statement in drive.statements] == [Lane.KEY]


@pytest.mark.parametrize(
    ("text", "walked"), [("Number gt 30", True), ("Number eq 31", False), ("PartitionKey eq 'p1'", False)]
)
def test_a_continued_page_without_an_index_is_walked_at_once(relation, text, walked):
    drive = Drive(never)

    page = drive(relation, EntityQuery(filter=parse(text), start=Position(*key(30)), top=1))

    assert len(page.entities) == 1
    assert finds_an_end(drive.statements[0]) is walked


# the walk

FILTERS = {
    "all": ("Number ge 0", list(range(ROWS))),
    "half": ("Even eq true", list(range(0, ROWS, 2))),
    "one": ("Number eq 41", [41]),
    "none": ("Number lt 0", []),
    "last": (f"Number eq {ROWS - 1}", [ROWS - 1]),
    "in a partition": ("PartitionKey eq 'p1' and Even eq true", list(range(26, 50, 2))),
    "in a range of rows": (
        "PartitionKey eq 'p1' and RowKey gt 'r030' and Even eq true",
        list(range(32, 50, 2)),
    ),
    "in a range of partitions": ("PartitionKey gt 'p0' and Even eq true", list(range(26, ROWS, 2))),
    "in no partition": ("PartitionKey eq 'p9' and Even eq true", []),
    "in an empty range": ("PartitionKey gt 'p1' and PartitionKey lt 'p0' and Even eq true", []),
}


ENDS = [
    *((window, 1000, 0.0) for window in (1, 24, 25, 59, 60, 61, 1000)),
    *((1, 4, 0.3), (7, 1, 0.0), (7, 30, 10.0), (60, 4, 0.3)),
]


def test_the_pages_together_are_the_whole(relation, small):
    """Whatever ends a page: its top, or the time; a page may be empty, but there is an end."""
    for (name, (text, expected)), (window, top, step) in product(FILTERS.items(), ENDS):
        small(window)
        seen_numbers, start = [], None
        for _ in range(2 * ROWS):
            query = EntityQuery(filter=parse(text), top=top, start=start)
            page = Drive()(relation, query, Clock(step))
            assert len(page.entities) <= top
            seen_numbers += numbers(page)
            assert page.next is None or start is None or page.next > start
            start = page.next
            if start is None:
                break
        assert (seen_numbers, start) == (expected, None), (name, window, top, step)


def test_the_walk_stays_between_the_bounds(relation, small):
    for start, end in ((0, 30), (20, 50), (25, 50), (59, 60), (30, 30), (40, 20)):
        bounds = {"start": Position(*key(start)), "end": Position(*key(end))}
        expected = [number for number in range(start, end) if number % 2 == 0]
        for window in (1, 7, 25, 1000):
            small(window)
            page = Drive()(relation, EntityQuery(filter=parse("Even eq true"), **bounds))
            assert (numbers(page), page.next) == (expected, None), (start, end, window)


def test_a_timeout_returns_a_page_even_if_empty(relation, small):
    small(5)

    page = Drive()(relation, EntityQuery(filter=parse("Number eq 41")), Clock(100))

    assert page == ([], key(5))


def test_a_page_ends_with_the_window_in_which_it_is_large_enough(relation, small, monkeypatch):
    small(5)
    monkeypatch.setattr(operation, "PAGE_BYTES", 1)

    page = Drive()(relation, EntityQuery(filter=parse("Even eq true")))

    assert (numbers(page), page.next) == ([0, 2, 4], key(5))


@pytest.mark.parametrize(("first", "step", "statements"), [(2, operation.BUDGET / 4, 7), (1, 0.0, 11)])
def test_windows_grow_while_they_are_quick_and_there_is_time(relation, small, first, step, statements):
    """Read windows of 1, 4 and 16 rows and then all, with two statements each, instead of a hundred and twenty."""
    small(first)
    drive = Drive()

    drive(relation, EntityQuery(filter=parse("Number lt 0")), Clock(step))

    assert 3 <= len(drive.statements) <= statements


@pytest.mark.parametrize(
    ("first", "canceled"),
    [
        pytest.param(64, (0, 2, 4), id="a window takes too long"),
        pytest.param(64, (0, 1, 2), id="its end takes too long"),
        pytest.param(8, (0, 4, 7), id="a later one takes too long"),
    ],
)
def test_a_slow_window_is_reduced(relation, small, first, canceled):
    small(first)
    drive = Drive(lambda statement, number: number in canceled)

    page = drive(relation, EntityQuery(filter=parse("Even eq true")))

    assert (numbers(page), page.next) == (list(range(0, ROWS, 2)), None)


def test_gives_up_when_even_the_smallest_window_takes_too_long(relation, small):
    small(64, smallest=4)
    drive = Drive(lambda statement, number: True)

    with pytest.raises(Canceled):
        drive(relation, EntityQuery(filter=parse("Even eq true")))

    assert len(drive.statements) <= 5


def test_a_page_of_the_walk_holds_what_was_selected(relation, small):
    small(3)

    page = Drive()(relation, EntityQuery(filter=parse("Number gt 57"), select=("Even", "Missing")))

    assert [entity.content for entity in page.entities] == [
        b',"Even":true,"Missing":null',
        b',"Even":false,"Missing":null',
    ]


def test_the_page_size_also_ends_a_walk(relation, small, monkeypatch):
    small(20)
    monkeypatch.setattr(pages, "_SMALL", 0)  # every entity is a large one
    monkeypatch.setattr(operation, "PAGE_BYTES", 100)
    seen_numbers, start = [], None

    for _ in range(ROWS):
        page = Drive()(relation, EntityQuery(filter=parse("Even eq true"), start=start))
        assert len(page.entities) <= 10
        seen_numbers += numbers(page)
        start = page.next
        if start is None:
            break

    assert seen_numbers == list(range(0, ROWS, 2))


def test_a_page_on_the_connection_of_django(db):
    account = accounts.add("pages")
    table = tables.create(account, "people")
    run(batch.apply(relations.relation_name(table.pk), [Insert(entity(number)) for number in range(25)]))
    page = operation.page(table, EntityQuery(filter=parse("Even eq true"), top=10))
    assert numbers(page) == list(range(0, 20, 2))
    assert page.next == Position("p0", "r020")
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("0",)


def test_a_page_that_takes_too_long(db, monkeypatch):
    table = tables.create(accounts.add("pages"), "people")

    def cancel(relation, entity_query, clock, read):
        yield pages.page(relation, entity_query)
        raise Canceled

    monkeypatch.setattr(operation, "query", cancel)
    with pytest.raises(OperationTimedOut):
        operation.page(table, EntityQuery())
