"""`manage.py compare`."""

import json

import pytest
from django.core.management import CommandError, call_command

from storage.accounts import accounts
from storage.domain.access.actor import SERVER
from storage.domain.entities.changes import Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.values.edm import Edm, EdmValue
from storage.entities import edits
from storage.models import Activity
from storage.snapshots import snapshots
from storage.tables import tables

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(capsys):
    """Run the command and return its output; the accounts ada and branch differ."""

    def run(*arguments):
        call_command("compare", *arguments)
        return capsys.readouterr().out

    for name, values in (("ada", {"a": 1, "b": 1}), ("branch", {"a": 2, "c": 1})):
        account = accounts.add(name)
        people = tables.create(account, "People")
        for key, value in values.items():
            entity = Entity(EntityKey("p", key), {"A": EdmValue(Edm.INT32, value)})
            edits.apply_one(people, Upsert(entity, merge=False), by=SERVER)
    tables.create(accounts.find("branch"), "new", description="made")
    return run


def test_compares_applies_and_compares_with_a_snapshot(run):
    assert run("ada", "branch") == "People  1 only left, 1 only right, 1 changed\nnew  only right\n"
    patch = [json.loads(line) for line in run("ada", "branch", "--json", "--table", "People").splitlines()]
    assert [(it["row_key"], it["kind"]) for it in patch] == [("a", "changed"), ("b", "left"), ("c", "right")]

    snapshots.take(accounts.find("ada"), "before")
    arguments = ("branch", "ada", "--apply", "right")
    planned = run(*arguments, "--dry-run")
    assert run(*arguments) == planned == "People  1 inserted, 1 changed, 1 deleted\nnew  created\n"
    assert run("ada", "branch") == "People  identical\nnew  identical\n"
    assert Activity.objects.get(verb="entity.apply").actor_kind == "command"
    assert run("ada/people@before", "ada/people") == "People  1 only left, 1 only right, 1 changed\n"


def test_says_that_there_is_nothing_to_compare(run):
    accounts.add("one")
    accounts.add("two")
    assert run("one", "two") == "No differences.\n"
    assert run("one", "two", "--apply", "right") == "Nothing to apply.\n"


def test_tables_outside_a_snapshot_of_some_are_left_alone(run):
    branch = accounts.find("branch")
    snapshots.take(branch, "baseline", tables=["people"])
    assert run("branch@baseline", "branch") == "People  identical\nnew  not in branch@baseline\n"
    with pytest.raises(CommandError, match="branch@baseline does not include the table new"):
        run("branch@baseline", "branch", "--apply", "right", "--table", "new")
    assert tables.find(branch, "new") is not None


def test_says_what_is_wrong(run):
    for arguments, message in [
        ("ada nobody", "The account nobody does not exist."),
        ("ada /", "The account / does not exist."),
        ("ada/none branch", "The account ada has no table none."),
        ("ada branch --table none", "Neither side has a table none."),
        ("ada@first branch", "first is neither a time in RFC 3339 nor a snapshot of the account ada."),
    ]:
        with pytest.raises(CommandError, match=message):
            run(*arguments.split())
