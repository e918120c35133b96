"""Change sets that the protocol refuses before: tests/entities/test_write_law.py has all others."""

import pytest
from django.db import transaction

from storage.domain.entities.changes import Delete, Insert, Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import ChangeSetError, EntityAlreadyExists, ResourceNotFound, TableNotFound
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.sql import batch
from storage.sql.django import fetch, run

KEY = EntityKey("p", "a")


def entity(**values):
    return Entity(KEY, {name: EdmValue(Edm.INT32, number) for name, number in values.items()})


def test_changes_of_one_entity_twice(relation):
    """The statement must not do half of them."""

    def refused(*changes):
        with pytest.raises(ChangeSetError) as error, transaction.atomic():
            run(batch.apply(relation, changes))
        return error.value.index, type(error.value.error)

    assert refused(Insert(entity()), Insert(entity())) == (1, EntityAlreadyExists)
    assert fetch(f"SELECT FROM {relation}") == []
    run(batch.apply(relation, [Upsert(entity(A=1), merge=True), Upsert(entity(B=2), merge=True)]))
    assert fetch(f"SELECT vals FROM {relation}") == [('\n,"A":1\n,"B":2',)]
    assert refused(Delete(KEY, ANY), Delete(KEY, ANY)) == (1, ResourceNotFound)
    assert len(fetch(f"SELECT FROM {relation}")) == 1


def test_a_relation_that_is_gone_is_a_table_not_found(db):
    with pytest.raises(TableNotFound), transaction.atomic():
        run(batch.apply("entity_999999999", [Insert(entity())]))
