"""Accounts: their keys and names, their settings, and what becomes of them."""

import base64
from datetime import timedelta

import psycopg
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection

from storage.access import retired_keys
from storage.accounts import account_settings, accounts, declarations, removal, sealed_keys
from storage.accounts.accounts import NewAccount
from storage.accounts.declarations import AccountKeys
from storage.accounts.refusals import AccountError, AccountIsProtected
from storage.accounts.sealed_keys import DEVELOPMENT_KEY
from storage.accounts.subject import AccountVerb
from storage.models import Account, Activity, Table
from storage.server import migration, options
from storage.sql.django import fetch
from storage.sql.relations import deleted_name, relation_name
from storage.tables import tables

pytestmark = pytest.mark.django_db
KEY = b"k" * 64


def test_keys_survive_sealing():
    account = accounts.add("ada", NewAccount(KEY))

    primary, secondary = sealed_keys.keys_of(Account.objects.get(name="ada"))

    assert primary == KEY
    assert len(secondary) == 64
    assert KEY not in bytes(account.primary_key_sealed)


@pytest.mark.parametrize("name", ["Ada", "ab", "a" * 25, "ada-lovelace", ""])
def test_refuses_names(name):
    with pytest.raises(AccountError, match="3 to 24 lowercase letters and digits"):
        accounts.add(name)


@pytest.mark.parametrize("which", [1, 2])
def test_rotates_one_key(which):
    before = sealed_keys.keys_of(accounts.add("ada"))
    after = sealed_keys.keys_of(accounts.rotate("ada", which))
    assert [before[i] != after[i] for i in range(2)] == [which == 1, which == 2]


def test_removes_an_account_and_its_tables_unless_it_is_protected_or_read_only():
    account = accounts.add("ada")
    tables.create(account, "people")
    with pytest.raises(AccountError, match=r"still has tables .*--with-tables"):
        removal.remove("ada")
    account_settings.change(account, protected=True)
    with pytest.raises(AccountIsProtected):
        removal.remove("ada", with_tables=True)

    account_settings.change(account, protected=False, read_only=True)
    with pytest.raises(AccountError, match="read-only"):
        removal.remove("ada", with_tables=True)
    account_settings.change(account, read_only=False)
    removal.remove("ada", with_tables=True)
    assert not Account.objects.exists()
    assert not Table.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_removes_an_account_with_more_tables_than_one_transaction_can_lock(monkeypatch):
    monkeypatch.setattr(removal, "_DROPPED_TOGETHER", 2)
    account = accounts.add("crowded")
    made = [tables.create(account, f"table{number}") for number in range(5)]
    account_settings.change(accounts.by_name("crowded"), protected=True)
    with pytest.raises(AccountIsProtected):
        removal.remove("crowded", with_tables=True)
    assert Table.objects.count() == 5
    account_settings.change(accounts.by_name("crowded"), protected=False)

    removal.remove("crowded", with_tables=True)

    assert not Table.objects.exists()
    relations = [name(table.pk) for table in made for name in (relation_name, deleted_name)]
    assert not fetch("SELECT relname FROM pg_class WHERE relname = ANY (%s)", relations)
    done = Activity.objects.get(verb=AccountVerb.DELETE, account_name="crowded")
    assert done.detail["tables"] == [f"table{number}" for number in range(5)]


def test_drops_tables_that_could_have_been_brought_back():
    account = accounts.add("ada")
    table = tables.create(account, "people")
    tables.delete(account, "people", keep=timedelta(days=7))

    removal.remove("ada")

    assert not Table.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s)", [f"deleted_entity_{table.pk}"])
        assert cursor.fetchone() == (None,)


def test_changes_its_settings():
    account = accounts.add("ada", NewAccount(label="Ada", description="Of Ada", colour="#0a6b66"))
    account_settings.change(account, label="New", networks=["10.0.0.0/8"], read_only=True)
    stored = Account.objects.get()
    assert (stored.label, stored.description, stored.networks, stored.read_only) == (
        "New", "Of Ada", ["10.0.0.0/8"], True,
    )  # fmt: skip
    assert (account.label, account.read_only) == ("New", True)
    with pytest.raises(AccountError, match="not an IP address or network"):
        account_settings.change(account, label="Other", networks=["x"])
    assert Account.objects.get().label == "New"


def test_keys_of_one_account_do_not_open_for_another():
    ada = accounts.add("ada")
    bob = accounts.add("bob")
    bob.primary_key_sealed = ada.primary_key_sealed
    with pytest.raises(AccountError, match="another secret"):
        sealed_keys.keys_of(bob)


