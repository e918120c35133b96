"""Tables are compared in PostgreSQL as a model in Python compares them."""

from contextlib import suppress

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.domain.entities.changes import Delete, Upsert
from storage.domain.entities.differences import DifferenceKind
from storage.domain.entities.entity import Entity, EntityKey, StoredEntity, read_stored
from storage.domain.entities.moments import Moment
from storage.domain.errors import ChangeSetError, ResourceNotFound
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.domain.values.kinds import AccountKind
from storage.editing.comparison import kind_of
from storage.sql import batch, comparing, entities, history, relations
from storage.sql.comparing import Changed, Counts, Pair
from storage.sql.django import execute, fetch, run
from storage.sql.history import Recorder
from storage.sql.past import Past
from storage.sql.record import Record, segment_name
from storage.sql.statement import Lane, Statement
from tests import strategies
from tests.examples import of_usual
from tests.sql.conftest import ACCOUNT_ID, TABLE_ID

OTHER_ID = TABLE_ID + 1
KEYS = [
    EntityKey("", ""),
    EntityKey("p", "1"),
    EntityKey("p", "2"),
    EntityKey("q", "字"),
    EntityKey("p" * 2000, "x" * 700),
    EntityKey("z" * 2000, "😀" * 200),
]
VALUES = (
    st.sampled_from(
        [
            EdmValue(Edm.INT32, 41),
            EdmValue(Edm.INT64, 41),
            EdmValue(Edm.DOUBLE, 41.0),
            EdmValue(Edm.STRING, "41"),
            EdmValue(Edm.STRING, "41.0"),
            EdmValue(Edm.STRING, '4"1'),
            EdmValue(Edm.DOUBLE, 0.0),
            EdmValue(Edm.DOUBLE, -0.0),
            EdmValue(Edm.DATETIME, 15_000_000),
            EdmValue(Edm.DATETIME, 10_000_000),
            EdmValue(Edm.STRING, "1970-01-01T00:00:01Z"),
            EdmValue(Edm.STRING, "1970-01-01T00:00:01.5Z"),
            EdmValue(Edm.STRING, "1970-01-01T00:00:01.50Z"),
        ]
    )
    | strategies.values
)
PROPERTIES = st.lists(st.tuples(st.sampled_from(["A", "AB", "字"]), VALUES), max_size=4).map(dict)
SIDES = st.lists(
    st.tuples(st.sampled_from(KEYS), PROPERTIES, PROPERTIES, st.sampled_from("lrb=~")), max_size=8
)


@pytest.fixture
def other(relation):
    execute(relations.create(OTHER_ID, ACCOUNT_ID))
    return relations.relation_name(OTHER_ID)


def fill(relation, content, kind=AccountKind.STORAGE):
    for key, properties in content.items():
        run(entities.change(relation, Upsert(Entity(key, properties, kind), merge=False)))


def sides_of(drawn):
    """Return two tables of entities that only one side has, that differ, or that are equal except for their order."""
    left, right = {}, {}
    for key, one, two, how in drawn:
        if how in "lb=~":
            left[key] = one
        if how in "rb=~":
            right[key] = {"b": two, "=": one, "~": dict(reversed(one.items()))}.get(how, two)
    return left, right


def merged(statement):
    execute(comparing.PAGE_SETTINGS)
    return run(statement)


def pages(pair, kinds, top):
    differences, after = [], None
    while page := merged(comparing.page(pair, kinds, after=after, top=top)):
        differences += page
        after = page[-1].key
    return differences


def images(pair, kinds, **how):
    """Return the changes that make the left side equal to the right: the expected Timestamp and the new row, by key."""
    outcome = comparing.images(pair, kinds, to_left=True, **how)
    statement = Statement(outcome.text, outcome.parameters, Lane.FILTER, lambda result: result)
    result = run(statement)
    rows = [[result.get_value(row, column) for column in range(4)] for row in range(result.ntuples)]
    return {EntityKey(row[0].decode(), row[1].decode()): row[2:] for row in rows}


