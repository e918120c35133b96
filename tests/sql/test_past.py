"""Reads of the past: each returns the result that the same read had at that moment."""

import json

from django.db import transaction
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from storage.domain.entities.changes import Delete, Insert, Update, Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.entities.moments import Moment
from storage.domain.errors import ChangeSetError, ResourceNotFound, StorageError
from storage.domain.filters.parser import parse
from storage.domain.filters.query import EntityQuery, Position, Sort
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.entities.entities import query as query_entities
from storage.sql import batch, counts, entities, history, pages, previews
from storage.sql.django import execute, fetch, run, run_in_lane, walk
from storage.sql.history import Recorder
from storage.sql.past import Past, as_of
from storage.sql.record import Record, segment_name
from tests import strategies
from tests.examples import of_usual
from tests.sql.conftest import ACCOUNT_ID, TABLE_ID

LONG = EntityKey("a", "字" * 1000)  # longer than an index entry has room for

keys = st.builds(EntityKey, st.sampled_from("ab"), st.sampled_from("12")) | st.just(LONG)
properties = st.dictionaries(
    st.sampled_from("AB"), st.builds(EdmValue, st.just(Edm.INT32), st.integers(0, 3)) | strategies.values
)
writes = st.one_of(
    st.tuples(st.just("insert"), keys, properties),
    st.tuples(st.just("replace"), keys, properties),
    st.tuples(st.just("merge"), keys, properties),
    st.tuples(st.just("upsert"), keys, properties),
    st.tuples(st.just("upsert merge"), keys, properties),
    st.tuples(st.just("delete"), keys, st.none()),
    st.tuples(st.just("change set"), keys, properties),
    st.tuples(st.just("start a segment"), st.none(), st.none()),
)


def standing_clock():
    return 0.0


# each reads something of a relation, given how to run a statement
READS = {
    "all": lambda relation, run: walk(query_entities(relation, EntityQuery(), standing_clock), run),
    "pages": lambda relation, run: list(in_pages(relation, run)),
    "filtered": lambda relation, run: walk(
        query_entities(relation, EntityQuery(filter=parse("A ge 1 or B eq 2")), standing_clock), run
    ),
    "of a partition": lambda relation, run: walk(
        query_entities(
            relation, EntityQuery(filter=parse("PartitionKey eq 'a' and RowKey gt '1'")), standing_clock
        ),
        run,
    ),
    "selected": lambda relation, run: walk(
        query_entities(relation, EntityQuery(select=("A",)), standing_clock), run
    ),
    "previews": lambda relation, run: run(previews.page(relation, EntityQuery(filter=parse("A ne 1")))),
    "sorted": lambda relation, run: run(
        previews.sorted_page(relation, EntityQuery(top=3), Sort("A", descending=True), None)
    ),
    "count": lambda relation, run: run(counts.count(relation, EntityQuery(filter=parse("not (A lt 2)")))),
    "names": lambda relation, run: sorted(run(counts.names(relation, EntityQuery()))),
    "measured": lambda relation, run: run(pages.measured_page(relation, EntityQuery(), 20)),
    "window": lambda relation, run: run(pages.window_end(relation, EntityQuery(), 2)),
    "by keys": lambda relation, run: walk(
        pages.get_many(relation, [EntityKey("a", "1"), EntityKey("b", "2")]), run
    ),
    "entity": lambda relation, run: get(relation, run, EntityKey("a", "2")),
}


def in_pages(relation, run):
    start = None
    while True:
        page = run(pages.page(relation, EntityQuery(top=2, start=start)))
        yield page.entities
        if page.next is None:
            return
        start = Position(*page.next)


def get(relation, run, key):
    try:
        return run(pages.point(relation, key, EntityQuery()))
    except ResourceNotFound:
        return None


def change(write, key, properties):
    match write:
        case "insert":
            return Insert(Entity(key, properties))
        case "replace" | "merge":
            return Update(Entity(key, properties), ANY, merge=write == "merge")
        case "delete":
            return Delete(key, ANY)
        case _:
            return Upsert(Entity(key, properties), merge=write == "upsert merge")


def now():
    [[ticks]] = fetch("SELECT (extract(epoch FROM clock_timestamp()) * 10000000)::bigint")
    return ticks


