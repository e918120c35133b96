"""Rules of Citus' planner that every statement about a distributed relation keeps, for every operation on its
table.

The planner's refusals and wrong answers were found on a cluster of three nodes: docs/cluster.md. The statements are
those that operations send, caught on their way; relations are in their distributed form, with stand-ins for Citus.
"""

import re
from contextlib import suppress
from datetime import timedelta

import psycopg
import pytest
from django.db import connection, transaction
from django.utils import timezone

from storage.accounts import accounts
from storage.cluster import ddl, distribution, function
from storage.cluster import relations as distributed_relations
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Delete, Insert, Update, Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import StorageError
from storage.domain.filters.parser import parse
from storage.domain.filters.query import EntityQuery, Position, Sort
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY, Precondition
from storage.domain.values.kinds import AccountKind
from storage.entities import edits, entities, estimates, facets, properties, schema
from storage.history import versions
from storage.relations import history
from storage.sql import entities as statements
from storage.sql import history as segments
from storage.sql import pages, relations
from storage.sql.django import execute, fetch, run, run_in_lane
from storage.sql.relations import relation_of
from storage.sql.statement import Lane, Statement
from storage.tables import table_list, tables
from tests.sql import citus

ADA = Actor(ActorKind.USER, "ada")
KEY = EntityKey("p", "r")
FILTERS = (
    None,
    "PartitionKey eq 'p'",
    "PartitionKey eq 'p' and RowKey ge 'a'",
    "PartitionKey gt 'a'",
    "A eq 1",
    "A gt 0 and A lt 9",
    "PartitionKey eq 'p' and (A eq 1 or B eq 2) and not (C eq 'x')",
    "Timestamp gt datetime'2020-01-01T00:00:00Z'",
)


TEXTS: list[str] = []  # the statements are the same in each test


@pytest.fixture
def texts(db, monkeypatch):
    """Return the statements that name a distributed relation, except those that make and move it."""
    if not TEXTS:
        TEXTS.extend(caught_texts(monkeypatch))
    return TEXTS


def caught_texts(monkeypatch):
    distributed_relations.can_distribute.cache_clear()
    citus.install()
    table = tables.create(accounts.add("acme"), "people")
    distribution.distribute(table)
    statements, execute_raw = [], psycopg.RawCursor.execute

    def catch(cursor, query, *args, **kwargs):
        statements.append(query if isinstance(query, str) else query.decode())
        return execute_raw(cursor, query, *args, **kwargs)

    def catch_django(execute, query, params, many, context):
        statements.append(query)
        return execute(query, params, many, context)

    monkeypatch.setattr(psycopg.RawCursor, "execute", catch)
    with connection.execute_wrapper(catch_django):
        use(table)
    distributed_relations.can_distribute.cache_clear()
    named = sorted({text for text in statements if re.search(r"\b(deleted_)?distributed_\d+", text)})
    assert len(named) > 50
    return [text for text in named if not text.lstrip().startswith("EXPLAIN")]


