"""The function of a distributed relation does what the statements of a local one do, and records the same."""

import random
from dataclasses import replace

import pytest
from django.db import transaction

from storage.cluster import ddl
from storage.domain.entities.changes import Delete, Insert, Update, Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import ChangeSetError, StorageError
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY, Precondition
from storage.domain.values.kinds import AccountKind
from storage.sql import batch, entities
from storage.sql import history as segments
from storage.sql.django import execute, fetch, run
from storage.sql.history import Recorder
from tests.sql.conftest import ACCOUNT_ID, TABLE_ID

LOCAL, DISTRIBUTED = f"entity_{TABLE_ID}", f"distributed_{TABLE_ID + 1}"
KEYS = [EntityKey("p", name) for name in "abc"]
REQUEST = "00000000-0000-0000-0000-000000000001"


@pytest.fixture
def both(relation):
    """A local and a distributed relation, both empty, and the recorders of their changes."""
    execute(segments.SEQUENCE.replace("SEQUENCE", "SEQUENCE IF NOT EXISTS"))
    execute(segments.create(ACCOUNT_ID, 1))
    execute(segments.write_to(ACCOUNT_ID, 1))
    for command in ddl.create(TABLE_ID + 1, AccountKind.STORAGE):
        execute(command)
    recorder = Recorder(segments.writers_name(ACCOUNT_ID), 7, REQUEST)
    return [(name, recorder) for name in (LOCAL, DISTRIBUTED)]


def a_change(chance, key, timestamp):
    values = {chance.choice("AB"): EdmValue(Edm.STRING, "x" * chance.choice((1, 2000)))}
    if chance.random() < 0.1:
        values = {f"P{number}": EdmValue(Edm.INT64, number) for number in range(200)}
    if chance.random() < 0.1:
        values = {f"Q{number}": EdmValue(Edm.INT64, number) for number in range(200)}
    condition = chance.choice((ANY, ANY, Precondition(timestamp), Precondition(1)))
    return chance.choice(
        (
            Insert(Entity(key, values)),
            Upsert(Entity(key, values), merge=False),
            Upsert(Entity(key, values), merge=True),
            Update(Entity(key, values), condition, merge=False),
            Update(Entity(key, values), condition, merge=True),
            Delete(key, condition),
        )
    )


def outcome(statement):
    """Whether a statement succeeds, and how it fails; the second is the place of the failure in a change set."""
    try:
        with transaction.atomic():
            run(statement)
    except ChangeSetError as failure:
        return type(failure.error), failure.index
    except StorageError as failure:
        return type(failure), None
    return None, None


def rows(relation):
    return fetch(f"SELECT pk, rk, props, anns, vals FROM {relation} ORDER BY pk, rk")


def recorded():
    columns = "op, pk, rk, was IS NULL, actor, request, anns, vals"
    local = fetch(f"SELECT {columns} FROM history_{ACCOUNT_ID} ORDER BY pk, rk, seq")
    return local, fetch(f"SELECT {columns} FROM {DISTRIBUTED}_history ORDER BY pk, rk, ts, op <> 'd'")


@pytest.mark.parametrize("seed", range(6))
def test_both_forms_agree(both, seed):
    chance = random.Random(seed)
    failed = 0
    for _ in range(60):
        number = chance.choice((1, 1, 2, 3))
        keys = chance.sample(KEYS, number)
        state = chance.getrandbits(64)
        outcomes = []
        for relation, recorder in both:
            known = dict(fetch(f"SELECT rk, ts FROM {relation}"))
            same = random.Random(state)
            changes = [a_change(same, key, known.get(key.row_key, 5)) for key in keys]
            alone = number == 1 and same.random() < 0.7
            outcomes.append(
                outcome(entities.change(relation, changes[0], recorder))
                if alone
                else outcome(batch.apply(relation, changes, recorder))
            )
        assert outcomes[0] == outcomes[1]
        failed += outcomes[0][0] is not None
        assert rows(LOCAL) == rows(DISTRIBUTED)
    local, distributed = recorded()
    assert local == distributed
    assert 5 < failed < 55


def test_refusals_are_returned_where_the_function_runs(both):
    """Citus closes its connection to a node where a statement has failed: 21 to 49 ms for each refusal."""
    relation, recorder = both[1]
    known = Insert(Entity(KEYS[0], {}))
    run(entities.change(relation, known, recorder))
    for statement, refusal in (
        (entities.change(relation, known, recorder), b'{TB001,"-1 EntityAlreadyExists"}'),
        (entities.change(relation, Delete(KEYS[1], ANY), recorder), b'{TB001,"-1 ResourceNotFound"}'),
        (
            entities.change(relation, Delete(KEYS[0], Precondition(1)), recorder),
            b'{TB001,"-1 UpdateConditionNotSatisfied"}',
        ),
        (batch.apply(relation, [Insert(Entity(KEYS[1], {})), known]), b'{TB001,"1 EntityAlreadyExists"}'),
    ):
        returned = replace(statement, read=lambda result: result.get_value(0, 0))
        assert run(returned) == refusal
    assert rows(relation) == [("p", "a", "{}", "", "")]  # what a refused change set had inserted is gone


def test_timestamps_grow(both):
    relation, recorder = both[1]
    written = run(entities.change(relation, Insert(Entity(KEYS[0], {})), recorder))
    execute(f"UPDATE {relation} SET ts = ts + 10000000000")
    following = run(entities.change(relation, Update(Entity(KEYS[0], {}), ANY, merge=False), recorder))
    assert following == written + 10_000_000_001
    run(entities.change(relation, Delete(KEYS[0], ANY), recorder))
    assert fetch(f"SELECT max(ts) FROM {relation}_history WHERE op = 'd'") == [(following + 1,)]


def test_nothing_is_recorded_without_a_recorder(both):
    relation, _ = both[1]
    run(batch.apply(relation, [Insert(Entity(key, {})) for key in KEYS]))
    run(entities.change(relation, Delete(KEYS[0], ANY)))
    assert fetch(f"SELECT count(*) FROM {relation}_history") == [(0,)]
