"""Staged changes: they are compared with the stored values, and saved all or none."""

import json

import pytest

from console.grid.tokens import encode_key
from storage.accounts import account_settings
from storage.domain.entities.entity import EntityKey, read_stored
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import write_etag
from storage.entities import entities
from storage.models import Activity
from storage.tables import tables

STAGED = "/ui/a/acme/t/people/staged/"
ADA, ALAN = EntityKey("se", "ada"), EntityKey("nl", "alan")
HTMX = {"HX-Request": "true"}


@pytest.fixture
def two(add_entity):
    for key in (ADA, ALAN):
        add_entity(*key, Name="x", Age=1)


def stored(account, key):
    return entities.get(tables.get(account, "people"), key)


def properties(account, key):
    return read_stored(stored(account, key)).properties


def change(account, key, name, type_, text, **more):
    etag = write_etag(stored(account, key).timestamp)
    return {
        "key": encode_key(key), "property": name, "etag": etag, "type": f"Edm.{type_}", "form": "",
        "text": text, **more,
    }  # fmt: skip


def send(client, changes, **more):
    return client.post(STAGED, {"changes": json.dumps(changes), **more}, headers=HTMX)


@pytest.fixture
def changes(two, account):
    return [
        change(account, ADA, "Age", "Int32", "2"),
        change(account, ALAN, "Age", "Int32", "3"),
        change(account, ADA, "Name", "String", "", removed="1"),
        change(account, ADA, "New", "Double", "-0.0"),
    ]


def test_shows_each_change_beside_the_current_value(visit, changes, account):
    answer = send(visit("eve"), changes)
    text = answer.content.decode()
    assert answer.status_code == 200 and "Save all" in text
    assert text.count("data-line") == 4
    assert properties(account, ADA)["Age"].value == 1


def test_saves_all_and_undoes_all(visit, changes, account):
    client = visit("eve")
    assert send(client, changes, apply="1").status_code == 204
    assert repr(properties(account, ADA)) == repr(
        {"Age": EdmValue(Edm.INT32, 2), "New": EdmValue(Edm.DOUBLE, -0.0)}
    )
    assert properties(account, ALAN)["Age"].value == 3
    assert "Saved 4 changes" in client.get("/ui/").content.decode()
    client.post(f"/ui/undo/{Activity.objects.latest('pk').pk}/", {"next": "/ui/"})
    assert properties(account, ADA) == properties(account, ALAN)


def test_a_stale_row_keeps_all_of_them_from_being_saved(visit, changes, account):
    client = visit("eve")
    send(client, [change(account, ALAN, "Name", "String", "y")], apply="1")
    answer = send(client, changes, apply="1")
    text = answer.content.decode()
    assert (
        answer.status_code == 409
        and text.count("changed while you were editing") == 1
        and "data-rebase" in text
    )
    assert properties(account, ADA)["Age"].value == 1
    changes[1]["etag"] = write_etag(stored(account, ALAN).timestamp)
    assert send(client, changes, apply="1").status_code == 204
    assert properties(account, ALAN) == {"Name": EdmValue(Edm.STRING, "y"), "Age": EdmValue(Edm.INT32, 3)}


def test_a_deleted_row_is_named_and_a_read_only_account(visit, changes, account):
    client = visit("eve")
    client.post("/ui/a/acme/t/people/delete/", {"scope": "rows", "key": encode_key(ALAN)})
    answer = send(client, changes, apply="1")
    assert answer.status_code == 409 and b"eve deleted this entity at" in answer.content
    assert properties(account, ADA)["Age"].value == 1
    account_settings.change(account, read_only=True)
    answer = client.post(STAGED, {"changes": json.dumps(changes[:1]), "apply": "1"})
    assert answer.status_code == 409 and b"not allowed" in answer.content and b"<h1" in answer.content


def test_reads_nothing_else(visit, two):
    for sent in ("", "{", "5", "[5]", "[{}]", '[{"key": "x", "property": "A"}]', json.dumps([{}] * 1001)):
        assert visit("eve").post(STAGED, {"changes": sent}, headers=HTMX).status_code == 400


def test_refuses_invalid_values_and_system_properties(visit, two, account):
    for bad in (
        change(account, ADA, "Age", "Int32", "x"),
        change(account, ADA, "PartitionKey", "String", "x"),
    ):
        assert send(visit("eve"), [bad]).status_code == 400
