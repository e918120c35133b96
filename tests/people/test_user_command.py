"""`manage.py user`."""

from datetime import timedelta
from urllib.parse import quote

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from console.models import User
from console.people import link_tokens, setup
from storage.domain.access.actor import SERVER
from storage.domain.access.roles import Scope
from storage.models import Activity
from storage.people import api_tokens
from storage.people.api_tokens import TokenRequest
from storage.people.subject import PeopleVerb

PASSWORD = "/ui/me/password/"


@pytest.fixture
def run(capsys, account):
    """Run the command and return its output."""

    def run(*arguments):
        call_command("user", *arguments)
        return capsys.readouterr().out

    return run


def test_adds_a_user_who_can_sign_in(run, client):
    name, until, password = run("add", "Bob@Example.com").split()
    password = password.removeprefix("password=")
    assert name == "bob@example.com"
    assert until == f"until={timezone.now() + timedelta(days=7):%Y-%m-%d}"
    assert client.post("/ui/login/", {"login": name, "password": password}).status_code == 302
    assert not User.objects.get().is_admin


def test_a_generated_password_is_changed_before_anything_else(run, client, account):
    _, password = run("add", "bob", "--admin").strip().split("  password=")
    assert client.post("/ui/login/", {"login": "bob", "password": password})["Location"] == "/ui/"
    for path in ("/ui/", "/ui/a/acme/overview/?x=1", "/ui/me/security/", "/ui/me/tokens/new/"):
        assert client.get(path)["Location"] == f"{PASSWORD}?next={quote(path, safe='')}"
    assert client.post("/ui/a/acme/tables/new/", {"name": "orders"})["Location"] == PASSWORD
    script = client.get("/ui/", headers={"HX-Request": "true", "HX-Request-Type": "partial"})
    assert script["Location"] == PASSWORD
    page = client.get(f"{PASSWORD}?next=/ui/a/acme/overview/").content.decode()
    assert "Your password was generated." in page
    assert 'name="next" value="/ui/a/acme/overview/"' in page

    chosen = {"current": password, "password": "correct horse", "repeated": "correct horse"}
    same = client.post(PASSWORD, {**chosen, "password": password, "repeated": password})
    assert (same.status_code, User.objects.get().has_temporary_password) == (422, True)
    assert b"Choose a password other than the generated one." in same.content
    done = client.post(PASSWORD, {**chosen, "next": "/ui/a/acme/overview/"})
    assert done["Location"] == "/ui/a/acme/overview/"
    assert client.get("/ui/").status_code == 200
    assert b"generated" not in client.get(PASSWORD).content

    password = run("password", "bob").strip().split("  password=")[1]
    client.post("/ui/login/", {"login": "bob", "password": password})
    assert client.get("/ui/")["Location"].startswith(PASSWORD)
    done = client.post(PASSWORD, {**chosen, "current": password, "next": "https://example.com/"})
    assert done["Location"] == "/ui/"
    assert client.post("/ui/logout/").status_code == 302


def test_a_generated_password_expires(run, client):
    password = run("add", "bob").strip().split("  password=")[1]
    client.post("/ui/login/", {"login": "bob", "password": password})
    User.objects.update(temporary_password_until=timezone.now())
    chosen = {"current": password, "password": "correct horse", "repeated": "correct horse"}
    here, fresh = (
        client.post(PASSWORD, chosen),
        Client().post("/ui/login/", {"login": "bob", "password": password}),
    )
    for refused in (here, fresh):
        assert refused.status_code == 422
        assert b"This generated password has expired. Ask an admin for a new one." in refused.content
    wrong = Client().post("/ui/login/", {"login": "bob", "password": "wrong horse"})
    assert b"expired" not in wrong.content
    verbs = Activity.objects.filter(actor="bob").values_list("verb", flat=True)
    assert list(verbs).count(PeopleVerb.SIGN_IN_FAILED) == 2
    password = run("password", "bob").strip().split("  password=")[1]
    assert client.post("/ui/login/", {"login": "bob", "password": password}).status_code == 302


def test_a_generated_password_keeps_no_token_from_working(run, client):
    run("add", "bob", "--admin")
    bob = User.objects.get()
    secret, _ = api_tokens.issue(bob, TokenRequest("ci", Scope.READ), by=SERVER)
    headers = {"Authorization": f"Bearer {secret}"}
    assert client.get("/ui/api/v1/accounts", headers=headers).status_code == 200


def test_the_first_user_closes_set_up(run):
    token_hash = link_tokens.hash_of(setup.issue())
    run("add", "ada", "--admin")
    assert User.objects.get().is_admin
    assert not setup.accepts(token_hash)
    assert setup.finish(token_hash, "eve", "correct horse", "en") is None


def test_gives_and_takes_roles_and_passwords(run):
    before = run("add", "bob").strip().split("  password=")[1]
    assert run("role", "BOB", "acme", "viewer") == "bob is now viewer of acme.\n"
    assert run("role", "bob", "acme", "owner") == "bob is now owner of acme.\n"
    assert run("list") == "bob  acme=owner\n"
    assert run("role", "bob", "acme", "none") == "Removed bob from acme.\n"
    assert run("list") == "bob\n"
    password = run("password", "bob").strip().split("  password=")[1]
    assert password != before
    assert User.objects.get().check_password(password)
    assert run("remove", "bob") == "Removed bob.\n"
    assert run("list") == ""


def test_is_kept_in_mind(run):
    run("add", "bob")
    run("role", "bob", "acme", "owner")
    run("role", "bob", "acme", "none")
    run("password", "bob")
    run("remove", "bob")
    done = Activity.objects.filter(actor_kind="command").order_by("pk")
    assert list(done.values_list("verb", flat=True)) == [
        PeopleVerb.USER_CREATE,
        PeopleVerb.MEMBER_SET,
        PeopleVerb.MEMBER_REMOVE,
        PeopleVerb.USER_CHANGE,
        PeopleVerb.USER_REMOVE,
    ]
    assert {one.detail["user"] for one in done} == {"bob"}


def test_refuses(run):
    run("add", "bob")
    for arguments, why in [
        (["add", "b ob"], "Use only the letters"),
        (["add", "."], "A user name needs a letter or digit"),
        (["add", ".."], "A user name needs a letter or digit"),
        (["add", "BOB"], "^A user with this name already exists.$"),
        (["role", "bob", "nothing", "owner"], "The account nothing does not exist"),
        (["role", "bob", "acme", "king"], "invalid choice"),
        (["password", "eve"], "There is no user eve"),
    ]:
        with pytest.raises(CommandError, match=why):
            run(*arguments)
