"""Advice on shapes of queries: which pattern would serve each, and what Azure reads for it."""

import pytest

from storage.design.advice import Pattern, QueryUse, advise, exclude_copies
from storage.design.findings import Weight, find_about_queries
from storage.domain.filters.access_plan import AccessPath, plan_access
from storage.domain.filters.parser import parse
from storage.domain.values.edm import Edm
from storage.metrics.query_shapes import ShapeCount, shape_of

TYPES = {"Email": Edm.STRING, "Age": Edm.INT32, "Created": Edm.DATETIME}


def shape(text):
    root = parse(text) if text else None
    return ShapeCount(shape_of(root), plan_access(root).path, 10, 20, ())


@pytest.mark.parametrize(
    ("query", "pattern", "keys"),
    [
        ("PartitionKey eq 'a' and RowKey eq 'b'", None, None),
        ("PartitionKey eq 'a' and RowKey ge 'b'", None, None),
        ("PartitionKey eq 'a'", None, None),
        ("", Pattern.SUMMARY, None),
        (
            "Email eq 'a@b'",
            Pattern.SECOND_COPY_ACROSS,
            ("Email", "concat(PartitionKey, '_', RowKey)", "peopleByEmail"),
        ),
        (
            "Email eq 'a@b' and Age eq 5",
            Pattern.SECOND_COPY_ACROSS,
            ("concat(Email, '_', pad(Age, 10))", "concat(PartitionKey, '_', RowKey)", "peopleByEmailAge"),
        ),
        (
            "PartitionKey eq 'a' and Email eq 'a@b'",
            Pattern.SECOND_COPY_WITHIN,
            ("PartitionKey", "concat('Email_', Email, '_', RowKey)", ""),
        ),
        (
            "PartitionKey eq 'a' and Age gt 5",
            Pattern.SECOND_COPY_WITHIN,
            ("PartitionKey", "concat('Age_', pad(Age, 10), '_', RowKey)", ""),
        ),
        ("RowKey eq 'b'", Pattern.SECOND_COPY_ACROSS, ("RowKey", "PartitionKey", "peopleByRowKey")),
        ("Timestamp ge datetime'2026-11-30T00:00:00Z'", Pattern.LOG_TAIL, None),
        ("PartitionKey eq 'a' and Created lt datetime'2026-11-30T00:00:00Z'", Pattern.LOG_TAIL, None),
        (
            "(PartitionKey eq 'a' and RowKey eq 'b') or (PartitionKey eq 'c' and RowKey eq 'd')",
            Pattern.POINT_READS,
            None,
        ),
        ("Email ne 'a@b'", None, None),
        ("PartitionKey ge 'a' and PartitionKey lt 'b'", None, None),
    ],
)
def test_patterns_that_serve_queries(query, pattern, keys):
    advice = advise(shape(query), TYPES, "people")
    assert (advice and advice.pattern) == pattern
    copy = advice and advice.copy
    assert (copy and (copy.partition_key, copy.row_key, copy.table)) == keys


def test_shapes_have_no_values():
    assert shape("Email eq 'a@b' and Age gt 5").shape == "Email eq … and Age gt …"


def use(path, requests, entities, read):
    return QueryUse(ShapeCount("Email eq …", path, requests, entities, ()), read, False, None)


def test_a_query_is_costly_if_it_reads_a_hundred_entities_for_one():
    scan = AccessPath.TABLE_SCAN
    [finding] = find_about_queries([use(scan, 10, 20, 200_000)])
    assert finding.facts == {
        "query": "Email eq …",
        "requests": 10,
        "read": 200_000,
        "ratio": 100_000,
    }
    assert "reads up to 200,000 entities" in finding.text
    assert list(find_about_queries([use(scan, 10, 900, 5_000)])) == []
    assert list(find_about_queries([use(scan, 10, 20, 999)])) == []
    assert list(find_about_queries([use(AccessPath.PARTITION_RANGE, 10, 1, None)])) == []


def test_a_scan_that_returns_nothing_reads_all_for_it():
    [finding] = find_about_queries([use(AccessPath.TABLE_SCAN, 10, 0, 5_000)])
    assert finding.facts["ratio"] == 5_000


def test_a_query_that_was_sent_a_few_times_is_a_hint():
    weights = [
        it.weight
        for number in (9, 10)
        for it in find_about_queries([use(AccessPath.TABLE_SCAN, number, 0, 5_000)])
    ]
    assert weights == [Weight.HINT, Weight.PROBLEM]


def test_copies_leave_out_those_of_other_advice_in_the_same_table():
    queries = ["PartitionKey eq 'a' and Email eq 'a@b'", "Email eq 'a@b'", "RowKey eq 'b'"]
    uses = [QueryUse(shape(it), 1, True, advise(shape(it), TYPES, "people")) for it in queries]
    own = "not (RowKey ge 'Email_' and RowKey lt 'Email`')"
    assert [it.advice.copy.filter for it in exclude_copies(uses)] == [
        f"isset(Email) and {own}",
        f"isset(Email) and {own}",
        own,
    ]
    assert [it.advice.copy.filter for it in exclude_copies(uses[1:])] == ["isset(Email)", ""]
