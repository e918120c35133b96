"""Manifests: what is planned is made, all of it and once; what is not declared stays; each change has its rights."""

from datetime import timedelta

import pytest
from django.utils import timezone

from storage.access import policies
from storage.accounts import account_settings, accounts, expiry, removal, service_properties
from storage.accounts.subject import AccountVerb
from storage.domain.access.actor import SERVER
from storage.domain.access.roles import Role
from storage.manifest import applying, planning
from storage.models import Activity, Membership, PropertyIndex, Table
from storage.notices import webhooks
from storage.people import members
from storage.snapshots import snapshots
from storage.tables import indexes, tables

SHOP = {
    "label": "Shop",
    "protected": True,
    "read_only": True,
    "consistency": "BoundedStaleness",
    "sas_limit": 5,
    "members": {"Eve": "editor", "alice": "owner"},
    "service_properties": {
        "logging": {"write": True, "retention": 7},
        "cors": [{"origins": ["https://shop.example"], "methods": ["GET"], "max_age": 60}],
    },
    "notice_rules": {"errors.high": {"threshold": 9}},
    "snapshot_schedule": {"hour": 3, "keep": 3},
    "rehearsal_sets": {"busy": {"rules": [{"effect": "throttle", "when": {"share": 1, "every": 3}}]}},
    "tables": {
        "Orders": {
            "description": "What was ordered",
            "tags": ["core"],
            "indexes": ["Customer"],
            "policies": {"reports": {"permission": "r", "expiry": "2027-01-01T00:00:00Z"}, "empty": {}},
        },
        "people": {},
    },
    "webhooks": {"chat": {"url": "https://chat.example/hooks/secret", "kinds": ["errors.high"]}},
}
ADDED = {"accounts": {"shop": SHOP}}


@pytest.fixture
def ada(call):
    return call("ada")


def changes(answer, status=200):
    assert answer.status_code == status, answer.content
    return answer.json()["changes"]


def summary(answer):
    return [
        (it["action"], it["resource"], "/".join(filter(None, (it["table"], it["name"]))))
        for it in changes(answer)
    ]


def acme(**declared):
    return {"accounts": {"acme": declared}}


def test_apply_makes_the_plan_and_leaves_no_difference(ada):
    planned = ada("POST", "manifest/plan", ADDED)
    assert not accounts.exists("shop")
    assert summary(planned) == [
        ("create", "account", ""),
        ("change", "service_properties", ""),
        ("create", "member", "alice"),
        ("create", "member", "eve"),
        ("create", "table", "Orders"),
        ("create", "table", "people"),
        ("change", "policies", "Orders"),
        ("create", "index", "Orders/Customer"),
        ("create", "webhook", "chat"),
        ("change", "notice_rule", "errors.high"),
        ("create", "snapshot_schedule", ""),
        ("create", "rehearsal_set", "busy"),
        ("change", "account", ""),  # read-only last, which refuses the others
    ]
    made = ada("POST", "manifest/apply", ADDED, **{"If-Match": planned["ETag"]})
    assert made.json() == planned.json()
    account = accounts.find("shop")
    assert (account.label, account.protected, account.read_only, account.sas_limit) == ("Shop", True, True, 5)
    assert account.consistency == "BoundedStaleness"
    assert {it.user.username: it.role for it in members.members(account)} == {
        "alice": Role.OWNER,
        "eve": Role.EDITOR,
    }
    properties = service_properties.get(account)
    assert (properties.logging.retention, properties.cors[0].max_age) == (7, 60)
    assert properties.hour_metrics.retention == 7  # a default
    orders = tables.get(account, "orders")
    assert (orders.name, orders.description, orders.tags) == ("Orders", "What was ordered", ["core"])
    assert [it.identifier for it in policies.stored(orders)] == ["reports", "empty"]
    assert [it.index.name for it in indexes.describe(orders)] == ["Customer"]
    [chat] = webhooks.for_account(account)
    assert chat.url == "https://chat.example/hooks/secret"
    assert snapshots.scheduled(account).hour == 3
    assert {it.actor for it in Activity.objects.filter(account_name="shop")} == {"ada"}
    assert changes(ada("POST", "manifest/apply", ADDED)) == []


