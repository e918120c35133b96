"""Two accounts or tables, now or at a moment, compared and made equal."""

from datetime import timedelta

import pytest
from django.db import transaction

from storage.access import policies
from storage.accounts import account_settings, accounts, service_properties
from storage.accounts.accounts import NewAccount
from storage.branches import branches
from storage.branches.branches import BranchRequest
from storage.compare import applying, comparing, sides
from storage.compare.applying import CannotApply, Selection, Target
from storage.compare.side_names import SideName
from storage.compare.sides import SideNotFound
from storage.domain.access.actor import SERVER, Actor, ActorKind
from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.domain.access.roles import Capability
from storage.domain.entities.changes import Delete, Upsert
from storage.domain.entities.differences import DifferenceKind
from storage.domain.entities.entity import Entity, EntityKey, read_stored
from storage.domain.entities.fits import Misfit
from storage.domain.entities.moments import Moment
from storage.domain.entities.restoring import Skip, Skipped
from storage.domain.errors import InsufficientAccountPermissions
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import FIRST_COSMOS_TICK, Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.domain.values.kinds import AccountKind
from storage.entities import edits, entities
from storage.models import Account, Activity, HistorySegment, Snapshot
from storage.relations import snapshot_copies
from storage.snapshots import snapshots
from storage.sql.comparing import Counts
from storage.sql.django import fetch
from storage.tables import tables
from storage.undo import undo

# a snapshot may take changes of its own transaction for earlier ones
pytestmark = pytest.mark.django_db(transaction=True)
ADA = Actor(ActorKind.USER, "ada")
LONG = EntityKey("p" * 2000, "字" * 500)


@pytest.fixture
def left():
    return accounts.add("acme")


@pytest.fixture
def right():
    return accounts.add("branch")


def number(value):
    return {"A": EdmValue(Edm.INT32, value)}


def put(account, name, **entities_):
    """Upsert entities by their RowKeys, in a table that is made if there is none; None deletes."""
    folded = name if account.kind == AccountKind.COSMOS else name.lower()
    table = tables.find(account, folded) or tables.create(account, name)
    changes = [
        Delete(EntityKey("p", key), ANY)
        if properties is None
        else Upsert(Entity(EntityKey("p", key), properties), merge=False)
        for key, properties in entities_.items()
    ]
    if changes:
        edits.apply(table, changes, by=SERVER)
    return table


def content(account, name):
    result = entities.all_pages(tables.get(account, name), EntityQuery())
    return {stored.key.row_key: dict(read_stored(stored).properties) for page in result for stored in page}


def now():
    [[ticks]] = fetch("SELECT (extract(epoch FROM clock_timestamp()) * 10000000)::bigint")
    return ticks


def side(text):
    name = SideName.read(text)
    return sides.find(name, accounts.find(name.account))


def compare(left, right, **how):
    return comparing.compare(side(left), side(right), **how)


def counts(comparison):
    return {table.name: comparing.count(table) for table in comparison.tables}


def keys(table, *kinds):
    return [(it.key.row_key, it.kind) for it in comparing.page(table, kinds or comparing.ALL_KINDS, top=10)]


def test_names_of_sides_are_read_as_they_are_written():
    for name in (
        SideName("acme"),
        SideName("acme", "people"),
        SideName("acme", "", "ci-baseline"),
        SideName("acme", "people", "2026-11-22T10:00:00Z"),
        SideName("acme", "we@ird", ""),
        SideName("acme", "we@ird/er", "x"),
    ):
        assert SideName.read(str(name)) == name
    assert SideName.read("") is SideName.read("/people") is SideName.read("@now") is None


