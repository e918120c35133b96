"""Bulk edits: the preview is what the run does, and the run meets writers, kills, undo and its own new keys."""

import asyncio
import json
from datetime import timedelta

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.accounts import account_settings, accounts
from storage.accounts.accounts import NewAccount
from storage.bulk_edit import bulk_edit_jobs, bulk_edit_previews, bulk_edits
from storage.bulk_edit.bulk_edit_work import BulkEditRequest, SkippedEntity
from storage.bulk_edit.bulk_edits import BulkEditRefused, Progress
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Delete, Insert, Upsert
from storage.domain.entities.entity import Entity, EntityKey, read_stored
from storage.domain.errors import InsufficientAccountPermissions, InvalidInput
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.domain.values.kinds import AccountKind
from storage.editing.bulk_edit import Obstacle, ObstacleKind
from storage.entities import entities
from storage.models import Activity
from storage.runtime import job_runner
from storage.runtime.threads import in_thread
from storage.sql import entities as statements
from storage.sql.django import execute, fetch, run
from storage.sql.relations import relation_name
from storage.tables import tables
from storage.undo import undo
from tests import strategies
from tests.entities.test_edits import HOSTILE
from tests.examples import of_usual

pytestmark = pytest.mark.django_db(transaction=True)

ADA = Actor(ActorKind.USER, "ada", request_id="7f3a19c0-0000-4000-8000-000000000001")
CHANGED, EXISTS, GONE = (
    Obstacle(it) for it in (ObstacleKind.CHANGED, ObstacleKind.KEY_EXISTS, ObstacleKind.GONE)
)


@pytest.fixture
def kinds():
    """Make a table in an account of each kind."""
    return {
        kind: tables.create(accounts.add(kind.value, NewAccount(kind=kind)), "people") for kind in AccountKind
    }


@pytest.fixture
def table():
    return tables.create(accounts.add("acme"), "people")


def number(value):
    return EdmValue(Edm.INT32, value)


def key(row_key):
    return EntityKey("p", row_key)


def put(table, **numbers):
    """Upsert entities by their RowKeys with a number and everything that is hard to keep; None deletes."""
    for row_key, value in numbers.items():
        change = (
            Delete(key(row_key), ANY)
            if value is None
            else Upsert(Entity(key(row_key), {**HOSTILE, "N": number(value)}), merge=False)
        )
        run(statements.change(relation_name(table.pk), change))


def content(table, name="N"):
    result = (read_stored(it) for page in entities.all_pages(table, EntityQuery()) for it in page)
    return {it.key.row_key: it.properties[name].value if name in it.properties else None for it in result}


def rows(table):
    columns = "pk, rk, props::text, anns, vals, props = entity_projection(vals)"
    return fetch(f"SELECT {columns} FROM {relation_name(table.pk)} ORDER BY pk, rk")


def request(*operations, filter="", **options):  # noqa: A002  as the query option is called
    return BulkEditRequest(filter, operations, **options)


def set_(expression, name="N"):
    return {"op": "set", "property": name, "expression": expression}


INCREMENT = request(set_("N + 1"))
MOVE = request({"op": "key", "row_key": "concat('n', RowKey)"})


def steps(table, edit_request, progress=None, *, size=2, by=ADA):
    """Advance chunk by chunk, with the progress kept as JSON between them."""
    progress = progress or bulk_edits.begin(table, edit_request)
    while not progress.is_finished:
        with transaction.atomic():
            progress, skipped = bulk_edits.advance(table, edit_request, progress, by=by, size=size)
        progress = Progress.load(json.loads(json.dumps(progress.dump())))
        yield progress, skipped


def edit(table, wanted, *, by=ADA, **options):
    return bulk_edit_jobs.outcome_of(job_runner.finish(bulk_edit_jobs.start(table, wanted, by=by, **options)))


def last(several):
    *_, (progress, _) = several
    return progress


