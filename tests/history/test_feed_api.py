"""The change feed as pages, in the shape of Cosmos DB, and what is refused."""

import pytest

from storage.accounts import account_settings
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Delete, Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.models import RegisteredSas
from storage.relations import history
from storage.sql import entities
from storage.sql.django import execute, run
from storage.sql.relations import relation_name
from storage.tables import tables
from tests.rest.test_errors import check

pytestmark = pytest.mark.django_db(transaction=True)
CHANGES = "accounts/acme/changes"


@pytest.fixture
def put(account, table):
    """Return `put("ada", 1)`, which writes an entity; None deletes it."""

    def put(row_key, number, table=table):
        key = EntityKey("p", row_key)
        change = (
            Delete(key, ANY)
            if number is None
            else Upsert(Entity(key, {"Number": EdmValue(Edm.INT32, number)}), merge=False)
        )
        recorder = history.recorder(account, Actor(ActorKind.KEY, "key1"))
        run(entities.change(relation_name(table.pk), change, recorder))

    return put


def test_a_sas_token_has_its_label(call, account, table):
    RegisteredSas.objects.create(
        account=account, fingerprint="43ba39e2", kind="table", parameters=[], label="nightly", author=""
    )
    recorder = history.recorder(account, Actor(ActorKind.SAS, "43ba39e2"))
    change = Upsert(Entity(EntityKey("p", "ada"), {}), merge=False)
    run(entities.change(relation_name(table.pk), change, recorder))
    (item,) = call("victor", "read")("GET", f"{CHANGES}?from=oldest").json()["items"]
    assert (item["actor"]["name"], item["actor"]["label"]) == ("43ba39e2", "nightly")


def told(items):
    return [(it["operation"], it["row_key"], (it["after"] or {}).get("Number")) for it in items]


def test_pages_from_a_start_and_after_a_token(call, account, put):
    ask = call("victor", "read")
    token = ask("GET", CHANGES).json()["token"]
    put("ada", 1)
    put("ada", 2)
    put("eve", 3)
    put("eve", None)

    page = ask("GET", f"{CHANGES}?from=oldest&top=3&table=People").json()
    assert told(page["items"]) == [("insert", "ada", 1), ("update", "ada", 2), ("insert", "eve", 3)]
    assert page["items"][1]["before"]["Number"] == 1
    key1 = {"kind": "key", "name": "key1", "token": "", "label": ""}
    assert page["items"][1]["actor"] == key1
    assert page["has_more"]
    page = ask("GET", page["next"].partition("http://testserver")[2]).json()
    assert told(page["items"]) == [("delete", "eve", None)]
    assert ask("GET", f"{CHANGES}?after={page['token']}&table=people").json()["items"] == []
    assert len(ask("GET", f"{CHANGES}?after={token}").json()["items"]) == 4
    assert len(ask("GET", f"{CHANGES}?from=2026-01-01T00:00:00Z").json()["items"]) == 4


def test_a_feed_of_several_tables(call, account, put):
    other, third = (tables.create(account, name) for name in ("other", "third"))
    put("a", 1)
    put("b", 2, other)
    put("c", 3, third)
    page = call("victor")("GET", f"{CHANGES}?from=oldest&table=people&table=third").json()
    assert [it["table"] for it in page["items"]] == ["people", "third"]


def test_as_cosmos_db_writes_changes(call, put):
    ask = call("victor")
    headers = {"A-IM": "Incremental feed", "If-None-Match": "*"}
    answer = ask("GET", CHANGES, **headers)
    assert (answer.status_code, answer.content) == (304, b"")
    put("ada", 1)
    put("ada", 2)
    put("ada", None)
    headers["If-None-Match"] = answer.headers["ETag"]
    answer = ask("GET", CHANGES, **headers)
    assert answer.headers["Content-Type"] == "application/vnd.tablero.cosmos-changes+json"
    result = answer.json()
    assert result["_count"] == 3
    created, replaced, deleted = result["Documents"]
    assert (created["current"]["Number"], created["previous"]) == (1, None)
    assert (replaced["current"]["Number"], replaced["previous"]["Number"]) == (2, 1)
    assert (deleted["current"], deleted["previous"]["Number"]) == ({}, 2)
    metadata = [it["metadata"] for it in result["Documents"]]
    assert [it["operationType"] for it in metadata] == ["create", "replace", "delete"]
    assert metadata[2]["id"] == {"PartitionKey": "p", "RowKey": "ada"}
    headers["If-None-Match"] = answer.headers["ETag"]
    assert ask("GET", CHANGES, **headers).status_code == 304
    assert ask("GET", f"{CHANGES}?shape=cosmos").json()["_count"] == 3


def test_refusals(call, account, table, put):
    ask = call("victor")
    for query, parameter in [
        ("after=x", "after"),
        ("from=yesterday", "from"),
        ("from=now&after=x", "from"),
        ("top=0", "top"),
        ("top=1001", "top"),
        ("shape=round", "shape"),
        ("more=1", "more"),
    ]:
        problem = check(ask("GET", f"{CHANGES}?{query}"), 400)
        assert problem["errors"][0]["parameter"] == parameter
    token = ask("GET", CHANGES).json()["token"]
    problem = check(ask("GET", f"{CHANGES}?table=people&after={token}"), 400)
    assert "of another account or of other tables" in problem["detail"]
    check(ask("GET", f"{CHANGES}?table=nobody"), 404)
    check(call("sam")("GET", CHANGES), 404)
    check(call(None)("GET", CHANGES), 401)

    history.go_on(account.pk)
    history.prepare_next(account.pk)
    execute(f"DROP TABLE history_{account.pk}_1")
    execute(
        "UPDATE storage_historysegment SET dropped_at = now() WHERE number = 1 AND account_id = %s",
        account.pk,
    )
    problem = check(ask("GET", f"{CHANGES}?after={token}"), 410)
    assert problem["type"].endswith("#problem-expired-token")
    assert "Re-read the entities" in problem["detail"]
    account_settings.change(account, history_days=0)
    assert "keeps no history" in check(ask("GET", CHANGES), 409)["detail"]
