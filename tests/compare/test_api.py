"""Comparing accounts and tables, and applying what differs."""

import json

import pytest

from storage.accounts import accounts
from storage.domain.access.actor import SERVER
from storage.domain.entities.changes import Delete, Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.entities import edits
from storage.models import Activity, Membership
from storage.snapshots import snapshots
from storage.tables import tables

ODD = "\ud800\x00"


@pytest.fixture
def branch(cast, account, table):
    """Make an account that every user but victor knows, with a table that differs from the one in acme."""
    branch = accounts.add("branch")
    for membership in Membership.objects.filter(account=account).exclude(user=cast["victor"]):
        Membership.objects.create(user=membership.user, account=branch, role=membership.role)
    other = tables.create(branch, "people")
    put(table, a=1, b=1, c=1, d=5)
    put(other, a=1, b=2, d="5", e=1)
    return branch


def put(table, **values):
    for key, value in values.items():
        typed = EdmValue(Edm.INT32, value) if isinstance(value, int) else EdmValue(Edm.STRING, value or "")
        key = EntityKey("p", key)
        change = Delete(key, ANY) if value is None else Upsert(Entity(key, {"A": typed}), merge=False)
        edits.apply_one(table, change, by=SERVER)


def test_compares_and_lists_page_by_page(call, branch):
    alice = call("alice", "read")
    result = alice("GET", "accounts/branch/diff?left=acme").json()
    assert result["tables"] == [
        {
            "name": "people",
            "state": "both",
            "only_left": 1,
            "only_right": 1,
            "changed": 1,
            "type_only": 1,
            "identical": 1,
            "descriptions": None,
            "policies": None,
        }
    ]
    assert (result["left"], result["right"], result["service_properties"]) == ("acme", "branch", None)

    items, url = [], "accounts/branch/diff/entities?left=acme&limit=1"
    while url:
        page = alice("GET", url).json()
        items += page["items"]
        url = page["next"] and page["next"].replace("http://testserver", "")
    assert [(it["row_key"], it["kind"]) for it in items] == [
        ("b", "changed"),
        ("c", "left"),
        ("d", "type"),
        ("e", "right"),
    ]
    assert items[2]["properties"] == [
        {
            "name": "A",
            "left": {"type": "Edm.Int32", "value": 5},
            "right": {"type": "Edm.String", "value": "5"},
        }
    ]
    assert items[3]["left_timestamp"] is None and items[3]["properties"][0]["left"] is None

    lines = alice(
        "GET",
        "accounts/acme/diff/entities?left=branch/people&right=acme/people",
        Accept="application/x-ndjson",
    )
    assert lines["Content-Type"] == "application/x-ndjson"
    patch = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert [(it["row_key"], it["kind"]) for it in patch][:2] == [("b", "changed"), ("c", "right")]
    kinds = alice("GET", "accounts/branch/diff/entities?left=acme&kind=type&kind=left").json()["items"]
    assert [it["kind"] for it in kinds] == ["left", "type"]


@pytest.mark.django_db(transaction=True)
def test_tables_outside_a_snapshot_of_some_are_left_alone(call, branch):
    tables.create(branch, "carts")
    snapshots.take(branch, "baseline", tables=["people"])
    alice = call("alice")
    result = alice("GET", "accounts/branch/diff?left=branch@baseline").json()
    assert [it["name"] for it in result["tables"]] == ["people"] and result["not_compared"] == ["carts"]
    body = {"left": "branch@baseline", "right": "branch", "tables": ["carts"]}
    refused = alice("POST", "accounts/branch/diff/apply", body)
    assert refused.status_code == 400 and "does not include the table carts" in refused.json()["detail"]
    assert tables.find(branch, "carts") is not None


def test_a_string_that_utf_8_cannot_hold(call, branch, table):
    put(table, odd=ODD)
    items = call("alice")("GET", "accounts/branch/diff/entities?left=acme&kind=left").json()["items"]
    assert items[1]["properties"][0]["left"]["value"] == ODD


