"""The versions of an entity by scripts; which there are is tested with the operation."""

from storage.accounts import account_settings
from storage.domain.access.actor import SERVER, Actor, ActorKind
from storage.domain.entities.changes import Delete, Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.history import past
from storage.models import RegisteredSas
from storage.relations import history
from storage.sql import entities
from storage.sql.django import run
from storage.sql.relations import relation_name
from storage.tables import tables

HISTORY = "accounts/acme/tables/people/history"
KEY = EntityKey("se", "å 1")


def test_it_works(call, table):
    by = Actor(ActorKind.SAS, "43ba39e2", "10.0.0.1", "curl", "7f3a19c0-0000-4000-8000-000000000001", "")
    RegisteredSas.objects.create(
        account=table.account, fingerprint=by.name, kind="table", parameters=[], label="nightly", author=""
    )
    recorder = history.recorder(table.account, by)
    values = {"N": EdmValue(Edm.INT64, 5), "S": EdmValue(Edm.STRING, "\ud800")}
    for change in (Upsert(Entity(KEY, values), merge=False), Delete(KEY, ANY)):
        run(entities.change(relation_name(table.pk), change, recorder))

    ask = call("victor", "read")
    path = f"{HISTORY}?pk=se&rk=%C3%A5%201"
    deletion, insertion = ask("GET", path).json()["items"]
    assert insertion["operation"] == "insert" and insertion["before"] is None
    assert insertion["after"] == deletion["before"] | {"Timestamp": insertion["timestamp"]}
    assert {
        name: insertion["after"][name] for name in ("PartitionKey", "RowKey", "N@odata.type", "N", "S")
    } == {"PartitionKey": "se", "RowKey": "å 1", "N@odata.type": "Edm.Int64", "N": "5", "S": "\ud800"}
    assert deletion["operation"] == "delete" and deletion["after"] is None
    assert deletion["sequence"] > insertion["sequence"]
    assert deletion["request_id"] == by.request_id
    assert deletion["actor"] == {
        "kind": "sas",
        "name": "43ba39e2",
        "token": "",
        "label": "nightly",
        "address": "10.0.0.1",
        "agent": "curl",
    }

    page = ask("GET", f"{path}&limit=1").json()
    assert page["items"] == [deletion]
    last = ask("GET", page["next"].removeprefix("http://testserver")).json()
    assert last == {"items": [insertion], "next": None}
    assert ask("GET", f"{HISTORY}?pk=se&rk=none").json() == {"items": [], "next": None}


def test_a_deleted_table_is_found_by_its_name(call, account, table):
    def write(table, number):
        entity = Entity(KEY, {"N": EdmValue(Edm.INT32, number)})
        recorder = history.recorder(account, SERVER)
        run(entities.change(relation_name(table.pk), Upsert(entity, merge=False), recorder))

    def numbers(query=""):
        answer = call("victor", "read")("GET", f"{HISTORY}?pk=se&rk=%C3%A5%201{query}")
        assert answer.status_code == 200
        return [it["after"]["N"] for it in answer.json()["items"]]

    write(table, 1)
    then = past.present()
    write(table, 2)
    tables.delete(account, "people")
    assert numbers() == [2, 1]

    write(tables.create(account, "People"), 3)
    assert numbers() == [3]
    assert numbers(f"&as_of={then}") == [2, 1]
    tables.delete(account, "people")
    assert numbers() == [3]
    assert numbers(f"&as_of={then}") == [2, 1]

    account_settings.change(account, history_days=0)
    refused = call("victor", "read")("GET", f"{HISTORY}?pk=se&rk=1")
    assert refused.status_code == 404


def test_refusals(call, table):
    ask = call("victor", "read")
    for query, name in (
        ("pk=se", "rk"),
        ("rk=1", "pk"),
        ("pk=a&rk=b&limit=0", "limit"),
        ("pk=a&rk=b&as_of=now", "as_of"),
        ("pk=a&rk=b&as_of=2026-11-30", "as_of"),
        ("pk=a&rk=b&x=1", "x"),
    ):
        refused = ask("GET", f"{HISTORY}?{query}")
        assert refused.status_code == 400
        assert [error["parameter"] for error in refused.json()["errors"]] == [name]
    assert ask("GET", f"{HISTORY}?pk=a%2Fb&rk=1").json()["code"] == "OutOfRangeInput"
    assert ask("GET", "accounts/acme/tables/none/history?pk=a&rk=b").status_code == 404
    assert ask("GET", f"{HISTORY}?pk=a&rk=b&as_of=2020-01-01T00:00:00Z").status_code == 404
    assert call("sam")("GET", f"{HISTORY}?pk=a&rk=b").status_code == 404
