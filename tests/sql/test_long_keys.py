"""Entities with keys that do not fit into an index entry: stored, found and ordered like all others."""

import asyncio
import random
from dataclasses import replace
from itertools import product

import pytest
from django.conf import settings as django_settings
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.domain.entities.changes import Delete, Insert, Update, Upsert
from storage.domain.entities.entity import Entity, EntityKey, read_stored
from storage.domain.errors import ChangeSetError, EntityAlreadyExists, KeyValueTooLarge, TableNotFound
from storage.domain.filters.parser import parse
from storage.domain.filters.query import EntityQuery, Position
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY, Precondition
from storage.runtime.threads import in_thread
from storage.sql import background, batch, entities, estimates, pages, relations
from storage.sql.django import execute, fetch, run, run_in_lane, walk
from storage.sql.estimates import ScanKind
from storage.sql.lanes import Lanes
from tests.examples import of_usual
from tests.sql.conftest import ACCOUNT_ID, TABLE_ID


def incompressible(alphabet, length):
    return "".join(random.Random(alphabet + str(length)).choices(alphabet, k=length))


ASCII = "".join(chr(code) for code in range(0x30, 0x7B) if chr(code) not in "?\\")
CJK = "".join(chr(code) for code in range(0x4E00, 0x9FA0))
ASTRAL = "".join(chr(code) for code in range(0x20000, 0x2A000))
WIDE = incompressible(CJK, 1000)

PAIRS = {
    "1024 and 1024 ASCII": EntityKey(incompressible(ASCII, 1024), incompressible(ASCII, 1023)),
    "512 and 384 CJK": EntityKey(incompressible(CJK, 512), incompressible(CJK, 384)),
    "896 CJK": EntityKey(incompressible(CJK, 896), ""),
    "0 and 896 CJK": EntityKey("", incompressible(CJK, 896)),
    "555 CJK and 1020 ASCII": EntityKey(incompressible(CJK, 555), incompressible(ASCII, 1020)),
    "compressible": EntityKey("名" * 1024, "前" * 1024),
    "512 and 512 CJK": EntityKey(incompressible(CJK, 512), incompressible(CJK, 511)),
    "1024 and 1024 CJK": EntityKey(incompressible(CJK, 1024), incompressible(CJK, 1023)),
    "512 and 512 astral": EntityKey(incompressible(ASTRAL, 512), incompressible(ASTRAL, 511)),
}
LONG = PAIRS["1024 and 1024 CJK"]


def entity(key, number=0):
    return Entity(key, {"A": EdmValue(Edm.INT32, number)})


@pytest.fixture
def apply(relation):
    """Return `apply(change)`, which returns the new Timestamp; a refusal leaves the test's transaction usable."""

    def apply(change):
        with transaction.atomic():
            return run_in_lane(entities.change(relation, change))

    return apply


@pytest.fixture
def apply_all(relation):
    def apply_all(*changes):
        with transaction.atomic():
            return run_in_lane(batch.apply(relation, changes))

    return apply_all


@pytest.fixture
def content(relation):
    """Return `content()`, which returns the number of each entity by its key, in the order of a walk in pages of
    ``top``.
    """

    def content(top=1000, text=None):
        query = EntityQuery(top=top, filter=parse(text) if text else None)
        numbers_by_key, start = {}, None
        while True:
            page = run_in_lane(pages.page(relation, replace(query, start=start)))
            numbers_by_key |= numbers(page.entities)
            if page.next is None:
                return numbers_by_key
            start = page.next

    return content


def numbers(stored):
    return {it.key: read_stored(it).properties["A"].value for it in stored}


def value(row):
    return read_stored(row).properties["A"].value


def test_every_pair_of_keys_is_stored_and_found(apply, relation, content):
    for (name, key), merge in product(PAIRS.items(), (None, False, True)):
        written = apply(Insert(entity(key, 1)) if merge is None else Upsert(entity(key, 1), merge))
        other = EntityKey(key.partition_key, key.row_key + "z")
        apply(Insert(entity(other, 2)))

        result = run_in_lane(pages.point(relation, key, EntityQuery()))
        assert (result.key, result.timestamp, value(result)) == (key, written, 1), (name, merge)
        assert content() == {key: 1, other: 2}, (name, merge)
        assert list(walk(pages.get_many(relation, [key, other], lock=True), run_in_lane)) == [key, other]
        for one in (key, other):
            apply(Delete(one, ANY))