@pytest.mark.django_db(transaction=True)
def test_applies_and_is_undone(call, branch):
    alice = call("alice")
    read_at = alice("GET", "accounts/branch/diff?left=acme").json()["read_at"]
    put(tables.get(branch, "people"), b=7)
    fields = {"left": "acme", "right": "branch", "read_at": read_at}

    planned = alice("POST", "accounts/branch/diff/apply", {**fields, "dry_run": True}).json()
    done = alice("POST", "accounts/branch/diff/apply", fields).json()

    (table,) = done["tables"]
    assert planned == {**done, "activity": None}
    assert (table["inserted"], table["changed"], table["deleted"], table["skipped"]) == (1, 1, 1, 1)
    assert table["examples"] == [{"partition_key": "p", "row_key": "b", "reason": "changed", "misfit": None}]
    activity = Activity.objects.get(pk=done["activity"])
    assert (activity.verb, activity.actor, activity.account_name) == ("entity.apply", "alice", "branch")
    left = alice("GET", "accounts/branch/diff/entities?left=acme").json()["items"]
    assert [it["row_key"] for it in left] == ["b"]


def test_some_entities_to_the_left(call, branch):
    body = {
        "left": "acme",
        "right": "branch",
        "target": "left",
        "entities": [{"table": "people", "partition_key": "p", "row_key": "e"}],
    }
    done = call("eve", "write")("POST", "accounts/acme/diff/apply", body).json()
    assert [(it["name"], it["inserted"], it["deleted"]) for it in done["tables"]] == [("people", 1, 0)]


def test_applying_requires_scope_and_roles(call, branch):
    snapshots.take(branch, "SNAPSHOT")
    for who, scope, more, status in [
        ("eve", "read", {}, 403),
        ("eve", "write", {"policies": True}, 403),
        ("max", "write", {"service_properties": True}, 403),
        ("victor", "write", {}, 404),  # does not know the account
        ("eve", "write", {"left": "none"}, 404),
        ("eve", "write", {"target": "left"}, 400),  # not the account in the path
        ("eve", "write", {"tables": ["none"]}, 400),
        ("eve", "write", {"right": "branch@now"}, 400),
        ("eve", "write", {"left": "/"}, 400),
        ("eve", "write", {"read_at": "now"}, 400),
        ("eve", "write", {"read_at": "2026-11-30T18:00:00Z"}, 400),
        ("eve", "write", {"read_at": "2026-11-30T18:00:00Z~5:3:"}, 400),
        ("eve", "write", {"right": "branch@SNAPSHOT"}, 409),
        ("eve", "write", {}, 200),
    ]:
        body = {"left": "acme", "right": "branch", "dry_run": True, **more}
        assert call(who, scope)("POST", "accounts/branch/diff/apply", body).status_code == status, who


def test_unknown_and_forbidden_accounts_get_the_same_answer(call, branch):
    victor = call("victor")
    answers = [
        victor("GET", f"accounts/acme/diff?left={name}").json() | {"instance": ""}
        for name in ("branch", "none")
    ]
    assert answers[0] == answers[1] and answers[0]["status"] == 404
    limited = call("alice", account=accounts.find("acme"))
    assert limited("GET", "accounts/acme/diff?left=branch").status_code == 404


def test_creating_a_table_requires_the_role(call, branch, account):
    tables.create(account, "fresh")
    body = {"left": "acme", "right": "branch", "tables": ["fresh"]}
    assert call("eve")("POST", "accounts/branch/diff/apply", body).status_code == 403
    done = call("max")("POST", "accounts/branch/diff/apply", body).json()
    assert done["tables"][0]["created"] and tables.find(branch, "fresh") is not None
    gone = {"left": "branch", "right": "acme", "tables": ["people"], "target": "left"}
    tables.delete(account, "people")
    assert call("eve")("POST", "accounts/branch/diff/apply", gone).status_code == 403
    assert call("max")("POST", "accounts/branch/diff/apply", gone).json()["tables"][0]["dropped"]
