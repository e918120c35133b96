"""Saved queries."""

from dataclasses import replace

import pytest

from console.models import SavedQuery
from console.queries import saved, saved_changes
from storage.domain.access.actor import SERVER
from storage.domain.service.activity import Verb
from storage.models import Activity

QUERIES = "accounts/acme/tables/people/queries"
OPEN = {"name": "Open", "filter": "State eq '{{state}}'", "view": {"sort": "-Total"}, "is_shared": True}


@pytest.fixture
def eve(call, people):
    return call("eve")


def test_saves_changes_and_restores_a_query(eve, call):
    made = eve("POST", QUERIES, OPEN)
    assert made.status_code == 201, made.content
    query = made.json()
    assert {name: query[name] for name in OPEN} == OPEN
    assert (query["id"], query["owner"], query["version"]) == ("open", "eve", 1)
    address = f"{QUERIES}/open"
    shown = call("victor")("GET", address)
    changed = eve("PATCH", address, {"filter": "State eq 'done'"}, **{"If-Match": shown["ETag"]})
    assert (changed.json()["version"], changed.json()["view"]) == (2, OPEN["view"])
    assert eve("PATCH", address, {"name": "Shut"}, **{"If-Match": shown["ETag"]}).status_code == 412
    assert [it["number"] for it in eve("GET", f"{address}/versions").json()["items"]] == [2, 1]
    assert eve("POST", f"{address}/versions/1/restore").json()["filter"] == OPEN["filter"]
    assert eve("POST", f"{address}/versions/9/restore").status_code == 404
    assert eve("DELETE", address).status_code == 204
    assert eve("GET", address).status_code == 404
    assert Activity.objects.filter(verb=Verb.QUERY_CHANGE).count() == 2


def test_a_change_in_the_moment_of_another_is_kept(eve, monkeypatch):
    eve("POST", QUERIES, OPEN)
    latest_version = saved.latest_version

    def read_before_another_changes(query):
        monkeypatch.setattr(saved, "latest_version", latest_version)
        changed = replace(saved_changes.read_definition(query), description="Of another")
        saved_changes.change_query(query, changed, seen=1, by=SERVER)
        return latest_version(query)

    monkeypatch.setattr(saved, "latest_version", read_before_another_changes)
    answer = eve("PATCH", f"{QUERIES}/open", {"filter": "State eq 'done'"}).json()
    assert (answer["filter"], answer["description"]) == ("State eq 'done'", "Of another")


def test_a_private_query_is_its_owners(eve, call):
    eve("POST", QUERIES, {"name": "Mine"})
    assert [it["name"] for it in eve("GET", QUERIES).json()["items"]] == ["Mine"]
    assert call("alice")("GET", QUERIES).json()["items"] == []
    assert call("alice")("GET", f"{QUERIES}/mine").status_code == 404
    assert call("victor")("POST", QUERIES, {"name": "Theirs"}).status_code == 403
    assert call("eve", "read")("POST", QUERIES, {"name": "Theirs"}).status_code == 403


def test_only_its_owner_makes_a_query_private(eve, call):
    """For all others it would disappear, the one who has done it included."""
    eve("POST", QUERIES, OPEN)
    refused = call("max")("PATCH", f"{QUERIES}/open", {"is_shared": False})
    assert (refused.status_code, refused.json()["detail"]) == (403, "Only eve can stop sharing this query.")
    assert call("max")("PATCH", f"{QUERIES}/open", {"description": "Of Max"}).status_code == 200
    assert eve("PATCH", f"{QUERIES}/open", {"is_shared": False}).status_code == 200


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"name": "open"}, "#/name"),  # taken, in another letter case
        ({"name": "x", "filter": "State eq"}, "#/filter"),
        ({"name": "x", "view": {"f": "State"}}, "#/view/f"),
        ({}, "#/name"),
    ],
)
def test_refuses_what_the_console_refuses(eve, body, pointer):
    eve("POST", QUERIES, OPEN)
    refused = eve("POST", QUERIES, body)
    assert refused.status_code == 400
    assert [it["pointer"] for it in refused.json()["errors"]] == [pointer]
    assert SavedQuery.objects.count() == 1
