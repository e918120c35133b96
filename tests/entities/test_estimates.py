"""Estimates of queries, compared with their results."""

from itertools import count

import pytest
from django.db import transaction

from storage.accounts import accounts
from storage.domain.filters.parser import parse
from storage.domain.filters.query import EntityQuery
from storage.domain.values import dialects
from storage.entities import entities
from storage.entities import estimates as operation
from storage.entities.estimates import Estimate, ScanKind, estimate
from storage.sql import estimates
from storage.sql.django import execute
from storage.sql.relations import relation_name
from storage.sql.statement import Lane, Statement
from storage.tables import tables

PARTITIONS, ROWS = 20, 600
FILL = f"""
INSERT INTO {{relation}} (pk, rk, ts, props, anns, vals)
SELECT 'p' || lpad(p::text, 3, '0'), 'r' || lpad(r::text, 4, '0'), 10000000::bigint * r,
       jsonb_build_object('Age', r % 100, 'Mail', 's' || md5(p || ' ' || r), 'Flag', r % 2 = 0, 'Kind', 's' || p),
       '', E'\\n,"Age":1'
FROM generate_series(0, {PARTITIONS - 1}) AS p, generate_series(0, {ROWS - 1}) AS r
ORDER BY md5(p || ' ' || r)
"""
FILTERS = [
    "",
    "PartitionKey eq 'p003' and RowKey eq 'nobody'",
    "PartitionKey eq 'p003' and RowKey ge 'r0100' and RowKey lt 'r0101'",
    "PartitionKey ge 'p010'",
    "PartitionKey ge 'p010' and PartitionKey lt 'p015'",
    "PartitionKey eq 'p003' and Age gt 90",
    "PartitionKey eq 'p003' and RowKey ge 'r0300' and Flag",
    "PartitionKey eq 'p003' and RowKey eq 'r0042' and Flag",
    "PartitionKey eq 'p003' and (RowKey eq 'r0001' or RowKey eq 'r0002')",
    "RowKey eq 'r0042'",
    "Age gt 90",
    "Age eq 42",
    "Age ne 42",
    "Flag",
    "Kind eq '7'",
    "Kind eq '7' or Kind eq '8'",
    "Mail eq '0123'",
    "Missing eq 1",
    "Timestamp ge datetime'1970-01-01T00:05:00Z'",
    "PartitionKey eq 'p003' or PartitionKey eq 'p004'",
    "contains(Mail,'abc')",
    "isset(Mail) and endswith(Mail,'0')",
]


@pytest.fixture
def table(db):
    return tables.create(accounts.add("acme"), "people")


@pytest.fixture
def full(table):
    """Fill the table with enough rows for an index to be worth it."""
    relation = relation_name(table.pk)
    execute(FILL.format(relation=relation))
    execute(f"SELECT gin_clean_pending_list('{relation}_props_idx')")
    execute(f"ANALYZE {relation}")
    return table


def query(text):
    return EntityQuery(filter=parse(text, dialects.CONSOLE))


def is_close(estimated, real):
    """Within one order of magnitude, where nothing counts as something."""
    return max(real, 1) / 10 <= max(estimated, 1) <= max(real, 1) * 10


READ = [
    ("", PARTITIONS * ROWS, ScanKind.KEYS),
    ("Age gt 18", PARTITIONS * ROWS, ScanKind.NOTHING),
    ("Mail eq '0123'", PARTITIONS * ROWS, ScanKind.PROPERTIES),
    ("PartitionKey eq 'p003' and Age gt 18", ROWS, ScanKind.KEYS),
    ("PartitionKey eq 'p003' and RowKey ge 'r0300' and Age gt 18", ROWS / 2, ScanKind.KEYS),
    ("PartitionKey ge 'p010' and Age gt 18", PARTITIONS * ROWS / 2, ScanKind.KEYS),
    ("PartitionKey eq 'p003' and RowKey eq 'r0042'", 1, ScanKind.KEYS),
]


def test_q3_estimates_are_within_one_order_of_magnitude(full):
    for text, read, means in READ:
        result = estimated(full, text)

        assert is_close(result.read, read), (text, result)
        assert result.scan_kind is means, (text, result)
        assert result.returned <= result.read
        assert result.transactions == result.read // 1000 + 1
        assert (result.looked_at < result.read / 10) is (means is ScanKind.PROPERTIES), (text, result)
    for text in FILTERS:
        result = estimated(full, text)
        returned = entities.count(full, query(text))

        assert is_close(result.returned, returned), (text, result, returned)


def estimated(table, text):
    """Return the estimate in a transaction that is rolled back, so that the settings of its lane do not stay."""
    with transaction.atomic():
        result = estimate(table, query(text), clock=lambda: 0.0)
        transaction.set_rollback(True)
    return result


def test_contradictions_read_nothing_and_deleted_tables_have_no_estimate(table):
    text = "PartitionKey eq 'a' and PartitionKey eq 'b'"

    assert estimate(table, query(text)) == Estimate(0, 0, 0, ScanKind.KEYS)
    execute(f"DROP TABLE {relation_name(table.pk)}")

    assert estimate(table, query("Age gt 18")) is None


def test_all_statements_share_the_limit(table):
    limit = operation.LIMIT.total_seconds()
    now = count(step=limit * 0.3)

    assert estimate(table, query("Age gt 18"), clock=lambda: next(now)) is not None
    assert estimate(table, query("Age gt 18"), clock=count(step=limit).__next__) is None


def test_where_a_sample_takes_too_long_the_planner_is_believed(table, monkeypatch):
    def cancel(*arguments, **options):
        """Return a statement that is cancelled, as by the time limit."""
        text = "SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(60)"
        return Statement(text, (), Lane.FILTER, int)

    monkeypatch.setattr(estimates, "sample", cancel)

    result = estimate(table, query("PartitionKey eq 'p003' and Flag"), clock=lambda: 0.0)

    assert 0 <= result.returned <= result.read
