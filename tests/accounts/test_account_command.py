"""`manage.py account`, as far as it is more than the operations it calls."""

import base64
import getpass
import io
import re
import sys

import psycopg
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from storage.accounts import accounts, declarations, sealed_keys
from storage.accounts.accounts import NewAccount
from storage.accounts.refusals import AccountError
from storage.models import Account, Activity
from storage.sql import notify
from storage.tables import tables

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(capsys):
    """Run the command and return its output."""

    def run(*arguments):
        call_command("account", *arguments)
        return capsys.readouterr().out

    accounts.add("ada", NewAccount(b"k" * 64))
    return run


def test_changes_an_account_and_changes_it_back(run):
    for on, said, listed, off, said_then in [
        ("disable ada", "ada is disabled.", "  disabled\n", "enable ada", "ada is enabled."),
        (
            "shared-key ada off",
            "ada accepts only bearer tokens.",
            "  no keys\n",
            "shared-key ada on",
            "ada accepts its keys.",
        ),
        (
            "allow ada 10.0.0.0/8 ::1",
            "ada accepts requests from 10.0.0.0/8 and ::1.",
            "  from 10.0.0.0/8, ::1 only\n",
            "allow ada",
            "ada accepts requests from everywhere.",
        ),
        (
            "read-only ada on",
            "ada is read-only.",
            "  read-only\n",
            "read-only ada off",
            "ada accepts writes.",
        ),
        (
            "protected ada on",
            "ada is protected.",
            "  protected\n",
            "protected ada off",
            "ada is no longer protected.",
        ),
        (
            "consistency ada session",
            "ada has the consistency level Session.",
            "  Session\n",
            "consistency ada Strong",
            "ada has the consistency level Strong.",
        ),
        (
            "strictness ada azure",
            "ada is as strict as Azure.",
            "  as strict as Azure\n",
            "strictness ada friendly",
            "ada serves what it can.",
        ),
    ]:
        before = run("list")
        assert run(*on.split()) == f"{said}\n", (on, said)
        assert listed in run("list"), (on, said)
        assert run(*off.split()) == f"{said_then}\n", (on, said)
        assert run("list") == before, (on, said)


def test_refuses_invalid_networks(run):
    with pytest.raises(CommandError, match="is not an IP address or network"):
        run("allow", "ada", "10.0.0.0/8", "10.0.0.1/8")
    assert Account.objects.get(name="ada").networks == []


def test_the_bound_of_staleness(run):
    run("consistency", "ada", "Bounded", "--max-staleness", "60")
    account = Account.objects.get(name="ada")
    assert (account.consistency, account.max_staleness) == ("BoundedStaleness", 60)
    with pytest.raises(CommandError, match="behind by 1 to 86400 seconds"):
        run("consistency", "ada", "Strong", "--max-staleness", "0")
    with pytest.raises(CommandError, match="choose one of Strong, BoundedStaleness"):
        run("consistency", "ada", "Linearizable")


def test_is_kept_in_mind(run):
    for action in ("add bob", "rotate bob 1", "allow bob ::1", "disable bob", "remove bob"):
        run(*action.split())
    kept = Activity.objects.filter(account_name="bob").order_by("pk")
    assert list(kept.values_list("verb", flat=True)) == [
        "account.create", "key.rotate", "account.change", "account.change", "account.delete",
    ]  # fmt: skip
    assert set(kept.values_list("actor_kind", "actor")) == {("command", getpass.getuser())}


def test_shows_keys_only_when_asked(run):
    assert "key1" not in run("list")
    assert f"key1={sealed_keys.encode_key(b'k' * 64)}" in run("list", "--keys")


def test_refuses_an_account_that_is_missing(run):
    with pytest.raises(CommandError, match="account bob does not exist"):
        run("shared-key", "bob", "off")


def test_refuses_another_state(run):
    with pytest.raises(CommandError, match="invalid choice"):
        run("shared-key", "ada", "maybe")