def test_accounts_table_by_table(left, right):
    put(left, "People", same=number(1), gone=number(2), other=number(3), kind=number(4))
    put(right, "people", same=number(1), other=number(5), kind={"A": EdmValue(Edm.INT64, 4)}, new={})
    put(left, "old", one={})
    put(right, "new")
    table = tables.get(right, "people")
    tables.change(table, description="Visitors", tags=["a"])
    policies.replace_by_name(right, "people", [SignedIdentifier("all", AccessPolicy(permission="r"))])
    service_properties.replace(right, lambda it: it)

    result = compare("acme", "branch")

    assert [(it.name, it.left is None, it.right is None) for it in result.tables] == [
        ("new", True, False),
        ("old", False, True),
        ("people", False, False),
    ]
    assert counts(result) == {"new": Counts(), "old": Counts(only_left=1), "people": Counts(1, 1, 1, 1, 1)}
    people = result.table("people")
    assert people.descriptions == (
        {"description": "", "tags": []},
        {"description": "Visitors", "tags": ["a"]},
    )
    assert people.policies[0] == [] and people.policies[1][0]["identifier"] == "all"
    assert result.service_properties is None
    left_only, changed, right_only, type_only = "gone", "other", "new", "kind"
    assert keys(people) == [
        (left_only, DifferenceKind.ONLY_LEFT),
        (type_only, DifferenceKind.TYPE_ONLY),
        (right_only, DifferenceKind.ONLY_RIGHT),
        (changed, DifferenceKind.CHANGED),
    ]
    assert keys(people, DifferenceKind.TYPE_ONLY) == [(type_only, DifferenceKind.TYPE_ONLY)]


def test_tables_of_any_names_and_a_table_with_an_account(left, right):
    put(left, "people", a=number(1))
    put(right, "guests", a=number(2))
    put(right, "people", a=number(1))

    assert counts(compare("acme/people", "branch/guests")) == {"guests": Counts(changed=1)}
    assert counts(compare("acme/people", "branch")) == {"people": Counts(identical=1)}
    assert counts(compare("branch/guests", "acme")) == {"guests": Counts(only_left=1)}


def test_an_account_as_it_was(left):
    put(left, "people", a=number(1), b=number(2))
    put(left, "old", a={})
    table = tables.get(left, "people")
    tables.change(table, description="before")
    policies.replace_by_name(left, "people", [SignedIdentifier("one", None)])
    then = str(Moment(now()))
    put(left, "people", a=number(5), b=None, c=number(3))
    middle = str(Moment(now()))
    put(left, "people", c=number(4))
    tables.delete(left, "old", keep=timedelta(days=1))
    put(left, "young", a={})
    tables.change(table, description="between")
    tables.change(table, description="after", tags=["x"])
    policies.replace_by_name(left, "people", [SignedIdentifier("two", None)])
    properties = service_properties.write(service_properties.for_account(left))
    properties["logging"]["read"] = True
    service_properties.replace(left, lambda _: service_properties.read(properties))

    result = compare(f"acme@{then}", "acme")

    assert counts(result) == {
        "old": Counts(only_left=1),
        "people": Counts(only_left=1, only_right=1, changed=1),
        "young": Counts(only_right=1),
    }
    people = result.table("people")
    assert [it["identifier"] for it in people.policies[0]] == ["one"]
    assert people.descriptions == (
        {"description": "before", "tags": []},
        {"description": "after", "tags": ["x"]},
    )
    assert [it["logging"]["read"] for it in result.service_properties] == [False, True]
    assert counts(compare(f"acme/people@{middle}", f"acme/people@{then}")) == {
        "people": Counts(only_left=1, only_right=1, changed=1)
    }
    assert counts(compare(f"acme/people@{then}", f"acme/people@{middle}")) == {
        "people": Counts(only_left=1, only_right=1, changed=1)
    }
    assert counts(compare(f"acme/people@{then}", "acme/young")) == {"young": Counts(1, 0, 1)}


