"""Change sets: all changes in order, or none and the index of the one that failed."""

import json

import pytest
from django.db import connection, transaction

from storage.domain.entities.changes import Delete, Insert, Update, Upsert
from storage.domain.entities.entity import PROPERTY_LIMIT, Entity, EntityKey
from storage.domain.errors import (
    ChangeSetError,
    EntityAlreadyExists,
    EntityTooLarge,
    ResourceNotFound,
    TableNotFound,
    TooManyProperties,
    UpdateConditionNotSatisfied,
)
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY, Precondition
from storage.sql import batch, entities, pages
from storage.sql.django import run

FUTURE = 4_102_444_800 * 10_000_000  # 2100-01-01
NOT_MATCHING = Precondition(5)


@pytest.fixture
def apply(relation):
    """`apply(change, ...)`: the new Timestamps; a refusal leaves the transaction of the test usable."""

    def apply(*changes):
        with transaction.atomic():
            return run(batch.apply(relation, changes))

    return apply


@pytest.fixture
def rows(relation):
    """`rows()`: everything there is, the three texts included."""

    def rows():
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT pk, rk, ts, props::text, anns, vals FROM {relation} ORDER BY pk, rk")
            return cursor.fetchall()

    return rows


@pytest.fixture
def contents(relation):
    """`contents()`: the ready text of each entity by RowKey."""

    def contents():
        page = run(pages.page(relation, EntityQuery()))
        return {json.loads(b"{%b}" % row.keys)["RowKey"]: row.content.decode() for row in page.entities}

    return contents


@pytest.fixture
def refused(apply, rows):
    """`refused(change, ...)`: index and class of the error, after which nothing is different."""

    def refused(*changes):
        before = rows()
        with pytest.raises(ChangeSetError) as error:
            apply(*changes)
        assert rows() == before
        return error.value.index, type(error.value.error)

    return refused


def entity(row_key, /, **values):
    return Entity(EntityKey("p", row_key), {name: integer(number) for name, number in values.items()})


def integer(number):
    return EdmValue(Edm.INT32, number)


def update(row_key, /, merge=False, condition=ANY, **values):
    return Update(entity(row_key, **values), condition, merge)


def delete(row_key, condition=ANY):
    return Delete(EntityKey("p", row_key), condition)


def test_all_kinds_of_changes_in_one_call(apply, contents):
    inserted = apply(*(Insert(entity(row_key, A=1, B=1)) for row_key in "abcdefg"))

    changed = apply(
        Insert(entity("new", A=2)),
        update("a", A=2),
        update("b", merge=True, A=2),
        update("c", condition=Precondition(inserted[2]), A=2),
        update("d", merge=True, condition=Precondition(inserted[3]), A=2),
        Upsert(entity("e", A=2), merge=False),
        Upsert(entity("f", A=2), merge=True),
        Upsert(entity("g1", A=2), merge=False),
        Upsert(entity("g2", A=2), merge=True),
        delete("g", Precondition(inserted[6])),
    )

    assert contents() == {
        "new": '\n,"A":2',
        "a": '\n,"A":2',
        "b": '\n,"A":2\n,"B":1',
        "c": '\n,"A":2',
        "d": '\n,"A":2\n,"B":1',
        "e": '\n,"A":2',
        "f": '\n,"A":2\n,"B":1',
        "g1": '\n,"A":2',
        "g2": '\n,"A":2',
    }
    assert len(changed) == 10
    assert changed[9] == inserted[6]
    assert min(changed[:9]) > max(inserted)


def test_values_come_through_unharmed(apply, relation):
    values = {
        "L": EdmValue(Edm.INT64, 2**63 - 1),
        "N": EdmValue(Edm.DOUBLE, float("-inf")),
        "S": EdmValue(Edm.STRING, "\x00\ud800\"\\\n$$'%é😀"),
        "Z": EdmValue(Edm.DOUBLE, -0.0),
        "é": EdmValue(Edm.BINARY, b"\x00\xff"),
    }
    apply(
        Insert(Entity(EntityKey("p", "\"é'$$"), values)),
        Upsert(Entity(EntityKey("p", "merged"), values), merge=True),
    )

    alone = Insert(Entity(EntityKey("p", "alone"), values))
    run(entities.change(relation, alone))

    contents = [row.content for row in run(pages.page(relation, EntityQuery())).entities]
    selected = run(pages.page(relation, EntityQuery(select=tuple(values)))).entities
    assert contents == [contents[0]] * 3
    assert [row.content for row in selected] == [selected[0].content] * 3
    assert selected[0].content.count(b'"') > 10


def test_the_timestamps_come_in_the_order_of_the_changes(apply, rows, relation):
    """Whatever order the database takes them in; all changes have one Timestamp."""
    first = apply(*(Insert(entity(row_key)) for row_key in "abc"))
    assert [row[2] for row in rows()] == first
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {relation} SET ts = %s + ascii(rk)", [FUTURE])

    assert apply(update("c"), update("a"), delete("b")) == [FUTURE + 100, FUTURE + 100, FUTURE + 98]


