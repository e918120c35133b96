"""Plans of PostgreSQL: by the primary key in order, or by the index of properties; never a scan of all rows."""

from itertools import count

import psycopg
import pytest
from django.conf import settings
from psycopg import sql

from storage.domain.entities.changes import Delete, Update, Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.filters.parser import parse
from storage.domain.filters.query import ABSENT_RANK, EntityQuery, Position, Sort, SortedPosition
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY, Precondition
from storage.sql import entities, pages, previews, relations
from storage.sql.filters import INDEXED_NUMBER, INDEXED_TEXT, INDEXED_TIME
from storage.sql.lanes import SETTINGS
from storage.sql.statement import Lane

pytestmark = pytest.mark.django_db  # for the template of relations

FULL, EMPTY = "entity_2000000", "entity_2000001"
PARTITIONS, ROWS = 20, 500

INDEXED = frozenset({"Number", "Text"})

FILL = f"""
INSERT INTO {FULL} (pk, rk, ts, props, anns, vals)
SELECT 'p' || lpad(p::text, 3, '0'), 'r' || lpad(r::text, 4, '0'), {ROWS} * p + r,
       jsonb_build_object('Number', {ROWS} * p + r, 'Text', 's' || md5(p || ' ' || r), 'Flag', r % 2 = 0),
       '', E'\\n,"Number":' || r || E'\\n,"Text":"' || repeat('x', 200) || '"'
FROM generate_series(0, {PARTITIONS - 1}) AS p, generate_series(0, {ROWS - 1}) AS r
ORDER BY random()
"""


@pytest.fixture(scope="module")
def database(django_db_setup):
    """Open a connection that sees two relations, one with rows and statistics and one without, and roll back at the
    end.
    """
    with psycopg.connect(settings.LANES_CONNINFO) as connection:
        for name in (FULL, EMPTY):
            connection.execute(relations.create(int(name.removeprefix("entity_")), 1))
        connection.execute(FILL)
        for name in INDEXED:
            columns = f"{INDEXED_NUMBER}, {INDEXED_TEXT}".format(name=f"'{name}'")
            connection.execute(f"CREATE INDEX ON {FULL} ({columns})")
        connection.execute(f"CREATE INDEX ON {FULL} ({INDEXED_TIME})")
        connection.execute(f"ANALYZE {FULL}")
        connection.execute("SELECT gin_clean_pending_list(%s::regclass)", [f"{FULL}_props_idx"])
        yield connection
        connection.rollback()


@pytest.fixture
def explain(database):
    """Return `explain(statement)`, which returns the nodes of the plan under the settings of its lane."""
    numbers = count()

    def explain(statement):
        with database.transaction(force_rollback=True):
            database.execute(SETTINGS[statement.lane])
            name = f"plan{next(numbers)}"
            database.execute(f"PREPARE {name} AS {statement.text}".encode())
            literals = sql.SQL(", ").join(map(sql.Literal, statement.parameters))
            call = sql.SQL("EXPLAIN (ANALYZE, TIMING off, FORMAT json) EXECUTE {} ({})")
            (plan,) = database.execute(call.format(sql.Identifier(name), literals)).fetchone()
            database.execute(f"DEALLOCATE {name}")
        return list(nodes(plan[0]["Plan"]))

    return explain


def nodes(plan, *, is_beside=False):
    """Yield the nodes of a plan.

    ``Beside`` marks nodes of a subquery in an expression, such as the one that sorts the lines of a row.
    """
    is_beside = is_beside or plan.get("Parent Relationship") in ("SubPlan", "InitPlan")
    yield {**plan, "Beside": is_beside}
    for child in plan.get("Plans", ()):
        yield from nodes(child, is_beside=is_beside)


def types(plan):
    return {node["Node Type"] for node in plan}


def scans(plan, relation=FULL):
    return [node for node in plan if node.get("Relation Name") == relation and "Scan" in node["Node Type"]]


def assert_walks_the_primary_key(plan, relation):
    assert not types(plan) & {"Seq Scan", "Bitmap Heap Scan"}
    assert not types(node for node in plan if not node["Beside"]) & {"Sort", "Incremental Sort"}
    for scan in scans(plan, relation):
        assert scan["Node Type"] in ("Index Scan", "Index Only Scan")
        assert scan["Index Name"] == f"{relation}_pkey"