def test_a_snapshot_before_and_after_it_was_copied(left):
    put(left, "people", a=number(1), b=number(2))
    put(left, "old", a={})
    policies.replace_by_name(left, "people", [SignedIdentifier("one", None)])
    snapshot = snapshots.take(left, "ci-baseline")
    put(left, "people", a=number(5), b=None, c=number(3))
    tables.delete(left, "old", keep=timedelta(days=1))
    policies.replace_by_name(left, "people", [])

    for copies in (0, 2):
        assert snapshot.tables.filter(is_copied=True).count() == copies
        result = compare("acme", "acme@ci-baseline")
        assert counts(result) == {
            "old": Counts(only_right=1),
            "people": Counts(only_left=1, only_right=1, changed=1),
        }
        assert keys(result.table("people")) == [
            ("a", DifferenceKind.CHANGED),
            ("b", DifferenceKind.ONLY_RIGHT),
            ("c", DifferenceKind.ONLY_LEFT),
        ]
        assert result.table("people").policies[1][0]["identifier"] == "one"
        assert result.service_properties is None
        with transaction.atomic():
            snapshot_copies.copy(snapshot)
    applying.apply(compare("acme@ci-baseline", "acme"), Target.RIGHT, Selection(), by=ADA)
    assert content(left, "people") == {"a": number(1), "b": number(2)} and "a" in content(left, "old")


def test_tables_outside_a_snapshot_of_some_are_not_compared(left):
    for name in ("people", "carts", "orders"):
        put(left, name, a=number(1))
    snapshots.take(left, "baseline", tables=["people"])
    snapshots.take(left, "shop", tables=["carts"])
    put(left, "people", a=number(2), b=number(1))

    for one, other in (("acme@baseline", "acme"), ("acme", "acme@baseline")):
        result = compare(one, other)
        assert [it.name for it in result.tables] == ["people"]
        assert sorted(result.not_compared) == ["carts", "orders"]
        assert [(table.name, entity.key.row_key) for table, entity in comparing.walk(result)] == [
            ("people", "a"),
            ("people", "b"),
        ]
    with pytest.raises(SideNotFound, match="acme@baseline does not include the table carts"):
        result.check_tables(["people", "carts"])
    both = compare("acme@baseline", "acme@shop")
    assert both.tables == [] and sorted(both.not_compared) == ["carts", "people"]
    assert not compare("acme/people@baseline", "acme/people").not_compared

    selection = Selection(tables=["people", "carts"])
    done = applying.apply(compare("acme@baseline", "acme"), Target.RIGHT, selection, by=ADA)
    assert [it.name for it in done.tables] == ["people"]
    assert content(left, "carts") == {"a": number(1)}


def test_tables_that_a_branch_was_never_given_are_not_compared(left):
    for name in ("People", "carts", "orders"):
        put(left, name, a=number(1))
    part = branches.create(left, BranchRequest("part", filters={"people": None, "carts": None})).branch
    tables.delete(part.account, "carts")
    put(part.account, "made", a=number(1))
    put(left, "later", a=number(1))
    snapshots.take(part.account, "now")

    for one, other in (
        ("part", "acme"),
        ("acme", "part"),
        (f"part@{Moment(now())}", "acme"),
        ("part@now", "acme"),
    ):
        result = compare(one, other)
        assert [it.name for it in result.tables] == ["People", "carts", "made"]
        assert sorted(result.not_compared) == ["later", "orders"]
    with pytest.raises(SideNotFound, match="part does not include the table orders"):
        compare("acme", "part").check_tables(["orders"])
    done = applying.apply(
        compare("part", "acme"), Target.RIGHT, Selection(tables=["carts", "orders"]), by=ADA
    )
    assert [(it.name, it.is_deleted) for it in done.tables] == [("carts", True)]

    # without the snapshot it began with, a table that was deleted cannot be told from one that was not copied
    Snapshot.objects.filter(pk=part.origin_id).delete()
    put(left, "carts")
    assert sorted(compare("acme", "part").not_compared) == ["carts", "later", "orders"]


def test_all_tables_of_a_branch_of_the_whole_account_are_compared(left):
    put(left, "people", a=number(1))
    branches.create(left, BranchRequest("whole", filters={"people": None}))
    put(left, "carts")
    result = compare("whole", "acme")
    assert [it.name for it in result.tables] == ["carts", "people"] and not result.not_compared
    snapshots.take(left, "baseline", tables=["carts"])
    branches.create(left, BranchRequest("shop", snapshot=snapshots.get(left, "baseline")))
    assert list(compare("shop", "acme").not_compared) == ["people"]


