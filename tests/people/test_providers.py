"""Sign-in with an account of another provider."""

from dataclasses import replace
from urllib.parse import urlsplit

import pytest
import requests
from allauth.socialaccount.models import SocialAccount, SocialToken

from console.models import User
from console.people import invitations
from console.people.invitations import Offer
from storage.domain.access.actor import SERVER
from storage.domain.access.roles import Role
from storage.models import Activity
from tests.fixtures import PASSWORD


@pytest.fixture
def invited_only(configure):
    configure(admits_everyone=False)


def go(client, address, **sent):
    """There and back; the last answer."""
    answer = client.post(address, sent)
    if not answer["Location"].startswith("http"):
        return answer
    back = requests.get(answer["Location"], allow_redirects=False, timeout=60).headers["Location"]
    parts = urlsplit(back)
    return client.get(f"{parts.path}?{parts.query}")


def sign_in(client, elsewhere, **sent):
    return go(client, f"/ui/login/with/{elsewhere.id}/", **sent)


def test_admitted_people_become_users_without_a_role(visit, elsewhere):
    client = visit(None)
    assert b"Sign in with Elsewhere" in client.get("/ui/login/").content
    answer = sign_in(client, elsewhere, next="/ui/me/")
    assert (answer.status_code, answer["Location"]) == (302, "/ui/me/")
    jane = User.objects.get(username="jane.doe")
    assert not jane.is_admin
    assert not jane.has_usable_password()
    assert not jane.memberships.exists()
    assert client.get("/ui/a/acme/").status_code == 404
    assert not SocialToken.objects.exists()
    assert list(Activity.objects.filter(actor="jane.doe").order_by("pk").values_list("verb", "actor")) == [
        ("user.create", "jane.doe"),
        ("user.sign-in", "jane.doe"),
    ]


def test_a_name_that_is_taken_is_somebody_else(visit, elsewhere):
    elsewhere.person["preferred_username"] = "Alice"
    for _ in range(2):  # and the same the next time
        client = visit(None)
        sign_in(client, elsewhere)
        assert client.get("/ui/").context["user"].username == "alice-2"


def test_people_without_an_invitation_are_not_admitted(visit, elsewhere, invited_only):
    answer = sign_in(visit(None), elsewhere)
    assert answer.status_code == 403
    assert b"You need an invitation" in answer.content
    assert not User.objects.filter(username="jane.doe").exists()


def test_disabled_users_are_not_admitted(visit, elsewhere):
    sign_in(visit(None), elsewhere)
    User.objects.filter(username="jane.doe").update(is_active=False)
    client = visit(None)
    assert sign_in(client, elsewhere)["Location"] == "/ui/login/off/"
    assert b"An admin disabled your user" in client.get("/ui/login/off/").content
    assert client.get("/ui/").status_code == 302


def test_an_invitation_makes_a_member(visit, elsewhere, invited_only, cast, account):
    offer = Offer("Jane", account, Role.EDITOR, is_admin=False, days=7)
    token = invitations.issue(offer, cast["alice"], by=SERVER)
    client = visit(None)
    client.post("/ui/join/", {"token": token})
    assert b"Sign in with Elsewhere" in client.get("/ui/join/").content
    assert sign_in(client, elsewhere, next="/ui/join/")["Location"] == "/ui/"
    assert User.objects.get(username="jane.doe").memberships.get().role == Role.EDITOR
    assert client.get("/ui/a/acme/").status_code == 200
    assert sign_in(visit(None), elsewhere)["Location"] == "/ui/"


def test_sign_in_is_refused_before_the_first_admin_exists(client, db, elsewhere):
    assert sign_in(client, elsewhere)["Location"] == "/ui/login/"
    assert not User.objects.exists()


def test_connecting_requires_a_recent_proof_of_identity(visit, cast, elsewhere, invited_only):
    client = visit("alice")
    connect = f"/ui/me/security/connect/{elsewhere.id}/"
    assert "/ui/me/again/" in client.post(connect)["Location"]
    client.post("/ui/me/again/", {"password": PASSWORD})
    assert go(client, connect)["Location"] == "/ui/me/security/"
    assert b"Jane.Doe" in client.get("/ui/me/security/").content
    fresh = visit(None)
    sign_in(fresh, elsewhere)
    assert fresh.get("/ui/").context["user"] == cast["alice"]


def test_a_person_is_connected_to_one_user_and_disconnects_only_themselves(visit, cast, elsewhere):
    sign_in(visit(None), elsewhere)
    client = visit("alice")
    client.post("/ui/me/again/", {"password": PASSWORD})
    go(client, f"/ui/me/security/connect/{elsewhere.id}/")
    result = SocialAccount.objects.get()
    assert result.user.username == "jane.doe"
    assert b"is already connected to another user" in client.get("/ui/me/security/").content
    assert client.post(f"/ui/me/security/disconnect/{result.pk}/").status_code == 404


def test_the_last_way_to_sign_in_stays(visit, elsewhere):
    client = visit(None)
    sign_in(client, elsewhere)
    number = SocialAccount.objects.get().pk
    client.post(f"/ui/me/security/disconnect/{number}/")
    assert SocialAccount.objects.exists()
    client.post("/ui/me/password/", {"password": "battery staple", "repeated": "battery staple"})
    client.post(f"/ui/me/security/disconnect/{number}/")
    assert not SocialAccount.objects.exists()


def test_users_without_a_password_confirm_with_the_provider(visit, elsewhere):
    client = visit(None)
    sign_in(client, elsewhere)
    page = client.get("/ui/me/again/")
    assert page.status_code == 200
    assert b"auth_params=prompt%3Dlogin" in page.content
    assert b'name="password"' not in page.content


def test_errors_lead_back_to_the_form(visit, settings, elsewhere):
    client = visit(None)
    callback = f"/ui/login/with/{elsewhere.id}/callback/?code=x&state=y"
    assert client.get(callback)["Location"] == "/ui/login/"
    elsewhere.refuses = True
    assert sign_in(client, elsewhere)["Location"] == "/ui/login/"
    settings.SIGN_IN_PROVIDERS = (
        replace(settings.SIGN_IN_PROVIDERS[0], issuer="http://127.0.0.1:9", given_id=elsewhere.id),
    )
    assert sign_in(client, elsewhere)["Location"] == "/ui/login/"
    assert b"cannot be reached" in client.get("/ui/login/").content
