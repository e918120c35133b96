"""`manage.py snapshot` and `manage.py branch`."""

import pytest
from django.core.management import CommandError, call_command

from storage.accounts import accounts
from storage.activity.activity import command_actor
from storage.domain.entities.changes import Delete, Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.entities import edits
from storage.models import Activity
from storage.tables import tables

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def people(db):
    table = tables.create(accounts.add("ada"), "People")
    mail = {"Email": EdmValue(Edm.STRING, "ada@shop.test")}
    edits.apply(table, [Insert(Entity(EntityKey("p", "r"), mail))], by=command_actor())
    return table


@pytest.fixture
def run(capsys):
    """Run a command and return its output."""

    def run(*arguments):
        call_command(*arguments)
        return capsys.readouterr().out

    return run


def test_says_that_there_is_nothing_to_restore(run, db):
    accounts.add("ada")
    run("snapshot", "take", "ada", "one")
    assert run("snapshot", "restore", "ada", "one", "--dry-run") == "Nothing to restore.\n"


def test_takes_restores_and_deletes_snapshots(run, people):
    assert run("snapshot", "take", "ada", "one", "--ttl", "2d").startswith("one  20")
    edits.apply(people, [Delete(EntityKey("p", "r"), ANY)], by=command_actor())
    assert run("snapshot", "restore", "ada", "one", "--dry-run") == (
        "People  1 to insert, 0 to change, 0 to delete\n"
    )
    assert run("snapshot", "restore", "ada", "one") == (
        "1 entity was restored; the state before is before-restore-one.\n"
    )
    assert [line.split()[0] for line in run("snapshot", "list", "ada").splitlines()] == [
        "before-restore-one",
        "one",
    ]
    assert run("snapshot", "delete", "ada", "one") == "one was deleted.\n"
    assert Activity.objects.latest("pk").actor_kind == "command"


def test_makes_and_resets_branches(run, people):
    mask = ("--mask", "People.Email=email", "--table", "People:PartitionKey eq 'p'")
    made = run("branch", "create", "ada", "branch", "--ttl", "8h", *mask).splitlines()
    assert made[0] == "1 entity in 1 table was copied to branch."
    assert made[1].startswith("  key1=")
    there = tables.get(accounts.find("branch"), "people")
    edits.apply(there, [Delete(EntityKey("p", "r"), ANY)], by=command_actor())
    assert run("branch", "reset", "branch").startswith("1 entity was reset in ")
    assert run("branch", "list", "ada").startswith("branch  of 20")


def test_says_what_is_wrong(people):
    for arguments, message in [
        ("snapshot take eve one", "The account eve does not exist."),
        ("snapshot restore ada none", "The account ada has no snapshot named none."),
        ("snapshot take ada one --table nobody", "There is no table nobody in the account ada."),
        ("branch reset ada", "The account ada is not a branch."),
        ("branch create ada other --mask Email=email", "is not a masking rule"),
        ("branch create ada ada", "An account named ada already exists."),
    ]:
        with pytest.raises(CommandError, match=message):
            call_command(*arguments.split())
