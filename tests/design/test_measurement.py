"""Partitions, keys and kinds of real tables, counted or sampled."""

import pytest
from django.utils import timezone

from storage.design import design
from storage.design.design import describe
from storage.design.findings import Weight
from storage.domain.filters.parser import parse
from storage.domain.values.dialects import CONSOLE
from storage.editing.bulk_edit import read_operations
from storage.sql import design as statements
from storage.sql import django as sql
from storage.sql.relations import relation_of


def test_all_partitions_are_counted(table, fill):
    fill(1_100, "CASE WHEN i <= 1000 THEN 'big' ELSE 'p' || i END", "lpad(i::text, 9, '0')")
    counted = describe(table).shape.partitions
    assert (counted.number, counted.entities, counted.single, counted.is_exact) == (101, 1_100, 100, True)
    assert counted.largest[0] == ("big", 1_000, 1_000 * (3 + 9 + 2))
    assert [tuple(it) for it in counted.classes] == [(1, 100, 100), (1_000, 1, 1_000)]


def test_an_empty_table_has_no_findings(table):
    described = describe(table)
    assert (described.shape.partitions.number, described.findings) == (0, [])


def test_sampled_partitions_are_near_the_truth(table, fill):
    """One partition has half of the entities, and 500 have the other half."""
    fill(20_000, "CASE WHEN i <= 10000 THEN 'big' ELSE 'p' || i % 500 END", "lpad(i::text, 9, '0')")
    statement = statements.sampled_partitions(relation_of(table), 20_000, share=60, rows=600, most=100_000)
    sampled = sql.run_in_lane(statement)
    assert not sampled.is_exact
    assert sampled.largest[0][:2] == ("big", 10_000)
    assert 350 <= sampled.number <= 650
    classes = {it.least: it for it in sampled.classes}
    assert 8_000 <= classes[10_000].entities <= 12_000 and classes[10_000].partitions == 1


def test_numbers_of_a_sample_are_compared_with_others_of_their_partition(table, fill, monkeypatch):
    """Entities that were inserted one after another are of different partitions."""
    monkeypatch.setattr(design, "_KEYS", (1_000,))
    fill(20_000, "'p' || lpad((i % 500)::text, 3, '0')", "'order-' || i")
    finding = kinds_of(describe(table))["unpadded-numbers"]
    assert finding.facts["key"] == "RowKey"
    assert finding.entities == 20_000


@pytest.mark.parametrize(("keys", "number"), [("'all'", 1), ("CASE i WHEN 1 THEN 'all' ELSE 'one' END", 2)])
def test_partitions_too_large_to_be_counted_are_estimated(table, fill, keys, number):
    fill(20_000, keys, "lpad(i::text, 9, '0')")
    statement = statements.sampled_partitions(relation_of(table), 20_000, share=60, rows=600, most=1_000)
    sampled = sql.run_in_lane(statement)
    assert (sampled.number, sampled.is_exact) == (number, number == 1)
    assert sampled.largest[0].entities >= 19_000


def test_queries_that_return_all_that_they_read_are_not_costly(table, fill, send):
    fill(2_000, "'p' || lpad((i % 20)::text, 2, '0')", "lpad(i::text, 9, '0')")
    send("", 100)
    send("PartitionKey ge 'p1' and PartitionKey lt 'p2'", 2)
    send("PartitionKey eq 'p1' and Mail eq 'a'", 150)  # more than partitions have in the mean
    send("Mail eq 'a'", 1)
    described = describe(table)
    assert {it.count.shape: it.read for it in described.queries} == {
        "": 100,
        "PartitionKey ge … and PartitionKey lt …": 2,
        "PartitionKey eq … and Mail eq …": 150,
        "Mail eq …": 2_000,
    }
    assert [it.facts["query"] for it in described.findings] == ["Mail eq …"]


def kinds_of(described):
    return {str(it.kind): it for it in described.findings}


