"""Changes of entities made by users: atomic, and recorded to the byte."""

import math

import pytest

from storage.accounts import accounts
from storage.accounts.accounts import NewAccount
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Delete, Insert, Update
from storage.domain.entities.entity import Entity, EntityKey, read_stored
from storage.domain.errors import (
    ChangeSetError,
    EntityAlreadyExists,
    InsufficientAccountPermissions,
    InvalidDuplicateRow,
    InvalidInput,
    PropertiesNeedValue,
    ResourceNotFound,
    TableNotFound,
    UpdateConditionNotSatisfied,
)
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY, Precondition
from storage.domain.values.kinds import AccountKind
from storage.entities import edits, entities
from storage.entities.subject import EntityVerb
from storage.history import changes
from storage.models import Account, Activity
from storage.tables import tables

ADA = Actor(ActorKind.USER, "ada")
KEY = EntityKey("se", "ada")
HOSTILE = {
    "Text": EdmValue(Edm.STRING, "\x00 \ud800 \r\n '\"\\%s 🦊"),
    "Empty": EdmValue(Edm.STRING, ""),
    "Big": EdmValue(Edm.INT64, 2**63 - 1),
    "Zero": EdmValue(Edm.DOUBLE, -0.0),
    "Nan": EdmValue(Edm.DOUBLE, math.nan),
    "Since": EdmValue(Edm.DATETIME, 17_000_000_001_234_567),
    "Id": EdmValue(Edm.GUID, "00000000-0000-0000-0000-00000000000a"),
    "Photo": EdmValue(Edm.BINARY, b"\x00\xff"),
    "Yes": EdmValue(Edm.BOOLEAN, True),
    "Long": EdmValue(Edm.STRING, "x" * 32 * 1024),
}


@pytest.fixture
def table(db):
    return tables.create(accounts.add("acme"), "people")


def entity(partition_key="se", row_key="ada", **properties):
    return Entity(EntityKey(partition_key, row_key), properties)


def number(value):
    return EdmValue(Edm.INT32, value)


def stored(table, *key):
    result = entities.get(table, EntityKey(*key))
    return None if result is None else dict(read_stored(result).properties)


def made(done):
    return changes.made_by(done.activity)


def test_inserts_changes_and_deletes(table):
    inserted = edits.apply(table, [Insert(Entity(KEY, HOSTILE))], by=ADA)
    first = entities.get(table, KEY)
    condition = Precondition(inserted.edits[KEY].timestamp)
    updated = edits.apply(table, [Update(entity(Age=number(1)), condition, merge=True)], by=ADA)
    second = entities.get(table, KEY)
    deleted = edits.apply(table, [Delete(KEY, Precondition(updated.edits[KEY].timestamp))], by=ADA)
    third = entities.get(table, KEY)

    images = [(None, first), (first, second), (second, third)]
    verbs = [EntityVerb.INSERT, EntityVerb.CHANGE, EntityVerb.DELETE]
    for done, verb, (before, after) in zip((inserted, updated, deleted), verbs, images, strict=True):
        assert (done.activity.verb, done.activity.actor, done.activity.table_name) == (verb, "ada", "people")
        assert [it.before for it in made(done)] == [before]
        assert [it.after for it in made(done)] == [after]
    timestamps = [done.edits[KEY].timestamp for done in (inserted, updated, deleted)]
    assert (timestamps, third) == ([first.timestamp, second.timestamp, second.timestamp], None)
    assert read_stored(first).properties["Text"] == HOSTILE["Text"]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (Delete(EntityKey("z", "taken"), Precondition(1)), UpdateConditionNotSatisfied),
        (Insert(entity("a", "1")), InvalidDuplicateRow),
    ],
)
def test_does_all_or_nothing(table, change, error):
    edits.apply(table, [Insert(entity("z", "taken", A=number(1)))], by=ADA)
    count = Activity.objects.count()

    with pytest.raises(ChangeSetError) as failure:
        edits.apply(table, [Insert(entity("a", "1")), change, Insert(entity("b", "1"))], by=ADA)

    assert (failure.value.index, type(failure.value.error)) == (1, error)
    assert stored(table, "a", "1") is None
    assert stored(table, "b", "1") is None
    assert stored(table, "z", "taken") == {"A": number(1)}
    assert Activity.objects.count() == count


