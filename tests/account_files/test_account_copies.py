"""Copies of accounts: what does not fit is told first, and left out on request only."""

import pytest

from storage.account_files import account_copies
from storage.account_files.account_copies import CopyRefused, Finding
from storage.accounts import accounts
from storage.accounts.accounts import NewAccount
from storage.domain.entities.entity import Entity, EntityKey, read_stored
from storage.domain.entities.fits import Misfit
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import FIRST_COSMOS_TICK, Edm, EdmValue
from storage.domain.values.kinds import AccountKind
from storage.entities import entities
from storage.models import Account
from storage.sql import django as sql
from storage.sql import entities as statements
from storage.sql.relations import relation_name
from storage.tables import tables

pytestmark = pytest.mark.django_db(transaction=True)
STORAGE, COSMOS = AccountKind
TEXT, TIME = EdmValue(Edm.STRING, "x"), EdmValue(Edm.DATETIME, 15_000_000)


def fill(account: Account, table: str, *content: Entity) -> None:
    made = tables.create(account, table, description="of the source")
    for entity in content:
        entity.kind = AccountKind(account.kind)
    for statement in statements.insert_all(relation_name(made.pk), content):
        sql.run(statement)


def content(account: Account, table: str) -> dict[EntityKey, dict[str, EdmValue]]:
    stored = entities.page(tables.get(account, table), EntityQuery()).entities
    return {one.key: dict(read_stored(one).properties) for one in stored}


def test_copies_into_the_other_kind_and_back():
    source = accounts.add("source", NewAccount(label="Shop"))
    many = [Entity(EntityKey(f"p{number % 7}", f"{number:04}"), {"T": TIME}) for number in range(1500)]
    fill(source, "People", *many)
    fill(source, "empty")

    there = account_copies.copy(source, "there", COSMOS)
    back = account_copies.copy(there.account, "back", STORAGE)

    assert (there.tables, there.entities, back.entities) == (2, 1500, 1500)
    assert (there.account.kind, there.account.enabled, there.account.label) == ("cosmos", True, "Shop")
    assert tables.get(there.account, "People").description == "of the source"
    assert content(source, "People") == content(there.account, "People") == content(back.account, "people")
    first = entities.page(tables.get(there.account, "People"), EntityQuery()).entities[0]
    assert b'"T":"1970-01-01T00:00:01.5000000Z"' in first.content


def test_copies_long_keys_beside_short_ones():
    source = accounts.add("source")
    keys = EntityKey("p", "r"), EntityKey("名" * 1024, "前" * 1024), EntityKey("z", "r")
    fill(source, "people", *(Entity(key, {"A": TEXT}) for key in keys))

    copied = account_copies.copy(source, "copied", STORAGE)

    assert copied.entities == 3
    assert (
        content(copied.account, "people") == content(source, "people") == {key: {"A": TEXT} for key in keys}
    )


def test_reports_misfits_for_cosmos():
    source = accounts.add("source")
    fits, empty, long = EntityKey("p", "r"), EntityKey("p", ""), EntityKey("p", "r" * 300)
    fill(source, "people", *(Entity(key, {"A": TEXT}) for key in (fits, empty, long)))

    findings = account_copies.check(source, COSMOS)
    assert findings == [
        Finding(Misfit.EMPTY_KEY, "people", 1, empty),
        Finding(Misfit.LONG_KEY, "people", 1, long),
    ]
    with pytest.raises(CopyRefused) as refused:
        account_copies.copy(source, "there", COSMOS)
    assert refused.value.findings == findings
    assert accounts.find("there") is None

    copied = account_copies.copy(source, "there", COSMOS, skip=True)
    assert copied.entities == 1
    assert content(copied.account, "people") == {fits: {"A": TEXT}}


def test_reports_misfits_for_storage():
    source = accounts.add("source", NewAccount(kind=COSMOS))
    odd = {
        "time": {"T": EdmValue(Edm.DATETIME, FIRST_COSMOS_TICK)},
        "string": {"S": EdmValue(Edm.STRING, "x" * 32769)},
        "binary": {"B": EdmValue(Edm.BINARY, bytes(65537))},
        "many": {f"P{number}": TEXT for number in range(253)},
        "large": {f"P{number}": EdmValue(Edm.STRING, "x" * 32768) for number in range(20)},
        "fits": {"A": TEXT},
    }
    fill(source, "people", *(Entity(EntityKey("p", row), properties) for row, properties in odd.items()))
    fill(source, "PEOPLE", Entity(EntityKey("p", "r"), {"A": TEXT}))
    fill(source, "new orders")

    results = {(it.misfit, it.table, it.number) for it in account_copies.check(source, STORAGE)}
    assert results == {
        (Misfit.EARLY_TIME, "people", 1),
        (Misfit.LONG_VALUE, "people", 2),
        (Misfit.MANY_PROPERTIES, "people", 1),
        (Misfit.LARGE_ENTITY, "people", 1),
        (Misfit.TABLE_CASE, "people", 0),
        (Misfit.TABLE_NAME, "new orders", 0),
    }
    copied = account_copies.copy(source, "there", STORAGE, skip=True)
    assert (copied.tables, copied.entities) == (1, 1)
