"""Undo in the console: from the toast or from the activity log, for users with the permission."""

import re

import pytest
from django.urls import reverse
from django.utils import timezone

from console.grid.tokens import encode_key
from console.models import User
from console.people import users
from console.site import toasts
from storage.accounts import account_settings, accounts
from storage.activity import activity
from storage.activity.activity import ChangedSince
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.access.roles import Role
from storage.domain.entities.changes import Insert, Update
from storage.domain.entities.entity import Entity, EntityKey, read_stored
from storage.domain.values.etag import ANY, write_etag
from storage.entities import edits, entities
from storage.entities.subject import EntityVerb
from storage.models import Activity
from storage.people import members
from storage.snapshots.subject import SnapshotVerb
from storage.tables import tables
from storage.tables.subject import TableVerb
from storage.tables.tables import DELETED_TABLE_RETENTION
from tests.fixtures import as_edm

KEY = EntityKey("se", "ada")
HTMX = {"HX-Request": "true", "HX-Request-Type": "partial"}


def by(name):
    return Actor(ActorKind.USER, name)


@pytest.fixture
def table(add_entity, account):
    return tables.get(account, "people")


@pytest.fixture
def inserted(table):
    """Insert an entity as Eve and return the activity."""
    return edits.apply(table, [Insert(Entity(KEY, {"A": as_edm(1)}))], by=by("eve")).activity


@pytest.fixture
def post(visit):
    def post(name, *done, address="/ui/a/acme/", **headers):
        numbers = ",".join(str(it if isinstance(it, int | str) else it.pk) for it in done)
        return visit(name).post(reverse("activity:undo", args=[numbers]), {"next": address}, headers=headers)

    return post


def toast(answer):
    return [str(message) for message in answer.wsgi_request._messages]


def exists(table, key=KEY):
    return entities.get(table, key) is not None


def test_undoes_and_offers_to_redo(visit, post, table, inserted):
    eve = visit("eve")
    answer = eve.post(reverse("activity:undo", args=[inserted.pk]), {"next": "/ui/a/acme/?q=x"})
    assert (answer.status_code, answer["Location"]) == (302, "/ui/a/acme/?q=x")
    assert not exists(table)
    page = eve.get(answer["Location"]).content.decode()
    undone = Activity.objects.order_by("pk").last()
    assert "Deleted 1 entity from people." in page
    assert reverse("activity:undo", args=[undone.pk]) in page
    assert (undone.undoes, undone.actor) == (inserted, "eve")
    redone = post("eve", undone, address="https://example.com/", **HTMX).content.decode()
    assert 'hx-swap-oob="beforeend:#toasts"' in redone
    assert "<main" not in redone
    assert exists(table)
    last = Activity.objects.order_by("pk").last()
    assert post("eve", last, address="//example.com")["Location"].startswith("/ui/a/acme/")


@pytest.fixture
def cell(visit, table, account):
    """Eve changes an entity in an account without history; returns her browser and the answer."""
    account_settings.change(account, history_days=0)
    stored = edits.apply_one(table, Insert(Entity(KEY, {"A": as_edm(1)})), by=by("eve")).after[KEY]
    eve = visit("eve")
    sent = {
        "key": encode_key(KEY),
        "property": "A",
        "type": "Edm.Int32",
        "etag": write_etag(stored.timestamp),
    }
    return eve, eve.post("/ui/a/acme/t/people/cell/", {**sent, "value": "2"}, headers=HTMX).content.decode()


def value(table):
    return read_stored(entities.get(table, KEY)).properties["A"].value


def test_without_history_the_last_change_can_be_undone_and_redone(table, cell):
    eve, answer = cell
    for expected in (1, 2, 1):
        [number] = re.findall(r'action="/ui/undo/(\d+)/', answer)
        answer = eve.post(f"/ui/undo/{number}/", headers=HTMX).content.decode()
        assert value(table) == expected
    # from anywhere else it cannot
    page = eve.get("/ui/a/acme/activity/").content.decode()
    assert page.count("Turn on history to undo changes.") == 2  # two are undone, one is an undo
    assert "/ui/undo/" not in page.split('id="timeline"')[1]
    first = Activity.objects.get(verb=EntityVerb.INSERT)
    assert "Turn on history" in eve.post(f"/ui/undo/{first.pk}/", headers=HTMX).content.decode()


def test_without_history_a_large_change_cannot_be_undone(visit, table, account, cell, monkeypatch):
    monkeypatch.setattr(toasts, "_LARGEST", 3)
    answer = visit("eve").post(
        "/ui/a/acme/t/people/delete/", {"key": encode_key(KEY), "scope": "rows"}, follow=True
    )
    text = answer.content.decode()
    assert "Turn on history to undo changes." in text and "/ui/undo/" not in text


