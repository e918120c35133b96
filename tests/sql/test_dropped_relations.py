"""Sizes while relations are dropped: PostgreSQL gives null for one that is gone after it was found in the catalog."""

import pytest
from django.utils import timezone

from storage.accounts import accounts
from storage.cluster import distribution, relations, statements
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.entities import edits
from storage.sql import background, history, indexes
from storage.sql.django import execute
from storage.sql.relations import relation_of
from storage.tables import tables
from tests.sql import citus

ADA = Actor(ActorKind.USER, "ada")
_SIZES = ("pg_total_relation_size", "pg_relation_size", "pg_table_size", "pg_stat_get_numscans")


@pytest.fixture
def table(db):
    relations.can_distribute.cache_clear()
    citus.install()
    account = accounts.add("acme")
    result = tables.create(account, "people")
    edits.apply(result, [Insert(Entity(EntityKey("p", "r"), {}))], by=ADA)
    other = tables.create(account, "others")
    distribution.distribute(other)
    execute(f"CREATE INDEX {indexes.index_name(result.pk, 1)} ON {relation_of(result)} (ts)")
    yield result
    relations.can_distribute.cache_clear()


@pytest.fixture
def dropping(table):
    """Relations that are being dropped: what comes before pg_catalog in the search path replaces its functions."""
    for name in _SIZES:
        for kind in ("oid", "regclass"):
            execute(
                f"CREATE FUNCTION {name}({kind}) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT NULL::bigint'"
            )
    execute("SET LOCAL search_path = public, pg_catalog")


def is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def test_sizes_are_numbers(table, dropping):
    assert is_number(background.sizes_of([table.pk])[table.pk].capacity)
    assert is_number(background.totals([table.account_id])[table.account_id].size)
    assert all(map(is_number, background.disk_usage(table.pk)))
    sizes = statements.distributed_sizes()
    assert sizes and all(is_number(it.capacity) and is_number(it.rows) for it in sizes.values())
    used = history.sizes_of_used()
    assert used and all(map(is_number, used.values()))
    names = [history.segment_name(*key) for key in used]
    assert all(map(is_number, history.sizes(names).values()))
    assert indexes.stored(table.pk, [1])[1].size == 0
    assert indexes.scans([(table.pk, 1)]) == {(table.pk, 1): 0}


def test_the_job_of_distributed_tables_measures_the_others(table, dropping):
    distribution.tidy(timezone.now())
