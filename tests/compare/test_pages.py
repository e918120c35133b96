"""The page that compares two accounts or tables, and applies what differs to the right side."""

import json
import re
from html import unescape
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from console.grid import tokens
from storage.access import policies
from storage.accounts import account_settings, accounts
from storage.branches import branches
from storage.branches.branches import BranchRequest
from storage.domain.access.actor import SERVER
from storage.domain.access.policies import SignedIdentifier
from storage.domain.entities.changes import Delete, Upsert
from storage.domain.entities.entity import Entity, EntityKey, read_stored
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.entities import edits, entities
from storage.models import Activity, Membership
from storage.snapshots import snapshots
from storage.tables import tables

PAGE = "/ui/a/acme/compare/"


@pytest.fixture
def branch(cast, account):
    """Make a second account, unknown to victor; both have a table people, and the two differ."""
    branch = accounts.add("branch")
    for membership in Membership.objects.filter(account=account).exclude(user=cast["victor"]):
        Membership.objects.create(user=membership.user, account=branch, role=membership.role)
    put(tables.create(account, "people"), a=1, b=1, c="x", d=5)
    put(tables.create(branch, "people"), a=1, b=2, d="5", e=1)
    return branch


def put(table, **values):
    for key, value in values.items():
        typed = EdmValue(Edm.INT32, value) if isinstance(value, int) else EdmValue(Edm.STRING, value or "")
        key = EntityKey("p", key)
        change = Delete(key, ANY) if value is None else Upsert(Entity(key, {"A": typed}), merge=False)
        edits.apply_one(table, change, by=SERVER)


def content(account):
    page = entities.page(tables.get(account, "people"), EntityQuery())
    return {it.key.row_key: read_stored(it).properties["A"].value for it in page.entities}


def address(left="acme", right="branch", **more):
    return f"{PAGE}?{urlencode({'left': left, 'right': right, **more}, doseq=True)}"


def text(response):
    page = re.sub(
        r"<(script|style|svg|select|template)\b.*?</\1>", "", response.content.decode(), flags=re.DOTALL
    )
    main = page.partition("<main")[2].partition("</main>")[0]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", main)).split())


def hidden(response):
    result = re.findall(r'<input type="hidden" name="([\w-]+)" value="([^"]*)"', response.content.decode())
    return {name: unescape(value) for name, value in result if name != "csrfmiddlewaretoken"}


def token(row_key):
    return tokens.encode_key(EntityKey("p", row_key))


def test_shows_what_differs(visit, branch):
    alice = visit("alice")
    page = alice.get(address())
    shown = text(page)
    assert "Tables 1 of 1 differ people Only right +1 Changed ~2 Only left −1" in shown
    assert "All 4 Only right 1 Changed 1 Type only 1 Only left 1" in shown
    assert "changed p , b A 1 2" in shown
    assert "only left p , c 1 property A: x no entity" in shown
    assert "type only p , d A 5 Int32 5 String" in shown
    assert "only right p , e 1 property no entity A: 1" in shown
    assert "Compared 4 (left) and 4 (right) entities" in shown and "Apply to branch" in shown
    assert "p , b" not in text(alice.get(address(kind="type")))
    assert "people identical" in text(alice.get(address("acme/people", "acme/people@" + later())))


def later():
    from django.utils import timezone

    return timezone.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def test_the_address_says_everything(visit, branch):
    alice = visit("alice")
    chosen = {
        "left-account": "branch",
        "left-table": "people",
        "left-moment": "@",
        "left-time": "2026-11-30T18:00:00Z",
        "right-account": "acme",
        "right-table": "",
        "right-moment": "before",
    }
    went = alice.get(PAGE, chosen)
    assert went.status_code == 303
    assert parse_qs(urlsplit(went["Location"]).query) == {
        "left": ["branch/people@2026-11-30T18:00:00Z"],
        "right": ["acme@before"],
    }
    swapped = re.search(
        r'href="([^"]*)" aria-label="Swap sides"', alice.get(address(table="people")).content.decode()
    )
    assert unescape(swapped[1]) == address("branch", "acme", table="people")
    fields = alice.get(f"{PAGE}side/", {"right-account": "branch"}).content.decode()
    assert 'name="right-table"' in fields and "<option>people</option>" in re.sub(r"\s", "", fields)
    assert "Both sides are the same" in text(alice.get(PAGE))