def test_one_partition_names_a_property_that_divides_it(table, fill):
    fill(
        2_000,
        "'all'",
        "lpad(i::text, 9, '0')",
        "jsonb_build_object('Dept', 'sd' || i % 20, 'Mail', 'sm' || i)",
    )
    findings = kinds_of(describe(table))
    assert set(findings) == {"one-partition"}
    assert findings["one-partition"].edit == {"operations": [{"op": "key", "partition_key": "Dept"}]}
    assert "All 2,000 entities" in findings["one-partition"].text
    assert findings["one-partition"].weight is Weight.HINT  # as it is small and has no requests
    fill(8_000, "'all'", "'x' || lpad(i::text, 9, '0')", "jsonb_build_object('Dept', 'sd' || i % 20)")
    design._kept.clear()
    assert kinds_of(describe(table))["one-partition"].weight is Weight.PROBLEM


def test_the_width_of_numbers_is_that_of_the_whole_table(table, fill):
    fill(3_000, "'p' || i % 7", "'order-' || CASE WHEN i = 2999 THEN 123456789 ELSE i END")
    findings = kinds_of(describe(table))["unpadded-numbers"]
    assert findings.edit == {
        "operations": [{"op": "key", "row_key": "concat('order-', pad(substring(RowKey, 6), 9))"}]
    }


def test_kinds_and_types_are_told_apart(table, fill):
    fill(
        1_000,
        "'p' || lpad((i % 50)::text, 2, '0')",
        "lpad(i::text, 9, '0')",
        "CASE i % 2 WHEN 0 THEN jsonb_build_object('First', 'sx', 'Last', 'sy', 'Age', i)"
        " ELSE jsonb_build_object('Head', 'sx', 'Budget', CASE i % 3 WHEN 0 THEN to_jsonb(i) ELSE '\"sx\"' END) END",
    )
    described = describe(table)
    assert [it.entities for it in described.shape.kinds] == [500, 500]
    findings = kinds_of(described)
    assert {"several-kinds", "mixed-types"} <= set(findings)
    assert findings["mixed-types"].examples == ("Budget",)


def test_int32_among_double_is_a_hint(table, fill):
    """JavaScript sends numbers without a fraction as Int32, even where most are."""
    number = "jsonb_build_object('Total', CASE i % 4 WHEN 0 THEN to_jsonb(i + 0.5) ELSE to_jsonb(i) END)"
    fill(100, "'p' || i % 7", "lpad(i::text, 9, '0')", number)
    mixed = kinds_of(describe(table))["mixed-numbers"]
    assert (mixed.weight, mixed.entities) == (Weight.HINT, 75)
    assert mixed.edit == {"operations": [{"op": "convert", "property": "Total", "type": "Double"}]}


@pytest.mark.parametrize(
    ("pk", "rk", "query", "edits"),
    [
        ("'all'", "i::text", "Mail eq 'a'", {"one-partition", "unpadded-numbers", "costly-query", "mixed-types"}),
        (
            "to_char(date '2026-01-01' + i % 90, 'DD.MM.YYYY')",
            "'o-' || i",
            "",
            {"unsorted-dates", "unpadded-numbers", "mixed-types"},
        ),
        (
            "CASE i % 2 WHEN 0 THEN 'Shop' ELSE 'shop' END",
            "lpad(i::text, 9, '0')",
            "Age gt 5",
            {"mixed-case", "costly-query", "mixed-types"},
        ),
    ],
)  # fmt: skip
def test_the_edits_of_findings_can_be_read(table, fill, send, pk, rk, query, edits):
    props = (
        "jsonb_build_object('Mail', 'sx' || i % 50, 'Age', i)"
        ' || CASE i % 3 WHEN 0 THEN \'{"N": 1}\'::jsonb ELSE \'{"N": "sx"}\' END'
    )
    fill(1_500, pk, rk, props)
    if query:
        send(query, 1)
    findings = [it for it in describe(table).findings if it.edit is not None]
    assert {str(it.kind) for it in findings} == edits
    for it in findings:
        read_operations(it.edit["operations"], timezone.now())
        assert parse(it.edit.get("filter", ""), CONSOLE) is not None or "filter" not in it.edit