def test_the_preview_is_what_the_run_does_and_undo_takes_it_back(table):
    put(table, a=1, b=2, c=2**31 - 1, d=4)
    edit_request = request(
        set_("N * 2"), {"op": "rename", "property": "Text", "to": "Note"}, filter="N gt 1 and RowKey lt 'd'"
    )
    before = rows(table)
    foreseen = bulk_edit_previews.preview(table, edit_request)
    assert rows(table) == before
    assert (foreseen.matches, foreseen.is_exact, foreseen.examined, foreseen.is_complete) == (
        2,
        True,
        2,
        True,
    )
    done = edit(table, edit_request, by=ADA, number=2, read_at=foreseen.read_at)
    assert done.counts == foreseen.counts
    assert (done.counts.changed, done.counts.skipped) == (1, 1)
    assert done.counts.examples == [
        SkippedEntity(key("c"), Obstacle(ObstacleKind.OUT_OF_RANGE, "N", "Int32"))
    ]
    assert content(table) == {"a": 1, "b": 4, "c": 2**31 - 1, "d": 4}
    assert content(table, "Note") == {"a": None, "b": HOSTILE["Text"].value, "c": None, "d": None}
    # untouched rows stay the same to the byte, and each changed row has its own projection
    assert [row for row in rows(table) if row[1] != "b"] == [row for row in before if row[1] != "b"]
    assert all(row[-1] for row in rows(table))
    [sample] = foreseen.samples
    assert sample.content == "".join(rows(table)[1][3:5])
    assert {(it.property, it.before, it.after): n for it, n in foreseen.types.items()} == {
        ("N", Edm.INT32, Edm.INT32): 1,
        ("Text", Edm.STRING, None): 1,
        ("Note", None, Edm.STRING): 1,
    }

    activities = Activity.objects.filter(verb="entity.bulk-edit")
    assert [(it.actor, it.table_name, it.detail["rows"], it.detail["skipped"]) for it in activities] == [
        ("ada", "people", 1, 1)
    ]
    undone = undo.undo(done.activity, ADA)
    assert rows(table) == before
    undo.undo(undone, ADA)
    assert content(table)["b"] == 4


def test_all_operations_over_several_chunks(table):
    put(table, **{f"k{place}": place for place in range(7)})
    progress = last(steps(table, INCREMENT))
    assert content(table) == {f"k{place}": place + 1 for place in range(7)}
    assert (progress.counts.changed, progress.counts.unchanged, progress.counts.skipped) == (7, 0, 0)

    assert bulk_edit_previews.preview(table, MOVE).counts.moved == 7
    progress = last(steps(table, MOVE))
    # those that were moved are ahead of the walk: it meets them, and leaves them alone
    assert (progress.counts.moved, progress.counts.skipped) == (7, 0)
    assert content(table) == {f"nk{place}": place + 1 for place in range(7)}
    assert all(row[-1] for row in rows(table))

    progress = last(steps(table, request({"op": "delete"}, filter="N le 3")))
    assert (progress.counts.deleted, content(table)) == (
        3,
        {f"nk{place}": place + 1 for place in range(3, 7)},
    )
    assert edit(table, request({"op": "delete"}), by=ADA).counts.deleted == 4
    assert content(table) == {}
    assert edit(table, request({"op": "delete"}), by=ADA).activity is None


def test_writes_during_the_walk_are_left_alone(table):
    put(table, a=1, b=1, c=1, d=1, e=1)
    walk = steps(table, INCREMENT)
    next(walk)
    put(table, a=10, d=10, e=None, z=10)  # one that was edited, two that were not, and a new one
    progress = last(walk)
    assert content(table) == {"a": 10, "b": 2, "c": 2, "d": 10, "z": 10}
    assert progress.counts.changed == 3
    assert progress.counts.examples == [SkippedEntity(key("d"), CHANGED), SkippedEntity(key("z"), CHANGED)]


def test_writes_since_the_preview_are_left_alone(table):
    put(table, a=1, b=1)
    read_at = bulk_edit_previews.preview(table, INCREMENT).read_at
    put(table, b=5)
    done = edit(table, INCREMENT, by=ADA, read_at=read_at)
    assert content(table) == {"a": 2, "b": 5}
    assert done.counts.examples == [SkippedEntity(key("b"), CHANGED)]