def test_a_secret_of_a_url_is_not_in_the_plan(ada):
    answer = ada("POST", "manifest/plan", ADDED)
    assert b"hooks/secret" not in answer.content
    assert b"https://chat.example/" in answer.content


def test_the_manifest_shows_the_present_state(ada):
    ada("POST", "manifest/apply", ADDED)
    shown = ada("GET", "manifest?account=shop").json()
    shop = shown["accounts"]["shop"]
    assert shop["tables"]["Orders"]["policies"]["reports"] == {
        "permission": "r",
        "expiry": "2027-01-01T00:00:00Z",
    }
    assert shop["members"] == {"alice": "owner", "eve": "editor"}
    assert shop["notice_rules"] == {"errors.high": {"enabled": True, "threshold": 9.0}}
    assert "webhooks" not in shop
    assert changes(ada("POST", "manifest/plan?prune=true", shown)) == []
    shown["accounts"]["copy"] = {**shop, "read_only": False}
    assert changes(ada("POST", "manifest/apply", shown))
    assert ada("GET", "manifest?account=copy").json()["accounts"]["copy"] == {**shop, "read_only": False}


def test_the_manifest_of_an_expired_account_differs_in_nothing_before_and_after_it_is_frozen(ada, account):
    account_settings.change(account, expires_at=timezone.now() - timedelta(minutes=1))
    shown = ada("GET", "manifest?account=acme").json()
    expiry.expire(timezone.now())
    assert ada("GET", "manifest?account=acme").json() == shown
    assert changes(ada("POST", "manifest/apply", shown)) == []
    later = (timezone.now() + timedelta(days=1)).isoformat()
    assert summary(ada("POST", "manifest/apply", acme(expires_at=later, enabled=True)))
    account.refresh_from_db()
    assert account.enabled


def test_enabling_an_expired_account_without_a_new_lifetime_is_refused_by_the_plan(ada, account):
    account_settings.change(account, expires_at=timezone.now() - timedelta(minutes=1))
    expiry.expire(timezone.now())
    [change] = changes(ada("POST", "manifest/plan", acme(enabled=True)))
    assert "Extend its lifetime first" in change["problem"]
    assert ada("POST", "manifest/apply", acme(enabled=True)).status_code == 409


def test_values_that_differ_are_shown_before_and_after(ada, table):
    tables.change(table, description="Visitors")
    [settings, description] = changes(
        ada("POST", "manifest/plan", acme(label="New", tables={"PEOPLE": {"description": "Guests"}}))
    )
    assert (settings["before"], settings["after"]) == ({"label": ""}, {"label": "New"})
    assert (description["before"], description["after"]) == (
        {"description": "Visitors"},
        {"description": "Guests"},
    )


def test_undeclared_resources_stay_unless_pruned(ada, account, table):
    tables.create(account, "orders")
    indexes.add(table, "Name")
    declared = acme(members={"alice": "owner"}, tables={"people": {"indexes": []}})
    assert changes(ada("POST", "manifest/apply", declared)) == []
    pruned = summary(ada("POST", "manifest/apply?prune=true", declared))
    assert pruned == [
        *(("delete", "member", name) for name in ("eve", "max", "victor")),
        ("delete", "table", "orders"),
        ("delete", "index", "people/Name"),
    ]
    assert tables.deleted(account)[0].kept_until is not None  # it can be restored
    assert [it.user.username for it in members.members(account)] == ["alice"]
    assert (
        changes(ada("POST", "manifest/apply?prune=true", acme(label=""))) == []
    )  # no section, nothing to prune


