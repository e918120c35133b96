"""Every statement on entities, on PostgreSQL through Django's connection."""

import itertools
import json
import math
import random
from dataclasses import replace
from itertools import count

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.domain.entities.changes import Delete, Insert, Update, Upsert
from storage.domain.entities.entity import (
    PROPERTY_LIMIT,
    Entity,
    EntityKey,
    entity_size,
    write_fragments,
    write_members,
)
from storage.domain.filters.parser import parse
from storage.domain.filters.query import PAGE_BYTES, EntityQuery, Position
from storage.domain.values import edm
from storage.domain.values.edm import Edm, EdmValue, read
from storage.domain.values.etag import ANY, Precondition
from storage.domain.values.kinds import AccountKind
from storage.entities.entities import query as query_entities
from storage.sql import batch, entities, pages, relations
from storage.sql.django import execute, run, walk
from storage.sql.statement import Lane, Statement
from tests.examples import of_usual
from tests.sql.conftest import ACCOUNT_ID, TABLE_ID
from tests.strategies import keys, names, properties

SIZE_LIMIT = AccountKind.STORAGE.entity_size_limit

KEY = EntityKey("p", "r")

examples = settings(
    max_examples=of_usual(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def apply(relation):
    """Return `apply(change)`, which returns the new Timestamp; a refusal leaves the test's transaction usable."""

    def apply(change):
        with transaction.atomic():
            return run(entities.change(relation, change))

    return apply


@pytest.fixture
def insert(apply):
    """Return `insert(A=value)`, which inserts an entity under KEY, or another key, and returns the new Timestamp."""

    def insert(key=KEY, /, **values):
        return apply(Insert(Entity(key, values)))

    return insert


@pytest.fixture
def get(relation):
    def get(key=KEY, **query):
        return run(pages.point(relation, key, EntityQuery(**query)))

    return get


@pytest.fixture
def stored(get):
    """Return `stored()`, which returns the properties under KEY, or another key, as an answer with annotations has
    them.
    """

    def stored(key=KEY):
        return read_content(get(key).content)

    return stored


@pytest.fixture
def page(relation):
    def page(**query):
        """Return a page as operations put it together: large values come by a statement of their own."""
        return walk(query_entities(relation, EntityQuery(**query), lambda: 0.0), run)

    return page


def read_content(content):
    members = members_of(content)
    return {
        name: read(member, members.get(f"{name}@odata.type"))
        for name, member in members.items()
        if "@" not in name
    }


def members_of(content):
    members = json.loads(b'{"":0' + content + b"}")
    del members[""]
    return members


def key_of(entity):
    """Return the keys of a read row, which are ready members of a JSON object."""
    members = json.loads(b"{" + entity.keys + b"}")
    assert list(members) == ["PartitionKey", "RowKey"]
    return EntityKey(*members.values())


def integer(number):
    return EdmValue(Edm.INT32, number)


def text(value):
    return EdmValue(Edm.STRING, value)


# update


@pytest.fixture
def empty_relation(relation):
    execute(relations.create(TABLE_ID + 1, ACCOUNT_ID))
    return relations.relation_name(TABLE_ID + 1)


@pytest.mark.parametrize("upsert", [False, True])
def test_a_merge_that_finds_nothing_before_another_client_inserts(
    upsert, insert, stored, relation, empty_relation
):
    """Read nothing, as before the insertion, and look for the reason after it."""
    insert(A=EdmValue(Edm.INT32, 1))
    entity = Entity(KEY, {"B": EdmValue(Edm.INT32, 2)})
    change = Upsert(entity, merge=True) if upsert else Update(entity, ANY, merge=True)
    statement = entities.change(relation, change)
    update = Update(entity, ANY, merge=True)
    earlier = entities.change(empty_relation, update)

    run(replace(statement, text=earlier.text, parameters=earlier.parameters))

    assert set(stored()) == {"A", "B"}


def test_an_upsert_that_another_client_makes_possible(stored, relation, empty_relation):
    """Change nothing, as if the merged entity were too large, and find it deleted afterwards."""
    entity = Entity(KEY, {"B": EdmValue(Edm.INT32, 2)})
    statement = entities.change(relation, Upsert(entity, merge=True))
    refused = entities.change(empty_relation, Update(entity, ANY, merge=True))

    run(replace(statement, text=refused.text, parameters=refused.parameters))

    assert set(stored()) == {"B"}


# merge


@pytest.mark.parametrize("name", ["a" * 250, "é" * 250, "𐐷" * 125], ids=["ASCII", "Latin", "astral"])
@pytest.mark.parametrize("upsert", [False, True])
def test_merges_as_many_long_names_as_an_entity_may_hold(insert, apply, stored, name, upsert):
    members = {f"{name}{number:03}": integer(number) for number in range(PROPERTY_LIMIT)}
    entity = Entity(KEY, members)
    insert(**members)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '60s'")

    apply(Upsert(entity, merge=True) if upsert else Update(entity, ANY, merge=True))

    assert stored() == members


# $select


@given(properties, st.lists(names, max_size=4), st.booleans())
@examples
def test_select_says_what_a_full_read_says(relation, members, missing, annotations):
    run(entities.change(relation, Upsert(Entity(KEY, members), merge=False)))
    chosen = tuple(dict.fromkeys([*list(members)[::2], *missing, "RowKey"]))

    full = members_of(write_members(point(relation).content, annotations=annotations))
    selected = members_of(point(relation, annotations=annotations, select=chosen).content)

    expected = {}
    for name in chosen:
        if name == "RowKey":
            continue
        if f"{name}@odata.type" in full:
            expected[f"{name}@odata.type"] = full[f"{name}@odata.type"]
        expected[name] = full.get(name)
    assert list(selected.items()) == list(expected.items())
    assert json.dumps(selected) == json.dumps(expected)  # tells -0.0 from 0.0, and 5 from 5.0


def point(relation, **query):
    return run(pages.point(relation, KEY, EntityQuery(**query)))


def test_selecting_system_properties_fetches_no_others(insert, get):
    timestamp = insert(A=integer(1))

    for select in ((), ("PartitionKey",), ("RowKey", "Timestamp")):
        assert get(select=select) == (b'"PartitionKey":"p","RowKey":"r"', b"%d" % timestamp, b"")


def test_selecting_what_cannot_be_a_name_gives_null(insert, get):
    insert(A=integer(1))

    for name in ("a b", "A'", 'A"', "$1", "%s", "{}", "A@odata.type", "名" * 300, "\x00", "A\x00", "\ud800"):
        assert members_of(get(select=("A", name)).content) == {"A": 1, name: None}


# pages

MIXED = [
    "", " ", "!", "-", "0", "1", "10", "2", "9", "A", "B", "Z", "_", "a", "a b", "ab", "b", "z", "~", "é", "ß", "名",
    "\ue000", "\uffff", "😀", "\U0010ffff",
]  # fmt: skip


@pytest.fixture
def mixed(insert):
    """Entities under all pairs of troublesome keys, inserted in no order."""
    pairs = [EntityKey(partition_key, row_key) for partition_key in MIXED[::3] for row_key in MIXED]
    for key in random.Random(7).sample(pairs, len(pairs)):
        insert(key, R=text(key.row_key))
    return sorted(pairs)


def keys_of(page):
    return [key_of(entity) for entity in page.entities]


def test_pages_follow_each_other(mixed, page):
    for text, top in itertools.product((None, "R ne ''", "PartitionKey ge ''"), (3, 7, 1000)):
        tree = parse(text) if text else None
        expected = [key for key in mixed if text != "R ne ''" or key.row_key]
        seen_keys, start = [], None
        for _ in range(len(mixed) + 1):
            part = page(filter=tree, top=top, start=start)
            assert len(part.entities) <= top
            seen_keys += keys_of(part)
            start = part.next
            if start is None:
                break
        assert seen_keys == expected, (text, top)


def test_a_position_without_a_row_means_the_next_greater_one(mixed, page, apply):
    start = page(top=30).next
    apply(Delete(EntityKey(*start), ANY))
    assert keys_of(page(start=start)) == mixed[31:]
    assert page(start=Position("\U0010ffff", "\U0010ffff")).entities == [] or mixed[-1][0] == "\U0010ffff"
    assert page(start=Position("\U0010ffff" * 2, "")) == ([], None)


RANGES = [
    "PartitionKey eq '10'",
    "PartitionKey eq '10' and RowKey eq 'a'",
    "PartitionKey eq '10' and RowKey ge 'B' and RowKey lt 'b'",
    "PartitionKey eq '10' and RowKey gt 'B' and RowKey le 'b'",
    "PartitionKey gt '10' and PartitionKey le 'ab'",
    "PartitionKey ge '10' and PartitionKey lt 'ab'",
    "PartitionKey gt '10' and RowKey eq 'a'",
    "PartitionKey eq '' and RowKey eq ''",
    "PartitionKey eq '10' or PartitionKey eq 'ab'",
    "PartitionKey gt 'ab' and PartitionKey lt 'A'",
    "RowKey eq '名' and R eq '名'",
    "not (PartitionKey eq '10')",
]


def test_ranges_of_keys_page_by_page(mixed, page):
    """Every position of the table, also outside of the range, is a place to begin."""
    for text in RANGES:
        tree = parse(text)
        whole = keys_of(page(filter=tree))
        assert whole == [key for key in mixed if holds(text, key)], text
        for start in [None, *mixed[::17], Position("10", ""), Position("10", "b0"), Position("zz", "")]:
            rest = [key for key in whole if start is None or key >= tuple(start)]
            part = page(filter=tree, start=start, top=3)
            assert keys_of(part) == rest[:3], text
            assert part.next == (rest[3] if len(rest) > 3 else None)


def holds(text, key):
    """Evaluate the filters above in Python: keys compare as Python compares strings, by code point."""
    operators = {" eq ": " == ", " ge ": " >= ", " gt ": " > ", " le ": " <= ", " lt ": " < "}
    for operator, python in operators.items():
        text = text.replace(operator, python)
    names = {"PartitionKey": key.partition_key, "RowKey": key.row_key, "R": key.row_key}
    return eval(text, {}, names)


def test_a_page_says_what_point_reads_say(insert, page, get):
    for number, value in enumerate([integer(1), text("\x00\ue000"), EdmValue(Edm.INT64, 5), text("")]):
        insert(EntityKey("p", str(number)), A=value, B=integer(number))
    insert(EntityKey("p", "without"))
    for annotations, select in itertools.product(
        (False, True), (None, ("A",), ("A", "Missing"), ("RowKey",))
    ):
        result = page(select=select, annotations=annotations).entities
        assert len(result) == 5
        assert result == [get(key_of(row), select=select, annotations=annotations) for row in result]


def test_a_page_ends_when_it_weighs_enough(insert, page):
    members = {f"S{number}": text("x" * 30_000) for number in range(17)}
    weight = len(write_fragments(members).content)
    for number in range(12):
        insert(EntityKey("p", f"{number:02}"), **members, A=integer(number))

    part = page()

    fitting = math.ceil(PAGE_BYTES / weight)
    assert 1 < fitting < 12
    assert [key.row_key for key in keys_of(part)] == [f"{number:02}" for number in range(fitting)]
    assert part.next == ("p", f"{fitting:02}")
    assert len(page(start=part.next).entities) == 12 - fitting
    # only what is selected counts, and a top before the weight
    whole = page(select=("A",))
    assert [members_of(entity.content) for entity in whole.entities] == [{"A": n} for n in range(12)]
    assert whole.next is None
    assert page(top=2).next == ("p", "02")


@pytest.mark.parametrize("control", ["", "\x01" * 30_000], ids=["absent properties", "escapes"])
def test_selected_properties_weigh_what_is_written_of_them(insert, page, control):
    names = ["A", *(f"{'x' * 225}{number:03}" for number in range(254))]
    for number in range(100):
        insert(EntityKey("p", f"{number:03}"), A=text(control))

    part = page(select=tuple(names))

    last = len(part.entities[-1].content)
    assert sum(len(entity.content) for entity in part.entities) <= PAGE_BYTES + last
    assert part.next == ("p", f"{len(part.entities):03}")


def test_a_page_has_at_least_one_entity_however_heavy(insert, page):
    controls = {f"S{number:02}": text("\x00" * 32_000) for number in range(15)}
    assert len(write_fragments(controls).content) < PAGE_BYTES
    for number in range(3):
        insert(EntityKey("p", str(number)), **controls)

    part = page()

    assert part.entities
    assert part.next is not None
    assert len(part.entities) + len(page(start=part.next).entities) == 3


def test_statements_differ_by_their_shape_not_by_their_values():
    def texts(number):
        key = EntityKey("p", str(number))
        entity = Entity(key, {f"P{number}": integer(number)})
        query = EntityQuery(
            filter=parse(f"PartitionKey eq 'p{number}' and RowKey ge '{number}'"),
            select=(f"P{number}",),
            top=number,
            start=Position(f"p{number}", str(number)),
        )
        conditional = [
            change
            for condition in (ANY, Precondition(number))
            for change in (Update(entity, condition, merge=False), Delete(key, condition))
        ]
        merges = [Update(entity, ANY, merge=True), Upsert(entity, merge=True)]
        changes = [Insert(entity), Upsert(entity, merge=False), *merges, *conditional]
        return [
            *(entities.change("entity_1", change).text for change in changes),
            batch.apply("entity_1", changes[: number + 2]).text,
            pages.point("entity_1", key, query).text,
            pages.page("entity_1", query).text,
        ]

    assert texts(1) == texts(2)


# windows


def test_the_end_of_a_window_is_so_many_rows_on(mixed, relation):
    for text in (None, "PartitionKey eq '10'", "PartitionKey gt '10'"):
        tree = parse(text) if text else None
        whole = [key for key in mixed if text is None or holds(text, key)]
        for rows, start in itertools.product((1, 5, 25, 10_000), (None, whole[0], whole[3], whole[-1])):
            rest = [key for key in whole if start is None or key >= start]
            query = EntityQuery(filter=tree, start=start and Position(*start))
            end = run(pages.window_end(relation, query, rows))
            assert end == (rest[rows] if len(rest) > rows else None), (text, rows, start)


def test_a_page_lies_between_its_bounds_whatever_the_filter_says(mixed, relation):
    bounds = [None, *(Position(*key) for key in mixed[::23]), Position("10", ""), Position("10\x01", "")]
    for text in (None, "PartitionKey eq '10'", "PartitionKey ge '10'", "PartitionKey lt '10'"):
        tree = parse(text) if text else None
        whole = [key for key in mixed if text is None or holds(text, key)]
        for start, end in itertools.product(bounds, bounds):
            result = run(pages.page(relation, EntityQuery(filter=tree, start=start, end=end)))
            expected = [key for key in whole if (not start or key >= start) and (not end or key < end)]
            assert (keys_of(result), result.next) == (expected, None), (text, start, end)


# limits, in Python and in SQL

EXCESS = """
SELECT entity_excess(e.pk, e.rk, e.content)
FROM jsonb_to_recordset($1::jsonb) AS e (n int, pk text, rk text, content text)
ORDER BY n
"""


def excesses(keyed_members):
    """Return the database's verdicts on the limits of many entities."""
    rows = []
    for number, (key, members) in enumerate(keyed_members):
        rows.append({"n": number, "pk": key[0], "rk": key[1], "content": unlimited_content(members)})
    statement = Statement(
        EXCESS,
        (json.dumps(rows),),
        Lane.KEY,
        lambda result: [result.get_value(row, 0) for row in range(result.ntuples)],
    )
    return [None if code is None else code.decode() for code in run(statement)]


def unlimited_content(wanted):
    """Return the text of more properties than an entity may have."""
    return "".join(write_fragments({name: value}).content for name, value in wanted.items())


def padded(key, members, difference):
    """Return the properties with padding, so that the size is the limit plus the difference."""
    members = dict(members)
    number = count()
    size = entity_size(Entity(key, members))
    while (missing := SIZE_LIMIT + difference - size) > 40:
        name = f"_{next(number):03}é"
        overhead = 8 + 2 * 5 + 4
        length = min(missing - overhead, 60_000)
        if 0 < missing - overhead - length < 100:
            length -= 100  # never leave a rest too small for a property
        members[name] = EdmValue(Edm.BINARY, b"\xff" * length) if length % 2 else text("x" * (length // 2))
        size += overhead + length
    return members


values_of_all_types = [
    text('\n,"A":1'),
    EdmValue(Edm.BOOLEAN, True),
    integer(1),
    EdmValue(Edm.INT64, 1),
    EdmValue(Edm.DOUBLE, 1.5),
    EdmValue(Edm.DATETIME, 0),
    EdmValue(Edm.GUID, "c9e0b9a9-7e44-44d1-8fcb-2d8a4e6b7d10"),
    EdmValue(Edm.BINARY, b"\n"),
]


def test_the_database_knows_the_size_of_each_type(db):
    """A byte less for one value than there is would let one of these pass, a byte more would refuse one."""
    results = []
    texts = [
        text("\x00é😀\ud800'\"\\/"),
        text("\x00" * 30_000),
        text("😀" * 15_000),
        EdmValue(Edm.BINARY, b"\xff" * 59_998),
    ]
    doubles = [EdmValue(Edm.DOUBLE, math.nan), EdmValue(Edm.DOUBLE, 1e300)]
    for value, difference in itertools.product([*values_of_all_types, *doubles, *texts], (0, 1)):
        members = padded(KEY, {"A": value, "Ж": value}, difference)
        assert entity_size(Entity(KEY, members)) == SIZE_LIMIT + difference
        results.append((KEY, members))

    assert excesses(results) == [None, "EntityTooLarge"] * (len(results) // 2)


def test_the_database_counts_properties(db):
    results = [(KEY, {f"P{number}": integer(1) for number in range(count)}) for count in (0, 252, 253)]

    assert excesses(results) == [None, None, "TooManyProperties"]


@given(st.lists(keys, min_size=1, max_size=20))
@examples
def test_the_database_counts_the_utf16_units_of_keys(db, drawn_keys):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT array_agg(entity_key_length(k) ORDER BY n) FROM unnest(%s::text[]) WITH ORDINALITY AS t (k, n)",
            [drawn_keys],
        )
        assert cursor.fetchone() == ([edm.utf16_length(key) for key in drawn_keys],)