# failures

FAILING = [
    (Insert(entity("there", A=9)), EntityAlreadyExists),
    *(
        (change, ResourceNotFound)
        for condition in (ANY, NOT_MATCHING)
        for change in (
            update("missing", condition=condition, A=9),
            update("missing", merge=True, condition=condition, A=9),
            delete("missing", condition),
        )
    ),
    (update("there", condition=NOT_MATCHING, A=9), UpdateConditionNotSatisfied),
    (update("there", merge=True, condition=NOT_MATCHING, A=9), UpdateConditionNotSatisfied),
    (delete("there", NOT_MATCHING), UpdateConditionNotSatisfied),
]


@pytest.mark.parametrize(("failing", "error"), FAILING)
@pytest.mark.parametrize("index", [0, 2, 4])
def test_one_that_fails_undoes_all(apply, refused, failing, error, index):
    apply(*(Insert(entity(row_key, A=1)) for row_key in ("there", "a", "b", "c")))
    others = [
        Upsert(entity("a", A=2), merge=False),
        update("b", merge=True, B=2),
        delete("c"),
        Insert(entity("d")),
    ]

    assert refused(*others[:index], failing, *others[index:]) == (index, error)


def like(change, row_key):
    """Return a change of the same kind of another entity, on no condition."""
    match change:
        case Insert():
            return Insert(entity(row_key, A=2))
        case Upsert(_, merge):
            return Upsert(entity(row_key, A=2), merge)
        case Update(_, _, merge):
            return update(row_key, merge, A=2)
    return delete(row_key)


@pytest.mark.parametrize(("failing", "error"), FAILING)
def test_one_of_a_kind_that_fails_undoes_all(apply, refused, failing, error):
    """The first one in the order of the request counts, not in that of the keys."""
    apply(*(Insert(entity(row_key, A=1)) for row_key in ("there", "a", "c")))
    before, after = (like(failing, f"{it}2" if isinstance(failing, Insert) else it) for it in "ca")
    assert refused(before, failing, after) == (1, error)
    fails_too = Insert(entity("a")) if isinstance(failing, Insert) else like(failing, "0")
    assert refused(before, failing, fails_too, after) == (1, error)


def test_changes_of_one_entity_twice(apply, refused, contents):
    """The protocol refuses them before; the statement itself must not do half of them."""
    assert refused(Insert(entity("a")), Insert(entity("a"))) == (1, EntityAlreadyExists)

    apply(Upsert(entity("a", A=1), merge=True), Upsert(entity("a", B=2), merge=True))
    assert contents() == {"a": '\n,"A":1\n,"B":2'}
    assert refused(delete("a"), delete("a")) == (1, ResourceNotFound)


MANY = {f"P{number}": integer(number) for number in range(PROPERTY_LIMIT)}
LARGE = {f"S{number:02}": EdmValue(Edm.STRING, "x" * 32 * 1024) for number in range(15)}


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (MANY, {"Q": integer(1)}, TooManyProperties),
        ({}, MANY | {"Q": integer(1)}, TooManyProperties),
        (LARGE, {"T": LARGE["S00"]}, EntityTooLarge),
    ],
)
@pytest.mark.parametrize("is_upsert", [False, True])
def test_what_becomes_too_large_undoes_all(apply, refused, old, new, error, is_upsert):
    apply(Insert(Entity(EntityKey("p", "a"), old)))
    larger = Entity(EntityKey("p", "a"), new)
    change = Upsert(larger, merge=True) if is_upsert else Update(larger, ANY, merge=True)

    assert refused(Insert(entity("b")), change) == (1, error)
    apply(Insert(entity("b")))
    assert refused(like(change, "b"), change) == (1, error)


def test_a_relation_that_is_gone_is_a_table_not_found(db):
    with pytest.raises(TableNotFound), transaction.atomic():
        run(batch.apply("entity_999999999", [Insert(entity("a"))]))


# Timestamp


@pytest.mark.parametrize(
    "change",
    [
        update("a"),
        update("a", merge=True),
        update("a", condition=Precondition(FUTURE)),
        update("a", merge=True, condition=Precondition(FUTURE)),
        Upsert(entity("a"), merge=False),
        Upsert(entity("a"), merge=True),
    ],
)
def test_the_timestamp_grows_by_a_tick_when_the_clock_stepped_back(apply, relation, rows, change):
    apply(Insert(entity("a")), Insert(entity("b")))
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {relation} SET ts = %s", [FUTURE])

    assert apply(change) == [FUTURE + 1]
    assert [row[2] for row in rows()] == [FUTURE + 1, FUTURE]
    assert apply(like(change, "a"), like(change, "b")) == [FUTURE + 2] * 2