def test_resources_declared_absent_are_deleted(ada, account, table):
    policy = {"policies": {"reports": {"permission": "r"}}}
    ada(
        "POST",
        "manifest/apply",
        acme(
            tables={"people": policy},
            webhooks={"x": {"url": "https://x.example"}},
            rehearsal_sets={"busy": {"rules": [{"effect": "error"}]}},
        ),
    )
    gone = {"absent": True}
    declared = acme(
        tables={"people": {"policies": {"reports": gone}}},
        webhooks={"x": gone},
        members={"eve": "none"},
        rehearsal_sets={"busy": gone},
    )
    assert len(changes(ada("POST", "manifest/apply", declared))) == 4
    assert policies.stored(table) == []
    [deletion] = changes(ada("POST", "manifest/apply", acme(absent=True)))
    assert (deletion["action"], deletion["before"]) == ("delete", {"tables": 1})
    assert not accounts.exists("acme")
    assert changes(ada("POST", "manifest/apply", acme(absent=True))) == []


def test_resources_declared_not_absent_stay(ada, account, table):
    here = {"absent": False}
    policy = {"absent": False, "permission": "r"}
    tables_ = {"people": {**here, "policies": {"reports": policy}}}
    declared = acme(
        **here,
        tables=tables_,
        webhooks={"x": {**here, "url": "https://x.example"}},
        snapshot_schedule={**here, "hour": 1},
    )
    assert {it["action"] for it in changes(ada("POST", "manifest/apply", declared))} == {"create", "change"}
    assert changes(ada("POST", "manifest/apply", declared)) == []


def test_an_index_that_the_server_added_is_kept_when_declared_and_never_pruned(ada, table):
    indexes.add(table, "Name", origin=indexes.IndexOrigin.ADAPTIVE)
    assert changes(ada("POST", "manifest/apply?prune=true", acme(tables={"people": {"indexes": []}}))) == []
    assert summary(ada("POST", "manifest/apply", acme(tables={"people": {"indexes": ["Name"]}})))
    assert PropertyIndex.objects.get().origin == "hand"


def test_a_change_that_is_refused_keeps_all_from_being_made(ada, account, table):
    account_settings.change(account, protected=True)
    before = Activity.objects.count()
    for declared, place, text in [
        ({"absent": True}, "", "protected"),
        ({"kind": "cosmos"}, "", "cannot be changed"),
        ({"tables": {"people": {"absent": True}}}, "/tables/people", "protected"),
        ({"tables": {"a b": {}}}, "/tables/a b", "invalid characters"),
        ({"tables": {"New": {}, "nEW": {}}}, "/tables/nEW", "already exists"),
        ({"tables": {"people": {"throughput": 400}}}, "/tables/people", "not allowed"),
        ({"tables": {"people": {"indexes": ["a b"]}}}, "/tables/people/indexes/a b", "property name"),
        ({"members": {"ghost": "viewer"}}, "/members/ghost", "no user named ghost"),
        ({"members": {"alice": "editor"}}, "/members/alice", "last owner"),
        ({"webhooks": {"x": {"url": "ftp://x"}}}, "/webhooks/x", "must begin with https"),
        ({"webhooks": {"x": {"url": "http://[x"}}}, "/webhooks/x", "must begin with https"),
        ({"notice_rules": {"errors.high": {"threshold": -1}}}, "/notice_rules/errors.high", "between"),
        (
            {"rehearsal_sets": {"flaky": {"rules": [{"effect": "error"}]}}},
            "/rehearsal_sets/flaky",
            "ready set",
        ),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "", "lifetime"),
    ]:
        manifest = {"accounts": {"acme": declared, "another": {}}}
        planned = changes(ada("POST", "manifest/plan", manifest))
        [problem] = [it["problem"] for it in planned if it["problem"]]
        assert text in problem, (declared, place)
        refused = ada("POST", "manifest/apply", manifest)
        assert refused.status_code == 409, (declared, place)
        assert refused.json()["errors"] == [{"pointer": f"#/accounts/acme{place}", "detail": problem}], (
            declared
        )
        assert Activity.objects.count() == before, (declared, place)
        assert not accounts.exists("another"), (declared, place)