def test_changes_nothing_while_another_change_hangs(run, monkeypatch):
    monkeypatch.setattr(notify, "_LOCK_TIMEOUT", "200ms")
    with psycopg.connect(settings.LANES_CONNINFO) as hanging:
        hanging.execute("SELECT pg_advisory_lock(%s)", [notify._TURN])
        with pytest.raises(CommandError, match="Nothing was changed"):
            run("rotate", "ada", "1")
        hanging.execute("SELECT pg_advisory_unlock(%s)", [notify._TURN])

    assert f"key1={sealed_keys.encode_key(b'k' * 64)}" in run("list", "--keys")
    assert f"key1={sealed_keys.encode_key(b'k' * 64)}" not in run("rotate", "ada", "1")


def test_names_an_entity_that_does_not_fit(run, account, add_entity):
    for key in ("", "it's"):
        add_entity(key, "")
        said = run("copy", account.name, "planets", "--kind", "cosmos", "--check")
        number = 1 if key == "" else 2
        assert said == f"people: entities that have an empty key: {number}, such as '', ''\n"


def test_makes_and_copies_accounts_of_either_kind(run):
    assert run("add", "planets", "--kind", "cosmos").startswith("planets  since ")
    assert "  cosmos\n" in run("list")
    account = Account.objects.get(name="planets")
    tables.create(account, "new orders")

    said = run("copy", "planets", "moons", "--kind", "storage", "--check")
    assert said == "new orders has a name that is not allowed\n"
    with pytest.raises(CommandError, match="Leave it out with --skip"):
        run("copy", "planets", "moons", "--kind", "storage")
    assert run("copy", "planets", "moons", "--check").endswith("Everything fits.\n")
    said = run("copy", "planets", "moons", "--kind", "storage", "--skip")
    assert "0 entities in 0 tables were copied." in said
    assert Account.objects.get(name="moons").kind == "storage"
    with pytest.raises(CommandError, match="does not exist"):
        run("copy", "nobody", "moons2")


def test_exports_and_imports_an_account(run, tmp_path, capsys):
    file = str(tmp_path / "ada.ndjson.gz")
    tables.create(Account.objects.get(name="ada"), "people")
    assert re.fullmatch(
        rf"0 entities in 1 table of ada were exported to {re.escape(file)} \(0.0 MiB\) in \S+ seconds.\n",
        run("export", "ada", file),
    )
    said = run("import", file, "--name", "bob", "--kind", "cosmos", "--dry-run")
    assert said == "0 entities in 1 table would become bob, cosmos: everything fits.\n"
    assert not accounts.exists("bob")
    said = run("import", file, "--name", "bob")
    assert said.startswith("0 entities in 1 table were imported in ")
    assert "key1=" in said
    with pytest.raises(CommandError, match="An account named ada already exists"):
        run("import", file)
    with pytest.raises(CommandError, match="bob2 does not exist"):
        run("export", "bob2", file)

    run("export", "ada", file, "--with-keys")
    assert "key1=" not in run("import", file, "--name", "eve")
    assert sealed_keys.keys_of(Account.objects.get(name="eve"))[0] == b"k" * 64


def test_exports_and_imports_through_a_pipe(run, add_entity, monkeypatch, capsys):
    add_entity("se", "ada")
    pipe = io.TextIOWrapper(io.BytesIO())
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", pipe)
        call_command("account", "export", "acme", "-")
    assert capsys.readouterr().err.startswith("1 entity in 1 table of acme was exported to - in ")
    pipe.buffer.seek(0)
    monkeypatch.setattr(sys, "stdin", pipe)
    assert run("import", "-", "--name", "bob").startswith("1 entity in 1 table was imported in ")
    assert tables.names(Account.objects.get(name="bob")) == ["people"]


def test_a_declared_account_keeps_its_kind():
    key = base64.b64encode(b"k" * 64).decode()
    declarations.ensure(declarations.read_declaration(f"planets@cosmos:{key};shop:{key}"))
    kinds = dict(Account.objects.values_list("name", "kind"))
    assert (kinds["planets"], kinds["shop"]) == ("cosmos", "storage")
    declarations.ensure(declarations.read_declaration(f"planets@cosmos:{key}"))
    with pytest.raises(AccountError, match="cannot be changed"):
        declarations.ensure(declarations.read_declaration(f"planets:{key}"))
    with pytest.raises(AccountError, match="unknown kind"):
        declarations.read_declaration(f"planets@mongo:{key}")