POSITION = Position("p005", "r0100")
PAGES = {
    "all": (None, None),
    "a partition": ("PartitionKey eq 'p005'", None),
    "a range of rows": ("PartitionKey eq 'p005' and RowKey ge 'r0100' and RowKey lt 'r0200'", None),
    "one row": ("PartitionKey eq 'p005' and RowKey eq 'r0100'", None),
    "a range of partitions": ("PartitionKey gt 'p003' and PartitionKey le 'p007'", None),
    "a prefix": ("PartitionKey ge 'p00' and PartitionKey lt 'p01'", None),
    "all, continued": (None, POSITION),
    "a partition, continued": ("PartitionKey eq 'p005'", POSITION),
    "a range of rows, continued": ("PartitionKey eq 'p005' and RowKey lt 'r0200'", POSITION),
    "a range of partitions, continued": ("PartitionKey gt 'p003' and PartitionKey le 'p007'", POSITION),
}


def test_a_page_walks_the_primary_key(explain):
    """It reads one row more than it returns, and no other."""
    for select in (None, ("Number", "Missing")):
        for text, start in PAGES.values():
            query = EntityQuery(filter=text and parse(text), start=start, top=20, select=select)

            for relation in (FULL, EMPTY):
                statement = pages.page(relation, query)
                plan = explain(statement)

                assert statement.lane is Lane.KEY
                assert_walks_the_primary_key(plan, relation)
                (scan,) = scans(plan, relation)
                assert scan["Actual Rows"] <= 21
                assert scan.get("Rows Removed by Filter", 0) == 0
                assert "Filter" not in scan


@pytest.mark.parametrize("relation", [FULL, EMPTY])
@pytest.mark.parametrize(("text", "start"), PAGES.values(), ids=PAGES.keys())
def test_a_key_range_is_part_of_the_walk(explain, relation, text, start):
    query = EntityQuery(filter=text and parse(text), start=start, end=Position("p005", "r0130\x01"))

    statement = pages.page(relation, query)
    plan = explain(statement)

    assert statement.lane is Lane.KEY
    assert_walks_the_primary_key(plan, relation)
    assert all(scan.get("Rows Removed by Filter", 0) == 0 for scan in scans(plan, relation))


@pytest.mark.parametrize("relation", [FULL, EMPTY])
@pytest.mark.parametrize("select", [None, ("Number",)])
def test_a_point_read_is_an_index_scan(explain, relation, select):
    statement = pages.point(relation, EntityKey("p005", "r0100"), EntityQuery(select=select))
    plan = explain(statement)

    assert statement.lane is Lane.KEY
    assert_walks_the_primary_key(plan, relation)
    assert [scan["Actual Rows"] for scan in scans(plan, relation)] == [1 if relation == FULL else 0]


def test_many_keys_are_looked_up_one_by_one(explain):
    keys = [EntityKey("p005", "r0100"), EntityKey("p001", "r0001"), EntityKey("p009", "r0300")]
    for statement in (next(pages.get_many(FULL, keys)), next(pages.total_bytes(FULL, keys))):
        plan = explain(statement)

        assert statement.lane is Lane.KEY
        assert_walks_the_primary_key(plan, FULL)
        assert [(scan["Actual Rows"], scan["Actual Loops"]) for scan in scans(plan)] == [(1, 3)]


ENTITY = Entity(EntityKey("p005", "r0100"), {"Number": EdmValue(Edm.INT32, 1)})
CHANGES = [
    Upsert(ENTITY, merge=False),
    Upsert(ENTITY, merge=True),
    *(
        change
        for condition in (ANY, Precondition(0), Precondition(5))
        for change in (
            Update(ENTITY, condition, merge=False),
            Update(ENTITY, condition, merge=True),
            Delete(ENTITY.key, condition),
        )
    ),
]


@pytest.mark.parametrize("relation", [FULL, EMPTY])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{change}"[:60])
def test_a_change_finds_its_row_by_the_primary_key(explain, relation, change):
    assert_walks_the_primary_key(explain(entities.change(relation, change)), relation)


