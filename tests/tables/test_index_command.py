"""`manage.py index`."""

import pytest
from django.core.management import CommandError, call_command

from storage.accounts import accounts
from storage.models import Activity
from storage.tables import tables

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(capsys):
    """Run the command and return its output."""

    def run(*arguments):
        call_command("index", *arguments)
        return capsys.readouterr().out

    tables.create(accounts.add("ada"), "People")
    return run


def test_adds_lists_and_drops(run):
    assert run("add", "ada", "people", "Score") == "Score of People is indexed.\n"
    assert run("list", "ada", "people").startswith("Score  ready  8.0\xa0KB  used never\n")
    assert run("drop", "ada", "people", "Score") == "Score of People is no longer indexed.\n"
    assert run("list", "ada", "people") == ""
    assert Activity.objects.latest("pk").actor_kind == "command"


def test_refuses(run):
    for arguments, message in [
        ("drop ada people Score", "The property Score of People has no index."),
        ("add ada people RowKey", "The property name is invalid."),
        ("list ada nobody", "The specified resource does not exist."),
        ("list eve people", "The account eve does not exist."),
    ]:
        with pytest.raises(CommandError, match=message):
            run(*arguments.split())