def written(properties):
    return Entity(EntityKey("", ""), properties).fragments.content


@given(SIDES, st.sampled_from(AccountKind), st.sets(st.sampled_from(DifferenceKind)), st.integers(1, 3))
@settings(max_examples=of_usual(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_compares_as_the_model_does(relation, other, drawn, kind, kinds, top):
    left, right = sides_of(drawn)
    expected = {}
    for key in sorted({*left, *right}, key=lambda key: tuple(part.encode() for part in key)):
        expected[key] = kind_of(left.get(key), right.get(key))
    with transaction.atomic():
        execute(f"DELETE FROM {relation}; DELETE FROM {other}")
        fill(relation, left)
        fill(other, right, kind)
        pair = Pair(relation, other if kind is AccountKind.STORAGE else comparing.with_short_times(other))

        counts = run(comparing.count(pair))
        result = pages(pair, kinds, top)
        changes = images(pair, kinds)

    values = list(expected.values())
    assert counts == Counts(*(values.count(it) for it in (*DifferenceKind, None)))
    assert [(it.key, it.kind) for it in result] == [(k, v) for k, v in expected.items() if v in kinds]
    assert sorted(changes) == sorted(it.key for it in result)
    for it in result:
        assert changes[it.key] == [
            *([None] if it.left is None else [b"%d" % it.left.timestamp]),
            None if it.right is None else it.right.content.encode(),
        ]
        for image, side in ((it.left, left), (it.right, right)):
            assert (image is None) is (it.key not in side)
            if image is not None:
                stored = read_stored(it.stored(image))
                # an upsert has sorted them
                assert sorted(written(stored.properties).split("\n")) == sorted(
                    written(side[it.key]).split("\n")
                )


WRITES = st.lists(st.tuples(st.sampled_from(KEYS), st.none() | PROPERTIES), max_size=5)


def write_all(relation, writes, recorder):
    """Upsert entities, or delete those without properties."""
    for key, properties in writes:
        change = Delete(key, ANY) if properties is None else Upsert(Entity(key, properties), merge=False)
        with suppress(ChangeSetError, ResourceNotFound), transaction.atomic():
            run(batch.apply(relation, [change], recorder))


def state(relation):
    rows = fetch(f"SELECT pk, rk, anns, vals FROM {relation} ORDER BY pk, rk")
    return {
        EntityKey(pk, rk): read_stored(
            StoredEntity(b'"PartitionKey":"","RowKey":""', b"0", (anns + vals).encode())
        )
        for pk, rk, anns, vals in rows
    }


@given(WRITES, WRITES, WRITES)
@settings(max_examples=of_usual(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_table_at_two_moments(relation, first, second, third):
    """The differences are those of the states, whether only changed rows are read or all of both."""
    with suppress(Undone), transaction.atomic():
        execute(f"DELETE FROM {relation}; {history.create(ACCOUNT_ID, 1)};{history.write_to(ACCOUNT_ID, 1)}")
        segment = segment_name(ACCOUNT_ID, 1)
        recorder = Recorder(history.writers_name(ACCOUNT_ID), 7, "7f3a19c0-0000-4000-8000-000000000001")
        states, moments = [], []
        for writes in (first, second, third):
            write_all(relation, writes, recorder)
            states.append(state(relation))
            moments.append(
                Moment(fetch(f"SELECT coalesce(max(ts), 0) FROM {segment_name(ACCOUNT_ID, 1)}")[0][0])
            )
        pasts = [Past(TABLE_ID, relation, Record((segment,)), moment) for moment in moments]
        for earlier, later in ((0, 1), (0, 2), (1, 2)):
            expected = {}
            for key in sorted(
                {*states[earlier], *states[later]}, key=lambda key: tuple(part.encode() for part in key)
            ):
                sides = [states[it][key].properties if key in states[it] else None for it in (later, earlier)]
                if (kind := kind_of(*sides)) is not None:
                    expected[key] = kind
            is_now = later == 2
            changed = Changed(pasts[earlier], None if is_now else moments[later])
            pair = Pair(comparing.LATER, comparing.EARLIER, changed=changed)
            assert {it.key: it.kind for it in pages(pair, list(DifferenceKind), 2)} == expected
            assert run(comparing.count(pair)).differing == len(expected)
            assert set(images(pair, list(DifferenceKind))) == set(expected)
            selected = [key for key in expected if key != KEYS[1]]
            assert set(images(pair, list(DifferenceKind), keys=selected)) == set(selected)
            if is_now:
                execute(f"CREATE TEMPORARY TABLE now ON COMMIT DROP AS SELECT * FROM {relation}")
                pair = Pair("now", relation, pasts=(pasts[earlier],))
                assert {it.key: it.kind for it in pages(pair, list(DifferenceKind), 2)} == expected
                assert run(comparing.count(pair)).differing == len(expected)
                assert set(images(pair, list(DifferenceKind), keys=selected)) == set(selected)
                execute("DROP TABLE now")
        raise Undone


class Undone(Exception):
    """Rolls back what an example has made."""


def test_timestamps_count_if_asked_for(relation, other):
    same = {KEYS[1]: {"A": EdmValue(Edm.INT32, 1)}}
    fill(relation, same)
    fill(other, same)
    execute(f"UPDATE {relation} SET ts = 1; UPDATE {other} SET ts = 2")

    assert run(comparing.count(Pair(relation, other))) == Counts(identical=1)
    timed = Pair(relation, other, with_timestamps=True)
    assert run(comparing.count(timed)) == Counts(changed=1)
    (difference,) = pages(timed, list(DifferenceKind), 2)
    assert (difference.left.timestamp, difference.right.timestamp) == (1, 2)


def test_a_table_against_none_and_a_selection_of_keys(relation):
    fill(relation, {key: {} for key in KEYS})
    pair = Pair(right=relation)

    assert run(comparing.count(pair)) == Counts(only_right=len(KEYS))
    selected = [KEYS[4], KEYS[1], EntityKey("p", "none")]
    assert set(images(pair, list(DifferenceKind), keys=selected)) == {KEYS[1], KEYS[4]}


def test_a_page_is_limited_in_bytes(relation):
    large = {f"P{n}": EdmValue(Edm.STRING, "x" * 32_000) for n in range(15)}
    fill(relation, {EntityKey("p", str(n)): large for n in range(12)})

    first = merged(comparing.page(Pair(relation), list(DifferenceKind), top=100))

    assert 1 < len(first) < 12
    assert len(pages(Pair(relation), list(DifferenceKind), 100)) == 12


def test_a_page_reads_no_more_than_it_needs(relation, other):
    columns = "'{}', '', E'\\n,\"A\":' || n"
    for name, divisor in ((relation, 1), (other, 10)):
        execute(
            f"INSERT INTO {name} SELECT 'p', lpad(n::text, 9, '0'), n, {columns} || n / {divisor}"
            " FROM generate_series(1, 5000) AS n"
        )
        execute(f"ANALYZE {name}")
    fill(relation, {KEYS[4]: {}})  # makes room for long keys, which no index has in order
    statement = comparing.page(
        Pair(relation, other), list(DifferenceKind), after=EntityKey("p", "000001000"), top=50
    )

    execute(comparing.PAGE_SETTINGS)
    execute(f"PREPARE compared AS {statement.text}")
    plan = fetch(
        "EXPLAIN (ANALYZE, BUFFERS OFF, TIMING OFF, FORMAT JSON) EXECUTE compared ('p', '000001000', '{}')"
    )
    execute("DEALLOCATE compared")
    assert _most_rows(plan[0][0][0]["Plan"]) < 300


def _most_rows(node):
    return max([node["Actual Rows"], *(_most_rows(it) for it in node.get("Plans", ()))])