def test_a_read_only_account_refuses_what_it_refuses_by_hand(ada, account, table):
    account_settings.change(account, read_only=True)
    declared = {"tables": {"people": {"description": "x"}}}
    assert ada("POST", "manifest/apply", acme(**declared)).status_code == 409
    assert summary(ada("POST", "manifest/apply", acme(**declared, read_only=False))) == [
        ("change", "account", ""),
        ("change", "table", "people"),
    ]


def test_a_failed_apply_leaves_the_account_unchanged(ada, account, monkeypatch):
    monkeypatch.setattr(webhooks.quotas, "limit", lambda quota, account=None: 0)
    declared = acme(label="New", tables={"orders": {}}, webhooks={"x": {"url": "https://x.example"}})
    assert changes(ada("POST", "manifest/plan", declared))[-1]["problem"] == ""
    refused = ada("POST", "manifest/apply", declared)
    assert (refused.status_code, "at most 0 webhooks" in refused.json()["detail"]) == (409, True)
    account.refresh_from_db()
    assert account.label == ""
    assert not Table.objects.filter(account=account).exists()
    assert not Activity.objects.filter(account=account, verb=AccountVerb.CHANGE).exists()


def test_a_plan_that_is_out_of_date_is_not_applied(ada, account):
    declared = acme(label="New")
    etag = ada("POST", "manifest/plan", declared)["ETag"]
    account_settings.change(account, label="Other")
    refused = ada("POST", "manifest/apply", declared, **{"If-Match": etag})
    assert refused.status_code == 412
    account.refresh_from_db()
    assert account.label == "Other"


def test_changes_already_made_by_another_request_are_not_repeated(ada, account, monkeypatch):
    """The changes are planned once more while the account is locked."""
    plan_account = planning.plan_account
    monkeypatch.setattr(planning, "plan_account", lambda *a, **k: _then(plan_account(*a, **k), account))
    assert changes(ada("POST", "manifest/apply", acme(label="New", description="By hand"))) == [
        {
            "action": "change",
            "resource": "account",
            "account": "acme",
            "table": "",
            "name": "",
            "before": {"label": ""},
            "after": {"label": "New"},
            "problem": "",
        }
    ]


def _then(planned, account):
    account_settings.change(account, description="By hand")
    return planned


def test_rights_are_those_of_each_change(call, account, table):
    max_, alice = call("max"), call("alice")
    tables_only = acme(tables={"people": {"description": "x"}})
    settings = acme(label="New", tables={"people": {"description": "y"}})
    assert changes(max_("POST", "manifest/apply", tables_only))
    refused = max_("POST", "manifest/apply", settings)
    assert (refused.status_code, "role owner" in refused.json()["detail"]) == (403, True)
    assert tables.get(account, "people").description == "x"
    assert changes(alice("POST", "manifest/apply", settings))
    for path in ("plan", "apply"):
        assert call("eve")("POST", f"manifest/{path}", tables_only).status_code == 403
        assert call("sam")("POST", f"manifest/{path}", tables_only).status_code == 404
        assert alice("POST", f"manifest/{path}", {"accounts": {"unknown": {}}}).status_code == 404
        assert call("alice", "write")("POST", f"manifest/{path}", tables_only).status_code == 403
        limited = call("ada", account=accounts.find("acme"))
        assert limited("POST", f"manifest/{path}", {"accounts": {"unknown": {}}}).status_code == 404
    without_access = acme(label="Newer", tables={"people": {"description": "z"}})
    assert changes(call("alice", "operate")("POST", "manifest/apply", without_access))
    granting = (
        {"members": {"eve": "owner"}},
        {"tables": {"people": {"policies": {"p": {"permission": "r"}}}}},
        {"webhooks": {"chat": {"url": "https://chat.example/hooks/secret", "kinds": ["errors.high"]}}},
    )
    for given in granting:
        refused = call("alice", "operate")("POST", "manifest/apply", acme(**given))
        assert (refused.status_code, "scope manage" in refused.json()["detail"]) == (403, True), given
    assert max_("GET", "manifest").json()["accounts"].keys() == {"acme"}
    assert call("victor")("GET", "manifest").json() == {"accounts": {}}
    assert call("victor")("GET", "manifest?account=acme").status_code == 403
    assert Membership.objects.filter(account=account).count() == 4


