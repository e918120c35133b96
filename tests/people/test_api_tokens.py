"""Tokens of the management API, in the profile and on the page of a user."""

from datetime import timedelta

import pytest
from django.utils import timezone

from storage.domain.access.actor import SERVER, Actor, ActorKind
from storage.domain.access.roles import Scope
from storage.models import Activity, ApiToken
from storage.people import api_tokens
from storage.people.api_tokens import TokenRequest
from storage.tables import tables

NEW = "/ui/me/tokens/new/"
LIST = "/ui/me/tokens/"
FORM = {"name": "CI", "scope": "write", "account": "acme", "days": "30"}


@pytest.fixture
def alice(proven):
    return proven("alice")


@pytest.fixture
def token(cast):
    return api_tokens.issue(cast["alice"], TokenRequest("CI", Scope.READ), by=SERVER)[1]


def test_f3_is_shown_once_scoped_and_revocable(alice, account):
    made = alice.post(NEW, FORM)
    assert made.status_code == 200
    assert "no-store" in made["Cache-Control"]
    secret = next(word for word in made.content.decode().split('"') if word.startswith("tbl_"))
    result = api_tokens.authenticate(secret, timezone.now(), "192.0.2.7")
    assert (result.user.username, result.scope, result.account) == ("alice", "write", account)
    assert timedelta(days=29) < result.expires_at - timezone.now() <= timedelta(days=30)

    listed = alice.get(LIST).content.decode()
    assert secret not in listed
    for text in (secret[:8], "acme", "192.0.2.7"):
        assert text in listed
    assert secret not in alice.get("/ui/a/acme/activity/").content.decode()
    assert not any(secret in str(row) for row in Activity.objects.values_list())

    revoke = f"/ui/me/tokens/{result.pk}/revoke/"
    assert alice.get(revoke).status_code == 200
    assert ApiToken.objects.get().revoked_at is None
    assert alice.post(revoke).status_code == 302
    assert api_tokens.authenticate(secret, timezone.now(), "") is None
    assert alice.get(revoke).status_code == 404
    assert "No tokens yet" in alice.get(LIST).content.decode()


@pytest.mark.parametrize(
    "changed", [{"name": ""}, {"name": "a\x07"}, {"scope": "all"}, {"account": "other"}, {"days": "5000"}]
)
def test_refuses_invalid_token_requests(alice, changed):
    assert alice.post(NEW, {**FORM, **changed}).status_code == 422
    assert not ApiToken.objects.exists()
    alice.post(NEW, {**FORM, "account": "", "days": "0"})  # for all accounts, for good
    result = ApiToken.objects.get()
    assert (result.account, result.expires_at) == (None, None)


def test_tokens_of_others_cannot_be_revoked(visit, token):
    max_ = visit("max")
    assert max_.post(f"/ui/me/tokens/{token.pk}/revoke/").status_code == 404
    assert max_.post(f"/ui/u/{token.user_id}/tokens/{token.pk}/revoke/").status_code == 403
    token.refresh_from_db()
    assert token.revoked_at is None


def test_an_admin_sees_and_revokes_them(visit, token):
    client = visit("ada")
    assert f"{token.prefix}…" in client.get(f"/ui/u/{token.user_id}/").content.decode()
    answer = client.post(f"/ui/u/{token.user_id}/tokens/{token.pk}/revoke/")
    assert answer["Location"] == f"/ui/u/{token.user_id}/"
    token.refresh_from_db()
    assert token.revoked_at is not None
    assert "revoked the API token" in client.get("/ui/activity/").content.decode()


def test_the_record_names_the_token(visit, account, token):
    tables.create(account, "people", by=Actor(ActorKind.TOKEN, "alice", token="CI"))
    page = visit("alice").get("/ui/a/acme/activity/").content.decode()
    assert "<strong>alice</strong>, using the API token" in page
