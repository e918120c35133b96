"""Invitations: links that work once."""

import re
from datetime import timedelta
from functools import partial

import pytest
from django.test import Client
from django.utils import timezone

from console.activity.sentences import plain_sentence
from console.models import Invitation, User
from console.people import invitations
from console.people.invitations import NoLongerOpen, Offer
from storage.accounts.subject import AccountVerb
from storage.domain.access.actor import SERVER
from storage.domain.access.roles import Role
from storage.models import Activity, Membership
from storage.people.subject import PeopleVerb

ADDRESS = "/ui/join/"
GOOD = {
    "username": "Nina@Example.com",
    "password": "correct horse",
    "repeated": "correct horse",
    "language": "tr",
}


@pytest.fixture
def offered(account, cast):
    """Return `offered(role=…)`, which returns the token of a new invitation into the account."""

    def offered(invited_by="alice", role=Role.EDITOR, is_admin=False, into=account):
        offer = Offer("nina", into, role, is_admin, 7)
        return invitations.issue(offer, cast[invited_by], by=SERVER)

    return offered


def opened(client, token):
    """Return a client after its browser has opened the link of an invitation."""
    client.post(ADDRESS, {"token": token})
    return client


def role_of(name):
    return Membership.objects.filter(user__username=name).values_list("role", flat=True).first()


def test_an_owner_invites(visit):
    answer = visit("alice").post("/ui/a/acme/members/invite/", {"note": "Nina", "role": "3", "days": "7"})
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    [link] = set(re.findall(r"http://testserver(/ui/join/#token=[\w-]{43})", answer.content.decode()))
    assert link not in visit("alice").get("/ui/a/acme/members/").content.decode()
    token = link.partition("=")[2]
    assert token not in str(list(Invitation.objects.values())) + str(list(Activity.objects.values()))
    assert b"alice invited you" in opened(Client(), token).get(ADDRESS).content


def test_a_new_user_joins(client, offered):
    token = offered(role=Role.MAINTAINER)
    assert b"alice invited you to join as Maintainer" in opened(client, token).get(ADDRESS).content
    answer = client.post(ADDRESS, GOOD)
    assert (answer.status_code, answer["Location"]) == (302, "/ui/a/acme/")
    user = User.objects.get(username="nina@example.com")
    assert (user.is_admin, user.language, role_of("nina@example.com")) == (False, "tr", Role.MAINTAINER)
    assert client.get("/ui/a/acme/").status_code == 200
    assert Client().post(ADDRESS, {"token": token}).status_code == 404
    verbs = [
        AccountVerb.CREATE,
        PeopleVerb.USER_INVITE,
        PeopleVerb.USER_CREATE,
        PeopleVerb.MEMBER_SET,
        PeopleVerb.SIGN_IN,
    ]
    done = list(Activity.objects.order_by("pk"))
    assert [it.verb for it in done] == verbs
    assert [plain_sentence(it) for it in done[1:4]] == [
        "The server invited nina with the role Maintainer",
        "nina@example.com created the user nina@example.com",
        "nina@example.com joined with the role Maintainer, invited by alice",
    ]


def test_a_present_user_joins_and_loses_no_role(visit, offered):
    for who, before, after in [("sam", 404, Role.VIEWER), ("max", 200, Role.MAINTAINER)]:
        client = opened(visit(who), offered(role=Role.VIEWER))
        assert f"You are signed in as {who}" in client.get(ADDRESS).content.decode(), (who, before)
        assert client.get("/ui/a/acme/").status_code == before, (who, before)
        client.post(ADDRESS)
        assert role_of(who) == after, (who, before)


def test_an_invitation_leads_to_the_address_that_the_operator_has_set(visit, settings):
    fields = {"note": "Nina", "role": "3", "days": "7"}
    invite = partial(visit("alice").post, "/ui/a/acme/members/invite/", fields, HTTP_HOST="10.0.0.7:10002")
    assert b"http://10.0.0.7:10002/ui/join/#token=" in invite().content
    settings.CONSOLE_URL = "https://tables.example.com"
    content = invite().content
    assert b"https://tables.example.com/ui/join/#token=" in content
    assert b"10.0.0.7" not in content


