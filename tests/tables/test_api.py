"""Tables and their stored access policies by scripts."""

import pytest

from storage.access import policies
from storage.access.subject import AccessVerb
from storage.accounts import account_settings
from storage.models import Activity
from storage.tables import tables

POLICIES = "accounts/acme/tables/people/policies"
A = {"id": "a", "access_policy": {"start": None, "expiry": "2027-01-01T00:00:00.0000000Z", "permission": "r"}}
B = {"id": "b", "access_policy": None}


@pytest.fixture
def ask(call, account):
    return call("max")


def test_it_works(ask):
    body = {"name": "People", "description": "d", "tags": ["x"]}
    made = ask("POST", "accounts/acme/tables", body)
    assert made.status_code == 201, made.content
    result = made.json()
    assert (result["name"], result["description"], result["tags"]) == ("People", "d", ["x"])
    assert result["url"] == "http://testserver/acme/People"
    assert ask("GET", "accounts/acme/tables/people").json() == result
    assert ask("POST", "accounts/acme/tables", body).status_code == 200
    assert ask("POST", "accounts/acme/tables", {"name": "people"}).status_code == 409
    assert ask("PATCH", "accounts/acme/tables/people", {"tags": []}).json()["tags"] == []
    for name in ("1abc", "ab", "tables", "$MetricsX", "a" * 63 + "b", "\u0131abc"):
        assert ask("POST", "accounts/acme/tables", {"name": name}).status_code == 400, name


def test_deletes_and_brings_back(ask, table):
    assert ask("DELETE", "accounts/acme/tables/PEOPLE").status_code == 204
    assert ask("GET", "accounts/acme/tables/people").status_code == 404
    kept = ask("GET", "accounts/acme/tables?state=deleted").json()["items"]
    assert [(table["name"], bool(table["kept_until"])) for table in kept] == [("people", True)]
    assert ask("POST", "accounts/acme/tables/people/restore").json()["deleted_at"] is None
    ask("DELETE", "accounts/acme/tables/people")
    ask("POST", "accounts/acme/tables", {"name": "people"})
    assert ask("POST", "accounts/acme/tables/people/restore").status_code == 409


def test_finds_and_pages(ask, account):
    for name in ("logs2", "Logs1", "logs10", "other"):
        tables.create(account, name)
    tables.change(tables.get(account, "logs2"), tags=["t"])

    def names(address):
        page = ask("GET", address).json()
        rest = names(page["next"].removeprefix("http://testserver")) if page["next"] else []
        return [table["name"] for table in page["items"]] + rest

    assert names("accounts/acme/tables?limit=1&name=LOGS") == ["Logs1", "logs10", "logs2"]
    assert names("accounts/acme/tables?tag=t") == ["logs2"]


def test_a_read_only_account_refuses_writes_and_a_protected_one_wants_its_name(ask, table, account):
    account_settings.change(account, read_only=True, protected=True)
    for method, path, body in (
        ("POST", "accounts/acme/tables", {"name": "more"}),
        ("DELETE", "accounts/acme/tables/people?confirm=acme", None),
        ("PUT", POLICIES, {"items": [A]}),
    ):
        refused = ask(method, path, body)
        assert refused.status_code == 403, path
        assert refused.json()["code"] == "InsufficientAccountPermissions"
    account_settings.change(account, read_only=False)
    assert ask("DELETE", "accounts/acme/tables/people").status_code == 409
    assert ask("DELETE", "accounts/acme/tables/people?confirm=acme").status_code == 204


def test_policies_come_back_as_they_were_set(ask, table, account):
    blank = {"id": "c", "access_policy": {"start": "", "expiry": None, "permission": ""}}
    saved = ask("PUT", POLICIES, {"items": [A, B, blank]})
    assert saved.status_code == 200, saved.content
    assert saved.json() == {"items": [A, B, blank]} == ask("GET", POLICIES).json()
    stored = policies.stored_by_name(account, "people")
    assert stored[1].policy is None
    assert (stored[2].policy.start, stored[2].policy.expiry) == ("", None)
    short = {"id": "a", "access_policy": {"expiry": "2027-01-01T01:00+01:00", "permission": "r"}}
    assert ask("PUT", POLICIES, {"items": [short]}).json() == {"items": [A]}


def test_an_etag_keeps_two_from_overwriting_each_other(ask, table):
    etag = ask("GET", POLICIES).headers["ETag"]
    assert ask("PUT", POLICIES, {"items": [A]}, **{"If-Match": etag}).status_code == 200
    refused = ask("PUT", POLICIES, {"items": [B]}, **{"If-Match": etag})
    assert (refused.status_code, refused.json()["title"]) == (412, "Precondition failed")
    assert ask("GET", POLICIES).json() == {"items": [A]}
    assert ask(
        "PUT", POLICIES, {"items": [B]}, **{"If-Match": f'"x", {ask("GET", POLICIES).headers["ETag"]}'}
    )
    assert ask("PUT", POLICIES, {"items": []}, **{"If-Match": "*"}).status_code == 200


def test_refuses_invalid_sets_of_policies(ask, table):
    for items, pointer in [
        ([{"id": str(number)} for number in range(6)], "#/items"),
        ([A, A], "#/items/1/id"),
        ([{"id": ""}], "#/items/0/id"),
        ([{"id": "x" * 65}], "#/items/0/id"),
        ([{"id": "a\x01"}], "#/items/0/id"),
        ([{**A, "more": 1}], "#/items/0/more"),
        ([{"id": "a", "access_policy": {"permission": "rr"}}], "#/items/0/access_policy/permission"),
        ([{"id": "a", "access_policy": {"expiry": "soon"}}], "#/items/0/access_policy/expiry"),
        ([1], "#/items/0"),
        ("a", "#/items"),
    ]:
        refused = ask("PUT", POLICIES, {"items": items})
        assert refused.status_code == 400
        assert [error["pointer"] for error in refused.json()["errors"]] == [pointer]
    assert not Activity.objects.filter(verb=AccessVerb.POLICIES_SET).exists()
