"""Branches: accounts made from another's present or a snapshot, whole or in part, masked or not."""

from datetime import timedelta

import pytest
from django.utils import timezone

from storage.access import policies
from storage.account_files.account_building import Original
from storage.accounts import account_settings, accounts
from storage.accounts.accounts import NewAccount
from storage.accounts.refusals import AccountError
from storage.branches import branches, snapshot_restores
from storage.branches.branches import BranchRequest
from storage.domain.access.actor import SERVER
from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.domain.entities.changes import Delete, Insert, Upsert
from storage.domain.entities.entity import Entity, EntityKey, read_stored
from storage.domain.entities.masking import Mask, read_rules
from storage.domain.entities.restoring import TableAction
from storage.domain.filters.parser import parse
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.entities import entities
from storage.jobs import running
from storage.relations import history
from storage.snapshots import snapshots
from storage.sql import django as sql
from storage.sql import entities as statements
from storage.sql.relations import relation_name
from storage.tables import tables

pytestmark = pytest.mark.django_db(transaction=True)


def text(value):
    return EdmValue(Edm.STRING, value)


def fill(account, name, rows):
    table = tables.create(account, name)
    recorder = history.recorder(account, SERVER)
    for key, properties in rows.items():
        change = Insert(Entity(EntityKey(*key), properties))
        sql.run(statements.change(relation_name(table.pk), change, recorder))
    return table


def write(table, *changes):
    recorder = history.recorder(table.account, SERVER)
    for change in changes:
        sql.run(statements.change(relation_name(table.pk), change, recorder))


def content(account, name):
    result = entities.page(tables.get(account, name), EntityQuery()).entities
    return {tuple(it.key): dict(read_stored(it).properties) for it in result}


@pytest.fixture
def shop():
    return accounts.add("shop", NewAccount(label="Shop"))


LONG = ("名" * 1000, "前" * 1000)
ROWS = {("se", "1"): {"Name": text("Ada")}, ("us", "2"): {"Name": text("Bob")}, LONG: {"Name": text("Li")}}


def test_a_branch_copies_the_present_account(shop):
    table = fill(shop, "Customers", ROWS)
    fill(shop, "empty", {})
    policy = SignedIdentifier("reader", AccessPolicy("", "", "r"))
    policies.replace_by_name(shop, "customers", [policy])
    account_settings.change(shop, may_rehearse=True)

    made = branches.create(shop, BranchRequest("shopbranch"))

    account = made.account
    assert not account.may_rehearse
    assert (made.tables, made.entities, made.originals) == (2, 3, [])
    assert (account.enabled, account.label) == (True, "Shop")
    assert content(account, "customers") == content(shop, "customers")
    etags = [
        [it.ticks for it in entities.page(tables.get(its, "customers"), EntityQuery()).entities]
        for its in (shop, account)
    ]
    assert etags[0] == etags[1]
    assert policies.stored_by_name(account, "customers") == [policy]
    # ordinary tables from then on
    write(tables.get(account, "customers"), Upsert(Entity(EntityKey("x", "y"), {}), merge=False))
    assert ("x", "y") not in content(shop, "customers")
    assert (branches.listed(shop), branches.find(account).source_name) == ([made.branch], "shop")
    assert table.pk != tables.get(account, "customers").pk


def test_a_branch_of_a_part(shop):
    fill(shop, "customers", ROWS)
    fill(shop, "orders", ROWS)

    made = branches.create(shop, BranchRequest("part", filters={"Customers": parse("PartitionKey eq 'se'")}))

    assert (made.tables, made.entities) == (1, 1)
    assert list(content(made.account, "customers")) == [("se", "1")]
    for filters, message in (({"nowhere": None}, "no table nowhere"), ({"orders": None}, "is not copied")):
        request = BranchRequest("other", filters=filters, rules={"customers": read_rules({"Name": "name"})})
        with pytest.raises(AccountError, match=message):
            branches.create(shop, request)
        assert accounts.find("other") is None


