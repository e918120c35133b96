"""Rows of versions before 1.1, whose annotations have a column: how they read, and become like all others."""

from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings

from storage.domain.entities.entity import EntityKey, quote_name, write_fragments
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.encoding import needs_annotation
from storage.models import OldRows
from storage.relations import old_rows
from storage.sql import pages, relations
from storage.sql.content import with_annotations
from storage.sql.django import execute, fetch, run
from tests import strategies
from tests.examples import of_usual

pytestmark = pytest.mark.django_db(transaction=True)

KEY = EntityKey("p", "r")


def insert_old(table, key, properties):
    """Store an entity as 1.0 did."""
    projection, content = write_fragments(properties)
    values = "".join(line.rpartition("\t")[2].join(("\n", "")) for line in content.split("\n")[1:])
    annotations = "".join(
        f'\n,{quote_name(name)[:-1]}@odata.type":"{value.type.value}"'
        for name, value in properties.items()
        if needs_annotation(value)
    )
    execute(
        f"INSERT INTO {relations.relation_of(table)} VALUES (%s, %s, %s, %s::jsonb, %s, %s)",
        *(*key, 5, projection, annotations, values),
    )


def read(table, key=KEY):
    return run(pages.point(relations.relation_of(table), key, EntityQuery()))


@given(strategies.properties)
@settings(max_examples=of_usual(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_old_row_reads_and_becomes_like_any_other(table, properties):
    relation = relations.relation_of(table)
    execute(f"DELETE FROM {relation}")
    OldRows.objects.update_or_create(table=table, defaults={"last": None})
    insert_old(table, KEY, properties)
    expected = write_fragments(properties)
    before = read(table)
    assert before.content.decode() == expected.content
    [stored] = fetch(f"SELECT anns, vals FROM {relation}")
    assert with_annotations(*(text.encode() for text in stored)).decode() == expected.content
    assert fetch(f"SELECT props = entity_projection({pages.CONTENT}) FROM {relation}") == [(True,)]

    old_rows.rewrite(datetime.now(UTC))

    assert read(table) == before
    assert fetch(f"SELECT ts, anns, vals FROM {relation}") == [(5, "", expected.content)]
    assert not OldRows.objects.exists()


def test_tables_are_gone_through_in_portions(table, monkeypatch):
    keys = [EntityKey("p", f"{number:04}") for number in range(1_100)]
    for key in keys:
        insert_old(table, key, {"L": EdmValue(Edm.INT64, 1)})
    OldRows.objects.create(table=table)
    monkeypatch.setattr(old_rows, "_SECONDS", 0.0)  # one portion, but for the first

    relation = relations.relation_of(table)
    for _ in range(9):
        old_rows.rewrite(datetime.now(UTC))
        if not OldRows.objects.exists():
            break

    assert fetch(f"SELECT count(*) FROM {relation} WHERE anns <> ''") == [(0,)]
    assert read(table, keys[-1]).content == b'\n\t,"L@odata.type":"Edm.Int64"\t,"L":"1"'
