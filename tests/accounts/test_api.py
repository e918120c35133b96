"""Accounts by scripts: made once, found by labels, changed, frozen, deleted."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from storage.access import retired_keys
from storage.accounts import account_settings, accounts, expiry, sealed_keys
from storage.accounts.subject import AccountVerb
from storage.backups import last_backup
from storage.backups.last_backup import BackupFailure, LastBackup
from storage.domain.access.actor import ActorKind
from storage.domain.requests.observed import retired_key_name
from storage.models import Account, Activity, Table
from storage.server.options import BackupSchedule
from storage.tables import tables


@pytest.fixture
def ada(call):
    return call("ada")


def test_it_works(ada):
    fields = {"name": "branch", "labels": {"branch": "main"}, "label": "CI"}
    before = datetime.now(UTC)
    made = ada("POST", "accounts", fields | {"ttl": "8h"})
    after = datetime.now(UTC)
    assert made.status_code == 201, made.content
    result = made.json()
    key = sealed_keys.encode_key(sealed_keys.keys_of(Account.objects.get(name="branch"))[0])
    assert result["connection_string"] == (
        "DefaultEndpointsProtocol=http;AccountName=branch;"
        f"AccountKey={key};TableEndpoint=http://testserver/branch"
    )
    assert {name: result[name] for name in fields} == fields
    assert (result["state"], result["role"]) == ("active", "owner")
    assert before <= datetime.fromisoformat(result["expires_at"]) - timedelta(hours=8) <= after
    shown = ada("GET", "accounts/branch").json()
    assert shown == {name: value for name, value in result.items() if name != "connection_string"}
    assert ada("DELETE", "accounts/branch").status_code == 204
    assert ada("GET", "accounts/branch").status_code == 404


def test_an_account_of_the_kind_cosmos(ada):
    made = ada("POST", "accounts", {"name": "planets", "kind": "cosmos"})
    assert (made.status_code, made.json()["kind"]) == (201, "cosmos")
    assert ada("GET", "accounts/acme").json()["kind"] == "storage"
    for body in ({"name": "moons", "kind": "Cosmos"}, {"name": "moons", "kind": None}):
        assert ada("POST", "accounts", body).status_code == 400, body
    assert ada("PATCH", "accounts/planets", {"kind": "storage"}).status_code == 400
    assert ada("POST", "accounts/planets/tables", {"name": "a-b"}).status_code == 201
    assert ada("POST", "accounts/planets/tables", {"name": "A-b"}).status_code == 201
    assert ada("POST", "accounts/planets/tables", {"name": "A-b"}).status_code == 200
    limited = ada("PATCH", "accounts/planets/tables/a-b", {"throughput": 400})
    assert (limited.status_code, limited.json()["throughput"]) == (200, 400)
    for number in ("400", 400.0, True):
        assert ada("PATCH", "accounts/planets/tables/a-b", {"throughput": number}).status_code == 400
    tables.create(Account.objects.get(name="acme"), "people")
    assert ada("PATCH", "accounts/acme/tables/people", {"throughput": 400}).status_code == 405
    # no policies and service properties
    for path in ("tables/a-b/policies", "service-properties"):
        current = ada("GET", f"accounts/planets/{path}")
        sent_body = {"items": [{"id": "p", "access_policy": None}]} if "policies" in path else current.json()
        refused = ada("PUT", f"accounts/planets/{path}", sent_body, **{"If-Match": current["ETag"]})
        assert refused.status_code == 405, (path, refused.content)


def test_a_copy_tells_what_does_not_fit(ada):
    assert ada("POST", "accounts", {"name": "planets", "kind": "cosmos"}).status_code == 201
    for name in ("orders", "new orders"):
        ada("POST", "accounts/planets/tables", {"name": name})
    result = ada("GET", "accounts/planets/copy?kind=storage").json()
    assert result == {
        "items": [{"reason": "table_name", "table": "new orders", "entities": 0, "example": None}]
    }
    assert ada("GET", "accounts/planets/copy").json() == {"items": []}
    fields = {"name": "moons", "kind": "storage"}
    refused = ada("POST", "accounts/planets/copy", fields)
    assert (refused.status_code, refused.json()["detail"]) == (
        409,
        "Not everything fits into an account of this kind. Nothing was copied.",
    )
    copied = ada("POST", "accounts/planets/copy", fields | {"skip": True})
    assert (copied.status_code, copied.json()["tables"], copied.json()["entities"]) == (201, 1, 0)
    assert "AccountName=moons;" in copied.json()["account"]["connection_string"]
    again = ada("POST", "accounts/planets/copy", fields | {"skip": True})
    assert (again.status_code, again.json()) == (200, copied.json())
    assert ada("POST", "accounts/planets/copy", fields | {"kind": "cosmos"}).status_code == 409


def test_the_same_request_again_makes_nothing(ada):
    body = {"name": "branch", "labels": {"a": "1", "b": "2"}, "ttl": "1h"}
    first = ada("POST", "accounts", body, **{"User-Agent": "curl/8"})
    second = ada("POST", "accounts", dict(reversed(body.items())))
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() == second.json()
    assert Account.objects.filter(name="branch").count() == 1
    assert Activity.objects.filter(verb=AccountVerb.KEY_REVEAL, account_name="branch").count() == 1
    done = Activity.objects.get(verb=AccountVerb.CREATE, account_name="branch")
    assert (done.actor_kind, done.actor, done.detail["by_token"]) == (ActorKind.TOKEN, "ada", "ci")
    assert (done.agent, done.address) == ("curl/8", "127.0.0.1")

    ada("PATCH", "accounts/branch", {"ttl": "3h"})
    third = ada("POST", "accounts", body)
    assert third.status_code == 200
    assert third.json()["expires_at"] > first.json()["expires_at"]
    refused = ada("POST", "accounts", body | {"label": "x"})
    assert (refused.status_code, refused.json()["detail"]) == (409, "An account named branch already exists.")
    assert ada("POST", "accounts", {"name": "acme"}).status_code == 409  # made in the console


def test_a_key_makes_a_made_up_name_idempotent(ada):
    body, key = {"labels": {"run": "7"}}, {"Idempotency-Key": "run-7"}
    first, second = (ada("POST", "accounts", body, **key) for _ in range(2))
    assert [first.status_code, second.status_code] == [201, 200]
    assert first.json() == second.json()
    assert ada("POST", "accounts", body).json()["name"] != first.json()["name"]
    reused = ada("POST", "accounts", {"labels": {"run": "8"}}, **key)
    assert reused.status_code == 422
    assert reused.json()["type"].endswith("#problem-idempotency-key-reused")
    assert ada("POST", "accounts", body, **{"Idempotency-Key": "a b"}).status_code == 400


def test_lists_and_finds(ada, call, account):
    for number in range(3):
        ada("POST", "accounts", {"name": f"ci{number}00", "labels": {"n": str(number), "kind": "ci"}})
    ada("POST", "accounts/ci000/freeze")

    def names(query="", caller=ada):
        result = caller("GET", f"accounts{query}")
        assert result.status_code == 200, result.content
        return [one["name"] for one in result.json()["items"]]

    assert names() == ["acme", "ci000", "ci100", "ci200"]
    assert names("?name=ci") == ["ci000", "ci100", "ci200"]
    assert names("?label=n%3D1") == ["ci100"]
    assert names("?label=kind&label=n%3D2") == ["ci200"]
    assert names("?state=frozen") == ["ci000"]
    assert names("?state=active&label=kind") == ["ci100", "ci200"]
    assert names(caller=call("alice", "read")) == ["acme"]
    assert names(caller=call("sam", "read")) == []
    assert names(caller=call("ada", "read", account=account)) == ["acme"]


def test_pages(ada):
    for number in range(4):
        accounts.add(f"more{number}")
    address, names_on_pages = "accounts?limit=2&name=more", []
    while address:
        answer = ada("GET", address)
        page = answer.json()
        names_on_pages += [one["name"] for one in page["items"]]
        address = (page["next"] or "").removeprefix("http://testserver")
        assert bool(address) == ("Link" in answer.headers)
    assert names_on_pages == ["more0", "more1", "more2", "more3"]
    assert ada("GET", "accounts?cursor=%C3%A9").status_code == 400


def test_changes_what_is_named_and_nothing_else(ada, account):
    fields = {"description": "d", "networks": ["10.0.0.0/8"], "protected": True, "labels": {"a": ""}}
    changed = ada("PATCH", "accounts/acme", fields)
    assert changed.status_code == 200, changed.content
    assert {name: changed.json()[name] for name in fields} == fields
    assert ada("PATCH", "accounts/acme", {}).json() == changed.json()
    account.refresh_from_db()
    assert (account.label, account.enabled, account.description) == ("", True, "d")


def test_the_level_of_consistency_and_strictness(ada, account):
    fields = {"consistency": "BoundedStaleness", "max_staleness": 60, "strictness": "azure"}
    usual = ada("GET", "accounts/acme").json()
    assert (usual["consistency"], usual["strictness"]) == ("Strong", "friendly")
    changed = ada("PATCH", "accounts/acme", fields).json()
    assert {name: changed[name] for name in fields} == fields
    wrongs = [
        {"consistency": "bounded"},
        {"max_staleness": 0},
        {"max_staleness": 86_401},
        {"strictness": True},
    ]
    for wrong in wrongs:
        assert ada("PATCH", "accounts/acme", wrong).status_code == 400
    done = Activity.objects.filter(account_name="acme").latest("pk")
    assert done.after == fields


def test_a_server_without_replicas_lists_none(ada):
    assert ada("GET", "replicas").json() == {"items": [], "next": None}


def test_the_state_of_backups(ada, settings, tmp_path):
    settings.OPTIONS = replace(settings.OPTIONS, data=tmp_path, backups=None)
    never = {"last": None, "failure": None, "next_at": None, "is_overdue": False}
    none = {**never, "drill": None, "is_drill_overdue": False}
    assert ada("GET", "backup").json() == none
    day = datetime(2026, 11, 25, tzinfo=UTC)
    last_backup.record(tmp_path, LastBackup(day, "/backups/a", 100))
    last_backup.record_failure(tmp_path, BackupFailure(day, "The disk is full."))
    settings.OPTIONS = replace(
        settings.OPTIONS, backups=BackupSchedule(tmp_path, timedelta(days=1), 14, None)
    )
    result = ada("GET", "backup").json()
    assert result["last"] == {
        "made_at": "2026-11-25T00:00:00Z",
        "path": "/backups/a",
        "size": 100,
        "kind": "files",
    }
    assert result["failure"] == {"failed_at": "2026-11-25T00:00:00Z", "reason": "The disk is full."}
    assert result["next_at"] == "2026-11-26T00:00:00Z"


def test_tables_keep_an_account_unless_they_may_go(ada, account):
    tables.create(account, "people")
    refused = ada("DELETE", "accounts/acme")
    assert refused.status_code == 409
    assert "with_tables=true" in refused.json()["detail"]
    ada("PATCH", "accounts/acme", {"protected": True})
    assert ada("DELETE", "accounts/acme?with_tables=true").status_code == 409
    ada("PATCH", "accounts/acme", {"protected": False})
    assert ada("DELETE", "accounts/acme?with_tables=true").status_code == 204


def test_keys_and_connections(ada, account):
    first, second = (sealed_keys.encode_key(key) for key in sealed_keys.keys_of(account))
    shown = ada("GET", "accounts/acme/keys").json()["items"]
    assert [key["value"] for key in shown] == [first, second]
    string = ada("GET", "accounts/acme/connection-string?key=key2&host=tablero:10002")
    assert string.json()["text"] == (
        "DefaultEndpointsProtocol=http;AccountName=acme;"
        f"AccountKey={second};TableEndpoint=http://tablero:10002/acme"
    )
    env = ada("GET", "accounts/acme/connection-string?form=env", Accept="text/plain")
    assert env.headers["Content-Type"].startswith("text/plain")
    assert env.content.decode().startswith('TABLES_CONNECTION_STRING="DefaultEndpointsProtocol=http;')
    assert env.headers["Cache-Control"] == "no-store"
    for form in ("compose", "appsettings", "functions", "python", "javascript", "csharp", "go"):
        assert first in ada("GET", f"accounts/acme/connection-string?form={form}").json()["text"]
    rotated = ada("POST", "accounts/acme/keys/key1/rotate").json()
    account.refresh_from_db()
    assert rotated["value"] == sealed_keys.encode_key(sealed_keys.keys_of(account)[0]) != first
    assert ada("POST", "accounts/acme/keys/key3/rotate").status_code == 404
    assert ada("POST", "accounts/acme/keys/key2/rotate", {"grace": "2h"}).status_code == 200
    assert [old.name for old in retired_keys.accepted(account)] == [retired_key_name(2)]
    assert ada("POST", "accounts/acme/keys/key2/rotate", {"grace": "8d"}).status_code == 400
    assert ada("POST", "accounts/acme/keys/key2/end").json()["name"] == "key2"
    assert retired_keys.accepted(account) == ()
    assert Activity.objects.filter(verb=AccountVerb.KEY_REVEAL, account=account).count() == 2 + 1 + 1 + 7


# its time


def over(account):
    Account.objects.filter(pk=account.pk).update(expires_at=datetime(2026, 1, 1, tzinfo=UTC))
    expiry.expire(datetime.now(UTC))
    account.refresh_from_db()


def test_an_account_freezes_when_its_time_is_over_and_goes_a_day_later(ada, account):
    tables.create(account, "people")
    over(account)
    shown = ada("GET", "accounts/acme").json()
    assert shown["state"] == "expired"
    assert not account.enabled
    gone = datetime.fromisoformat(shown["deleted_at"])
    assert gone == account.frozen_at + timedelta(hours=24)
    assert Activity.objects.filter(verb=AccountVerb.EXPIRE, actor_kind=ActorKind.SERVER).count() == 1

    expiry.expire(gone - timedelta(seconds=1))
    assert Account.objects.filter(pk=account.pk).exists()
    expiry.expire(gone)
    assert not Account.objects.filter(pk=account.pk).exists()


def test_an_account_that_cannot_be_deleted_keeps_no_other(account):
    second = accounts.add("zebra")
    for owner in (account, second):
        over(owner)
    Table.objects.create(account=account, name="broken", folded_name="broken")  # it has no relation
    with pytest.raises(ExceptionGroup):
        expiry.expire(datetime.now(UTC) + timedelta(days=2))
    assert list(Account.objects.values_list("name", flat=True)) == ["acme"]


@pytest.mark.parametrize("guard", ["protected", "read_only"])
def test_an_account_that_is_guarded_only_freezes(ada, account, guard):
    account_settings.change(account, **{guard: True})
    over(account)
    assert ada("GET", "accounts/acme").json()["deleted_at"] is None
    expiry.expire(datetime.now(UTC) + timedelta(days=9))
    assert Account.objects.filter(pk=account.pk).exists()


@pytest.mark.parametrize("more", [{"ttl": "2h"}, {"expires_at": None}])
def test_more_time_thaws(ada, account, more):
    over(account)
    refused = ada("POST", "accounts/acme/thaw")
    assert refused.status_code == 409
    assert "Extend its lifetime" in refused.json()["detail"]
    assert ada("PATCH", "accounts/acme", more).json()["state"] == "active"
    account.refresh_from_db()
    assert (account.enabled, account.frozen_at) == (True, None)


def test_more_time_does_not_thaw_what_was_frozen_by_hand(ada, account):
    assert ada("POST", "accounts/acme/freeze").json()["state"] == "frozen"
    assert ada("PATCH", "accounts/acme", {"ttl": "2h"}).json()["state"] == "frozen"
    account.refresh_from_db()
    assert not account.enabled
    assert ada("POST", "accounts/acme/thaw").json()["state"] == "active"


def test_time_is_one_of_both_and_within_a_year(ada):
    for body in (
        {"ttl": "1h", "expires_at": "2026-12-01T00:00:00Z"},
        {"ttl": "0m"},
        {"ttl": "400d"},
        {"ttl": "1"},
        {"ttl": 60},
        {"expires_at": "2020-01-01T00:00:00Z"},
        {"expires_at": "2099-01-01T00:00:00Z"},
        {"expires_at": "2026-12-01"},
        {"expires_at": "0001-01-01T00:00:00+14:00"},
    ):
        refused = ada("POST", "accounts", {"name": "branch", **body})
        assert refused.status_code == 400, body
        assert refused.json()["errors"][0]["pointer"] in {"#/ttl", "#/expires_at"}
