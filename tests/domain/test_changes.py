"""The rules of a change set: one table, one partition, each entity once, at most a hundred changes."""

import pytest

from storage.domain.entities.changes import (
    Change,
    Delete,
    Insert,
    Update,
    Upsert,
    check_change_set,
    check_change_set_size,
)
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import (
    ChangeSetError,
    CommandsInBatchActOnDifferentPartitions,
    InvalidDuplicateRow,
    InvalidInput,
)
from storage.domain.values.etag import ANY


def entity(partition_key, row_key):
    return Entity(EntityKey(partition_key, row_key), {})


def upsert(partition_key, row_key):
    return Upsert(entity(partition_key, row_key), merge=True)


def refusal(changes):
    with pytest.raises(ChangeSetError) as refused:
        check_change_set(changes)
    return refused.value.index, type(refused.value.error)


def test_every_change_has_the_key_of_its_entity():
    key = EntityKey("p", "r")
    changes: list[Change] = [
        Insert(entity("p", "r")),
        Update(entity("p", "r"), ANY, merge=False),
        Upsert(entity("p", "r"), merge=False),
        Delete(key, ANY),
    ]

    assert [change.key for change in changes] == [key] * 4


def test_accepts_changes_of_all_kinds_in_one_partition():
    check_change_set(
        [
            ("people", Insert(entity("p", "1"))),
            ("people", Update(entity("p", "2"), ANY, merge=True)),
            ("people", upsert("p", "3")),
            ("people", Delete(EntityKey("p", "4"), ANY)),
            ("people", upsert("p", "")),
        ]
    )


def test_accepts_keys_that_differ_in_case_only():
    check_change_set([("people", upsert("p", "a")), ("people", upsert("p", "A"))])


def test_refuses_an_entity_that_comes_twice():
    changes = [("people", upsert("p", row_key)) for row_key in ("1", "2", "3", "2", "1")]

    assert refusal(changes) == (3, InvalidDuplicateRow)


def test_refuses_the_same_entity_by_another_operation():
    assert refusal([("people", upsert("p", "1")), ("people", Delete(EntityKey("p", "1"), ANY))]) == (
        1,
        InvalidDuplicateRow,
    )


def test_refuses_a_second_partition():
    changes = [("people", upsert("p", "1")), ("people", upsert("p", "2")), ("people", upsert("q", "1"))]

    assert refusal(changes) == (2, CommandsInBatchActOnDifferentPartitions)


def test_refuses_a_second_table():
    changes = [("people", upsert("p", "1")), ("places", upsert("p", "2"))]

    assert refusal(changes) == (1, CommandsInBatchActOnDifferentPartitions)


def test_names_the_first_offender():
    changes = [("people", upsert("p", "1")), ("people", upsert("p", "1")), ("people", upsert("q", "1"))]

    assert refusal(changes) == (1, InvalidDuplicateRow)


def test_a_hundred_changes_are_a_change_set():
    check_change_set_size(100)
    check_change_set([("people", upsert("p", str(number))) for number in range(100)])


@pytest.mark.parametrize("count", [101, 1000])
def test_refuses_more_changes_at_the_last_that_is_allowed(count):
    with pytest.raises(ChangeSetError) as refused:
        check_change_set_size(count)

    assert refused.value.index == 99
    assert isinstance(refused.value.error, InvalidInput)
    assert refused.value.error.text == (
        "The batch request operation exceeds the maximum 100 changes per change set."
    )
