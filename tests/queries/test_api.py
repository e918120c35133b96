"""Saved queries."""

from dataclasses import replace

import pytest

from console.models import SavedQuery
from console.queries import saved, saved_changes
from storage.domain.access.actor import SERVER
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import TABLE_NAME_LIMIT
from storage.models import Activity
from storage.queries.subject import QueryVerb
from storage.tables import tables

QUERIES = "accounts/acme/tables/people/queries"
OPEN = {"name": "Open", "filter": "State eq '{{state}}'", "view": {"sort": "-Total"}, "is_shared": True}


@pytest.fixture
def eve(call, table):
    return call("eve")


def test_saves_changes_and_deletes_a_query(eve, call):
    made = eve("POST", QUERIES, OPEN)
    assert made.status_code == 201, made.content
    query = made.json()
    assert {name: query[name] for name in OPEN} == OPEN
    assert (query["id"], query["owner"]) == ("open", "eve")
    address = f"{QUERIES}/open"
    shown = call("victor")("GET", address)
    changed = eve("PATCH", address, {"filter": "State eq 'done'"}, **{"If-Match": shown["ETag"]})
    assert (changed.json()["filter"], changed.json()["view"]) == ("State eq 'done'", OPEN["view"])
    assert eve("PATCH", address, {"name": "Shut"}, **{"If-Match": shown["ETag"]}).status_code == 412
    assert eve("DELETE", address).status_code == 204
    assert eve("GET", address).status_code == 404
    assert Activity.objects.filter(verb=QueryVerb.CHANGE).count() == 1


def test_a_change_between_read_and_write_is_kept(eve, monkeypatch):
    eve("POST", QUERIES, OPEN)
    for_table = saved.for_table

    def change_before(user, table):
        monkeypatch.setattr(saved, "for_table", for_table)
        query = SavedQuery.objects.get()
        changed = replace(saved_changes.read_definition(query), description="Changed by another user")
        saved_changes.change_query(query, changed, seen=saved.revision(query), by=SERVER)
        return for_table(user, table)

    monkeypatch.setattr(saved, "for_table", change_before)
    assert eve("PATCH", f"{QUERIES}/open", {"filter": "State eq 'done'"}).status_code == 412
    kept = SavedQuery.objects.get()
    assert (kept.content["f"], kept.description) == (OPEN["filter"], "Changed by another user")


def test_a_table_with_a_long_name_has_queries_activity_and_comments(call, account):
    account.kind = AccountKind.COSMOS
    account.save()
    name = "x" * TABLE_NAME_LIMIT
    tables.create(account, name)
    eve = call("eve")
    assert eve("POST", f"accounts/acme/tables/{name}/queries", OPEN).status_code == 201
    for path in ("activity", "comments"):
        assert eve("GET", f"accounts/acme/{path}?table={name}").status_code == 200


def test_a_private_query_is_its_owners(eve, call):
    eve("POST", QUERIES, {"name": "Mine"})
    assert [it["name"] for it in eve("GET", QUERIES).json()["items"]] == ["Mine"]
    assert call("alice")("GET", QUERIES).json()["items"] == []
    assert call("alice")("GET", f"{QUERIES}/mine").status_code == 404
    assert call("victor")("POST", QUERIES, {"name": "Theirs"}).status_code == 403
    assert call("eve", "read")("POST", QUERIES, {"name": "Theirs"}).status_code == 403


def test_only_its_owner_makes_a_query_private(eve, call):
    """For all others, including the user who does it, it would disappear."""
    eve("POST", QUERIES, OPEN)
    refused = call("max")("PATCH", f"{QUERIES}/open", {"is_shared": False})
    assert (refused.status_code, refused.json()["detail"]) == (403, "Only eve can stop sharing this query.")
    assert call("max")("PATCH", f"{QUERIES}/open", {"description": "Of Max"}).status_code == 200
    assert eve("PATCH", f"{QUERIES}/open", {"is_shared": False}).status_code == 200


def test_refuses_what_the_console_refuses(eve):
    eve("POST", QUERIES, OPEN)
    for body, pointer in [
        ({"name": "open"}, "#/name"),  # taken, in another letter case
        ({"name": "x", "filter": "State eq"}, "#/filter"),
        ({"name": "x", "view": {"f": "State"}}, "#/view/f"),
        ({}, "#/name"),
    ]:
        refused = eve("POST", QUERIES, body)
        assert refused.status_code == 400, (body, pointer)
        assert [it["pointer"] for it in refused.json()["errors"]] == [pointer], (body, pointer)
        assert SavedQuery.objects.count() == 1, (body, pointer)
