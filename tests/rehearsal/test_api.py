"""Rehearsals and sets of rules by scripts."""

import json
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from storage.accounts import account_settings
from storage.core.rehearsals import Exchange, ExchangedChange
from storage.models import Activity, Rehearsal, RehearsalClient, RehearsedRequest
from storage.rehearsal.records import dump_exchange
from tests.rest.test_errors import check

pytestmark = pytest.mark.django_db
REHEARSALS, SETS = "accounts/acme/rehearsals", "accounts/acme/rehearsal-sets"
RULES = [{"name": "busy", "effect": "throttle", "when": {"operations": ["writes"], "share": 0.5}}]


@pytest.fixture
def rehearsing(account):
    account_settings.change(account, may_rehearse=True)
    return account


def test_a_rehearsal_is_started_seen_and_stopped(call, rehearsing):
    ask = call("max")
    started = ask("POST", REHEARSALS, {"set": "bad-day", "seed": 7, "table": "People", "duration": "90s"})
    assert started.status_code == 201, started.content
    told = started.json()
    assert {name: told[name] for name in ("set", "seed", "scale", "table", "state", "requests", "faulted")} == {
        "set": "bad-day", "seed": 7, "scale": 1.0, "table": "People", "state": "running", "requests": 0, "faulted": 0,
    }  # fmt: skip
    begin, end = (datetime.fromisoformat(told[name]) for name in ("started_at", "ends_at"))
    assert (end - begin).total_seconds() == 90
    assert [rule["name"] for rule in told["rules"]][:2] == ["slow", "throttle"]
    path = f"{REHEARSALS}/{told['id']}"
    assert ask("GET", path).json() == told
    other = check(ask("POST", REHEARSALS, {"set": "flaky"}), 409)
    assert other["detail"] == "The rehearsal bad-day is running. Stop it first."
    stopped = ask("POST", f"{path}/stop").json()
    assert (stopped["state"], stopped["stopped_at"] is None) == ("ended", False)
    assert ask("POST", f"{path}/stop").json() == stopped
    own = ask("POST", REHEARSALS, {"rules": RULES, "set": "mine"}).json()
    assert (own["set"], own["rules"]) == ("mine", RULES)
    assert [it["id"] for it in ask("GET", REHEARSALS).json()["items"]] == [own["id"], told["id"]]
    following = ask("GET", f"{REHEARSALS}?limit=1").json()["next"].partition("testserver")[2]
    assert [it["id"] for it in ask("GET", following).json()["items"]] == [told["id"]]
    verbs = Activity.objects.filter(verb__startswith="rehearsal").order_by("pk")
    assert [(it.verb, it.actor) for it in verbs] == [
        ("rehearsal.start", "max"),
        ("rehearsal.stop", "max"),
        ("rehearsal.start", "max"),
    ]


def test_the_same_key_starts_one_rehearsal(call, rehearsing):
    ask, body = call("max"), {"set": "flaky", "seed": 1}
    first = ask("POST", REHEARSALS, body, **{"Idempotency-Key": "run-1"})
    again = ask("POST", REHEARSALS, body, **{"Idempotency-Key": "run-1"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    check(ask("POST", REHEARSALS, {"set": "throttled"}, **{"Idempotency-Key": "run-1"}), 422)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "#/set"),
        ({"set": "nothing"}, "#/set"),
        ({"set": "flaky", "table": "no spaces"}, "#/table"),
        ({"set": "flaky", "seed": -1}, "#/seed"),
        ({"set": "flaky", "seed": "7"}, "#/seed"),
        ({"set": "flaky", "scale": 0}, "#/scale"),
        ({"set": "flaky", "duration": "25h"}, "#/duration"),
        ({"set": "flaky", "duration": 60}, "#/duration"),
        ({"set": "flaky", "for": "1h"}, "#/for"),
        ({"rules": []}, "#/rules"),
        ({"rules": "throttle"}, "#/rules"),
        ({"rules": [*RULES, {"effect": "explode"}]}, "#/rules/1"),
        ({"rules": [*RULES, 7]}, "#/rules/1"),
        ({"rules": [{"effect": "error", "when": {"partition": "a\0"}}]}, "#/rules/0"),
        ({"rules": [{"effect": []}]}, "#/rules/0"),
        ({"rules": [{"effect": "delay", "p50": {}}]}, "#/rules/0"),
        ({"rules": [{"effect": "error", "when": {"operations": [[]]}}]}, "#/rules/0"),
        ({"set": "a\0"}, "#/set"),
        ({"set": "a b", "rules": RULES}, "#/set"),
        ({"set": "flaky", "rules": RULES}, "#/set"),
    ],
    ids=str,
)
def test_each_refusal_names_its_member(call, rehearsing, body, pointer):
    problem = check(call("max")("POST", REHEARSALS, body), 400)
    assert [error["pointer"] for error in problem["errors"]] == [pointer]
    assert not Rehearsal.objects.exists()