def test_a_table_created_in_a_partial_branch_is_restored(shop):
    fill(shop, "customers", ROWS)
    fill(shop, "orders", ROWS)
    account = branches.create(shop, BranchRequest("part", filters={"customers": None})).account
    fill(account, "made", ROWS)
    snapshot = snapshots.take(account, "now")
    tables.delete(account, "made")
    fill(account, "later", ROWS)

    running.complete(snapshot_restores.request_reset_to(snapshot), by=SERVER)

    assert tables.names(account) == ["customers", "made"]
    assert content(account, "made") == ROWS


def test_a_branch_of_a_snapshot(shop):
    table = fill(shop, "customers", ROWS)
    gone = fill(shop, "sessions", ROWS)
    snapshot = snapshots.take(shop, "ci-baseline")
    write(
        table,
        Delete(EntityKey("se", "1"), ANY),
        Upsert(Entity(EntityKey("us", "2"), {"Name": text("Robert")}), merge=False),
        Insert(Entity(EntityKey("x", "new"), {})),
    )
    tables.delete(shop, gone.name)
    tables.drop_expired_tables()

    made = branches.create(shop, BranchRequest("branch", snapshot=snapshot))

    assert (made.tables, made.entities, made.branch.snapshot_name) == (2, 6, "ci-baseline")
    for name in ("customers", "sessions"):
        assert content(made.account, name) == ROWS


PERSON = {
    "Name": text("Ayşe Yılmaz"),
    "Email": text("ayse@shop.test"),
    "Phone": text("+90 532 111 22 33"),
    "Iban": text("TR33 0006 1005"),
    "Note": text("VIP, calls often"),
    "Visits": EdmValue(Edm.INT32, 12),
    "Number": EdmValue(Edm.INT64, 5_000_000_000),
    "Balance": EdmValue(Edm.DOUBLE, 1200.5),
    "Born": EdmValue(Edm.DATETIME, 0),
    "Id": EdmValue(Edm.GUID, "7f3a19c0-0000-4000-8000-000000000001"),
    "Photo": EdmValue(Edm.BINARY, b"abc"),
    "Kept": EdmValue(Edm.INT64, 7),
    "Açık": text("gizli bilgi"),
}
RULES = {
    "RowKey": "hash",
    "Name": "name",
    "Email": "email",
    "Phone": "phone",
    "Iban": "hash",
    "Note": "constant:(masked)",
    "Visits": "hash",
    "Number": "hash",
    "Balance": "blank",
    "Born": "blank",
    "Id": "hash",
    "Photo": "remove",
    "Kept": "keep",
    "Açık": "blank",
}


def test_a_masked_branch(shop):
    assert {rule.partition(":")[0] for rule in RULES.values()} == set(Mask), (
        "mask a value of PERSON in each way"
    )
    fill(
        shop,
        "customers",
        {("se", "ayse@shop.test"): PERSON, ("se", "bob"): {"Name": text("Bob"), "Kept": PERSON["Kept"]}},
    )
    fill(shop, "orders", {("se", "1"): {"Customer": PERSON["Iban"], "Mail": PERSON["Email"]}})
    rules = {"customers": read_rules(RULES), "orders": read_rules({"Customer": "hash", "Mail": "email"})}

    made = branches.create(shop, BranchRequest("masked", rules=rules))
    again = branches.create(shop, BranchRequest("another", rules=rules))

    assert (made.originals, made.account.enabled) == ([], True)
    [(key, masked)] = [it for it in content(made.account, "customers").items() if len(it[1]) > 2]
    order = content(made.account, "orders")["se", "1"]
    assert (order["Customer"], order["Mail"]) == (masked["Iban"], masked["Email"])
    assert {name: value.type for name, value in masked.items()} == {
        name: Edm.STRING if name == "Note" else value.type
        for name, value in PERSON.items()
        if name != "Photo"
    }
    assert list(masked) == [name for name in PERSON if name != "Photo"]
    same = {name for name, value in masked.items() if value == PERSON[name]}
    assert same == {"Kept"}
    assert key[1].startswith("h:") and masked["Iban"].value.startswith("h:")
    assert masked["Email"].value.endswith("@example.com")
    phone = masked["Phone"].value
    assert phone.startswith("+90 ") and len(phone) == len("+90 532 111 22 33")
    assert [masked[name].value for name in ("Note", "Balance", "Açık")] == ["(masked)", 0.0, ""]
    assert content(again.account, "orders")["se", "1"] != order
    # filters read the projection, which must say the same as the entity
    table = tables.get(made.account, "customers")
    for name in ("Name", "Email", "Note", "Iban"):
        entity_query = EntityQuery(filter=parse(f"{name} eq '{masked[name].value}'"))
        assert len(entities.page(table, entity_query).entities) == 1, name
    selected = EntityQuery(filter=parse(f"Name eq '{masked['Name'].value}'"), select=tuple(masked))
    [stored] = entities.page(table, selected).entities
    assert dict(read_stored(stored).properties) == masked