def test_another_secret_is_told_in_a_sentence(monkeypatch):
    accounts.add("ada")
    monkeypatch.setattr(settings, "SERVER_SECRET", b"quite another secret")
    with pytest.raises(AccountError, match=r"sealed with another secret\. Restore that secret"):
        sealed_keys.check_secret()


def test_every_account_is_checked_for_another_secret(monkeypatch):
    with monkeypatch.context() as lost:
        lost.setattr(settings, "SERVER_SECRET", b"the secret that is lost")
        accounts.add("bob")
    accounts.add("ada")
    with pytest.raises(AccountError, match="The account keys of bob in this database"):
        sealed_keys.check_secret()


def test_a_lost_secret_is_replaced_by_rotating_both_keys(monkeypatch, capsys):
    """The steps of docs/operations.md work in either order."""
    with monkeypatch.context() as lost:
        lost.setattr(settings, "SERVER_SECRET", b"the secret that is lost")
        account = accounts.add("ada")
        accounts.rotate("ada", 1, grace=timedelta(days=1))
    for which in (1, 2):
        call_command("account", "rotate", "ada", str(which))
        printed = capsys.readouterr().out.strip().partition("=")[2]
        account.refresh_from_db()
        assert sealed_keys.decode_key(printed) == sealed_keys.key_of(account, which)
    sealed_keys.check_secret()
    assert retired_keys.accepted(account) == ()
    assert retired_keys.opened_of(account, retired_keys.for_account(account)) == []


def test_reads_declarations_as_the_emulator_does():
    one, two = (base64.b64encode(text).decode() for text in (b"one", b"two"))
    expected = [AccountKeys("ada", b"one", b"two"), AccountKeys("bob", b"one")]
    assert declarations.read_declaration(f"ada:{one}:{two};bob:{one};") == expected


@pytest.mark.parametrize("text", ["ada", "ada:", "ada:no base64", "ada:QQ==:QQ==:QQ=="])
def test_refuses_declarations(text):
    with pytest.raises(AccountError):
        declarations.read_declaration(text)


@pytest.mark.parametrize("text", ["{}", "{}:ada", "{}@ada:QQ=="])
def test_a_refused_declaration_does_not_show_a_key(text):
    key = base64.b64encode(KEY).decode()
    with pytest.raises(AccountError) as refused:
        declarations.ensure(declarations.read_declaration(text.format(key)))
    assert key[:20] not in str(refused.value)


def test_declared_accounts_exist_with_their_keys():
    accounts.add("ada")
    declarations.ensure([AccountKeys("ada", KEY), AccountKeys("bob", KEY, KEY)])
    declarations.ensure([AccountKeys("ada", KEY)])
    assert [sealed_keys.keys_of(account)[0] for account in Account.objects.all()] == [KEY, KEY]
    declarations.ensure([AccountKeys("devstoreaccount1", DEVELOPMENT_KEY)])
    assert [account.name for account in Account.objects.filter(may_rehearse=True)] == ["devstoreaccount1"]


def test_development_account_on_loopback_only(monkeypatch):
    accounts.add("devstoreaccount1", NewAccount(DEVELOPMENT_KEY))
    assert [account.name for account in accounts.usable()] == ["devstoreaccount1"]

    monkeypatch.setattr(settings, "DEVELOPMENT_ACCOUNT_ALLOWED", False)

    assert not accounts.usable()
    with pytest.raises(AccountError, match="--allow-development-account"):
        declarations.ensure([AccountKeys("other", DEVELOPMENT_KEY)])


@pytest.mark.parametrize(
    ("environ", "names"),
    [
        ({}, ["devstoreaccount1"]),
        ({"TABLERO_ACCOUNTS": "ada:QQ=="}, ["devstoreaccount1", "ada"]),
        ({"AZURITE_ACCOUNTS": "ada:QQ=="}, ["ada"]),
        ({"TABLERO_LISTEN": "0.0.0.0:1"}, []),
        ({"TABLERO_LISTEN": "0.0.0.0:1", "TABLERO_ALLOW_DEVELOPMENT_ACCOUNT": "1"}, ["devstoreaccount1"]),
    ],
)
def test_which_accounts_a_server_declares(environ, names):
    assert [keys.name for keys in migration.declared_accounts(options.read(environ))] == names


@pytest.mark.django_db(transaction=True)
def test_changes_are_told_to_the_servers():
    with psycopg.connect(settings.LANES_CONNINFO, autocommit=True) as listener:
        listener.execute("LISTEN tablero_catalog")
        accounts.add("ada")
        accounts.rotate("ada", 1)
        removal.remove("ada")
        heard = [notification.payload for notification in listener.notifies(timeout=60, stop_after=4)]
    assert sorted(heard) == ["access", "change", "change", "change"]  # streams of a removed account end