def test_a_manifest_that_is_wrong_names_the_place(ada):
    for declared, pointer in [
        ({"lable": "x"}, "/lable"),
        ({"absent": True, "label": "x"}, "/absent"),
        ({"history_days": 999}, "/history_days"),
        ({"members": {"eve": "boss"}}, "/members/eve"),
        ({"members": {"e\0e": "editor"}}, "/members/e\0e"),
        ({"members": {"Eve": "editor"}, "webhooks": {"a\0": {"url": "https://x.example"}}}, "/webhooks/a\0"),
        ({"notice_rules": {"nothing": {}}}, "/notice_rules/nothing"),
        ({"tables": {"people": {"policies": {"a": {"permission": "x"}}}}}, "/tables/people/policies/a"),
        (
            {"service_properties": {"cors": [{"origins": ["a b"], "methods": ["GET"], "max_age": 1}]}},
            "/cors/0/origins",
        ),
    ]:
        refused = ada("POST", "manifest/plan", acme(**declared))
        assert refused.status_code == 400, (declared, pointer)
        [error] = refused.json()["errors"]
        assert error["pointer"].startswith("#/accounts/acme") and pointer in error["pointer"], declared


def test_a_user_is_named_once(ada, account):
    refused = ada("POST", "manifest/apply", acme(members={"Eve": "owner", "eve": "none"}))
    assert [it["pointer"] for it in refused.json()["errors"]] == [
        "#/accounts/acme/members/Eve",
        "#/accounts/acme/members/eve",
    ]
    assert Membership.objects.filter(account=account, user__username="eve").exists()


@pytest.mark.parametrize("is_made_again", [False, True])
def test_an_account_that_others_delete_first(call, account, cast, monkeypatch, is_made_again):
    """It is gone, as wanted; another one that has its name by now takes rights of its own."""
    check = applying._check

    def check_before_others(declared, is_allowed):
        monkeypatch.setattr(applying, "_check", check)
        check(declared, is_allowed)
        removal.remove("acme")
        if is_made_again:
            accounts.add("acme")

    monkeypatch.setattr(applying, "_check", check_before_others)
    answer = call("alice")("POST", "manifest/apply", acme(absent=True))
    assert (answer.status_code, accounts.exists("acme")) == ((404, True) if is_made_again else (200, False))


@pytest.mark.parametrize("heir", ["max", "sam"])
def test_a_disabled_user_does_not_count_as_another_owner(ada, cast, account, heir):
    """Found by the plan: accounts before this one are not changed either."""
    cast[heir].is_active = False
    cast[heir].save()
    members.set_role(account, cast["max"], Role.OWNER, by=SERVER)
    manifest = {
        "accounts": {"aaa": {}, **acme(members={"alice": "none", "max": "owner", "sam": "owner"})["accounts"]}
    }
    assert not [it for it in changes(ada("POST", "manifest/plan", manifest)) if it["problem"]]
    del manifest["accounts"]["acme"]["members"]["max" if heir == "sam" else "sam"]
    manifest["accounts"]["acme"]["members"]["max"] = "owner" if heir == "max" else "viewer"
    [refused] = [it for it in changes(ada("POST", "manifest/plan", manifest)) if it["problem"]][:1]
    assert "last owner" in refused["problem"]
    assert ada("POST", "manifest/apply", manifest).status_code == 409
    assert not accounts.exists("aaa")


def test_the_text_none_means_null(ada, account):
    account_settings.change(account, sas_limit=5)
    [change] = changes(ada("POST", "manifest/apply", acme(sas_limit="none")))
    assert (change["before"], change["after"]) == ({"sas_limit": 5}, {"sas_limit": None})
