"""Service properties, members and activity by scripts."""

import pytest

from storage.accounts import service_properties
from storage.accounts.subject import AccountVerb
from storage.models import Activity
from storage.tables import tables

PROPERTIES = "accounts/acme/service-properties"
RULE = {"origins": ["*"], "methods": ["GET"], "allowed_headers": ["x-*"], "exposed_headers": [], "max_age": 5}


@pytest.fixture
def ask(call):
    return call("alice")


def test_properties_are_set_whole(ask, account):
    shown = ask("GET", PROPERTIES)
    properties = {**shown.json(), "cors": [RULE], "logging": {"read": True, "retention": 7}}
    saved = ask(
        "PUT", PROPERTIES, properties, **{"If-Match": f"W/{shown.headers['ETag']}"}
    )  # as it is when compressed
    assert saved.status_code == 200, saved.content
    assert saved.json()["logging"] == {"read": True, "write": False, "delete": False, "retention": 7}
    assert ask("GET", PROPERTIES).json() == saved.json()
    assert service_properties.get(account).cors[0].allowed_headers == ("x-*",)
    assert ask("PUT", PROPERTIES, properties, **{"If-Match": shown.headers["ETag"]}).status_code == 412
    assert Activity.objects.filter(verb=AccountVerb.PROPERTIES_SET).count() == 1


def test_refuses_invalid_properties(ask):
    properties = ask("GET", PROPERTIES).json()
    for changed, pointer in [
        ({"cors": [RULE] * 6}, "#/cors"),
        ({"cors": [{**RULE, "methods": ["STEAL"]}]}, "#/cors/0/methods"),
        ({"cors": [RULE, {**RULE, "origins": ["a b"]}]}, "#/cors/1/origins"),
        ({"cors": [{**RULE, "max_age": 2**31}]}, "#/cors/0/max_age"),
        ({"cors": [{**RULE, "max_age": 1.5}]}, "#/cors/0/max_age"),
        ({"logging": {"retention": 0}}, "#/logging/retention"),
        ({"logging": {"read": "yes"}}, "#/logging/read"),
        ({"minute_metrics": None}, "#/minute_metrics"),
        ({"more": 1}, "#/more"),
    ]:
        refused = ask("PUT", PROPERTIES, {**properties, **changed})
        assert refused.status_code == 400
        assert pointer in [error["pointer"] for error in refused.json()["errors"]]


def test_members_come_and_go(ask, call):
    listed = ask("GET", "accounts/acme/members").json()["items"]
    assert [(one["user"], one["role"]) for one in listed] == [
        ("alice", "owner"), ("max", "maintainer"), ("eve", "editor"), ("victor", "viewer"),
    ]  # fmt: skip
    assert ask("PUT", "accounts/acme/members/SAM", {"role": "editor"}).json()["role"] == "editor"
    assert call("sam", "read")("GET", "accounts/acme").json()["role"] == "editor"
    assert ask("DELETE", "accounts/acme/members/sam").status_code == 204
    assert ask("DELETE", "accounts/acme/members/sam").status_code == 404
    for body in ({"role": "king"}, {"role": 4}, {}, {"role": "owner", "since": "now"}):
        assert ask("PUT", "accounts/acme/members/sam", body).status_code == 400, body


def test_u2_the_last_owner_stays(ask):
    for method, body in (("PUT", {"role": "viewer"}), ("DELETE", None)):
        refused = ask(method, "accounts/acme/members/alice", body)
        assert refused.status_code == 409
        assert "last owner" in refused.json()["detail"]


def test_activity_names_the_actors(ask, account):
    ask("POST", "accounts/acme/tables", {"name": "people"})
    ask("DELETE", "accounts/acme/tables/people")
    tables.create(account, "other")

    def listed(query=""):
        result = ask("GET", f"accounts/acme/activity{query}")
        assert result.status_code == 200, result.content
        return result.json()

    assert [one["verb"] for one in listed()["items"]] == [
        "table.create", "table.delete", "table.create", "account.create",
    ]  # fmt: skip
    [done] = listed("?verb=table.delete")["items"]
    assert done["actor"] == {
        "kind": "token",
        "name": "alice",
        "label": "",
        "token": "ci",
        "address": "127.0.0.1",
        "agent": "",
    }
    assert (done["table"], done["before"], "by_token" in done["detail"]) == (
        "people", {"description": "", "tags": []}, False,
    )  # fmt: skip
    assert len(listed("?table=people")["items"]) == 2
    assert len(listed("?user=alice")["items"]) == 2
    assert listed("?until=2020-01-01T00:00:00Z")["items"] == []
    first = listed("?limit=3")
    rest = ask("GET", first["next"].removeprefix("http://testserver")).json()
    assert (len(first["items"]), len(rest["items"]), rest["next"]) == (3, 1, None)