class Journal:
    """A table with recorded changes, and the results of reads at noted ``moments``."""

    def __init__(self, relation):
        self.relation = relation
        self.segments = []
        self.moments = []
        self.start_segment()

    def start_segment(self):
        number = len(self.segments) + 1
        if number > 2:  # readers see no difference
            execute(history.pack(ACCOUNT_ID, number - 2))
        execute(history.create(ACCOUNT_ID, number))
        execute(history.write_to(ACCOUNT_ID, number))
        self.segments.append(segment_name(ACCOUNT_ID, number))

    def write(self, kind, key, properties):
        """Make a change if it is possible."""
        if kind == "start a segment":
            self.start_segment()
            return
        recorder = Recorder(history.writers_name(ACCOUNT_ID), 1, "7f3a19c0-0000-4000-8000-000000000001")
        operation = change(kind, key, properties)
        try:
            with transaction.atomic():
                if kind == "change set":
                    run(batch.apply(self.relation, [operation], recorder))
                else:
                    run(entities.change(self.relation, operation, recorder))
        except (StorageError, ChangeSetError):
            return

    def note(self, what):
        """Remember what a read finds now. Every change counts as a transaction, numbered as the change is."""
        for segment in self.segments:
            for relation in fetch(
                "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname IN (%s, %s)",
                segment,
                f"{segment}_rows",
            ):
                execute(f"UPDATE {relation[0]} SET xid = seq::text::xid8")
        [[seq]] = fetch("SELECT nextval('history_seq')")
        self.moments.append((now(), f"{seq}:{seq}:", what, READS[what](self.relation, run)))

    def read_past(self, what, moment):
        past = Past(TABLE_ID, self.relation, Record(tuple(self.segments)), moment)
        return READS[what](self.relation, lambda statement: run(as_of(statement, past)))


@example([(("upsert", LONG, {}), "all"), (("delete", LONG, None), "all"), (("insert", LONG, {}), "all")])
@settings(
    max_examples=of_usual(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(writes, st.sampled_from(list(READS))), max_size=20))
def test_any_history(relation, several):
    with transaction.atomic():
        journal = Journal(relation)
        beginning = now()
        journal.note("all")
        for write, read in several:
            journal.write(*write)
            journal.note(read)

        for ticks, snapshot, read, expected in journal.moments:
            assert journal.read_past(read, Moment(ticks)) == expected
            assert journal.read_past(read, Moment(beginning, snapshot)) == expected
        transaction.set_rollback(True)


def test_a_page_reads_what_it_returns(relation):
    """Each entity was changed in each segment, and one of ten is gone since."""
    rows, top, segments = 3000, 20, 4
    execute(
        f"INSERT INTO {relation} SELECT 'p', lpad(n::text, 5, '0'), 1, '{{}}', '', ''"
        f" FROM generate_series(1, {rows}) AS n"
    )
    names = []
    for number in range(1, segments + 1):
        execute(history.create(ACCOUNT_ID, number))
        names.append(segment_name(ACCOUNT_ID, number))
        execute(
            f"""INSERT INTO {names[-1]} (tbl, op, ts, was, actor, request, pk, rk, anns, vals)
            SELECT {TABLE_ID}, CASE WHEN {number} = {segments} AND rk::int % 10 = 0 THEN 'd' ELSE 'u' END, ts + 1, ts,
                1, gen_random_uuid(), pk, rk, '', '' FROM {relation}"""
        )
        execute(f"UPDATE {relation} SET ts = ts + 1")
    execute(f"DELETE FROM {relation} WHERE rk::int % 10 = 0")
    execute(history.pack(ACCOUNT_ID, 1))
    past = Past(TABLE_ID, relation, Record(tuple(names)), Moment(1))

    page = pages.page(relation, EntityQuery(top=top, start=Position("p", "01000")))
    outcome = run_in_lane(as_of(page, past))
    assert [it.key.row_key for it in outcome.entities] == [f"{1000 + n:05}" for n in range(top)]
    assert {it.timestamp for it in outcome.entities} == {1}

    explained = as_of(page, past)
    explained.text = f"EXPLAIN (ANALYZE, FORMAT json) {explained.text}"
    explained.read = lambda result: json.loads(result.get_value(0, 0))
    [plan] = run_in_lane(explained)
    scans = [node for node in nodes(plan["Plan"]) if "Relation Name" in node]
    assert len(scans) > segments
    for scan in scans:
        read = scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0)
        assert read * scan["Actual Loops"] <= top + segments, scan


def nodes(root):
    yield root
    for child in root.get("Plans", ()):
        yield from nodes(child)
