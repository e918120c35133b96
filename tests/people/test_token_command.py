"""`manage.py token`."""

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from storage.domain.access.actor import ActorKind
from storage.models import Activity, ApiToken
from storage.people import api_tokens


@pytest.fixture
def run(capsys, cast):
    """Run the command and return its output."""

    def run(*arguments):
        call_command("token", *arguments)
        return capsys.readouterr().out

    return run


def test_makes_a_token_that_works(run, account):
    secret = run("add", "Ada", "ci", "--scope", "manage", "--account", "acme", "--days", "7").strip()
    result = api_tokens.authenticate(secret, timezone.now(), "")
    assert (result.user.username, result.name, result.scope, result.account) == (
        "ada",
        "ci",
        "manage",
        account,
    )
    assert timedelta(days=6) < result.expires_at - timezone.now() <= timedelta(days=7)
    assert Activity.objects.latest("pk").actor_kind == ActorKind.COMMAND


def test_lists_and_revokes(run):
    run("add", "ada", "ci", "--days", "0")
    prefix = ApiToken.objects.get().prefix
    assert run("list") == f"ada  ci  {prefix}…  read\n"
    assert run("revoke", "ada", "ci") == "Revoked ci.\n"
    assert run("list") == ""


@pytest.mark.parametrize(
    "arguments",
    ["add nobody ci", "add ada ci --account nothing", "add ada ci --scope everything", "revoke ada ci"],
)
def test_refuses(run, arguments):
    with pytest.raises(CommandError):
        run(*arguments.split())
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize("days", ["-1", "36501", "99999999", "1.5"])
def test_refuses_a_lifetime_that_has_ended_or_never_does(run, days):
    with pytest.raises(CommandError, match="argument --days: must be a number from 0 to 36500"):
        run("add", "ada", "ci", "--days", days)
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize("name", ["", " ", "a\nb", "n" * 65])
def test_refuses_a_name_that_revoke_would_not_find(run, name):
    with pytest.raises(CommandError, match="argument name: must have 1 to 64 visible characters"):
        run("add", "ada", name)
    run("add", "ada", "n" * 64)
    assert run("revoke", "ada", "n" * 64) == f"Revoked {'n' * 64}.\n"
