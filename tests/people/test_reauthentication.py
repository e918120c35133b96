"""Proving again who one is, before secrets are shown."""

import re
import time

import pytest
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.sessions.backends.base import UpdateError
from django.core.cache import cache
from django.http import HttpResponse
from django.test import RequestFactory
from django.urls import reverse

from console.people.reauthentication import RECENT, recently_authenticated
from console.people.session_store import SessionStore
from storage.branches import branches
from storage.branches.branches import BranchRequest
from storage.domain.access.actor import SERVER
from storage.domain.access.roles import Role
from storage.models import Activity
from storage.people import members
from storage.snapshots import snapshots
from tests.console.addresses import ANSWERS, ARGUMENTS
from tests.fixtures import PASSWORD

AGAIN = "/ui/me/again/"


@pytest.fixture
def ask(visit):
    """Return the answer of a view with secrets; `ask(client, "POST", ...)` takes a method and headers."""

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


def test_a_confirmation_replaces_the_key_of_the_session(visit, ask):
    client, late = visit("alice"), visit(None)
    client.get("/ui/")  # from now on it is listed
    former = client.session.session_key
    under_way = SessionStore(former)
    under_way["draft"] = "x"
    late.cookies[settings.SESSION_COOKIE_NAME] = former  # another tab, or a thief
    assert client.post(AGAIN, {"password": PASSWORD}).status_code == 302
    key = client.session.session_key
    assert key != former
    assert [it.session_key for it in UserSession.objects.all()] == [key]
    page = late.get("/ui/me/security/app/")
    assert page["Location"].startswith(AGAIN)
    assert settings.SESSION_COOKIE_NAME not in page.cookies
    assert ask(client).content == b"the secret"
    assert ask(late).status_code == 302
    under_way.save()
    assert "draft" not in client.session
    cache.clear()  # as after a minute
    assert late.get("/ui/")["Location"].startswith("/ui/login/")
    assert client.get("/ui/").status_code == 200
    with pytest.raises(UpdateError):
        under_way.save()


def test_a_request_with_the_former_key_changes_the_session_and_not_the_cookie(visit):
    client, late = visit("alice"), visit(None)
    late.cookies[settings.SESSION_COOKIE_NAME] = client.session.session_key
    client.post(AGAIN, {"password": PASSWORD})
    saved = late.post(
        "/ui/me/", {"language": "en", "theme": "dark", "density": "default", "edit_mode": "direct"}
    )
    assert (saved.status_code, settings.SESSION_COOKIE_NAME in saved.cookies) == (302, False)
    assert b"Saved your preferences." in client.get("/ui/me/").content
    client.post("/ui/logout/")
    assert late.get("/ui/").status_code == 302


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


def test_keeps_the_account_and_its_sidebar(visit, account):
    client = visit("alice")
    page = client.get(reverse("accounts:key_rotate", args=["acme", 1]), follow=True)
    assert page.request["PATH_INFO"] == AGAIN
    assert reverse("accounts:keys", args=["acme"]) in sidebar(page)
    refused = client.post(AGAIN, {"password": "wrong horse", "next": "/ui/a/acme/keys/1/rotate/"})
    assert sidebar(refused) == sidebar(page)
    for elsewhere in ("/ui/me/", "/ui/a/nobody/", "/ui/nowhere/", "//evil.example/ui/a/acme/"):
        assert "/ui/a/acme/" not in sidebar(client.get(AGAIN, {"next": elsewhere})), elsewhere
    stranger = visit("sam").get(AGAIN, {"next": "/ui/a/acme/keys/"})
    assert "acme" not in sidebar(stranger)


def sidebar(page):
    return re.search(r'<nav class="sidebar".*?</nav>', page.text, re.DOTALL)[0]


# views that ask for a proof

