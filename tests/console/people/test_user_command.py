"""`manage.py user`."""

import pytest
from django.core.management import CommandError, call_command

from console.models import User
from console.people import setup
from storage.domain.service.activity import Verb
from storage.models import Activity


@pytest.fixture
def run(capsys, account):
    """Runs the command and gives what it said."""

    def run(*arguments):
        call_command("user", *arguments)
        return capsys.readouterr().out

    return run


def test_adds_a_user_who_can_sign_in(run, client):
    name, password = run("add", "Bob@Example.com").strip().split("  password=")
    assert name == "bob@example.com"
    assert client.post("/ui/login/", {"login": name, "password": password}).status_code == 302
    assert not User.objects.get().is_admin


def test_the_first_user_closes_set_up(run):
    token = setup.issue()
    run("add", "ada", "--admin")
    assert User.objects.get().is_admin
    assert not setup.accepts(token)
    assert setup.finish(token, "eve", "correct horse", "en") is None


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
        Verb.USER_CREATE, Verb.MEMBER_SET, Verb.MEMBER_REMOVE, Verb.USER_CHANGE, Verb.USER_REMOVE,
    ]  # fmt: skip
    assert {one.detail["user"] for one in done} == {"bob"}


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["add", "b ob"], "Use only the letters"),
        (["add", "BOB"], "already exists"),
        (["role", "bob", "nothing", "owner"], "There is no account nothing"),
        (["role", "bob", "acme", "king"], "invalid choice"),
        (["password", "eve"], "There is no user eve"),
    ],
)
def test_refuses(run, arguments, why):
    run("add", "bob")
    with pytest.raises(CommandError, match=why):
        run(*arguments)