def test_a_side_that_there_is_not(left):
    accounts.add("quiet")
    Account.objects.filter(name="quiet").update(history_days=0)
    HistorySegment.objects.filter(account__name="quiet").delete()
    put(left, "people")
    for name, message in [
        ("acme/none", "no table none"),
        ("acme/no-name!", "no table no-name!"),
        ("acme@yesterday", "neither a time"),
        ("acme@2020-01-01T00:00:00Z", "keeps its history since"),
        ("quiet@2020-01-01T00:00:00Z", "keeps no history"),
    ]:
        with pytest.raises(SideNotFound, match=message):
            side(name)


def test_makes_the_right_side_equal(left, right):
    put(left, "people", same=number(1), gone=number(2), other=number(3), kind=number(4))
    put(right, "people", same=number(1), other=number(5), kind={"A": EdmValue(Edm.INT64, 4)}, new={})
    edits.apply_one(tables.get(left, "people"), Upsert(Entity(LONG, number(9)), merge=False), by=SERVER)
    tables.create(left, "fresh", description="made", tags=["t"])
    put(left, "fresh", a=number(1))
    put(right, "kept", a=number(1))
    policies.replace_by_name(left, "people", [SignedIdentifier("one", None)])

    comparison = compare("acme", "branch")
    selection = Selection(policies=True)
    assert applying.capabilities(comparison, Target.RIGHT, selection) == {
        Capability.WRITE,
        Capability.MANAGE_TABLES,
        Capability.MANAGE_ACCESS,
    }
    planned = applying.apply(comparison, Target.RIGHT, selection, by=ADA, dry_run=True)
    assert "gone" not in content(right, "people")
    done = applying.apply(comparison, Target.RIGHT, selection, by=ADA)

    assert planned.tables == done.tables and planned.activity is None
    fresh, kept, people = done.tables
    assert (fresh.is_created, fresh.inserted) == (True, 1)
    assert kept.examples == [Skipped(None, Skip.ONLY_TARGET)]
    assert (people.inserted, people.changed, people.deleted, people.policies) == (2, 2, 1, True)
    after = compare("acme", "branch")
    assert {table.name for table in after.tables if comparing.count(table).differing} == {"kept"}
    assert after.table("people").policies is None
    assert tables.get(right, "fresh").description == "made"
    assert (done.activity.verb, done.activity.actor, done.activity.account_name) == (
        "entity.apply",
        "ada",
        "branch",
    )
    assert done.activity.detail | {"began": ""} == {
        "source": "acme",
        "inserted": 3,
        "changed": 2,
        "deleted": 1,
        "skipped": 0,
        "rows": 6,
        "tables": 2,
        "began": "",
    }
    recorded = f"SELECT count(*) FROM history_{right.pk} WHERE request = %s::uuid"
    assert fetch(recorded, done.activity.request_id) == [(6,)]

    undo.undo(done.activity, by=ADA)
    assert content(right, "people")["new"] == {} and content(right, "fresh") == {}


def test_only_selected_differences_are_applied(left, right):
    put(left, "people", a=number(1), b=number(1), c=number(1))
    put(right, "people", a=number(2), b={"A": EdmValue(Edm.INT64, 1)}, d=number(2))
    put(right, "old", a={})
    comparison = compare("acme", "branch")

    some = Selection(tables=["people"], keys={"people": [EntityKey("p", "a"), EntityKey("p", "d")]})
    assert applying.capabilities(comparison, Target.RIGHT, some) == {Capability.WRITE}
    applying.apply(comparison, Target.RIGHT, some, by=ADA)
    assert sorted(content(right, "people")) == ["a", "b"]
    assert content(right, "people")["a"] == number(1)

    applying.apply(comparison, Target.LEFT, Selection(kinds=[DifferenceKind.TYPE_ONLY]), by=ADA)
    assert content(left, "people")["b"] == {"A": EdmValue(Edm.INT64, 1)}
    assert "c" in content(left, "people")

    done = applying.apply(comparison, Target.RIGHT, Selection(tables=["old"]), by=ADA)
    assert done.tables[0].is_deleted and done.activity is None
    assert tables.find(right, "old") is None
    assert [table.name for table in tables.deleted(right)] == ["old"]


