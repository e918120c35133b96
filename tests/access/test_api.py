"""Shared access signatures by scripts: what is issued opens just that, once told, and can be blocked."""

from urllib.parse import parse_qsl

import pytest

from storage.access import policies
from storage.access.subject import AccessVerb
from storage.accounts import accounts, sealed_keys
from storage.domain import sas
from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.models import Activity, IdempotencyRecord, RegisteredSas

SAS = "accounts/acme/sas"
READS = {"label": "report", "table": "people", "permissions": "r", "ttl": "12h"}


@pytest.fixture
def ask(call, table):
    return call("max")


def signature(token):
    return sas.read(dict(parse_qsl(token)))


def test_it_works(ask, account):
    made = ask("POST", SAS, {**READS, "purpose": "p", "start_partition": "a b", "end_partition": "\u0131"})
    assert made.status_code == 201, made.content
    result = made.json()
    token = signature(result["token"])
    assert sas.find_signing_key(token, "acme", sealed_keys.keys_of(account)) == 0
    assert (token.start_partition, token.end_partition, token.permissions) == ("a b", "\u0131", "r")
    assert result["fingerprint"] == sas.fingerprint(token)
    assert result["url"] == f"http://testserver/acme/people?{result['token']}"
    assert result["connection_string"].endswith(f";SharedAccessSignature={result['token']}")
    assert (result["state"], result["key"], result["author"]) == ("active", "key1", "max")

    listed = ask("GET", SAS).json()["items"]
    assert listed == [ask("GET", f"{SAS}/{result['fingerprint']}").json()]
    assert not {"token", "url", "connection_string"} & listed[0].keys()
    assert "sig" not in listed[0]["parameters"]


def test_one_more_than_the_quota_of_the_account(ask, call):
    assert call("alice")("PATCH", "accounts/acme", {"sas_limit": 1}).json()["sas_limit"] == 1
    assert ask("POST", SAS, READS).status_code == 201
    refused = ask("POST", SAS, {**READS, "permissions": "a"})
    assert refused.status_code == 409
    assert refused.json()["detail"] == "The account acme can have at most 1 SAS tokens that have not expired."


def test_nothing_keeps_the_signature(ask):
    token = ask("POST", SAS, READS, **{"Idempotency-Key": "k"}).json()["token"]
    secret = signature(token).signature
    for model in (RegisteredSas, IdempotencyRecord, Activity):
        assert not any(secret in str(value) for row in model.objects.values_list() for value in row), model


def test_tokens_by_a_policy_and_by_the_second_key(ask, account):
    policies.replace_by_name(account, "people", [SignedIdentifier("p", AccessPolicy(None, None, "r"))])
    made = ask("POST", SAS, {"label": "x", "table": "people", "policy": "p", "ttl": "9d"})
    assert made.json()["state"] == "active"
    conflicting = ask("POST", SAS, {**READS, "policy": "p"})
    assert (conflicting.status_code, "but not both" in conflicting.json()["detail"]) == (400, True)

    fields = {"label": "all", "key": "key2", "permissions": "rl", "ttl": "1h", "protocol": "https"}
    token = signature(ask("POST", SAS, fields).json()["token"])
    assert (token.resource_types, token.services, token.protocol) == ("sco", "t", "https")
    assert sas.find_signing_key(token, "acme", sealed_keys.keys_of(account)) == 1


def test_the_same_key_is_the_same_token(ask, account, call):
    key = {"Idempotency-Key": "nightly-7"}
    first, second = (ask("POST", SAS, READS, **key) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() == second.json()
    assert RegisteredSas.objects.count() == 1
    assert ask("POST", SAS, {**READS, "permissions": "raud"}, **key).status_code == 422
    assert call("alice")("POST", SAS, {**READS, "permissions": "a"}, **key).status_code == 201
    accounts.rotate("acme", 1)
    assert ask("POST", SAS, READS, **key).status_code == 409


def test_lists_the_newest_first_a_page_at_a_time(ask):
    for label in ("a", "b", "c"):
        ask("POST", SAS, {**READS, "label": label, "permissions": "raud"["abc".index(label)]})
    first = ask("GET", f"{SAS}?limit=2").json()
    rest = ask("GET", first["next"].removeprefix("http://testserver")).json()
    assert [one["label"] for one in first["items"] + rest["items"]] == ["c", "b", "a"]
    assert rest["next"] is None


def test_blocks_and_unblocks(ask):
    result = ask("POST", SAS, READS).json()
    address = f"{SAS}/{result['fingerprint']}"
    assert ask("POST", f"{address}/block").json()["state"] == "blocked"
    assert ask("POST", f"{address}/block").status_code == 200
    assert [one["state"] for one in ask("GET", f"{SAS}?state=blocked&table=PEOPLE").json()["items"]] == [
        "blocked"
    ]
    assert ask("GET", f"{SAS}?state=active").json()["items"] == []
    assert ask("POST", f"{address}/unblock").json()["state"] == "active"
    assert Activity.objects.filter(verb=AccessVerb.SAS_BLOCK, actor_kind="token").count() == 1


def test_describes_a_token_which_needs_a_label(ask, account):
    issued = f"{SAS}/{ask('POST', SAS, READS).json()['fingerprint']}"
    described = ask("PATCH", issued, {"owner": "reporting team"}).json()
    assert (described["label"], described["owner"]) == ("report", "reporting team")
    RegisteredSas.objects.update(label="")
    assert ask("PATCH", issued, {"owner": "x"}).json()["errors"][0]["pointer"] == "#/label"
    assert Activity.objects.filter(verb=AccessVerb.SAS_CHANGE).count() == 1


def test_refuses_what_would_open_nothing(ask):
    for changed, pointer in [
        ({"table": "nothing"}, "#/table"),
        ({"policy": "nothing", "permissions": ""}, "#/policy"),
        ({"permissions": ""}, "#"),
        ({"permissions": "x"}, "#"),
        ({"ip": "nowhere"}, "#"),
        ({"start_row": "a"}, "#"),
        ({"start_partition": "\x07"}, "#"),
        ({"start_partition": "\0"}, "#/start_partition"),
        ({"label": ""}, "#/label"),
        ({"key": "key3"}, "#/key"),
        ({"key": 1}, "#/key"),
        ({"expires_at": "2026-12-01T00:00:00Z"}, "#/ttl"),
        ({"table": "", "policy": "p"}, "#/policy"),
        ({"sig": "x"}, "#/sig"),
    ]:
        refused = ask("POST", SAS, {**READS, **changed})
        assert refused.status_code == 400, refused.content
        assert [error["pointer"] for error in refused.json()["errors"]] == [pointer]
    assert not RegisteredSas.objects.exists()
