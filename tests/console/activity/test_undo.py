"""Undo, as the console offers it: from the toast or from the record, for those who may."""

import pytest
from django.urls import reverse

from storage.domain.access.actor import Actor, ActorKind
from storage.domain.access.roles import Role
from storage.domain.entities.changes import Insert, Update
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.service.activity import Verb
from storage.domain.values.etag import ANY
from storage.models import Activity
from storage.operations import accounts, activity, edits, tables
from storage.operations.tables import DELETED_TABLE_RETENTION
from tests.console.conftest import as_edm

KEY = EntityKey("se", "ada")
HTMX = {"HX-Request": "true", "HX-Request-Type": "partial"}


def by(name):
    return Actor(ActorKind.USER, name)


@pytest.fixture
def table(people, account):
    return tables.get(account.pk, "people")


@pytest.fixture
def inserted(table):
    """What Eve did."""
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
    from storage.operations import entities

    return entities.get(table, key) is not None


def test_undoes_and_offers_to_redo(visit, table, inserted):
    eve = visit("eve")
    answer = eve.post(reverse("activity:undo", args=[inserted.pk]), {"next": "/ui/a/acme/?q=x"})
    assert (answer.status_code, answer["Location"]) == (302, "/ui/a/acme/?q=x")
    assert not exists(table)
    page = eve.get(answer["Location"]).content.decode()
    undone = Activity.objects.order_by("pk").last()
    assert "Deleted 1 entity from people." in page
    assert reverse("activity:undo", args=[undone.pk]) in page
    assert (undone.undoes, undone.actor) == (inserted, "eve")

    eve.post(reverse("activity:undo", args=[undone.pk]))
    assert exists(table)


def test_answers_htmx_with_the_toast_alone(post, table, inserted):
    answer = post("eve", inserted, **HTMX)
    assert answer.status_code == 200
    assert 'hx-swap-oob="beforeend:#toasts"' in answer.content.decode()
    assert "<main" not in answer.content.decode()


@pytest.mark.parametrize(
    "address", ["https://example.com/", "//example.com", "/acme/people", "", "/ui/../acme"]
)
def test_leads_nowhere_else(post, inserted, address):
    assert post("eve", inserted, address=address)["Location"].startswith("/ui/a/acme/")


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


@pytest.mark.parametrize(("who", "status"), [("eve", 403), ("max", 302)])
def test_changes_of_others(post, table, who, status):
    done = edits.apply(table, [Insert(Entity(KEY, {}))], by=by("alice")).activity
    assert post(who, done).status_code == status


def test_a_key_is_not_a_user_of_the_same_name(post, table):
    done = edits.apply(table, [Insert(Entity(KEY, {}))], by=Actor(ActorKind.BEARER, "eve")).activity
    assert post("eve", done).status_code == 403


@pytest.mark.parametrize(
    ("do", "may"),
    [
        (
            lambda account: tables.delete(account.pk, "people", by=by("eve"), keep=DELETED_TABLE_RETENTION),
            {"max", "alice", "ada"},
        ),
        (lambda account: accounts.change(account, label="New", by=by("eve")), {"alice", "ada"}),
    ],
)  # fmt: skip
def test_tables_and_settings(post, table, account, do, may):
    done = do(account)
    for who in ("victor", "eve", "max", "alice"):
        answer = post(who, done)
        assert answer.status_code == (302 if who in may else 403)
        if who in may:
            break


def test_of_an_account_that_is_not_theirs(post, cast):
    other = accounts.add("other")
    done = accounts.change(other, label="New")
    for who in ("alice", "sam"):
        assert post(who, done).status_code == 404
    assert post("ada", done).status_code == 302


@pytest.mark.parametrize("numbers", ["0", "99999999", "1,99999999", "x", "-1", ",", "9" * 30, "١"])
def test_what_never_was(visit, inserted, numbers):
    assert visit("ada").post(f"/ui/undo/{numbers}/").status_code == 404


def test_several_at_once(visit, account, table):
    tables.create(account.pk, "others")
    done = [tables.delete(account.pk, name, keep=DELETED_TABLE_RETENTION) for name in ("people", "others")]
    max_ = visit("max")
    answer = max_.post(reverse("activity:undo", args=[f"{done[0].pk},{done[1].pk}"]), {"next": "/ui/a/acme/"})
    assert "Restored 2 tables." in max_.get(answer["Location"]).content.decode()
    assert tables.find(account.pk, "others")
    back = Activity.objects.order_by("-pk")[:2]
    max_.post(reverse("activity:undo", args=[",".join(str(it.pk) for it in back)]))
    assert tables.find(account.pk, "others") is None


def test_not_one_of_several_that_they_may_not(post, account, table, inserted):
    done = accounts.change(account, label="New")
    assert post("eve", inserted, done).status_code == 403
    assert exists(table)


def test_a_page_that_goes_with_it_is_left(post, account, table):
    done = activity.latest(table, Verb.TABLE_CREATE)
    assert post("max", done, address="/ui/a/acme/t/people/?f=x")["Location"] == "/ui/a/acme/"


def test_a_get_undoes_nothing(visit, table, inserted):
    assert visit("eve").get(reverse("activity:undo", args=[inserted.pk])).status_code == 405
    assert exists(table)


def test_a_role(visit, cast, account):
    from storage.operations import members

    done = members.set_role(account, cast["eve"], Role.OWNER, by=by("alice"))
    alice = visit("alice")
    answer = alice.post(reverse("activity:undo", args=[done.pk]), {"next": "/ui/a/acme/"})
    assert "Undid the change." in alice.get(answer["Location"]).content.decode()
    assert members.members(account)[-2].role in {Role.EDITOR, Role.MAINTAINER}
    answer = alice.post(reverse("activity:undo", args=[done.pk]), {"next": "/ui/a/acme/"})
    assert "Not undone" in alice.get(answer["Location"]).content.decode()
