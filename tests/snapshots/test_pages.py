"""Pages of snapshots and branches: who sees what, the preview, the restore, and a new branch."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone
from django.utils.html import strip_tags

from storage.accounts import accounts
from storage.branches import branches
from storage.branches.branches import BranchRequest
from storage.domain.access.actor import SERVER, Actor, ActorKind
from storage.domain.entities.changes import Delete, Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.models import Branch, Job, Snapshot, SnapshotSchedule
from storage.relations import history
from storage.snapshots import snapshots
from storage.sql import django as sql
from storage.sql import entities as statements
from storage.sql.relations import relation_name
from storage.tables import tables

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/ui/a/acme/snapshots/"
MAIL = {"Email": EdmValue(Edm.STRING, "ada@shop.test"), "City": EdmValue(Edm.STRING, "Izmir")}


def write(table, *changes, by=SERVER):
    recorder = history.recorder(table.account, by)
    for change in changes:
        sql.run(statements.change(relation_name(table.pk), change, recorder))


@pytest.fixture
def customers(account):
    table = tables.create(account, "customers")
    write(table, *(Insert(Entity(EntityKey("se", name), MAIL)) for name in ("ada", "bob")))
    return table


def test_take_preview_restore_and_undo(proven, account, customers):
    client = proven("max")
    assert b"No snapshots yet" in client.get(PAGE).content
    taken = client.post(f"{PAGE}new/", {"name": "ci-baseline", "days": "7"})
    assert (taken.status_code, taken.headers["Location"]) == (302, PAGE)
    write(customers, Delete(EntityKey("se", "ada"), ANY))
    tables.create(account, "later")

    page = client.get(f"{PAGE}?snapshot=ci-baseline").content.decode()
    assert "</svg>Insert 1</button>" in " ".join(page.split()).replace("> ", ">")
    assert "is deleted" in client.get(f"{PAGE}?snapshot=ci-baseline&new=on").content.decode()
    left_out = client.get(f"{PAGE}?snapshot=ci-baseline&without=customers").content.decode()
    assert "Nothing differs" in left_out
    client.post(f"{PAGE}named/ci-baseline/restore/", {"new": "on"})
    result = client.get(PAGE).content.decode()
    assert "Restored 1 entity from ci-baseline." in result
    assert "before-restore-ci-baseline" in result
    assert tables.find(account, "later") is None
    assert "Nothing differs" in client.get(f"{PAGE}?snapshot=ci-baseline").content.decode()


def test_a_partial_snapshot_leaves_other_tables_alone(proven, account, customers):
    tables.create(account, "orders")
    snapshots.take(account, "some", tables=["customers"])
    write(customers, Delete(EntityKey("se", "ada"), ANY))
    client = proven("max")
    page = " ".join(client.get(f"{PAGE}?snapshot=some&new=on").content.decode().split())
    assert (
        'name="new"' not in page
        and "includes only some tables" in page
        and "Insert 1<" in page.replace(" <", "<")
    )
    client.post(f"{PAGE}named/some/restore/", {"new": "on"})
    assert tables.find(account, "orders") is not None
    whole = client.get(f"{PAGE}?snapshot=before-restore-some").content.decode()
    assert 'name="new"' in whole
    left_out = client.get(f"{PAGE}?snapshot=before-restore-some&new=on&without=customers").content.decode()
    assert 'type="checkbox" name="new"' not in left_out and "because a table is left out" in left_out


def test_change_and_delete(visit, account, customers):
    client = visit("max")
    snapshots.take(account, "one")
    snapshots.take(account, "two")
    assert client.post(f"{PAGE}named/one/", {"name": "two", "days": "always"}).status_code == 422
    assert client.post(f"{PAGE}named/one/", {"name": "no spaces", "days": "always"}).status_code == 422
    client.post(f"{PAGE}named/one/", {"name": "baseline", "days": "1"})
    assert Snapshot.objects.get(name="baseline").expires_at is not None
    client.post(f"{PAGE}named/baseline/", {"name": "baseline", "days": "always"})
    assert Snapshot.objects.get(name="baseline").expires_at is None
    client.post(f"{PAGE}named/baseline/delete/")
    assert [it.name for it in snapshots.listed(account)] == ["two"]
    client.post(f"{PAGE}schedule/", {"every": "0", "hour": "3", "keep": "4"})
    assert SnapshotSchedule.objects.get().weekday == 0
    client.post(f"{PAGE}schedule/", {"every": "never", "hour": "3", "keep": "4"})
    assert not SnapshotSchedule.objects.exists()
    assert client.post(f"{PAGE}schedule/", {"every": "day", "hour": "3", "keep": "0"}).status_code == 422


def test_a_viewer_is_offered_nothing(visit, account, customers):
    snapshots.take(account, "one")
    looking = visit("victor").get(f"{PAGE}?snapshot=one").content.decode()
    assert "Restore one" in looking and "/restore/" not in looking and "Take snapshot" not in looking


def test_the_list_shows_details_of_snapshots_and_branches(proven, customers):
    """The last author, the changes of a branch, and a snapshot of some tables only."""
    client = proven("ada")
    account = customers.account
    client.post(f"{PAGE}new/", {"name": "one", "days": "always", "table": "customers"})
    assert not Snapshot.objects.get(account=account, name="one").is_whole
    assert client.post(f"{PAGE}new/", {"name": "two", "days": "1", "table": "none"}).status_code == 422
    branches.create(account, BranchRequest("twig", snapshot=snapshots.get(account, "one")))
    page = " ".join(strip_tags(client.get(PAGE).content.decode()).split())
    assert (
        "pinned" in page
        and "kept in the history, without copies" in page
        and "from one" in page
        and "unchanged" in page
    )
    twig = tables.get(branches.listed(account)[0].account, "customers")
    by = Actor(ActorKind.KEY, "key2", "10.0.0.7", "curl", str(uuid4()))
    write(twig, *(Insert(Entity(EntityKey("se", f"t{number}"), MAIL)) for number in range(3)))
    write(customers, Insert(Entity(EntityKey("se", "x"), MAIL)), by=by)
    page = " ".join(strip_tags(client.get(f"{PAGE}?snapshot=one").content.decode()).split())
    assert "3 changes" in page
    assert "1 client wrote in the last 5 minutes: key2 10.0.0.7" in page


def test_a_masked_branch_and_its_reset(proven, customers):
    client = proven("ada")
    page = client.get(f"{PAGE}branch/").content.decode()
    assert "looks personal" in page and "@example.com" in page and "ada@shop.test" in page
    address = f"{PAGE}branch/sample/?table=customers&property=City&mask-customers-City="
    for mask, shown in (("keep", "Izmir"), ("remove", "not set"), ("constant", "(masked)")):
        assert shown in client.get(address + mask).content.decode()
    assert client.get(f"{address}nonsense").status_code == 404
    data = {
        "name": "staging",
        "snapshot": ":now",
        "hours": "8",
        "policies": "on",
        "table": "customers",
        "mask-customers-Email": "email",
    }
    for wrong, message in (
        ({"name": "acme"}, "not available"),
        ({"table": []}, "Choose at least one table"),
        ({"filter-customers": "nonsense ("}, "aria-invalid"),
        ({"filter-customers": "Age eqq 1"}, "Did you mean eq?"),
    ):
        refused = client.post(f"{PAGE}branch/", {**data, **wrong})
        assert refused.status_code == 422 and message in refused.content.decode()
    assert client.post(f"{PAGE}branch/", data).status_code == 302
    branch = Branch.objects.get()
    assert (branch.masking, branch.account.enabled) == ({"customers": {"Email": "email"}}, True)
    assert "staging" in client.get(PAGE).content.decode()

    write(tables.get(branch.account, "customers"), Delete(EntityKey("se", "ada"), ANY))
    client.post("/ui/a/staging/snapshots/reset/", {"from": "acme"})
    page = client.get(PAGE).content.decode()
    assert "Reset 1 entity of staging." in page
    own = client.get("/ui/a/staging/snapshots/").content.decode()
    assert "A branch of acme" in own and "-d &#x27;{}&#x27;" in own


@pytest.mark.parametrize(("name", "may"), [("ada", True), ("alice", True), ("max", False), ("victor", False)])
def test_owners_and_admins_are_offered_branches(proven, customers, name, may):
    client = proven(name)
    assert ("New branch" in client.get(PAGE).content.decode()) is may
    assert client.get(f"{PAGE}branch/").status_code == (200 if may else 403)
    data = {"name": "mine", "snapshot": ":now", "hours": "8", "table": "customers"}
    assert client.post(f"{PAGE}branch/", data).status_code == (302 if may else 403)
    assert Branch.objects.exists() is may
    if may:
        assert "created just now" in " ".join(strip_tags(client.get(PAGE).content.decode()).split())
        Branch.objects.update(at=timezone.now() - timedelta(days=2))
        assert "as of 2 days ago" in " ".join(strip_tags(client.get(PAGE).content.decode()).split())
    if name == "alice":
        assert client.get("/ui/a/mine/settings/").status_code == 200


def test_a_branch_being_made_says_so(visit, proven, customers, monkeypatch):
    shown = []

    def copy_and_look(*arguments):
        result = copied(*arguments)
        with sql.beside_transaction():
            addresses = ("/ui/", PAGE, f"/ui/jobs/{Job.objects.get().pk}/")
            shown.extend(alice.get(it).content.decode() for it in addresses)
        return result

    tables.create(customers.account, "zoo")
    copied, alice = branches._copy, proven("alice")
    monkeypatch.setattr(branches, "_copy", copy_and_look)
    monkeypatch.setattr(branches, "_estimate_rows", lambda source: 2)
    data = {"name": "mine", "snapshot": ":now", "hours": "8", "table": ["customers", "zoo"]}
    assert alice.post(f"{PAGE}branch/", data).status_code == 302
    for page in shown[:2]:
        assert "being created</span>" in page and "disabled" not in page
    for page in shown[3:5]:
        assert "being created, 50 %" in page and "disabled" not in page
    assert "2 of 4" in shown[5]
    assert "being created" not in alice.get("/ui/").content.decode()


def test_a_sample_that_no_page_can_contain(proven, customers):
    write(
        customers,
        Insert(Entity(EntityKey("se", "aaa"), {"Note": EdmValue(Edm.STRING, "half \ud800 a pair")})),
    )
    client = proven("ada")
    assert "half \\ud800 a pair" in client.get(f"{PAGE}branch/").content.decode()
    sample = client.get(f"{PAGE}branch/sample/?table=customers&property=Note&mask-customers-Note=keep")
    assert "half \\ud800 a pair" in sample.content.decode()


def test_samples_of_more_properties_than_one_entity_can_have(proven, customers):
    for part in range(3):
        values = {f"P{part}{number:03}": EdmValue(Edm.INT32, number) for number in range(100)}
        write(customers, Insert(Entity(EntityKey("se", f"wide{part}"), values)))
    page = proven("ada").get(f"{PAGE}branch/")
    assert page.status_code == 200
    assert "P2099" in page.content.decode()


def test_a_leaky_branch_says_so(proven, customers):
    write(customers, Insert(Entity(EntityKey("se", "cem"), {"Note": MAIL["Email"]})))
    client = proven("ada")
    data = {
        "name": "leaky",
        "snapshot": ":now",
        "hours": "8",
        "table": "customers",
        "mask-customers-Email": "email",
    }
    client.post(f"{PAGE}branch/", data)
    assert "customers.Note has original values" in client.get(PAGE).content.decode()
    assert not accounts.find("leaky").enabled
    assert "customers.Note" in client.get("/ui/a/leaky/snapshots/").content.decode()