BASES = [
    "",
    "p",
    WIDE[:300],
    WIDE[:866],
    WIDE,
    WIDE + "a",
    WIDE + "\U00020000",
    WIDE[:-1] + "\u4e00",
    "\U00020000" * 512,
]
KEYS = st.builds(EntityKey, st.sampled_from(BASES), st.sampled_from(BASES))


@given(
    st.lists(KEYS, max_size=12, unique=True),
    st.integers(1, 4),
    st.tuples(
        st.sampled_from(["ge", "gt", "lt", "le", "eq"]),
        st.sampled_from(["PartitionKey", "RowKey"]),
        st.sampled_from(BASES),
    ),
    st.none() | KEYS,
)
@settings(
    max_examples=of_usual(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_long_and_short_keys_are_read_in_one_order(relation, apply, content, stored, top, condition, start):
    """Their writes are in tests/entities/test_write_law.py."""
    execute(f"DELETE FROM {relation}")
    for number, key in enumerate(stored):
        apply(Insert(entity(key, number)))
    ordered = {key: stored.index(key) for key in sorted(stored)}

    assert list(content(top).items()) == list(ordered.items())
    operator, name, bound = condition
    part = 0 if name == "PartitionKey" else 1
    tests = {"ge": str.__ge__, "gt": str.__gt__, "lt": str.__lt__, "le": str.__le__, "eq": str.__eq__}
    matches = {key: number for key, number in ordered.items() if tests[operator](key[part], bound)}
    assert list(content(top, f"{name} {operator} '{bound}'").items()) == list(matches.items())
    assert set(walk(pages.get_many(relation, [*stored, LONG]), run_in_lane)) == set(stored)
    if start is not None:
        page = run_in_lane(pages.page(relation, EntityQuery(start=Position(*start), filter=parse("A ge 0"))))
        assert list(numbers(page.entities).items()) == [it for it in ordered.items() if it[0] >= start]


def test_a_row_that_fitted_because_it_compresses_stays_one_row(apply, apply_all, relation, content):
    """Servers before 1.0 wrote it into the relation of all other rows."""
    key = PAIRS["compressible"]
    insert = f"INSERT INTO {relation} SELECT %s, %s, 5, '{{\"A\": 1}}', '', E'\\n,\"A\":1'"
    execute(insert, *key)

    with pytest.raises(EntityAlreadyExists):
        apply(Insert(entity(key, 2)))
    with pytest.raises(ChangeSetError):
        apply_all(Insert(entity(key, 2)))
    apply(Update(entity(key, 3), Precondition(5), merge=True))
    assert content() == {key: 3}
    apply(Upsert(entity(key, 4), merge=True))
    assert content() == {key: 4}
    assert fetch(f"SELECT count(*) FROM ONLY {relation}") == [(0,)]
    apply(Delete(key, ANY))
    execute(insert, *key)
    apply(Upsert(entity(key, 5), merge=False))
    assert content() == {key: 5}


def test_a_relation_that_can_have_no_child_refuses_long_keys(apply, apply_all, relation):
    """A distributed relation is one."""
    execute("CREATE TABLE whole (LIKE entity_template) PARTITION BY HASH (pk)")
    execute(f"ALTER TABLE whole ATTACH PARTITION {relation} FOR VALUES WITH (MODULUS 1, REMAINDER 0)")

    with pytest.raises(KeyValueTooLarge):
        apply(Insert(entity(LONG)))
    with pytest.raises(ChangeSetError) as failure:
        apply_all(
            Insert(entity(EntityKey(WIDE[:500], "r"))),
            Upsert(entity(EntityKey(WIDE[:500], WIDE)), merge=True),
        )
    assert (failure.value.index, type(failure.value.error)) == (1, KeyValueTooLarge)
    apply(Insert(entity(EntityKey("p", "r"))))


def test_a_deleted_table_keeps_its_long_keys_until_it_is_dropped(apply, relation, content):
    apply(Insert(entity(LONG, 1)))
    apply(Insert(entity(EntityKey("p", "r"), 2)))
    before = content()

    execute(relations.soft_delete(TABLE_ID))
    for statement in (
        entities.change(relation, Insert(entity(LONG))),
        pages.point(relation, LONG, EntityQuery()),
    ):
        with pytest.raises(TableNotFound), transaction.atomic():
            run(statement)
    execute(relations.create(TABLE_ID, ACCOUNT_ID))
    assert content() == {}
    apply(Insert(entity(LONG, 3)))
    execute(f"DROP TABLE {relation}_long, {relation}")
    execute(relations.restore(TABLE_ID, ACCOUNT_ID))
    assert content() == before
    apply(Upsert(entity(LONG, 4), merge=True))
    assert content()[LONG] == 4

    execute(relations.soft_delete(TABLE_ID))
    execute(relations.drop([TABLE_ID]))
    assert fetch("SELECT relname FROM pg_class WHERE relname LIKE %s", f"%{relation}%") == []


def test_statistics_count_long_keys(apply, relation):
    apply(Insert(entity(EntityKey("p", "r"))))
    before, parts = background.sizes_of([TABLE_ID])[TABLE_ID], background.disk_usage(TABLE_ID)
    for number in range(20):
        apply(Insert(entity(EntityKey(incompressible(CJK, 900 + number), ""), number)))
    execute(f"ANALYZE {relation}")

    size, usage = background.sizes_of([TABLE_ID])[TABLE_ID], background.disk_usage(TABLE_ID)
    assert size.capacity >= before.capacity + 20 * 2700
    assert usage.entities >= parts.entities + 20 * 2700
    assert usage.key_index > parts.key_index
    assert usage.property_index > parts.property_index
    assert background.partitions_of([TABLE_ID]).keys() <= {TABLE_ID}
    plan = run_in_lane(estimates.plan(relation, EntityQuery(filter=parse("PartitionKey eq 'p'"))))
    assert plan.scan_kind is ScanKind.KEYS


async def test_another_process_reads_the_first_long_key_at_once(transactional_db):
    """Its statements were prepared before there was one."""
    await in_thread(execute, relations.create(TABLE_ID, ACCOUNT_ID))
    relation = relations.relation_name(TABLE_ID)
    reader, *writers = [Lanes(django_settings.LANES_CONNINFO) for _ in range(3)]
    for lanes in (reader, *writers):
        await lanes.open()
    try:
        key = EntityKey(LONG.partition_key, "r")
        await reader.run(entities.change(relation, Insert(entity(key))))
        await asyncio.gather(*[reader.run(pages.point(relation, key, EntityQuery())) for _ in range(20)])
        await reader.run(pages.page(relation, EntityQuery()))

        # the first ones of two processes at a time
        changes = [
            Insert(entity(EntityKey(LONG.partition_key, WIDE + str(number % 4)))) for number in range(16)
        ]
        outcomes = await asyncio.gather(
            *[lanes.run(entities.change(relation, change)) for lanes in writers for change in changes],
            return_exceptions=True,
        )

        results = [stored.key for stored in (await reader.run(pages.page(relation, EntityQuery()))).entities]
        assert results == [key, *[EntityKey(LONG.partition_key, WIDE + str(number)) for number in range(4)]]
        assert sum(isinstance(it, int) for it in outcomes) == 4
        assert {type(it) for it in outcomes} == {int, EntityAlreadyExists}
        points = [reader.run(pages.point(relation, key, EntityQuery())) for key in results]
        assert [it.key for it in await asyncio.gather(*points)] == results
    finally:
        for lanes in (reader, *writers):
            lanes.close()
        await in_thread(execute, relations.soft_delete(TABLE_ID) + ";" + relations.drop([TABLE_ID]))