def test_an_unknown_parameter_is_told_not_ignored(visit, account, branch):
    answer = visit("alice").get(f"{PAGE}?l=acme&r=branch", follow=True)
    assert "Unknown parameters: l, r" in answer.content.decode()
    assert answer.redirect_chain == [(f"{PAGE}?left=acme&right=branch", 303)]


def test_a_branch_of_an_account_is_compared_with_it(visit, account, branch):
    snapshots.take(account, "before")
    put(tables.get(account, "people"), b=9)
    shown = text(visit("alice").get(PAGE))
    assert "Left side: acme Snapshot before" in shown and "Right side: acme Live, read at" in shown


@pytest.mark.django_db(transaction=True)
def test_applies_selected_entities_and_is_undone(proven, branch):
    alice = proven("alice")
    form = hidden(alice.get(address()))
    answer = alice.post(f"{PAGE}apply/", {**form, "key": [token("b"), token("e")]}, follow=True)
    assert answer.redirect_chain[-1][0] == address(table="people")
    assert "Applied 2 entities" in answer.content.decode()
    assert content(branch) == {"a": 1, "b": 1, "d": "5"}

    activity = Activity.objects.get(verb="entity.apply")
    assert f"/ui/undo/{activity.pk}/" in answer.content.decode()
    page = text(alice.get(f"/ui/a/branch/activity/{activity.pk}/"))
    assert "applied a comparison to 2 entities" in page and "p / b" in page and "p / e" in page
    alice.post(f"/ui/undo/{activity.pk}/", {"next": PAGE})
    assert content(branch) == {"a": 1, "b": 2, "d": "5", "e": 1}


@pytest.mark.django_db(transaction=True)
def test_applies_all_of_a_kind_but_not_over_newer_work(proven, branch):
    alice = proven("alice")
    page = alice.get(address(kind="changed", all=1))
    assert "1 entity selected" in text(page)
    put(tables.get(branch, "people"), b=7)
    answer = alice.post(f"{PAGE}apply/", {**hidden(page), "all": "1"}, follow=True)
    assert "Skipped 1 entity that was changed since you opened the comparison." in answer.content.decode()
    assert content(branch)["b"] == 7
    alice.post(f"{PAGE}apply/", {**hidden(answer), "all": "1"})
    assert content(branch) == {"a": 1, "b": 1, "d": "5", "e": 1}
    nothing = alice.post(f"{PAGE}apply/", hidden(answer), follow=True)
    assert "Select the entities to apply." in nothing.content.decode()


def test_the_button_says_what_it_does_with_numbers(visit, branch):
    alice = visit("alice")
    every = alice.get(address(all=1)).content.decode()
    assert button("Insert 1, change 2, delete 1 in branch", "primary danger") in " ".join(every.split())
    changed = alice.get(address(kind="changed", all=1)).content.decode()
    assert button("Change 1 in branch", "primary") in " ".join(changed.split())


def button(label, style):
    return f'<button class="button {style}" name="all" value="1" >{label}</button>'


@pytest.mark.django_db(transaction=True)
def test_a_table_that_only_the_right_side_has_is_deleted_as_one(proven, branch):
    put(tables.create(branch, "carts"), a=1, b=2)
    alice = proven("alice")
    page = alice.get(address(table="carts", all=1))
    assert "Delete the table carts in branch" in text(page)
    assert "Only a maintainer can delete the table." in text(proven("eve").get(address(table="carts", all=1)))
    put(tables.get(branch, "carts"), c=3)
    skipped = alice.post(f"{PAGE}apply/", {**hidden(page), "all": "1"}, follow=True)
    assert "Did not delete carts because it was changed" in skipped.content.decode()
    page = alice.get(address(table="carts", all=1))
    answer = alice.post(f"{PAGE}apply/", {**hidden(page), "all": "1"}, follow=True)
    assert "Deleted carts." in answer.content.decode() and "Undo" in answer.content.decode()
    assert tables.find(branch, "carts") is None