def test_a_branch_with_unmasked_values_stays_frozen(shop):
    fill(shop, "customers", {("se", "1"): {"Email": PERSON["Email"], "Contact": PERSON["Email"]}})
    fill(shop, "tickets", {("se", "1"): {"Text": text(f"Please call back ({PERSON['Email'].value}).")}})

    made = branches.create(shop, BranchRequest("leaky", rules={"customers": read_rules({"Email": "email"})}))

    assert made.originals == [Original("customers", "Contact", 1), Original("tickets", "Text", 1)]
    assert not accounts.find("leaky").enabled


def test_a_branch_of_a_time(shop):
    table, gone = fill(shop, "customers", ROWS), fill(shop, "sessions", ROWS)
    moment = timezone.now()
    write(table, Delete(EntityKey("se", "1"), ANY))
    tables.delete(shop, gone.name, keep=tables.DELETED_TABLE_RETENTION)
    fill(shop, "later", ROWS)

    made = branches.create(shop, BranchRequest("then", at=moment))

    assert (made.tables, made.branch.at) == (2, moment)
    for name in ("customers", "sessions"):
        assert content(made.account, name) == ROWS
    with pytest.raises(AccountError, match="changes are kept since"):
        branches.create(shop, BranchRequest("before", at=shop.created_at - timedelta(seconds=1)))


def test_reset_returns_a_branch_to_its_origin(shop):
    fill(shop, "customers", ROWS)
    fill(shop, "sessions", ROWS)
    reader = SignedIdentifier("reader", AccessPolicy("", "", "r"))
    policies.replace_by_name(shop, "customers", [reader])
    branch = branches.create(shop, BranchRequest("branch")).branch
    account = branch.account
    for action in (TableAction.RESTORE, TableAction.RESTORE):
        write(
            tables.get(account, "customers"),
            Delete(EntityKey("se", "1"), ANY),
            Upsert(Entity(EntityKey("us", "2"), {"Name": text("Robert")}), merge=False),
            Insert(Entity(EntityKey("x", "new"), {})),
        )
        tables.delete(account, "sessions")
        fill(account, "later", ROWS)
        policies.replace_by_name(account, "customers", [])

        restored = snapshot_restores.reset(branch)

        assert restored.written == 3
        assert [(it.name, it.action) for it in restored.changed_tables] == [
            ("customers", TableAction.KEEP),
            ("sessions", action),
            ("later", TableAction.DELETE),
        ]
        for name in ("customers", "sessions"):
            assert content(account, name) == ROWS
        assert policies.stored_by_name(account, "customers") == [reader]
        assert tables.find(account, "later") is None
        assert (branch.reset_entities, snapshot_restores.reset(branch).written) == (3, 0)
