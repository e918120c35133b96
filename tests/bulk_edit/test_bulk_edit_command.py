"""`manage.py bulk-edit`."""

import shlex

import pytest
from django.core.management import CommandError, call_command

from storage.accounts import accounts
from storage.domain.access.actor import SERVER
from storage.domain.entities.changes import Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.values.edm import Edm, EdmValue
from storage.entities import edits
from storage.models import Account, Activity
from storage.tables import tables
from tests.bulk_edit.test_operations import content
from tests.docs.pages import DOCS, blocks

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def people():
    table = tables.create(accounts.add("acme"), "people")
    for row_key, value in (("a", 1.0), ("b", 2.5), ("c", 3.0)):
        entity = Entity(EntityKey("p", row_key), {"N": EdmValue(Edm.DOUBLE, value)})
        edits.apply_one(table, Upsert(entity, merge=False), by=SERVER)
    return table


@pytest.fixture
def run(people, capsys):
    def run(*arguments):
        call_command("bulk-edit", "acme", "people", *arguments)
        return capsys.readouterr().out

    return run


def test_operations_in_the_order_in_which_they_are_given(run, people):
    operations = ("--convert", "N=Int32", "--set", "M=N * 10", "--rename", "M=Tens", "--remove", "N")
    assert run(*operations, "--dry-run") == (
        "The query finds 3 entities.\n"
        "2 changed, 1 skipped\n"
        "  skipped 1: N: loss: the digits after the point\n"
        "    'p', 'b'\n"
        "  N: Double to missing in 2\n"
        "  Tens: missing to Int32 in 2\n"
    )
    assert "  N: loses the digits after the point in 1\n" in run(*operations, "--dry-run", "--allow-loss")
    assert run(*operations) == (
        "2 changed, 1 skipped\n  skipped 1: N: loss: the digits after the point\n    'p', 'b'\n"
    )
    assert content(people, "Tens") == {"a": 10, "b": None, "c": 30}
    assert Activity.objects.get(verb="entity.bulk-edit").actor_kind == "command"


def test_keys_deletion_and_the_other_options(run, people):
    assert run(
        "--partition-key", "'q'", "--row-key", "'1' + RowKey", "--dry-run", "--filter", "RowKey eq 'z'"
    ) == ("The query finds 0 entities.\nNothing to edit.\n")
    assert run("--row-key", "upper(RowKey)", "--partition-key", "'q'") == "3 moved\n"
    assert run("--copy", "N=Old", "--copy", "N=Old", "--replace", "--set-absent", "N=1") == "3 changed\n"
    assert run("--set-present", "Old='x=y'", "--filter", "RowKey eq 'A'") == "1 changed\n"
    assert content(people, "Old") == {"A": "x=y", "B": 2.5, "C": 3.0}
    Account.objects.update(protected=True)
    with pytest.raises(CommandError, match="protected"):
        run("--delete", "--filter", "N gt 2.0")
    assert run("--delete", "--filter", "N gt 2.0", "--number", "2") == "2 deleted\n"
    assert content(people) == {"A": 1.0}


def test_second_copies_are_checked_and_repaired(run, people):
    copy = ("--second-copy", "--to-table", "numbers", "--row-key", "pad(int32(N), 3)", "--allow-loss")
    assert run(*copy, "--set", "M=N", "--dry-run").startswith("The query finds 3 entities.\n3 copied\n")
    assert run(*copy) == "3 copied\n"
    assert run(*copy, "--check") == "In step: 3 second copies are up to date.\n"
    numbers = tables.get(people.account, "numbers")
    edits.apply_one(
        people, Upsert(Entity(EntityKey("p", "a"), {"N": EdmValue(Edm.DOUBLE, 9.0)}), merge=False), by=SERVER
    )
    edits.apply_one(numbers, Upsert(Entity(EntityKey("p", "003"), {}), merge=False), by=SERVER)
    assert run(*copy) == "1 copied, 1 unchanged, 1 skipped\n  skipped 1: key-exists\n    'p', 'c'\n"
    assert run(*copy, "--repair", "--copies", "RowKey lt '5'") == (
        "1 replaced, 1 left over and deleted, 2 unchanged\n"
    )
    assert content(numbers) == {"002": 2.5, "003": 3.0, "009": 9.0}


def test_the_example_of_the_documents(capsys):
    staff = tables.create(accounts.add("shop"), "staff")
    for row_key, email in (("id_1", "ada"), ("id_2", "bob"), ("id_3", "cyd")):
        entity = Entity(EntityKey("p", row_key), {"Email": EdmValue(Edm.STRING, email)})
        edits.apply_one(staff, Upsert(entity, merge=False), by=SERVER)
    [block] = [it for it in blocks(DOCS / "bulk-edit.md", "console") if "--second-copy" in it]
    for example in block.split("$ python3 manage.py ")[1:]:
        command, output = example.replace("\\\n", " ").split("\n", 1)
        call_command(*shlex.split(command))
        assert capsys.readouterr().out == output.rstrip("\n") + "\n"


def test_what_is_out_of_step_is_listed(run, people, capsys):
    tables.create(people.account, "numbers")
    with pytest.raises(CommandError, match="Repair them with --repair"):
        run("--second-copy", "--to-table", "numbers", "--filter", "RowKey eq 'a'", "--check")
    assert capsys.readouterr().out == (
        "0 up to date, 1 missing, 0 differing, 0 left over\n  missing: 'p', 'a', the copy of 'p', 'a'\n"
    )


def test_refusals(run):
    for arguments, words in [
        ((), "1 to 100 operations"),
        (("--set", "N"), "NAME=EXPRESSION"),
        (("--set", "N=1 +"), "position 4"),
        (("--delete", "--remove", "N"), "cannot be edited too"),
        (("--row-key", "'a'", "--row-key", "'b'"), "once"),
        (("--delete", "--filter", "N eq"), "Syntax error"),
        (("--row-key", "'a'", "--to-table", "b"), "--to-table needs --second-copy"),
        (("--second-copy",), "another PartitionKey, another RowKey or another table"),
    ]:
        with pytest.raises(CommandError, match=words):
            run(*arguments)
