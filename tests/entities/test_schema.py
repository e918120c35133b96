"""The schema that entities have in effect, counted in a sample."""

import pytest
from django.db import connection

from storage.domain.errors import OperationTimedOut
from storage.domain.filters.parser import parse
from storage.domain.filters.query import EntityQuery
from storage.domain.values import dialects
from storage.domain.values.edm import Edm, EdmValue
from storage.editing.filters.types import other_types_filter
from storage.entities import entities, schema
from storage.sql import schema as statements
from storage.sql.failures import Canceled
from storage.sql.relations import relation_of
from storage.tables import table_list

VALUES = {
    Edm.STRING: ["", "ada", "9"],
    Edm.BOOLEAN: [True, False],
    Edm.INT32: [5, -5],
    Edm.INT64: [5, -(2**63), 2**63 - 1],
    Edm.DOUBLE: [5.0, -0.0, float("-inf")],
    Edm.DATETIME: [0, 10**17],
    Edm.GUID: ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
    Edm.BINARY: [b"", b"\xff" * 3],
}


def test_all_of_a_small_table(table, insert):
    insert("1", Name=EdmValue(Edm.STRING, "ada"), Age=EdmValue(Edm.INT32, 36))
    insert("2", Name=EdmValue(Edm.STRING, "ada"), Age=EdmValue(Edm.STRING, "old"))
    insert("3", Name=EdmValue(Edm.STRING, "x" * 500), Age=EdmValue(Edm.INT32, 36))
    insert("4", Raw=EdmValue(Edm.BINARY, b"\x01\x02"))
    result = schema.describe(table)
    assert (result.entities, result.total, result.is_whole) == (4, 4, True)
    assert [(it.name, it.share, it.distinct) for it in result.properties] == [
        ("PartitionKey", 1, 1), ("RowKey", 1, 4), ("Age", 0.75, 2), ("Name", 0.75, 2), ("Raw", 0.25, 1),
    ]  # fmt: skip
    age, name, raw = result.properties[2:]
    assert [(it.type, it.entities, it.examples) for it in age.types] == [
        (Edm.INT32, 2, (EdmValue(Edm.INT32, 36),)), (Edm.STRING, 1, (EdmValue(Edm.STRING, "old"),)),
    ]  # fmt: skip
    assert (age.is_mixed, name.is_mixed) == (True, False)
    assert [(it.average_size, it.largest, it.examples) for it in name.types] == [
        (169, 500, (EdmValue(Edm.STRING, "ada"),))
    ]
    assert [(it.average_size, it.examples) for it in raw.types] == [(2, (EdmValue(Edm.BINARY, b"\x01\x02"),))]


def test_an_empty_table(table):
    assert schema.describe(table) == schema.Schema((), 0, 0, is_whole=True)


@pytest.mark.parametrize(
    ("once", "distinct", "estimated"),
    [(0, 10, 10), (1000, 1000, 100_000), (500, 600, 1188)],
    ids=["few values", "all different", "some repeat"],
)
def test_distinct_values_are_estimated_from_a_sample(table, monkeypatch, once, distinct, estimated):
    count = statements.TypeCount("Name", Edm.STRING, 1000, distinct, once, 4, 4, ())
    monkeypatch.setattr(schema.sql, "run_in_lane", lambda *_, **__: statements.SchemaCounts([count], 1000))
    monkeypatch.setattr(schema.background, "estimated_rows", lambda _: 100_000)
    result = schema.describe(table)
    assert (result.entities, result.total, result.is_whole) == (1000, 100_000, False)
    assert result.properties[0].distinct == estimated


def test_partitions_are_counted_as_on_the_other_pages(table):
    relation = relation_of(table)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {relation} (pk, rk, ts, props, anns, vals)"
            " SELECT 'p' || n / 200, n, n, '{}', '', '' FROM generate_series(1, 9400) AS n"
        )
        cursor.execute(f"ANALYZE {relation}")
    result = schema.describe(table)
    assert not result.is_whole
    [partitions] = (it.distinct for it in result.properties if it.name == "PartitionKey")
    assert partitions == table_list.sizes([table])[table.name].partitions == 48


def test_row_keys_that_repeat_in_each_partition_are_counted_once(table):
    relation = relation_of(table)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {relation} (pk, rk, ts, props, anns, vals)"
            " SELECT 'p' || n / 1250, n % 1250, n, '{}', '', '' FROM generate_series(0, 4999) AS n"
        )
        cursor.execute(f"ANALYZE {relation}")
    result = schema.describe(table)
    assert not result.is_whole
    assert {it.name: it.distinct for it in result.properties} == {"PartitionKey": 4, "RowKey": 1250}


def test_a_slow_sample_is_reduced(table, insert, monkeypatch):
    insert("1")
    limits = []

    def too_long(statement, **_):
        limits.append(statement.text)
        raise Canceled

    monkeypatch.setattr(schema.sql, "run_in_lane", too_long)
    with pytest.raises(OperationTimedOut):
        schema.describe(table)
    assert [f"LIMIT {limit}" in text for limit, text in zip((2_000, 500), limits, strict=True)] == [True] * 2


def test_a_filter_finds_the_entities_of_other_types(table, insert):
    for type_, values in VALUES.items():
        for index, value in enumerate(values):
            insert(f"{type_}{index}", It=EdmValue(type_, value))
    insert("without")
    for main in set(Edm) - {Edm.INT32, Edm.DOUBLE}:
        others = [type_ for type_ in Edm if type_ is not main]
        assert rows(table, other_types_filter("It", main, others)) == keys(others)


@pytest.mark.parametrize("main", [Edm.INT32, Edm.DOUBLE])
def test_filters_tell_numbers_from_the_rest_and_int64_from_numbers(table, insert, main):
    for type_, values in VALUES.items():
        for index, value in enumerate(values):
            insert(f"{type_}{index}", It=EdmValue(type_, value))
    numbers = {Edm.INT32, Edm.INT64, Edm.DOUBLE}
    assert rows(table, other_types_filter("It", main, [Edm.INT64, Edm.GUID])) == keys(set(Edm) - numbers)
    assert rows(table, other_types_filter("It", main, [Edm.INT64])) == keys([Edm.INT64])
    assert other_types_filter("It", main, numbers - {main, Edm.INT64}) == ""


def rows(table, text):
    result = entities.preview_page(table, EntityQuery(filter=parse(text, dialects.CONSOLE, None), top=100))[0]
    return {preview.key.row_key for preview in result}


def keys(types):
    return {f"{type_}{index}" for type_ in types for index in range(len(VALUES[type_]))}
