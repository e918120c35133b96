"""Users, their tokens, and invitations."""

import pytest
from allauth.usersessions.models import UserSession
from django.test import Client

from console.models import Invitation, User
from console.people import invitations, link_tokens
from storage.models import Activity, ApiToken
from storage.people.subject import PeopleVerb


@pytest.fixture
def ada(call):
    return call("ada")


def test_users_are_listed_by_name_with_their_roles(ada):
    first = ada("GET", "users?limit=2").json()
    assert [it["name"] for it in first["items"]] == ["ada", "alice"]
    assert first["items"][1]["roles"] == [{"account": "acme", "role": "owner"}]
    following = ada("GET", first["next"].partition("testserver")[2]).json()
    assert [it["name"] for it in following["items"]] == ["eve", "max"]
    assert ada("GET", "users/EVE").json()["factors"] == []
    assert ada("GET", "users/unknown").status_code == 404


def test_users_are_promoted_and_disabled(ada, issue):
    issue("eve")
    changed = ada("PATCH", "users/eve", {"is_admin": True, "is_active": False})
    assert (changed.json()["is_admin"], changed.json()["is_active"]) == (True, False)
    assert not ApiToken.objects.filter(user__username="eve", revoked_at=None).exists()
    assert [it["name"] for it in ada("GET", "users?state=disabled").json()["items"]] == ["eve"]
    refused = ada("PATCH", "users/ada", {"is_active": False})
    assert (refused.status_code, "last active admin" in refused.json()["detail"]) == (409, True)
    assert User.objects.get(username="ada").is_active


def test_sessions_factors_and_tokens_end(ada, cast, issue):
    browser = Client()
    browser.force_login(cast["eve"])
    UserSession.objects.create(user=cast["eve"], session_key=browser.session.session_key, ip="127.0.0.1")
    assert ada("POST", "users/eve/sign-out").status_code == 204
    assert browser.get("/ui/me/").status_code == 302
    assert ada("POST", "users/eve/reset-factors").status_code == 204
    _secret, token = issue("eve")
    [listed] = ada("GET", "users/eve/tokens").json()["items"]
    assert (listed["id"], listed["scope"]) == (token.pk, "manage")
    assert ada("DELETE", f"users/max/tokens/{token.pk}").status_code == 404
    assert ada("DELETE", f"users/eve/tokens/{token.pk}").status_code == 204
    assert ApiToken.objects.get(pk=token.pk).revoked_at is not None


def test_only_admins_with_a_token_of_all_accounts_see_users(call, account):
    for caller in (call("alice"), call("ada", account=account), call("ada", "write")):
        for path in ("users", "users/eve", "users/eve/tokens", "invitations", "activity"):
            assert caller("GET", path).status_code == 403
    assert call("alice")("POST", "invitations", {"is_admin": True}).status_code == 403


def test_an_invitation_is_a_link_that_works_once(call, account):
    alice = call("alice")
    made = alice("POST", "accounts/acme/invitations", {"note": "Grace", "role": "viewer", "days": 3})
    assert made.status_code == 201
    token = made.json()["link"].partition("token=")[2]
    assert invitations.find(link_tokens.hash_of(token)).role == 1
    [listed] = alice("GET", "accounts/acme/invitations").json()["items"]
    assert (listed["note"], listed["account"], listed["invited_by"]) == ("Grace", "acme", "alice")
    assert "link" not in listed
    assert token not in str(Activity.objects.filter(verb=PeopleVerb.USER_INVITE).values())
    assert alice("DELETE", f"accounts/acme/invitations/{listed['id']}").status_code == 204
    assert alice("DELETE", f"accounts/acme/invitations/{listed['id']}").status_code == 404
    assert invitations.find(link_tokens.hash_of(token)) is None
    assert call("max")("POST", "accounts/acme/invitations", {}).status_code == 403


def test_an_admin_invites_to_the_server_and_to_any_account(ada):
    assert ada("POST", "invitations", {"note": "Root", "is_admin": True}).json()["account"] is None
    assert ada("POST", "invitations", {"account": "acme", "role": "owner"}).json()["role"] == "owner"
    assert ada("POST", "invitations", {"account": "unknown"}).status_code == 404
    numbers = [it["id"] for it in ada("GET", "invitations").json()["items"]]
    assert len(numbers) == 2
    assert ada("DELETE", f"invitations/{numbers[0]}").status_code == 204
    assert Invitation.objects.count() == 1


def test_the_activity_of_the_server_has_what_concerns_no_account(ada):
    ada("PATCH", "users/eve", {"is_admin": True})
    [entry] = ada("GET", "activity?verb=user.change").json()["items"]
    assert (entry["actor"]["name"], entry["account"], entry["detail"]) == ("ada", "", {"user": "eve"})