def test_entities_of_a_table_that_only_the_target_has_are_deleted_without_it(left, right):
    put(right, "old", a={}, b={}, c={})
    comparison = compare("acme", "branch")

    some = Selection(tables=["old"], keys={"old": [EntityKey("p", "a")]}, policies=True)
    assert Capability.MANAGE_TABLES not in applying.capabilities(comparison, Target.RIGHT, some)
    done = applying.apply(comparison, Target.RIGHT, some, by=ADA)
    assert (done.tables[0].is_deleted, done.tables[0].deleted) == (False, 1)
    assert sorted(content(right, "old")) == ["b", "c"]

    applying.apply(comparison, Target.RIGHT, Selection(["old"], kinds=[DifferenceKind.CHANGED]), by=ADA)
    assert sorted(content(right, "old")) == ["b", "c"]


def test_newer_work_on_either_side_is_left_alone(left, right):
    put(left, "people", a=number(1), b=number(1), c=number(1), d=number(1), e=number(1))
    put(right, "people", a=number(2), b=number(2), c=number(2), d=number(2), e=number(2))
    read_at = compare("acme", "branch").read_at
    put(right, "people", a=number(3), c=None)
    put(left, "people", b=number(4), d=None)

    comparison = compare("acme", "branch")
    done = applying.apply(comparison, Target.RIGHT, Selection(), by=ADA, read_at=read_at)

    (people,) = done.tables
    assert people.examples == [Skipped(EntityKey("p", key), Skip.CHANGED) for key in "abcd"]
    assert (people.changed, people.skipped) == (1, 4)
    assert content(right, "people") == {"a": number(3), "b": number(2), "d": number(2), "e": number(1)}


def test_a_table_is_put_back_to_a_time(left):
    put(left, "people", a=number(1), b=number(2))
    then = str(Moment(now()))
    put(left, "people", a=number(5), b=None, c=number(3))

    comparison = compare(f"acme/people@{then}", "acme/people")
    with pytest.raises(CannotApply, match="of the past"):
        applying.apply(comparison, Target.LEFT, Selection(), by=ADA)
    applying.apply(comparison, Target.RIGHT, Selection(), by=ADA)

    assert content(left, "people") == {"a": number(1), "b": number(2)}
    account_settings.change(left, read_only=True)
    comparison = compare(f"acme/people@{then}", "acme/people")
    with pytest.raises(InsufficientAccountPermissions):
        applying.apply(comparison, Target.RIGHT, Selection(), by=ADA, dry_run=True)


def test_entities_unfit_for_the_other_kind_are_reported(left):
    cosmos = accounts.add("cosmos", NewAccount(kind=AccountKind.COSMOS))
    time = {"T": EdmValue(Edm.DATETIME, 15_000_000)}
    put(left, "people", a=time, b=number(1))
    put(cosmos, "people", a=time, b=number(2), early={"T": EdmValue(Edm.DATETIME, FIRST_COSMOS_TICK)})
    put(cosmos, "no name", a={})

    assert counts(compare("acme/people", "cosmos/people")) == {
        "people": Counts(only_right=1, changed=1, identical=1)
    }
    comparison = compare("cosmos", "acme")
    planned = applying.apply(comparison, Target.RIGHT, Selection(), by=ADA, dry_run=True)
    done = applying.apply(comparison, Target.RIGHT, Selection(), by=ADA)

    assert planned.tables == done.tables and (done.written, done.skipped) == (1, 1)
    assert [table.examples for table in done.tables] == [
        [Skipped(None, Skip.MISFIT, Misfit.TABLE_NAME)],
        [Skipped(EntityKey("p", "early"), Skip.MISFIT, Misfit.EARLY_TIME)],
    ]
    assert content(left, "people")["b"] == number(2)
    put(left, "people", a={"T": EdmValue(Edm.DATETIME, 20_000_000)})
    applying.apply(compare("acme", "cosmos"), Target.RIGHT, Selection(), by=ADA)
    stored = entities.get(tables.get(cosmos, "people"), EntityKey("p", "a"))
    assert b"1970-01-01T00:00:02.0000000Z" in stored.content
    assert Activity.objects.filter(verb="entity.apply").count() == 2