def test_an_undo_that_was_interrupted_can_be_tried_again(visit, account):
    done = activity.record(SnapshotVerb.RESTORE, by("max"), account=account, detail={"snapshot": "base"})
    half = {"snapshot": "before-restore-base", "interrupted": True}
    activity.record(SnapshotVerb.RESTORE, by("max"), account=account, detail=half, undoes=done)
    page = visit("max").get(reverse("activity:index", args=("acme",))).content.decode()
    assert page.count('"badge warn"') == 1
    assert f'action="{reverse("activity:undo", args=[done.pk])}"' in page


def test_says_why_not_and_where_to_look(visit, table, inserted):
    edits.apply(table, [Update(Entity(KEY, {"A": as_edm(2)}), ANY, merge=False)], by=by("max"))
    eve = visit("eve")
    answer = eve.post(reverse("activity:undo", args=[inserted.pk]), {"next": "/ui/a/acme/"})
    page = eve.get(answer["Location"]).content.decode()
    assert "Not undone: the entity se / ada was changed since" in page
    assert 'href="/ui/a/acme/t/people/entity/?pk=se&amp;rk=ada"' in page
    assert exists(table)


@pytest.mark.parametrize(
    ("who", "status"),
    [("victor", 403), ("eve", 302), ("max", 302), ("alice", 302), ("ada", 302), ("sam", 404), (None, 302)],
)
def test_own_changes_of_entities(post, table, inserted, who, status):
    assert post(who, inserted).status_code == status
    assert exists(table) == (who in {"victor", "sam", None})


def test_says_which_role_an_undo_needs_and_who_has_it(post, table, account, inserted, cast):
    changed = account_settings.change(account, label="New", by=by("alice"))
    members.set_role(account, cast["eve"], Role.VIEWER, by=by("alice"))
    for who, done, role, other in [
        ("eve", inserted, "Editor", "max"), ("max", changed, "Owner", "alice"),
    ]:  # fmt: skip
        page = post(who, done).content.decode()
        assert f"This requires the {role} role." in page
        assert f"<bdi>{other}</bdi>" in page


def test_changes_of_others(post, table, account):
    by_alice = edits.apply(table, [Insert(Entity(KEY, {}))], by=by("alice")).activity
    of_eves_name = Actor(ActorKind.BEARER, "eve")
    by_bearer = edits.apply(table, [Insert(Entity(EntityKey("se", "b"), {}))], by=of_eves_name).activity
    for done in (by_alice, by_bearer):
        assert post("eve", done).status_code == 403
        assert post("max", done).status_code == 302
    # the table is gone, and so are its pages
    made = activity.latest(table, TableVerb.CREATE)
    assert post("max", made, address="/ui/a/acme/t/people/?f=x")["Location"] == "/ui/a/acme/"


def test_a_user_does_not_undo_what_the_former_one_of_the_name_did(post, table, inserted, cast):
    User.objects.filter(username="eve").update(created_at=timezone.now())
    assert post("eve", inserted).status_code == 403


def test_a_user_does_not_get_back_what_the_former_one_of_the_name_had(cast):
    users.set_admin(cast["eve"], is_admin=True, by=by("ada"))
    lost = users.set_admin(cast["eve"], is_admin=False, by=by("ada"))
    User.objects.filter(username="eve").update(created_at=timezone.now())
    with pytest.raises(ChangedSince):
        users.undo(lost, by=by("ada"))


def test_tables_and_settings(post, table, account):
    deleted = tables.delete(account, "people", by=by("eve"), keep=DELETED_TABLE_RETENTION)
    changed = account_settings.change(account, label="New", by=by("eve"))
    for who, done, status in [
        ("victor", deleted, 403), ("eve", deleted, 403), ("max", deleted, 302),
        ("eve", changed, 403), ("max", changed, 403), ("alice", changed, 302),
    ]:  # fmt: skip
        assert post(who, done).status_code == status


def test_undo_in_a_foreign_account_gets_404(post, cast):
    other = accounts.add("other")
    done = account_settings.change(other, label="New")
    for who in ("alice", "sam"):
        assert post(who, done).status_code == 404
    assert post("ada", done).status_code == 302


def test_undo_of_an_unknown_activity_gets_404(visit, inserted):
    for numbers in ("0", "1,99999999", "x", ",", "9" * 30, "١"):
        assert visit("ada").post(f"/ui/undo/{numbers}/").status_code == 404


def test_several_at_once(visit, account, table):
    tables.create(account, "others")
    done = [tables.delete(account, name, keep=DELETED_TABLE_RETENTION) for name in ("people", "others")]
    max_ = visit("max")
    answer = max_.post(reverse("activity:undo", args=[f"{done[0].pk},{done[1].pk}"]), {"next": "/ui/a/acme/"})
    assert "Restored 2 tables." in max_.get(answer["Location"]).content.decode()
    assert tables.find(account, "others")
    back = Activity.objects.order_by("-pk")[:2]
    max_.post(reverse("activity:undo", args=[",".join(str(it.pk) for it in back)]))
    assert tables.find(account, "others") is None


def test_not_one_of_several_that_they_may_not(post, account, table, inserted):
    done = account_settings.change(account, label="New")
    assert post("eve", inserted, done).status_code == 403
    assert exists(table)
