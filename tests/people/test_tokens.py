"""Tokens: known by their hash alone, noted when used, and gone in many ways."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from console.models import User
from console.people import users
from storage.domain.access import api_tokens as written
from storage.domain.access.actor import SERVER
from storage.models import Activity, ApiToken
from storage.people import api_tokens
from storage.people.subject import PeopleVerb
from tests.fixtures import Caller


def test_scanners_find_them_and_mistakes_are_known():
    token = written.write_token("0aZ" * 12)
    assert token.startswith("tbl_")
    assert len(token) == 46
    assert written.is_token(token)
    for wrong in (
        token[:-1],
        f"{token}0",
        token.replace("0", "1", 1),
        token.upper(),
        "",
        "tbl_",
        f" {token}",
    ):
        assert not written.is_token(wrong)


def test_only_the_hash_is_kept(issue):
    secret, token = issue("alice")
    assert token.digest == hashlib.sha256(secret.encode()).hexdigest()
    assert token.prefix == secret[:8]
    assert not any(secret in str(value) for value in ApiToken.objects.values_list()[0])
    done = Activity.objects.get(verb=PeopleVerb.API_TOKEN_ISSUE)
    assert done.detail == {"token": "ci", "user": "alice", "scope": "manage"}


def test_other_credentials_are_none(account):
    for header in (
        "", "Bearer", "Bearer ", "Bearer x", "Basic eDp4", "Bearer tbl_\xe9", "SharedKey acme:x", "Bearer\tx",
    ):  # fmt: skip
        answer = Caller().client.get("/ui/api/v1/token", headers={"Authorization": header})
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert answer.headers["Content-Type"] == "application/problem+json"


def test_use_is_noted_once_a_minute(issue, django_assert_num_queries):
    secret, token = issue("alice")
    start = timezone.now()
    for seconds, seen in ((0, 0), (30, 0), (59, 0), (60, 60), (100, 60)):
        now = start + timedelta(seconds=seconds)
        assert api_tokens.authenticate(secret, now, "192.0.2.1") == token
        token.refresh_from_db()
        assert token.last_used_at == start + timedelta(seconds=seen)
    assert token.last_used_from == "192.0.2.1"
    with django_assert_num_queries(1):
        api_tokens.authenticate(secret, start + timedelta(seconds=101), "")
    with django_assert_num_queries(0):
        api_tokens.authenticate(secret[:-1] + "_", start, "")


def test_one_expires_and_one_is_revoked(issue):
    now = datetime.now(UTC)
    secret, _ = issue("alice", expires_at=now)
    assert api_tokens.authenticate(secret, now - timedelta(seconds=1), "") is not None
    assert api_tokens.authenticate(secret, now, "") is None
    secret, token = issue("alice")
    assert Caller(secret)("GET", "token").status_code == 200
    for is_active, status in ((False, 401), (True, 200)):
        User.objects.filter(username="alice").update(is_active=is_active)
        assert Caller(secret)("GET", "token").status_code == status
    assert api_tokens.revoke(token, by=SERVER) is not None
    assert api_tokens.revoke(token, by=SERVER) is None
    assert Caller(secret)("GET", "token").status_code == 401


def test_u4_tokens_die_with_their_user(issue, cast):
    caller = Caller(issue("alice")[0])
    users.set_active(cast["alice"], is_active=False, by=SERVER)
    assert caller("GET", "token").status_code == 401
    users.set_active(cast["alice"], is_active=True, by=SERVER)
    assert caller("GET", "token").status_code == 401  # they do not come back to life

    caller = Caller(issue("max")[0])
    users.remove(cast["max"], by=SERVER)
    assert caller("GET", "token").status_code == 401


def test_too_many_requests_wait(call, settings):
    settings.QUOTAS = {**settings.QUOTAS, "api_request": 3}
    caller, other = call("alice"), call("alice")
    assert [caller("GET", "token").status_code for _ in range(4)] == [200, 200, 200, 429]
    refused = caller("GET", "token")
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert other("GET", "token").status_code == 200

    for later in (timedelta(minutes=1), timedelta(hours=-3)):  # the clock may be set back
        ApiToken.objects.update(window_started_at=timezone.now() - later, window_requests=3)
        assert caller("GET", "token").status_code == 200


def test_refused_requests_count_towards_the_limit(call, settings):
    settings.QUOTAS = {**settings.QUOTAS, "api_request": 2}
    caller = call("sam", "read")
    refused = [caller("GET", "accounts/acme"), caller("POST", "accounts", {}), caller("GET", "accounts/none")]
    assert [answer.status_code for answer in refused] == [404, 403, 429]


def test_a_user_has_so_many_and_those_long_over_are_tidied_away(issue, monkeypatch):
    monkeypatch.setitem(settings.QUOTAS, "api_token", 3)
    for days in (10, 100, -1):
        issue("alice", expires_at=datetime.now(UTC) - timedelta(days=days))
    with pytest.raises(api_tokens.TokenError, match="at most 3"):
        issue("alice")
    api_tokens.tidy(datetime.now(UTC))
    assert ApiToken.objects.count() == 2