def use(table):
    """Do whatever can be done with a table."""
    values = {
        "A": EdmValue(Edm.INT32, 1),
        "B": EdmValue(Edm.INT32, 2),
        "C": EdmValue(Edm.STRING, "x" * 20_000),
    }

    def entity(key=KEY, kind=AccountKind.STORAGE):
        made = Entity(key, values)
        made.kind = kind
        return made

    for recorder in (None, history.recorder(table.account, ADA)):
        for kind in AccountKind:
            for change in (
                Insert(entity(kind=kind)),
                Upsert(entity(kind=kind), merge=False),
                Upsert(entity(kind=kind), merge=True),
                Update(entity(kind=kind), ANY, merge=False),
                Update(entity(kind=kind), ANY, merge=True),
                Update(entity(kind=kind), Precondition(1), merge=False),
                Update(entity(kind=kind), Precondition(1), merge=True),
                Delete(KEY, Precondition(1)),
                Delete(KEY, ANY),
                Delete(KEY, ANY),
            ):
                attempt(statements.change(relation_of(table), change, recorder))
        for statement in statements.insert_all(relation_of(table), [entity(EntityKey("q", "1"))], recorder):
            attempt(statement)
    many = [EntityKey(partition, str(number)) for partition in "pq" for number in range(2, 10)]
    edits.apply(table, [Insert(entity(key)) for key in many], by=ADA)
    edits.apply(table, [Update(entity(key), ANY, merge=True) for key in many], by=ADA)
    edits.apply_one(table, Upsert(entity(), merge=True), by=ADA)
    edits.delete(table, many[:4], by=ADA)
    entities.get(table, KEY)
    entities.get_many(table, many)
    versions.page(table, KEY)
    for text in FILTERS:
        for select in (None, ("A", "C")):
            query = EntityQuery(filter=None if text is None else parse(text), select=select, top=3)
            list(entities.all_pages(table, query))
            entities.page(table, EntityQuery(filter=query.filter, start=Position("p", "3"), top=3))
            entities.preview_page(table, query)
            entities.sorted_preview_page(table, query, Sort("A", descending=True))
            entities.total(table, query)
            entities.count(table, query)
            estimates.estimate(table, query)
            facets.facets(table, query)
    run_in_lane(pages.window_end(relation_of(table), EntityQuery(), 3))
    run_in_lane(pages.measured_page(relation_of(table), EntityQuery(top=3), 100))
    properties.sample(table)
    properties.names(table, EntityQuery())
    schema.describe(table)
    table_list.sizes([table])
    table_list.describe(table)
    table_list.disk_usage(table)
    distribution.tidy(timezone.now())
    tables.delete(table.account, "people", keep=timedelta(days=1))
    versions.page(type(table).objects.get(pk=table.pk), KEY)


def attempt(statement):
    with suppress(StorageError), transaction.atomic():
        run(statement)


def without_literals(text):
    return re.sub(r"\$\$.*?\$\$|E?'(?:[^']|'')*'", "''", text, flags=re.DOTALL)


def test_statements_keep_the_rules(texts):
    volatile = volatile_functions()
    for text in texts:
        plain = without_literals(text)
        # one command, unless it is kept on the coordinator
        if "citus.enable_ddl_propagation" not in text:
            assert ";" not in plain.strip().rstrip(";"), text
        # a select list has columns
        assert not re.search(r"\bSELECT\s+FROM\b", plain), text
        # relations of the coordinator are not joined
        assert not re.search(
            r"\b(storage_\w+|history_\d+\w*|entity_\d+|restored_images)\b|unnest\(", plain
        ), text
        assert not {name for name in re.findall(r"\b([a-z_0-9]+)\(", plain) if name in volatile}, text


def test_writes_and_locks_concern_one_partition(texts):
    writes = [text for text in texts if re.search(r"\b(INSERT INTO|UPDATE|DELETE FROM)\b", text)]
    writes = [text for text in writes if "CREATE" not in text and "_history WHERE ts <" not in text]
    assert len(writes) > 7
    for text in writes:
        assert re.search(r"\bpk = \$1|VALUES \(\$1, \$2,", text), text
        assert not re.search(r"\(\s*(e\.)?pk\s*,\s*(e\.)?rk\s*\)\s*(=|<|>|IN)", text), text
        # writes of a CTE run on the coordinator and on a node, which do not commit together
        assert not re.search(r"\bWITH\b(?! ORDINALITY)", text), text


def test_upserts_have_no_subquery(texts):
    """Citus refuses one in an INSERT, also in its ON CONFLICT."""
    upserts = [text for text in texts if "ON CONFLICT (pk, rk) DO UPDATE" in text and "CREATE" not in text]
    assert upserts
    for text in upserts:
        assert not re.search(r"\bSELECT\b", without_literals(text)), text


def volatile_functions():
    return {
        name
        for (name,) in fetch(
            "SELECT proname::text FROM pg_proc WHERE provolatile = 'v' AND prokind = 'f'"
            " AND pronamespace = 'pg_catalog'::regnamespace"
        )
    }


