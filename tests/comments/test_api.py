"""Comments for scripts."""

import pytest

from storage.comments import comments
from storage.comments.threads import SHOWN
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.values.kinds import AccountKind
from storage.models import Comment, Notice
from storage.sql import entities
from storage.sql.django import run
from storage.sql.relations import relation_name
from storage.tables import tables
from tests.comments.test_operations import write_many
from tests.rest.test_errors import check

pytestmark = pytest.mark.django_db
TABLE = "accounts/acme/tables/people/comments"
ALL = "accounts/acme/comments"


@pytest.fixture
def entity(table, account):
    run(entities.change(relation_name(table.pk), Insert(Entity(EntityKey("se", "ada"), {}))))
    return {"partition_key": "se", "row_key": "ada"}


def test_a_viewer_comments_replies_resolves_and_changes_what_is_their_own(call, entity):
    victor, eve = call("victor", "write"), call("eve", "write")
    made = victor("POST", TABLE, {"text": "@eve look", **entity})
    assert made.status_code == 201
    thread = made.json()
    assert (thread["table"], thread["partition_key"], thread["row_key"]) == ("people", "se", "ada")
    assert [it["text"] for it in thread["comments"]] == ["@eve look"]
    assert Notice.objects.get(kind="comment.mention").user.username == "eve"
    where = f"{ALL}/{thread['id']}"
    reply = eve("POST", f"{where}/replies", {"text": "yes"}).json()
    assert eve("PATCH", where, {"resolved": True}).json()["resolved_by"] == "eve"
    assert victor("GET", ALL).json()["items"] == []
    assert (
        victor("GET", f"{ALL}?state=resolved&table=PEOPLE").json()["items"][0]["comments"][1]["author"]
        == "eve"
    )
    assert eve("PATCH", f"{where}/replies/{reply['id']}", {"text": "no"}).json()["text"] == "no"
    check(victor("PATCH", f"{where}/replies/{reply['id']}", {"text": "mine"}), 403)
    assert eve("DELETE", f"{where}/replies/{reply['id']}").status_code == 204
    check(eve("DELETE", f"{where}/replies/{reply['id']}"), 404)
    assert len(victor("GET", where).json()["comments"]) == 1


def test_threads_are_paged(call, entity):
    victor = call("victor", "write")
    numbers = [victor("POST", TABLE, {"text": str(it)}).json()["id"] for it in range(3)]
    page = victor("GET", f"{ALL}?limit=2").json()
    assert [it["id"] for it in page["items"]] == numbers[:0:-1]
    following = victor("GET", page["next"].partition("testserver")[2]).json()
    assert [it["id"] for it in following["items"]] == numbers[:1]
    assert following["items"][0]["partition_key"] is None


def test_names_of_tables_in_a_cosmos_account_keep_their_case(call, account):
    account.kind = AccountKind.COSMOS
    account.save()
    tables.create(account, "People_1")
    victor = call("victor", "write")
    made = victor("POST", "accounts/acme/tables/People_1/comments", {"text": "here"}).json()
    assert [it["id"] for it in victor("GET", f"{ALL}?table=People_1").json()["items"]] == [made["id"]]
    assert victor("GET", f"{ALL}?table=people_1").json()["items"] == []


def test_a_long_thread_is_paged(call, entity):
    victor = call("victor", "write")
    made = victor("POST", TABLE, {"text": "0"}).json()
    assert made["comment_count"] == 1
    first = Comment.objects.get()
    write_many(first, SHOWN + 3)
    thread = victor("GET", f"{ALL}/{made['id']}").json()
    assert thread["comment_count"] == SHOWN + 3
    assert [it["text"] for it in thread["comments"]] == [str(it) for it in range(3, SHOWN + 3)]
    assert [len(it["comments"]) for it in victor("GET", ALL).json()["items"]] == [SHOWN]
    page = victor("GET", f"{ALL}/{made['id']}/replies?limit=2").json()
    assert [it["text"] for it in page["items"]] == ["0", "1"]
    following = victor("GET", page["next"].partition("testserver")[2].replace("limit=2", "limit=500")).json()
    assert [it["text"] for it in following["items"]] == [str(it) for it in range(2, SHOWN + 3)]
    assert following["next"] is None
    check(call("sam", "read")("GET", f"{ALL}/{made['id']}/replies"), 404)
    check(victor("GET", f"{ALL}/0/replies"), 404)


def test_refusals(call, entity, monkeypatch):
    victor = call("victor", "write")
    check(call("victor", "read")("POST", TABLE, {"text": "x"}), 403)
    check(call("sam", "write")("POST", TABLE, {"text": "x"}), 404)
    check(victor("POST", TABLE, {"text": " "}), 400)
    check(victor("POST", TABLE, {"text": "x", "partition_key": "se"}), 400)
    check(victor("POST", TABLE, {"text": "x", "partition_key": "no", "row_key": "such"}), 404)
    check(victor("GET", f"{ALL}/0"), 404)
    made = victor("POST", TABLE, {"text": "x"}).json()
    monkeypatch.setattr(comments, "MOST_AT_ONCE", 0)
    where = f"{ALL}/{made['id']}/replies/{made['comments'][0]['id']}"
    for limited in (victor("POST", TABLE, {"text": "y"}), victor("PATCH", where, {"text": "y"})):
        check(limited, 429)
        assert limited.headers["Retry-After"]
    assert Comment.objects.get().text == "x"