@pytest.mark.django_db(transaction=True)
def test_tables_that_a_branch_was_never_given_are_only_named(visit, account, branch):
    tables.create(account, "carts")
    branches.create(account, BranchRequest("part", filters={"people": None}))
    shown = text(visit("alice").get("/ui/a/part/compare/"))
    assert "people identical" in shown and "carts not in part" in shown and "only right" not in shown
    assert "No entity differs Compared 4 (left) and 4 (right) entities" in shown


@pytest.mark.django_db(transaction=True)
def test_tables_outside_a_partial_snapshot_are_only_named(proven, account, branch):
    put(tables.create(account, "carts"), a=1, b=2)
    snapshots.take(account, "baseline", tables=["people"])
    snapshots.take(account, "carts-only", tables=["carts"])
    put(tables.get(account, "people"), a=9)
    alice = proven("alice")
    page = alice.get(address("acme@baseline", "acme", table="carts"))
    assert "1 of 1 differ people" in text(page) and "carts not in acme@baseline" in text(page)
    assert hidden(page)["table"] == "people"
    nothing = text(alice.get(address("acme@carts-only", "acme@baseline")))
    assert "No table to compare One side includes only some tables" in nothing
    form = {"left": "acme@baseline", "right": "acme", "table": "carts", "all": "1"}
    alice.post(f"{PAGE}apply/", form)
    assert tables.find(account, "carts") is not None


def test_applies_policies_and_creates_an_empty_table(proven, account, branch):
    alice = proven("alice")
    policies.replace_by_name(account, "people", [SignedIdentifier("partners", None)])
    tables.create(account, "fresh")
    page = alice.get(address(settings=1))
    assert "people partners - not set" in text(page)
    answer = alice.post(f"{PAGE}apply/", {**hidden(page), "settings-of": ["policies"]}, follow=True)
    assert "Applied the settings to branch." in answer.content.decode()
    assert [it.identifier for it in policies.stored_by_name(branch, "people")] == ["partners"]
    page = alice.get(address(table="fresh"))
    assert "The right side does not have this table Create it in branch" in text(page)
    alice.post(f"{PAGE}apply/", hidden(page))
    assert tables.find(branch, "fresh") is not None


@pytest.mark.django_db(
    transaction=True
)  # a snapshot may take changes of its own transaction for earlier ones
def test_viewing_and_applying_require_roles(visit, cast, account, branch):
    victor = visit("victor")
    for name in ("branch", "none"):
        page = victor.get(address(right=name))
        assert page.status_code == 404
        assert f"You have no access to an account named {name}." in text(page)
    put(tables.get(account, "people"), a=8)
    snapshots.take(account, "now")
    put(tables.get(account, "people"), a=9)
    assert "Apply to" not in text(victor.get(address("acme@now", "acme")))
    alice = visit("alice")
    form = hidden(alice.get(address("acme@now", "acme")))
    refused = victor.post(f"{PAGE}apply/", {**form, "all": "1"}, follow=True)
    assert "You may not make this change in acme." in refused.content.decode()
    past = alice.get(address("acme", "acme@now"))
    assert "The right side is of the past." in text(past) and "Apply to" not in text(past)
    account_settings.change(account, read_only=True)
    assert "Apply to" not in text(alice.get(address("branch", "acme")))


def test_exports_a_patch(visit, branch):
    response = visit("alice").get(address().replace("compare/", "compare/patch/"))
    lines = [json.loads(line) for line in response.getvalue().splitlines()]
    assert [it["row_key"] for it in lines] == ["b", "c", "d", "e"]
    assert response["Content-Disposition"] == 'attachment; filename="acme-branch.ndjson"'


def test_pages(visit, account, branch):
    put(tables.get(account, "people"), **{f"k{n:03}": n for n in range(60)})
    alice = visit("alice")
    first = alice.get(address(kind="left"))
    following = unescape(re.search(r'href="([^"]*)" rel="next"', first.content.decode())[1])
    second = alice.get(following)
    assert "k048" in text(first) and "k049" not in text(first)
    assert "k049" in text(second) and "k048" not in text(second) and "First page" in text(second)
