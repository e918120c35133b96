"""Whatever goes wrong is a problem of a documented kind; nothing that a client sends makes the server fail."""

import gc
import json

import pytest
from django.test import Client

from storage.rest import documentation, problems
from tests.fixtures import API, Caller

DEEP = b"[" * 100_000 + b"]" * 100_000
KINDS = {kind.url for kind in problems.PROBLEM_TYPES}


def check(answer, status):
    assert answer.status_code == status, answer.content
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert problem["type"] in KINDS
    assert problem["title"]
    assert problem["instance"].startswith("urn:uuid:")
    return problem


@pytest.fixture
def ask(call, table):
    return call("ada")


def test_no_body_makes_the_server_fail(ask):
    for body in [
        b"{", b"\xff\xfe", b"NaN", b"[]", b"null", b'"text"', DEEP, b'{"labels": ' + DEEP + b"}",
        b'{"name": "\\ud800"}', b'{"name": "abc\\u0000"}', b'{"name": 12345}',
        b'{"label": "\\u0000"}', b'{"label": null}',
        b'{"labels": {"\\u0000": ""}}', b'{"labels": {"a": "\\u0000"}}', b'{"labels": {"a": {}}}', b'{"labels": 1}',
        b'{"\\u0000": 1}', b'{"non_field_errors": 1}', b'{"colour": "#FFFFFF"}',
        b'{"ttl": 1e999}', b'{"ttl": ' + b"9" * 5000 + b"}", b'{"ttl": "999999999999999999w"}', b'{"ttl": "\xd9\xa1h"}',
        b'{"expires_at": "9999-12-31T23:59:59-23:59"}',
    ]:  # fmt: skip
        check(ask("POST", "accounts", body), 400)
    assert ask("POST", "accounts", b"").status_code == 201
    problem = check(ask("POST", "accounts", {"a/b~c": 1}), 400)
    assert problem["errors"] == [{"pointer": "#/a~1b~0c", "detail": "Unknown member."}]


def test_lists_a_hundred_errors(ask):
    for body in (
        {f"m{number}": 1 for number in range(101)},
        {"name": "acme2", "labels": {f"l{n}": 1 for n in range(101)}},
    ):
        assert len(check(ask("POST", "accounts", body), 400)["errors"]) == 100


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"name": ["m"] * 1234}, 400),
        ({"labels": {"m": ["m"] * 1234}}, 400),
        ({"labels": {"m1234": "m"}}, 201),
    ],
)
def test_a_body_is_free_when_it_is_answered(ask, body, status):
    content = json.dumps(body).encode()
    del body
    gc.collect()
    gc.disable()  # would find it, but runs rarely
    try:
        assert ask("POST", "accounts", content).status_code == status
        objects = [it for it in gc.get_objects() if type(it) in (list, dict)]
        parsed = [it for it in objects if it == ["m"] * 1234 or it == {"labels": {"m1234": "m"}}]
    finally:
        gc.enable()
    assert not parsed


def test_parameters_are_strict(ask):
    for query in [
        "limit=0", "limit=501", "limit=x", "limit=" + "9" * 5000, "limit=1.0", "limit=1_0", "limit=%2B1", "limit=%201",
        "limit=%D9%A1", "cursor=%00", "cursor=!", "name=%00", "more=1",
        "state=gone", "label=%00", "cursor=" + "A" * 4000,
    ]:  # fmt: skip
        problem = check(ask("GET", f"accounts?{query}"), 400)
        assert problem["errors"][0]["parameter"].startswith(query.partition("=")[0])


def test_unknown_paths_get_404(ask):
    for path in [
        "accounts/%00", "accounts/ACME", "accounts/%ED%A0%80", "accounts/acme/tables/%00", "accounts/acme/tables/..",
        "accounts/acme/sas/%00", "accounts/acme/", "nothing", "", "accounts/a%2Fb",
    ]:  # fmt: skip
        check(ask("GET", path), 404)
    check(ask("POST", "accounts/acme/keys/key%00/rotate"), 404)
    for user in ("%00", "%C4%B0"):
        check(ask("PUT", f"accounts/acme/members/{user}", {"role": "owner"}), 404)


def test_unknown_methods_and_hosts(ask):
    for method in ("PUT", "OPTIONS", "TRACE", "BREW"):
        check(ask(method, "accounts"), 405)
    assert ask("PUT", "accounts").headers["Allow"] == "GET, POST, HEAD"
    check(Caller(ask.secret)("GET", "accounts", Host="a b"), 400)


def test_bodies_that_are_not_json(ask):
    client = Client(headers={"Authorization": f"Bearer {ask.secret}"})
    for media in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        check(client.generic("POST", f"{API}/accounts", b"x=1", media), 415)
    made = client.generic("POST", f"{API}/accounts", b"{}", "Application/JSON; charset=utf-8")
    assert made.status_code == 201


def test_sentences_are_english_whatever_the_browser_asks_for(ask):
    answer = ask("POST", "accounts", {"name": 1}, **{"Accept-Language": "tr"})
    assert check(answer, 400)["errors"][0]["detail"] == "Not a valid string."
    assert answer.headers["Content-Language"] == "en"


def test_every_kind_is_documented():
    assert len({kind.name for kind in problems.PROBLEM_TYPES}) == len(problems.PROBLEM_TYPES)
    told = {
        answer["description"]
        for methods in documentation.document()["paths"].values()
        for operation in methods.values()
        for answer in operation["responses"].values()
    }
    for kind in problems.PROBLEM_TYPES:
        if kind not in {problems.NO_METHOD, problems.FAILED}:
            assert any(kind.description in text for text in told), kind.name