OWNER, EDITOR = str(int(Role.OWNER)), str(int(Role.EDITOR))
# views that give lasting power, show a secret, or replace or delete all data: name → fields of the form
SENSITIVE = {
    "accounts:connection": {},
    "accounts:connection_copy": {},
    "accounts:delete": {"name": "acme"},
    "accounts:key_copy": {},
    "accounts:key_end": {},
    "accounts:key_reveal": {},
    "accounts:key_rotate": {},
    "accounts:member": {"role": OWNER},
    "accounts:members_add": {"username": "sam", "role": OWNER},
    "accounts:members_invite": {"note": "Sam", "role": OWNER, "days": "7"},
    "activity:undo": {},
    "compare:apply": {
        "left": "acme",
        "right": "branch",
        "table": "people",
        "all": "1",
        "read_at": "2026-11-30T18:00:00Z~1:1:",
    },
    "mfa_activate_totp": {},
    "mfa_add_webauthn": {},
    "mfa_deactivate_totp": {},
    "mfa_edit_webauthn": {},
    "mfa_generate_recovery_codes": {},
    "mfa_remove_webauthn": {},
    "mfa_view_recovery_codes": {},
    "notices:address": {"address": "alice@example.com"},
    "notices:server_webhook_new": {},
    "notices:server_webhook_secret": {},
    "notices:webhook_new": {},
    "notices:webhook_secret": {},
    "people:api_token_new": {},
    "people:connect": {},
    "people:disconnect": {},
    "people:session_end": {},
    "people:sessions_end": {},
    "people:user_change": {"action": "promote"},
    "people:users_invite": {"note": "Sam", "role": EDITOR, "days": "7", "is_admin": "on"},
    "queries:code": {},
    "sas:new": {
        "is_form": "1",
        "kind": "table",
        "table": "people",
        "permissions": "r",
        "expiry": "1d",
        "label": "partner",
        "signer": "1",
    },
    "snapshots:new_branch": {"name": "other", "table": "people"},
    "snapshots:reset": {},
    "snapshots:restore": {},
}
# views open to a session of any age: changes that can be undone, remove power, or need a password
ORDINARY = """
account_login account_logout account_reauthenticate mfa_authenticate mfa_login_webauthn mfa_reauthenticate
mfa_reauthenticate_webauthn openid_connect_login people:join people:setup people:password
accounts:export accounts:invitation_withdraw accounts:member_remove accounts:new accounts:service_save accounts:settings
activity:revert
comments:add comments:delete comments:edit comments:reply comments:resolve
bulk_edit:show entities:cell entities:cells entities:check_cell entities:delete entities:key entities:new
entities:paste entities:row entities:show entities:staged
grid:columns grid:compare grid:copy grid:export grid:layout_delete grid:layouts presence:move
history:entity links:new home:star
copies:start copies:file copies:upload transfer:discard transfer:map transfer:repair transfer:run transfer:start
transfer:start_new transfer:upload
jobs:cancel jobs:clear_tray jobs:pause jobs:resume
notices:address_confirm notices:address_remove notices:mute notices:seen notices:server_settings notices:server_webhook
notices:server_webhook_delete notices:server_webhook_test notices:settings notices:unmute notices:webhook
notices:webhook_delete notices:webhook_test
people:api_token_revoke people:profile people:time_zone
people:user_token_revoke
policies:save
queries:cell queries:check queries:delete queries:edit queries:forget queries:new queries:rows
queries:update
rehearsal:allow rehearsal:delete_set rehearsal:new_set rehearsal:set rehearsal:start rehearsal:stop
requests:entity
sas:block sas:describe sas:inspector sas:preview sas:range
site:appearance
snapshots:change snapshots:delete snapshots:new snapshots:schedule
tables:add_index tables:copy tables:delete tables:rename cluster:dismiss cluster:start tables:drop_index tables:export
tables:new tables:notes tables:restore tables:sample tables:tag tables:untag
"""


def test_every_view_with_forms_is_classified_as_sensitive_or_not():
    """The addresses are all addresses of the console."""
    taking_forms = {
        name for name, methods in ANSWERS.items() if 405 not in methods.get("POST", {0: 405}).values()
    }
    assert taking_forms == {*SENSITIVE, *ORDINARY.split()}
    assert not SENSITIVE.keys() & set(ORDINARY.split())


@pytest.fixture
def arguments(cast, account, add_entity):
    """Return the arguments of a view's address, for existing objects."""
    snapshot = snapshots.take(account, "base")
    branches.create(account, BranchRequest("branch", snapshot=snapshot), by=SERVER)
    members.set_role(account, cast["sam"], Role.OWNER, by=SERVER)
    done = members.set_role(account, cast["sam"], Role.EDITOR, by=SERVER)
    results = {
        "accounts:member": [account.name, cast["eve"].pk],
        "activity:undo": [done.pk],
        "people:user_change": [cast["eve"].pk],
        "snapshots:reset": ["branch"],
    }
    return lambda name: results.get(name, ARGUMENTS[name])


@pytest.mark.django_db(transaction=True)
def test_sensitive_views_ask_for_a_proof(visit, arguments):
    client = visit("ada")
    count = Activity.objects.count()
    for name, fields in SENSITIVE.items():
        answer = client.post(reverse(name, args=arguments(name)), fields)
        assert answer.status_code == 302, (name, answer.status_code)
        assert answer["Location"].startswith(AGAIN), name
    assert Activity.objects.count() == count


def test_roles_below_owner_are_given_without_asking(visit, cast, account):
    client = visit("alice")
    member = reverse("accounts:member", args=["acme", cast["victor"].pk])
    assert client.post(member, {"role": EDITOR})["Location"] == "/ui/a/acme/members/"
    done = Activity.objects.latest("pk")
    assert client.post(reverse("activity:undo", args=[done.pk]))["Location"] == "/ui/a/acme/activity/"
