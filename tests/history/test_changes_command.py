"""`manage.py changes`."""

import json

import pytest
from django.core.management import CommandError, call_command

from storage.accounts import accounts
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.values.edm import Edm, EdmValue
from storage.relations import history
from storage.runtime import live_feed
from storage.sql import entities
from storage.sql.django import run as run_statement
from storage.sql.relations import relation_name
from storage.tables import tables

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def account():
    return accounts.add("ada")


@pytest.fixture
def put(account):
    relation = relation_name(tables.create(account, "People").pk)

    def put(row_key, score):
        change = Upsert(Entity(EntityKey("p", row_key), {"Score": EdmValue(Edm.INT32, score)}), merge=False)
        recorder = history.recorder(account, Actor(ActorKind.KEY, "key1"))
        run_statement(entities.change(relation, change, recorder))

    return put


@pytest.fixture
def run(capsys):
    """Run the command and return its output by stream."""

    def run(*arguments):
        call_command("changes", *arguments)
        return capsys.readouterr()

    return run


def test_prints_for_people_and_for_scripts(run, put):
    put("a", 1)
    put("a", 2)
    printed = run("ada/people")
    inserted, updated = printed.out.splitlines()
    assert "  insert  People('p', 'a')  by key key1" in inserted
    assert updated.endswith("  update  People('p', 'a')  by key key1: Score 1 → 2")
    token = printed.err.split()[-1]
    put("a", 3)
    assert run("ada/people", "--after", token).out.endswith(": Score 2 → 3\n")

    lines = [json.loads(line) for line in run("ada", "--json").out.splitlines()]
    assert [line["after"]["Score"] for line in lines] == [1, 2, 3]
    [rest] = run("ada", "--json", "--after", lines[1]["token"]).out.splitlines()
    assert json.loads(rest)["after"]["Score"] == 3
    assert run("ada", "--from", "now").out == ""
    assert len(run("ada", "--from", "2026-01-01T00:00:00Z").out.splitlines()) == 3


def test_follows(run, put, monkeypatch, capsys):
    """New changes come with the next look; the test makes them while the command sleeps."""
    printed = []

    def sleep(seconds):
        assert seconds == live_feed.INTERVAL
        printed.append(capsys.readouterr().out)
        if len(printed) == 3:
            raise KeyboardInterrupt
        put("a", len(printed))

    monkeypatch.setattr("storage.management.commands.changes.time.sleep", sleep)
    put("a", 0)
    with pytest.raises(KeyboardInterrupt):
        run("ada", "--follow")
    assert printed[0] == ""
    assert [line.rpartition(": ")[2] for line in printed[1:]] == ["Score 0 → 1\n", "Score 1 → 2\n"]


def test_refuses(run, account):
    for arguments, message in [
        ("eve", "The account eve does not exist."),
        ("ada/nobody", "The specified resource does not exist."),
        ("ada --after x", "The token is not valid."),
    ]:
        with pytest.raises(CommandError, match=message):
            run(*arguments.split())
    history.end(account)
    with pytest.raises(CommandError, match="keeps no history"):
        run("ada")
