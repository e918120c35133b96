"""Notices, mutes, rules and webhooks for scripts."""

from datetime import UTC, datetime

import pytest

from storage.accounts import accounts
from storage.models import Activity, Notice, Webhook
from tests.notices.conftest import receiver  # noqa: F401
from tests.rest.test_errors import check

pytestmark = pytest.mark.django_db
NOW = datetime.now(UTC)


@pytest.fixture
def notices(account):
    """Add notices of an old key and of a failed job in acme, of a job in another account, and of the server; return
    their ids.
    """
    other = accounts.add("other")
    rows = (
        ("key.old", account, "key1", {"key": "key1", "days": 400}),
        ("job.failed", account, "table.index", {"job": 7, "job_kind": "table.index", "number": 2}),
        ("job.failed", other, "table.index", {"job": 8, "job_kind": "table.index", "number": 1}),
        ("backup.missing", None, "", {}),
    )
    return [
        Notice.objects.create(
            kind=kind,
            account=of,
            subject=subject,
            severity="error",
            facts=facts,
            opened_at=NOW,
            news_at=NOW,
            found_at=NOW,
        ).pk
        for kind, of, subject, facts in rows
    ]


def listed(answer):
    return [item["id"] for item in answer.json()["items"]]


def test_notices_by_role_state_and_page(call, notices):
    key, job, other, server = notices
    victor, ada = call("victor", "read"), call("ada", "read")
    assert listed(victor("GET", "notices")) == [job]
    assert listed(ada("GET", "notices")) == [server, other, job, key]
    assert listed(ada("GET", "notices?account=acme&kind=key.old")) == [key]
    assert listed(call("ada", "read", account=Notice.objects.get(pk=key).account)("GET", "notices")) == [
        job,
        key,
    ]
    page = ada("GET", "notices?limit=3").json()
    assert listed(ada("GET", page["next"].partition("testserver")[2])) == [key]
    result = victor("GET", f"notices/{job}").json()
    assert (result["text"], result["path"]) == (
        "The job 7 failed. Failed jobs of this kind: 2.",
        "/ui/jobs/7/",
    )
    check(victor("GET", f"notices/{key}"), 404)
    Notice.objects.filter(pk=job).update(resolved_at=NOW)
    assert listed(victor("GET", "notices")) == []
    assert listed(victor("GET", "notices?state=resolved")) == [job]
    assert listed(victor("GET", "notices?state=all")) == [job]
    check(victor("GET", "notices?cursor=YQ=="), 404)


def test_seen_and_muted(call, notices):
    alice = call("alice", "read")
    assert alice("POST", "notices/seen", {"until": "2000-01-01T00:00:00Z"}).json() == {"unseen": 2}
    made = alice("POST", "notice-mutes", {"account": "acme", "kind": "key.old"})
    assert alice("GET", "notice-mutes").json()["items"] == [made.json()]
    assert alice("POST", "notices/seen", {"until": "2000-01-01T00:00:00Z"}).json() == {"unseen": 1}
    assert alice("POST", "notices/seen", {}).json() == {"unseen": 0}
    check(call("victor", "read")("DELETE", f"notice-mutes/{made.json()['id']}"), 404)
    assert alice("DELETE", f"notice-mutes/{made.json()['id']}").status_code == 204
    check(alice("POST", "notice-mutes", {}), 409)
    check(alice("POST", "notice-mutes", {"account": "other"}), 404)
    check(alice("POST", "notice-mutes", {"kind": "odd"}), 400)


def test_a_token_of_one_account_mutes_nothing_elsewhere(call, account, notices):
    alice, limited = call("alice", "read"), call("alice", "read", account=account)
    everywhere = alice("POST", "notice-mutes", {"kind": "key.old"}).json()
    check(limited("POST", "notice-mutes", {"kind": "sas.expiring"}), 403)
    made = limited("POST", "notice-mutes", {"account": "acme", "kind": "key.old"}).json()
    assert limited("GET", "notice-mutes").json()["items"] == [made]
    check(limited("DELETE", f"notice-mutes/{everywhere['id']}"), 404)
    assert limited("DELETE", f"notice-mutes/{made['id']}").status_code == 204


def test_rules(call, notices):
    max_ = call("max")
    rules = {it["kind"]: it for it in max_("GET", "accounts/acme/notice-rules").json()["items"]}
    assert rules["errors.high"] == {
        "kind": "errors.high",
        "enabled": True,
        "threshold": 10.0,
        "unit": "percent",
    }
    assert rules["job.failed"]["unit"] == ""
    path = "accounts/acme/notice-rules/errors.high"
    assert max_("PUT", path, {"threshold": 5}).json()["threshold"] == 5
    assert max_("PUT", path, {"enabled": False}).json() == {**rules["errors.high"], "enabled": False}
    for threshold in (101, "5", True):
        check(max_("PUT", path, {"threshold": threshold}), 400)
    refused = max_("PUT", "accounts/acme/notice-rules/job.failed", {"threshold": 5})
    assert (refused.status_code, refused.json()["errors"][0]) == (
        400,
        {"pointer": "#/threshold", "detail": "Notices of the kind job.failed have no threshold."},
    )
    check(max_("PUT", "accounts/acme/notice-rules/backup.missing", {}), 404)
    check(call("eve")("PUT", path, {}), 403)
    ada = call("ada")
    assert ada("PUT", "notice-rules/backup.missing", {"enabled": False}).json()["enabled"] is False


@pytest.mark.parametrize(("name", "base"), [("max", "accounts/acme/webhooks"), ("ada", "webhooks")])
def test_webhooks(call, notices, receiver, name, base):  # noqa: F811
    client = call(name)
    body = {"name": "chat", "url": receiver.url, "kinds": ["job.failed"]}
    made = client("POST", base, body)
    assert made.status_code == 201
    assert made.json()["secret"].startswith("whsec_")
    path = f"{base}/{made.json()['id']}"
    result = client("GET", path).json()
    assert "secret" not in result
    assert client("GET", base).json()["items"] == [result]
    check(client("POST", base, body), 409)
    check(client("POST", base, {**body, "url": "ftp://example.com"}), 400)
    check(client("POST", base, {**body, "name": "x", "kinds": ["odd"]}), 400)
    sent = client("POST", f"{path}/test").json()
    assert (sent["event"], sent["status"], sent["error"], sent["notice"]) == ("test", 204, "", None)
    assert receiver.requests[0][0]["webhook-id"] == sent["id"]
    assert client("GET", f"{path}/deliveries").json()["items"] == [sent]
    changed = {**result, "enabled": False, "delivered_at": sent["delivered_at"]}
    assert client("PATCH", path, {"enabled": False}).json() == changed
    assert client("POST", f"{path}/secret").json()["secret"] not in str(client("GET", path).json())
    assert client("DELETE", path).status_code == 204
    check(client("GET", path), 404)
    assert not Webhook.objects.exists()
    verbs = Activity.objects.filter(verb__startswith="webhook.").values_list("verb", "actor")
    assert set(verbs) == {(f"webhook.{verb}", name) for verb in ("create", "change", "delete")}


def test_notices_of_the_server_are_for_admins(call, account):
    client, admin = call("alice"), call("ada", account=account)
    for method, path in [
        ("GET", "notice-rules"),
        ("PUT", "notice-rules/backup.missing"),
        ("GET", "webhooks"),
        ("POST", "webhooks"),
        ("POST", "webhooks/0/test"),
    ]:
        check(client(method, path, {}), 403)
        check(admin(method, path, {}), 403)