@pytest.mark.parametrize(
    "text",
    [
        "Number eq 7",
        "Text eq '5d41402abc4b2a76b9719d911017c592'",
        "Number eq 7 and Flag eq true",
        "Number eq 7 or Number eq 8",
        "PartitionKey eq 'p000' and Number eq 7",
        "Missing eq 7",
    ],
)
@pytest.mark.parametrize("select", [None, ("Number",)])
def test_an_equality_that_few_fulfil_is_served_by_the_index_of_properties(explain, text, select):
    plan = explain(pages.page(FULL, EntityQuery(filter=parse(text), select=select)))

    assert f"{FULL}_props_idx" in {node.get("Index Name") for node in plan}
    assert "Seq Scan" not in types(plan)


def test_an_equality_that_many_fulfil_walks_in_order_until_the_page_is_full(explain):
    plan = explain(pages.page(FULL, EntityQuery(filter=parse("Flag eq true"), top=10)))

    assert_walks_the_primary_key(plan, FULL)
    (scan,) = scans(plan)
    assert scan["Actual Rows"] == 11


@pytest.mark.parametrize(
    "text",
    [
        "Number ne 5 and Text ne 'x'",
        "Number ne 5L or Flag eq true and Number ne 7",
        " and ".join(f"Number ne {number} and Text ne '{number}'" for number in range(100_000, 100_050)),
    ],
    ids=["two properties", "alternatives", "long lists"],
)
def test_what_differs_from_values_walks_in_order_until_the_page_is_full(explain, text):
    plan = explain(pages.page(FULL, EntityQuery(filter=parse(text), top=10)))

    assert_walks_the_primary_key(plan, FULL)


@pytest.mark.parametrize(("text", "start"), PAGES.values(), ids=PAGES.keys())
def test_the_end_of_a_window_is_found_in_the_primary_key(explain, text, start):
    query = EntityQuery(filter=text and parse(text), start=start)

    plan = explain(pages.window_end(FULL, query, 20))

    assert_walks_the_primary_key(plan, FULL)
    (scan,) = scans(plan)
    assert scan["Actual Rows"] <= 21


@pytest.mark.parametrize("text", ["Number gt 100000", "Text ge 'z'"])
def test_a_window_reads_only_its_own_rows(explain, text):
    query = EntityQuery(filter=parse(text), start=POSITION, end=Position("p005", "r0200"))

    plan = explain(pages.page(FULL, query))

    read = sum(scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0) for scan in scans(plan))
    assert read <= 100
    assert "Seq Scan" not in types(plan)


@pytest.mark.parametrize(
    "text",
    [
        "Number ge 5000 and Number lt 5010",
        "Number gt 9990L or Number gt 9990",
        "Text ge 'abc' and Text lt 'abd'",
        "Number lt 20 and Flag eq true and PartitionKey gt 'p'",
    ],
)
def test_a_range_that_few_fulfil_is_served_by_the_index_of_its_property(explain, text):
    query = EntityQuery(filter=parse(text), indexed=INDEXED)

    plan = explain(pages.page(FULL, query))

    read = sum(scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0) for scan in scans(plan))
    assert read <= 40
    assert "Seq Scan" not in types(plan)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("name", ["Number", "Text", "Timestamp"])
def test_an_order_is_that_of_the_index_of_its_property(explain, name, descending):
    query, sort = EntityQuery(top=20, indexed=INDEXED | {"Timestamp"}), Sort(name, descending=descending)
    starts = (
        [None, SortedPosition(3, "5000", "", "p010", "r0000")]
        if name == "Timestamp"
        else [
            None,
            SortedPosition(1, "5000", "", "p010", "r0000"),
            SortedPosition(2, "0", "sabc", "p010", "r0000"),
            SortedPosition(ABSENT_RANK, "0", "", "p010", "r0000"),
        ]
    )
    for start in starts:
        plan = explain(previews.sorted_page(FULL, query, sort, start))

        read = sum(scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0) for scan in scans(plan))
        assert read <= 60, start
