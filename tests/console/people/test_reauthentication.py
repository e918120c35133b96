"""Proving again who one is, before secrets are shown."""

import re
import time

import pytest
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.http import HttpResponse
from django.test import RequestFactory

from console.people.reauthentication import RECENT, recently_authenticated
from tests.console.conftest import PASSWORD

AGAIN = "/ui/me/again/"


@pytest.fixture
def ask(visit):
    """What a view with secrets answers; `ask(client, "POST", ...)`: with the headers given."""

    @recently_authenticated
    def view(request):
        return HttpResponse("the secret")

    def ask(client, method="GET", path="/ui/a/acme/?keys=1", **headers):
        request = RequestFactory(headers=headers).generic(method, path)
        request.session = client.session
        request.user = client.get("/ui/").wsgi_request.user
        return view(request)

    return ask


def test_asks_and_comes_back(visit, ask):
    client = visit("alice")
    answer = ask(client)
    assert (answer.status_code, answer["Location"]) == (302, AGAIN + "?next=%2Fui%2Fa%2Facme%2F%3Fkeys%3D1")
    page = client.get(answer["Location"])
    assert page["Cache-Control"].startswith("max-age=0, no-cache, no-store")
    assert b'name="next" value="/ui/a/acme/?keys=1"' in page.content
    assert re.search(rb'<input[^>]*name="password"[^>]*autofocus', page.content)
    answer = client.post(AGAIN, {"password": PASSWORD, "next": "/ui/a/acme/?keys=1"})
    assert (answer.status_code, answer["Location"]) == (302, "/ui/a/acme/?keys=1")
    assert ask(client).content == b"the secret"


def test_asks_again_after_ten_minutes(visit, ask, monkeypatch):
    client = visit(None)
    client.post("/ui/login/", {"login": "alice", "password": PASSWORD})
    assert ask(client).content == b"the secret"
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + RECENT + 1)
    assert ask(client).status_code == 302


def test_a_form_leads_back_to_its_page(visit, ask):
    client = visit("alice")
    page = "http://testserver/ui/a/acme/?tab=keys"
    assert ask(client, "POST", Referer=page)["Location"].endswith("?next=%2Fui%2Fa%2Facme%2F%3Ftab%3Dkeys")
    evil = "http://evil.example/ui/a/acme/?tab=keys"
    assert ask(client, "POST", "/ui/", Referer=evil)["Location"].endswith("?next=%2Fui%2F")


def test_refuses_a_wrong_password_and_makes_the_sixth_attempt_wait(visit, ask):
    client = visit("alice")
    for _ in range(5):
        answer = client.post(AGAIN, {"password": "wrong horse"})
        assert answer.status_code == 422
        assert answer.context["password"].errors
    errors = client.post(AGAIN, {"password": PASSWORD}).context["password"].errors["password"]
    assert re.search(r"Try again in (2\d\d|300) seconds\.", errors[0])
    assert ask(client).status_code == 302


def test_a_code_does_as_well(visit, cast, ask):
    client = visit("alice")
    TOTP.activate(cast["alice"], generate_totp_secret())
    code = RecoveryCodes.activate(cast["alice"]).generate_codes()[0]
    assert client.post(f"{AGAIN}code/", {"code": "1"}).status_code == 422
    assert client.post(f"{AGAIN}code/", {"code": code, "next": "/ui/me/"})["Location"] == "/ui/me/"
    assert ask(client).content == b"the secret"