def test_the_function_keeps_the_rules_where_it_runs():
    """Every statement in it has the partition key as it was given; and ROW_COUNT is not asked, which is wrong there."""
    text = function.create_delegated_function("distributed_7", AccountKind.STORAGE)
    assert "ROW_COUNT" not in re.sub(r"--.*", "", text)
    assert not re.search(r"\b(clock_timestamp|nextval|pg_current_xact_id|storage_|history_\d)", text)
    body = re.sub(r"\s+", " ", re.sub(r"--.*", "", text))
    # no exception leaves it on a node
    assert set(re.findall(r"RAISE EXCEPTION USING ERRCODE = '(\w+)'", body)) <= set(
        re.findall(r"\bWHEN SQLSTATE '(\w+)'", body)
    )
    about = [part for part in re.split(r";", body) if "distributed_7" in part and "CREATE" not in part]
    assert len(about) == 22
    for part in about:
        assert re.search(r"\.pk = p\b|VALUES \(p,|SELECT p,|'distributed_7', p\)", part), part


def test_ddl_is_sent_in_single_commands():
    kind = AccountKind.STORAGE
    for commands in (
        ddl.create(7, kind),
        ddl.take_form(7, kind),
        ddl.spread(7),
        ddl.gather(7),
        ddl.leave_form(7, 1, kind, is_recorded=True),
        ddl.soft_delete(7, is_spread=True),
        ddl.restore(7, kind, is_spread=True),
        ddl.renew_function(7, kind, is_spread=True),
        ddl.drop(7),
    ):
        for command in commands:
            if "citus.enable_ddl_propagation" not in command:
                assert ";" not in without_literals(command).strip(), command
    for commands in (ddl.soft_delete(7, is_spread=True), ddl.restore(7, kind, is_spread=True), ddl.gather(7)):
        # one connection to each node, and functions before relations
        order = [
            word
            for text in commands
            for word in re.findall(r"sequential|FUNCTION|RENAME|undistribute_table", text)
        ]
        assert order.index("sequential") == 0
        assert order.index("FUNCTION") < max(map(order.index, {"RENAME", "undistribute_table"} & set(order)))


def test_one_table_at_a_time_is_spread():
    """Two that spread relations and then functions at once deadlock on pg_dist_colocation."""
    commands = ddl.spread(7)
    lock, first = (
        next(place for place, text in enumerate(commands) if word in text)
        for word in ("pg_advisory_xact_lock", "create_distributed_table")
    )
    assert lock < first


def test_sessions_plan_calls_again_when_a_function_is_delegated(db):
    """A plan without values would go on to run it on the coordinator."""
    for command in ddl.create(7, AccountKind.STORAGE):
        execute(command)
    version = "SELECT xmin::text, ctid::text FROM pg_proc WHERE proname = 'distributed_7_change_set'"
    before = fetch(version)
    with citus.installed():
        for command in ddl.spread(7):
            if "citus." not in command:
                execute(command)
    assert fetch(version) != before


def test_local_functions_and_views_stay_on_the_coordinator():
    """Citus would send them to all nodes, and fail while one is down."""
    for text in (
        relations.create(7, 1),
        relations.complete(7, 1, AccountKind.STORAGE),
        relations.soft_delete(7),
        relations.restore(7, 1),
        segments.write_to(1, 1),
        segments.pack(1, 1),
    ):
        before = re.split(r"\b(?:CREATE(?: OR REPLACE)?|DROP) (?:FUNCTION|VIEW)\b", text)[:-1]
        assert before
        for part in before[:1]:
            assert "SET LOCAL citus.enable_ddl_propagation = off" in part
        assert text.rstrip().endswith("SET LOCAL citus.enable_ddl_propagation TO DEFAULT")


def test_plans_on_a_coordinator_are_made_with_values(db):
    mode = Statement("SELECT current_setting('plan_cache_mode')", (), Lane.KEY, lambda it: it.get_value(0, 0))
    assert run_in_lane(mode) == b"force_generic_plan"
    execute(
        "INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)"
        " SELECT 99999::oid, 'citus', extowner, extnamespace, false, '14.0' FROM pg_extension LIMIT 1"
    )
    assert run_in_lane(mode) == b"auto"
