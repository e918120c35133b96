"""The rules of a change set: one table, one partition, each entity once, at most a hundred changes."""

import pytest

from storage.domain.entities.changes import (
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


def test_accepts_changes_of_all_kinds_in_one_partition():
    changes = [
        Insert(entity("p", "a")),
        Update(entity("p", "A"), ANY, merge=True),
        upsert("p", ""),
        Delete(EntityKey("p", "4"), ANY),
    ]
    check_change_set([("people", change) for change in changes])
    check_change_set_size(100)


@pytest.mark.parametrize(
    ("changes", "index", "error"),
    [
        ([upsert("p", row_key) for row_key in "12321"], 3, InvalidDuplicateRow),
        ([upsert("p", "1"), Delete(EntityKey("p", "1"), ANY)], 1, InvalidDuplicateRow),
        ([upsert("p", "1"), upsert("p", "1"), upsert("q", "1")], 1, InvalidDuplicateRow),
        ([upsert("p", "1"), upsert("p", "2"), upsert("q", "1")], 2, CommandsInBatchActOnDifferentPartitions),
    ],
)
def test_names_the_first_foreign_change(changes, index, error):
    assert refusal([("people", change) for change in changes]) == (index, error)


def test_too_many_changes_are_refused_at_the_last_allowed_index():
    with pytest.raises(ChangeSetError) as refused:
        check_change_set_size(101)

    assert (refused.value.index, type(refused.value.error)) == (99, InvalidInput)