def test_an_admin_invites_an_admin(client, offered):
    opened(client, offered("ada", is_admin=True, into=None)).post(ADDRESS, GOOD)
    assert User.objects.get(username="nina@example.com").is_admin


def test_refuses_a_wrong_token_and_an_old_one(client, offered):
    token = offered()
    for wrong in ["", "guess", "\0", "é" * 100]:
        refused = client.post(ADDRESS, {**GOOD, "token": wrong})
        assert refused.status_code == 404, wrong
        assert b"This link no longer works: it was used or withdrawn, or has expired." in refused.content
    late = opened(Client(), token)
    Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert client.post(ADDRESS, {"token": token}).status_code == 404
    for stranger in (client, late):
        assert b"Paste the whole link" in stranger.post(ADDRESS, GOOD).content
    assert not User.objects.filter(username="nina@example.com").exists()


def test_refuses_withdrawn_invitations(visit, client, offered):
    token = offered()
    pk = Invitation.objects.get().pk
    assert visit("max").post(f"/ui/invitations/{pk}/withdraw/").status_code == 404
    visit("alice").post(f"/ui/invitations/{pk}/withdraw/", {"from": "members"})
    assert client.post(ADDRESS, {"token": token}).status_code == 404


def test_old_expired_invitations_are_deleted(offered):
    offered()
    end = Invitation.objects.get().expires_at
    invitations.tidy(end + timedelta(days=29))
    assert Invitation.objects.count() == 1
    invitations.tidy(end + timedelta(days=31))
    assert not Invitation.objects.exists()


def test_an_invitation_is_used_only_once(cast, offered):
    offered()
    result = Invitation.objects.get()
    invitations.join(result, cast["sam"], by=SERVER)
    with pytest.raises(NoLongerOpen):
        invitations.join(result, cast["victor"], by=SERVER)
    assert role_of("victor") == Role.VIEWER


@pytest.mark.parametrize(
    "wrong",
    [
        {"username": "ALICE"},
        {"username": "a b"},
        {"password": "short", "repeated": "short"},
        {"repeated": "other"},
    ],
)
def test_refuses_invalid_users(client, offered, wrong):
    opened(client, offered())
    users = User.objects.count()
    assert client.post(ADDRESS, GOOD | wrong).status_code == 422
    assert User.objects.count() == users
    assert b"alice invited you" in client.get(ADDRESS).content  # it still works


def test_only_admins_make_admins(proven):
    data = {"note": "", "role": "4", "days": "1", "is_admin": "on"}
    assert proven("alice").post("/ui/u/invite/", data).status_code == 403
    proven("alice").post("/ui/a/acme/members/invite/", data)
    assert not Invitation.objects.get().is_admin


@pytest.mark.parametrize("loss", ["switched off", "an editor now", "no member any more"])
def test_an_invitation_is_limited_by_the_rights_of_its_author(visit, client, offered, cast, loss):
    token = offered(role=Role.OWNER)
    opened(client, token)
    if loss == "switched off":
        User.objects.filter(username="alice").update(is_active=False)
    elif loss == "an editor now":
        Membership.objects.filter(user=cast["alice"]).update(role=Role.EDITOR)
    else:
        Membership.objects.filter(user=cast["alice"]).delete()
    assert b"Paste the whole link" in client.post(ADDRESS, GOOD).content
    assert client.post(ADDRESS, {"token": token}).status_code == 404
    assert not User.objects.filter(username="nina@example.com").exists()


def test_a_link_of_an_admin_is_worth_no_more_than_they_are(visit, offered, cast):
    tokens = offered("ada", is_admin=True), offered("ada")
    User.objects.filter(username="ada").update(is_admin=False)
    for token in tokens:
        assert visit("ada").post(ADDRESS, {"token": token}).status_code == 404
    assert not User.objects.filter(is_admin=True).exists()
