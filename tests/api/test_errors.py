"""Whatever goes wrong is a problem of a documented kind; nothing that a client sends makes the server fail."""

import pytest
from django.test import Client

from storage.api import documentation, problems
from tests.api.conftest import API, Caller

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
def ask(call, people):
    return call("ada")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 201),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"NaN", 400),
        (b'{"name": "\\ud800"}', 400),
        (b'{"name": "abc\\u0000"}', 400),
        (b'{"label": "\\u0000"}', 400),
        (b'{"labels": {"\\u0000": ""}}', 400),
        (b'{"labels": {"a": "\\u0000"}}', 400),
        (b'{"labels": {"a": {}}}', 400),
        (b'{"labels": 1}', 400),
        (b'{"\\u0000": 1}', 400),
        (b'{"non_field_errors": 1}', 400),
        (b'{"a/b~c": 1}', 400),
        (b'{"ttl": 1e999}', 400),
        (b'{"ttl": ' + b"9" * 5000 + b"}", 400),
        (b'{"ttl": "999999999999999999w"}', 400),
        (b'{"ttl": "\xd9\xa1h"}', 400),
        (b'{"expires_at": "9999-12-31T23:59:59-23:59"}', 400),
        (b'{"name": 12345}', 400),
        (b'{"colour": "#FFFFFF"}', 400),
        (b'{"label": null}', 400),
        (b"[]", 400),
        (b"null", 400),
        (b'"text"', 400),
        (DEEP, 400),
        (b'{"labels": ' + DEEP + b"}", 400),
    ],
)
def test_no_body_makes_the_server_fail(ask, body, status):
    answer = ask("POST", "accounts", body)
    if status >= 400:
        check(answer, status)
    assert answer.status_code == status


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=501", "limit=x", "limit=" + "9" * 5000, "cursor=%00", "cursor=!", "name=%00", "more=1",
     "state=gone", "label=%00", "cursor=" + "A" * 4000],
)  # fmt: skip
def test_parameters_are_strict(ask, query):
    problem = check(ask("GET", f"accounts?{query}"), 400)
    assert problem["errors"][0]["parameter"].startswith(query.partition("=")[0])


@pytest.mark.parametrize(
    "path",
    ["accounts/%00", "accounts/ACME", "accounts/%ED%A0%80", "accounts/acme/tables/%00", "accounts/acme/tables/..",
     "accounts/acme/sas/%00", "accounts/acme/members/%00", "accounts/acme/members/%C4%B0",
     "accounts/acme/keys/key%00/rotate", "accounts/acme/", "nothing", "", "accounts/a%2Fb"],
)  # fmt: skip
def test_what_is_not_there(ask, path):
    method = "POST" if path.endswith("rotate") else "PUT" if "members" in path else "GET"
    check(ask(method, path, {"role": "owner"} if "members" in path else None), 404)


def test_methods_that_are_not_there(ask):
    for method in ("PUT", "OPTIONS", "TRACE", "BREW"):
        check(ask(method, "accounts"), 405)
    assert ask("PUT", "accounts").headers["Allow"] == "GET, POST, HEAD"


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


def test_a_host_that_is_none(ask):
    check(Caller(ask.secret)("GET", "accounts", Host="a b"), 400)


def test_no_answer_is_kept_by_anybody(ask):
    assert ask("GET", "accounts/acme/keys").headers["Cache-Control"] == "no-store"


def test_pointers_are_escaped(ask):
    problem = ask("POST", "accounts", {"a/b~c": 1}).json()
    assert problem["errors"] == [{"pointer": "#/a~1b~0c", "detail": "Unknown member."}]


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