def test_only_accounts_that_may_rehearse_do(call, account):
    ask = call("max")
    assert check(ask("POST", REHEARSALS, {"set": "flaky"}), 409)["detail"].startswith("Failures may not be")
    check(ask("PATCH", "accounts/acme", {"may_rehearse": True}), 403)
    assert call("alice")("PATCH", "accounts/acme", {"may_rehearse": True}).json()["may_rehearse"] is True
    assert ask("POST", REHEARSALS, {"set": "flaky"}).status_code == 201
    check(call("victor", "read")("POST", REHEARSALS, {"set": "flaky"}), 403)


def test_requests_in_their_order_by_client_and_by_fault(call, rehearsing):
    ask = call("victor", "read")
    started = call("max")("POST", REHEARSALS, {"set": "ambiguous"}).json()
    python, node = (
        RehearsalClient.objects.create(
            rehearsal_id=started["id"], agent=agent, credential="shared_key:key1", requests=number, matches=[0, 0]
        )
        for agent, number in (("azsdk-python-data-tables/12", 2), ("azsdk-js-data-tables/13", 1))
    )  # fmt: skip
    change = ExchangedChange("insert", "people", "se", "ada", "", "12ab", {"Born": 1815.0})
    lost = Exchange(
        began=1e9, ended=1e9 + 0.25, operation="InsertEntity", method="POST", table="people", changes=[change],
        status=500, error="OperationTimedOut", rules=["applied"], faulted=True, applied=True,
    )  # fmt: skip
    read = Exchange(began=1e9, ended=1e9, operation="QueryEntities", method="GET", status=200, entities=2)
    for client, number, exchange in ((python, 1, lost), (node, 1, read), (python, 2, read)):
        RehearsedRequest.objects.create(
            rehearsal_id=started["id"], client=client, number=number, at=datetime.now(UTC),
            request_id=uuid4(), exchange=json.loads(dump_exchange(exchange)),
        )  # fmt: skip
    path = f"{REHEARSALS}/{started['id']}"
    assert [ask("GET", path).json()[name] for name in ("requests", "faulted")] == [3, 1]

    def listed(query=""):
        answer = ask("GET", f"{path}/requests{query}")
        assert answer.status_code == 200, answer.content
        return [(it["agent"].split("-")[1], it["number"]) for it in answer.json()["items"]]

    assert listed() == [("python", 1), ("js", 1), ("python", 2)]
    assert listed("?agent=Python") == [("python", 1), ("python", 2)]
    assert listed("?faulted=true") == [("python", 1)]
    assert listed("?faulted=false&agent=python") == [("python", 2)]
    page = ask("GET", f"{path}/requests?limit=2").json()
    assert [it["number"] for it in ask("GET", page["next"].partition("testserver")[2]).json()["items"]] == [2]
    result = page["items"][0]
    assert (result["seconds"], result["status"], result["rules"], result["applied"]) == (
        0.25,
        500,
        ["applied"],
        True,
    )
    assert result["changes"] == [
        {"verb": "insert", "table": "people", "partition_key": "se", "row_key": "ada", "condition": ""}
    ]
    check(ask("GET", f"{path}/requests?faulted=perhaps"), 400)
    report = ask("GET", f"{path}/report").json()
    told = ask("GET", path).json()
    assert report["rehearsal"] == {name: value for name, value in told.items() if name != "rules"}
    assert (report["requests"], report["faulted"], report["is_final"], report["compared_with"]) == (
        3,
        1,
        False,
        None,
    )
    assert [(it["agent"].split("-")[1], it["requests"]) for it in report["clients"]] == [
        ("python", 2),
        ("js", 1),
    ]


def test_sets_of_the_account(call, rehearsing):
    ask = call("max")
    saved = ask("PUT", f"{SETS}/mine", {"description": "Busy writes", "rules": RULES})
    assert saved.json() == {"name": "mine", "description": "Busy writes", "is_ready": False, "rules": RULES}
    listed = ask("GET", SETS).json()["items"]
    assert [it["name"] for it in listed if not it["is_ready"]] == ["mine"]
    assert {"throttled", "bad-day"} <= {it["name"] for it in listed if it["is_ready"]}
    assert ask("POST", REHEARSALS, {"set": "mine"}).json()["rules"] == RULES
    check(ask("PUT", f"{SETS}/flaky", {"rules": RULES}), 409)
    check(ask("PUT", f"{SETS}/a%20b", {"rules": RULES}), 409)
    problem = check(ask("PUT", f"{SETS}/mine", {"rules": [{"effect": "delay", "p50": -1}]}), 400)
    assert problem["errors"][0]["pointer"] == "#/rules/0"
    assert ask("DELETE", f"{SETS}/mine").status_code == 204
    check(ask("DELETE", f"{SETS}/mine"), 404)
    check(ask("DELETE", f"{SETS}/flaky"), 404)