async def test_a_write_between_reading_and_writing_is_left_alone(table, monkeypatch):
    """Another session writes after the chunk was read, and another deletes."""
    await in_thread(lambda: put(table, a=1, b=1, c=1))
    apply = bulk_edits._write
    loop = asyncio.get_running_loop()

    def write_later(*arguments):
        asyncio.run_coroutine_threadsafe(in_thread(lambda: put(table, a=7, b=None)), loop).result(60)
        return apply(*arguments)

    monkeypatch.setattr(bulk_edits, "_write", write_later)
    for edit_request, expected in ((INCREMENT, {"a": 7, "c": 2}), (MOVE, {"a": 7, "nc": 2})):
        progress = await in_thread(
            lambda edit_request=edit_request: last(steps(table, edit_request, size=10))
        )
        assert progress.counts.written == 1
        skipped = {key.row_key: obstacle for key, obstacle in progress.counts.examples}
        assert skipped == {"a": CHANGED, "b": GONE}
        assert await in_thread(lambda: content(table)) == expected
        await in_thread(lambda: put(table, a=1, b=1))


def test_keys_that_are_taken(table):
    put(table, a=1, b=2, c=3, x=4)
    # a and b go to the same key, c to one that is there, x nowhere
    edit_request = request({"op": "set", "property": "To", "expression": "'x'"}, filter="RowKey eq 'c'")
    edit(table, edit_request, by=ADA)
    edit_request = request({"op": "key", "row_key": "coalesce(To, 'y')"}, filter="RowKey ne 'x'")
    foreseen = bulk_edit_previews.preview(table, edit_request)
    done = edit(table, edit_request, by=ADA)
    assert (done.counts.moved, dict(done.counts.obstacles)) == (1, {EXISTS: 2})
    assert sorted(done.counts.examples) == [SkippedEntity(key("b"), EXISTS), SkippedEntity(key("c"), EXISTS)]
    assert foreseen.counts.obstacles == done.counts.obstacles
    assert content(table) == {"b": 2, "c": 3, "x": 4, "y": 1}
    undo.undo(done.activity, ADA)
    assert content(table) == {"a": 1, "b": 2, "c": 3, "x": 4}


def test_a_key_that_an_earlier_entity_had_is_free(table):
    """Keys become free in the order of keys, chunk by chunk; the preview predicts it."""
    put(table, a=1, b=2, c=3)
    edit_request = request(set_("'d'", "To"), filter="RowKey eq 'a'")
    edit(table, edit_request, by=ADA)
    edit_request = request({"op": "key", "row_key": "coalesce(To, 'a')"}, filter="RowKey lt 'c'")
    foreseen = bulk_edit_previews.preview(table, edit_request)
    assert foreseen.counts.obstacles == {EXISTS: 1}  # in one chunk
    assert last(steps(table, edit_request, size=1)).counts.moved == 2
    assert content(table) == {"a": 2, "c": 3, "d": 1}


def test_long_keys_and_other_partitions(table):
    put(table, a=1)
    edit_request = request({"op": "key", "partition_key": f"'{'字' * 600}'", "row_key": f"'{'字' * 600}'"})
    assert edit(table, edit_request, by=ADA).counts.moved == 1
    [row] = rows(table)
    assert (row[0], row[1]) == ("字" * 600, "字" * 600)
    back = request({"op": "key", "partition_key": "'p'", "row_key": "'a'"})
    assert edit(table, back, by=ADA).counts.moved == 1
    assert content(table) == {"a": 1}


def test_constants_that_json_of_postgresql_cannot_hold(table):
    put(table, a=1)
    assert edit(table, request(set_("'\0\ud800'", "Text2"))).counts.changed == 1
    assert content(table, "Text2") == {"a": "\0\ud800"}


def test_a_new_key_of_an_account_without_history(table):
    account_settings.change(table.account, by=ADA, history_days=0)
    table.account.refresh_from_db()
    put(table, a=1, b=2, c=3)
    assert not bulk_edit_previews.preview(table, MOVE).can_undo
    progress = last(steps(table, MOVE, size=1))
    assert (progress.counts.moved, progress.counts.skipped) == (3, 0)
    assert content(table) == {"na": 1, "nb": 2, "nc": 3}


def test_protected_accounts_need_the_number(table):
    put(table, a=1, b=2, c=3)
    account_settings.change(table.account, by=ADA, protected=True)
    table.account.refresh_from_db()
    edit_request = request({"op": "delete"}, filter="N ge 2")
    for number_given, words in ((None, "is protected"), (3, "finds 2 entities now, not 3")):
        with pytest.raises(BulkEditRefused, match=words):
            edit(table, edit_request, by=ADA, number=number_given)
    assert len(content(table)) == 3
    assert edit(table, edit_request, by=ADA, number=2).counts.deleted == 2