def test_refuses_more_than_can_be_held(table, monkeypatch):
    several = [EntityKey("se", f"{number:02}") for number in range(12)]
    edits.apply(
        table, [Insert(Entity(key, {"Note": EdmValue(Edm.STRING, "x" * 1000)})) for key in several], by=ADA
    )
    monkeypatch.setattr(edits, "LARGEST", 12_000)
    with pytest.raises(InvalidInput):
        edits.delete(table, several, by=ADA)
    assert entities.get(table, several[0]) is not None
    assert edits.delete(table, several[:11], by=ADA) is not None


def test_writes_nothing_to_a_read_only_account(table):
    edits.apply(table, [Insert(entity())], by=ADA)
    Account.objects.update(read_only=True)

    with pytest.raises(InsufficientAccountPermissions):
        edits.apply(table, [Delete(KEY, ANY)], by=ADA)
    with pytest.raises(InsufficientAccountPermissions):
        edits.change_key(table, KEY, EntityKey("se", "eva"), ANY, by=ADA)


def test_a_table_that_was_deleted(table):
    tables.delete(table.account, "people")

    for key in (KEY, EntityKey("a\0", "b"), EntityKey("\ud800", ""), EntityKey("x" * 1025, "")):
        assert entities.get(table, key) is None
    with pytest.raises(TableNotFound):
        edits.apply(table, [Insert(entity())], by=ADA)


@pytest.mark.parametrize(
    "new",
    [EntityKey("se", "eva"), EntityKey("", ""), EntityKey("no", "ada"), EntityKey("名" * 1024, "前" * 1024)],
    ids=["row", "empty", "partition", "long"],
)
def test_changes_a_key(table, new):
    edits.apply(table, [Insert(Entity(KEY, HOSTILE))], by=ADA)
    before = entities.get(table, KEY)

    done = edits.change_key(table, KEY, new, Precondition(before.timestamp), by=ADA)

    assert entities.get(table, KEY) is None
    assert entities.get(table, new).content == before.content
    assert done.activity.verb == EntityVerb.REKEY
    assert [(change.before is None, change.after is None) for change in made(done)] == [
        (True, False),
        (False, True),
    ]


@pytest.mark.parametrize(
    ("old", "new", "ticks", "error"),
    [
        (KEY, KEY, None, EntityAlreadyExists),
        (KEY, EntityKey("se", "taken"), None, EntityAlreadyExists),
        (KEY, EntityKey("no", "eva"), 1, UpdateConditionNotSatisfied),
        (EntityKey("se", "absent"), EntityKey("se", "eva"), None, ResourceNotFound),
    ],
)
def test_changes_a_key_whole_or_not(table, old, new, ticks, error):
    edits.apply(table, [Insert(entity()), Insert(entity(row_key="taken"))], by=ADA)
    before = entities.get(table, KEY)

    with pytest.raises(error):
        edits.change_key(table, old, new, Precondition(ticks), by=ADA)

    assert entities.get(table, KEY) == before
    assert stored(table, "no", "eva") is None


def test_a_known_entity_is_not_read_again(table, monkeypatch):
    inserted = edits.apply_one(table, Insert(Entity(KEY, HOSTILE)), by=ADA)
    known = entities.get(table, KEY)
    assert inserted.after == {KEY: known}

    change = Update(entity(Age=number(1)), Precondition(known.timestamp), merge=True)
    monkeypatch.delattr(edits.pages, "get_many")
    done = edits.apply_one(table, change, by=ADA, known=known)
    monkeypatch.undo()
    assert done.after == {KEY: entities.get(table, KEY)}
    assert [it.before for it in made(done)] == [known]

    with pytest.raises(UpdateConditionNotSatisfied):
        edits.apply_one(table, change, by=ADA, known=known)


@pytest.fixture
def cosmos_table(db):
    account = accounts.add("planets", NewAccount(kind=AccountKind.COSMOS))
    table = tables.create(account, "people")
    table.account = account
    return table


def test_an_entity_of_a_cosmos_account_is_written_as_such(cosmos_table):
    table = cosmos_table
    moment = {"T": EdmValue(Edm.DATETIME, 0)}
    edits.apply(table, [Insert(Entity(EntityKey("p" * 2000, "r"), moment))], by=ADA)
    stored = entities.get(table, EntityKey("p" * 2000, "r"))
    assert b'"T":"1970-01-01T00:00:00.0000000Z"' in stored.content
    with pytest.raises(ChangeSetError) as refused:
        edits.apply(table, [Insert(Entity(EntityKey("p", ""), moment))], by=ADA)
    assert isinstance(refused.value.error, PropertiesNeedValue)
