"""The relation of a table: its shape, its birth and its end."""

from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection, transaction

from storage.accounts import accounts
from storage.domain.entities.changes import Insert, Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import TableNotFound
from storage.domain.filters.query import EntityQuery
from storage.sql import batch, entities, pages, relations
from storage.sql.django import execute, run
from storage.tables import tables
from tests.sql.conftest import ACCOUNT_ID, TABLE_ID

INSERT = Insert(Entity(EntityKey("p", "r"), {}))


def fetch(text, *parameters):
    with connection.cursor() as cursor:
        cursor.execute(text, parameters)
        return cursor.fetchall()


def test_a_relation_has_the_columns_of_the_template(relation):
    columns = (
        "SELECT attname, format_type(atttypid, atttypmod), attnotnull, collname FROM pg_attribute "
        "LEFT JOIN pg_collation ON pg_collation.oid = attcollation "
        "WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum"
    )

    result = fetch(columns, relation)

    assert result == fetch(columns, "entity_template")
    assert [row[0] for row in result] == ["pk", "rk", "ts", "props", "anns", "vals"]
    # keys collate by code point
    assert [row[3] for row in result][:2] == ["C", "C"]


def test_the_keys_are_the_primary_key_and_every_property_has_an_index(relation):
    definitions = {row[0] for row in fetch("SELECT indexdef FROM pg_indexes WHERE tablename = %s", relation)}

    assert {definition.partition(" USING ")[2] for definition in definitions} == {
        "btree (pk, rk)",
        "gin (props jsonb_path_ops)",
    }
    assert sum(definition.startswith("CREATE UNIQUE INDEX") for definition in definitions) == 1


def test_tables_do_not_see_each_other(relation):
    execute(relations.create(TABLE_ID + 1, ACCOUNT_ID))
    run(entities.change(relation, INSERT))
    run(batch.apply(relations.relation_name(TABLE_ID + 1), [INSERT]))

    for name in (relation, relations.relation_name(TABLE_ID + 1)):
        assert len(run(pages.page(name, EntityQuery())).entities) == 1


def test_an_upgrade_gives_every_table_the_function_of_this_version(db):
    relation = relations.relation_name(tables.create(accounts.add("acme"), "people").pk)
    for name, create in (
        ("0014_squashed_0035_branch_is_whole", "create_functions"),
        ("0042_change_sets", "replace_functions"),
    ):
        execute(f"DROP FUNCTION {relation}_change_set")
        with connection.schema_editor() as editor:
            getattr(import_module(f"storage.migrations.{name}"), create)(apps, editor)

        run(batch.apply(relation, [Upsert(INSERT.entity, merge=True)]))


def test_a_buried_relation_is_out_of_reach(relation):
    run(entities.change(relation, INSERT))

    execute(relations.soft_delete(TABLE_ID))

    statements = [
        entities.change(relation, INSERT),
        pages.page(relation, EntityQuery()),
        batch.apply(relation, [INSERT]),
    ]
    for statement in statements:
        with pytest.raises(TableNotFound), transaction.atomic():
            run(statement)
    assert fetch(f"SELECT count(*) FROM deleted_{relation}") == [(1,)]


def test_nothing_remains_of_a_dropped_relation(relation):
    def named_like_it():
        names = "SELECT relname FROM pg_class UNION SELECT proname FROM pg_proc"
        return fetch(f"SELECT relname FROM ({names}) AS names WHERE relname LIKE %s", f"%{relation}%")

    assert named_like_it()
    execute(relations.soft_delete(TABLE_ID))
    for _ in range(2):
        execute(relations.drop([TABLE_ID]))

        assert named_like_it() == []