def test_refusals(table):
    put(table, a=1)
    for edit_request in (request(), request(set_("N +")), request(set_("1"), filter="N eq")):
        for ask in (bulk_edit_previews.preview, bulk_edits.begin):
            with pytest.raises(InvalidInput):
                ask(table, edit_request)
    account_settings.change(table.account, by=ADA, read_only=True)
    with pytest.raises(InsufficientAccountPermissions):
        bulk_edits.begin(table, INCREMENT)


def test_a_preview_that_takes_too_long_says_what_it_knows(table):
    put(table, a=1, b=2)
    ticking = iter(range(100))
    preview = bulk_edit_previews.preview(
        table, INCREMENT, limit=timedelta(seconds=0), clock=lambda: next(ticking)
    )
    assert (preview.examined, preview.is_complete, preview.matches, preview.is_exact) == (0, False, 2, True)


def test_samples_are_the_first_some_others_and_each_kind(table):
    for start in range(0, 300, 100):
        put(table, **{f"k{place:03}": place for place in range(start, start + 100)})
    run(
        statements.change(
            relation_name(table.pk), Insert(Entity(key("k250b"), {"N": EdmValue(Edm.STRING, "x")}))
        )
    )
    preview = bulk_edit_previews.preview(table, request(set_("'y'")))
    shown = [it.old_key.row_key for it in preview.samples]
    assert shown[:10] == [f"k{place:03}" for place in range(10)]
    assert "k250b" in shown and len(shown) == 21
    assert shown == sorted(shown)
    assert sum(preview.types.values()) == preview.counts.changed == 301
    assert shown == [
        it.old_key.row_key for it in bulk_edit_previews.preview(table, request(set_("'y'"))).samples
    ]


_NAMES = st.sampled_from("ABC")
_EXPRESSIONS = st.sampled_from(
    ["A", "B + 1", "upper(C)", "string(A)", "coalesce(C, 'none')", "now()", "double(B) / 3", "int32(C)"]
)
_OPERATIONS = st.one_of(
    st.builds(set_, _EXPRESSIONS, _NAMES),
    st.builds(lambda name: {"op": "remove", "property": name}, _NAMES),
    st.builds(
        lambda op, name, to, replace: {"op": op, "property": name, "to": to, "replace": replace},
        st.sampled_from(["rename", "copy"]),
        _NAMES,
        _NAMES,
        st.booleans(),
    ),
    st.builds(
        lambda name, to: {"op": "convert", "property": name, "type": to.value}, _NAMES, st.sampled_from(Edm)
    ),
)
_KEYS = st.sampled_from(
    ["concat('n', RowKey)", "substring(RowKey, 0, 1)", "substring(RowKey, 1) + 'z'", "string(A)", "C"]
)


@settings(
    max_examples=of_usual(20),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.dictionaries(
        st.text("ab", min_size=1, max_size=2),
        st.dictionaries(_NAMES, strategies.values, max_size=3),
        max_size=6,
    ),
    st.lists(_OPERATIONS, min_size=1, max_size=3),
    st.none() | _KEYS,
    st.sampled_from(AccountKind),
    st.booleans(),
)
def test_any_edit_is_foreseen_exact_and_undone(kinds, content, operations, new_key, kind, allows_loss):
    table = kinds[kind]
    relation = relation_name(table.pk)
    execute(f"DELETE FROM {relation}")
    for row_key, values in content.items():
        run(statements.change(relation, Insert(Entity(key(row_key), values, kind))))
    if new_key is not None:
        operations = [*operations, {"op": "key", "row_key": new_key}]
    edit_request = request(*operations, allows_loss=allows_loss)
    before = rows(table)
    foreseen = bulk_edit_previews.preview(table, edit_request)
    done = edit(table, edit_request, by=ADA)
    assert done.counts.obstacles == foreseen.counts.obstacles
    assert done.counts.written == foreseen.counts.written
    assert len(rows(table)) == len(before)
    assert all(row[-1] for row in rows(table))
    if "now()" not in str(operations):
        after = {it.key: it.content for it in foreseen.samples}
        results = {EntityKey(*row[:2]): row[3] + row[4] for row in rows(table)}
        assert after.items() <= results.items()
    if done.activity is not None:
        undo.undo(done.activity, ADA)
    assert rows(table) == before
