"""Bulk edits by scripts; what they do is tested with the operation."""

import pytest

from storage.domain.access.actor import SERVER
from storage.domain.entities.changes import Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.values.edm import Edm, EdmValue
from storage.entities import edits
from storage.models import Account, Activity
from storage.runtime import job_runner
from tests.bulk_edit.test_operations import content

EDIT = "accounts/acme/tables/people/bulk-edit"


@pytest.fixture
def staff(table):
    for row_key, value in (
        ("a", EdmValue(Edm.INT32, 1)),
        ("b", EdmValue(Edm.INT64, 2)),
        ("c", EdmValue(Edm.STRING, "\ud800")),
    ):
        entity = Entity(EntityKey("p", row_key), {"N": value})
        edits.apply_one(table, Upsert(entity, merge=False), by=SERVER)
    return table


def test_a_dry_run_the_edit_and_its_undo(call, staff):
    ask = call("eve", "write")
    body = {"filter": "RowKey ge 'a'", "operations": [{"op": "set", "property": "N", "expression": "N + 1"}]}
    foreseen = ask("POST", EDIT, body | {"dry_run": True})
    assert foreseen.status_code == 200, foreseen.content
    foreseen = foreseen.json()
    read_at = foreseen.pop("read_at")
    numbers = {"changed": 2, "moved": 0, "deleted": 0, "unchanged": 0, "skipped": 1}
    obstacle = {
        "kind": "wrong-type",
        "property": "N",
        "detail": "+ of String, Int32",
        "entities": 1,
        "examples": [{"partition_key": "p", "row_key": "c"}],
    }
    assert foreseen == {
        **numbers,
        "dry_run": True,
        "matches": 3,
        "exact": True,
        "examined": 3,
        "complete": True,
        "obstacles": [obstacle],
        "losses": [],
        "types": [
            {"property": "N", "before": it, "after": it, "entities": 1} for it in ("Edm.Int32", "Edm.Int64")
        ],
        "samples": [
            {
                "before": {"PartitionKey": "p", "RowKey": "a", "N": 1},
                "after": {"PartitionKey": "p", "RowKey": "a", "N": 2},
            },
            {
                "before": {"PartitionKey": "p", "RowKey": "b", "N@odata.type": "Edm.Int64", "N": "2"},
                "after": {"PartitionKey": "p", "RowKey": "b", "N@odata.type": "Edm.Int64", "N": "3"},
            },
        ],
        "can_undo": True,
        "activity": None,
        "request": None,
    }
    done = ask("POST", EDIT, body | {"read_at": read_at, "number": 3}).json()
    assert {name: done[name] for name in numbers} == numbers
    assert done["obstacles"] == [obstacle]
    assert content(staff) == {"a": 2, "b": 3, "c": "\ud800"}
    activity = Activity.objects.get(pk=done["activity"])
    assert (activity.actor, activity.actor_kind, activity.request_id) == ("eve", "token", done["request"])

    assert call("max")("POST", "accounts/acme/undo", {"request": done["request"]}).status_code == 200
    assert content(staff) == {"a": 1, "b": 2, "c": "\ud800"}


def test_deleted_entities_and_values_beyond_utf_8_are_shown(call, staff):
    body = {"filter": "RowKey eq 'c'", "operations": [{"op": "delete"}], "dry_run": True}
    answer = call("eve", "write")("POST", EDIT, body)
    assert answer.json()["samples"] == [
        {"before": {"PartitionKey": "p", "RowKey": "c", "N": "\ud800"}, "after": None}
    ]


def test_a_protected_account_needs_the_number(call, staff):
    Account.objects.update(protected=True)
    ask = call("eve", "write")
    body = {"operations": [{"op": "delete"}]}
    for number in (None, 2):
        answer = ask("POST", EDIT, body | {"number": number})
        assert (answer.status_code, answer.json()["title"]) == (409, "Conflict")
    assert ask("POST", EDIT, body | {"number": 3}).json()["deleted"] == 3


def test_refusals(call, staff):
    body = {"operations": [{"op": "delete"}]}
    assert call("victor", "write")("POST", EDIT, body).status_code == 403
    assert call("eve", "read")("POST", EDIT, body).status_code == 403
    assert call("sam")("POST", EDIT, body).status_code == 404
    ask = call("eve", "write")
    assert ask("POST", EDIT.replace("people", "nothing"), body).status_code == 404
    remove = {"op": "remove", "property": "A"}
    for wrong, pointer, words in (
        ({}, "#/operations", "required"),
        ({"operations": []}, "#/operations", "at least 1"),
        ({"operations": [{"op": "explode"}]}, "#/operations/0/op", "not a valid choice"),
        ({"operations": [{**remove, "with": 1}]}, "#/operations/0/with", "Unknown member"),
        (
            {"operations": [remove, {"op": "set", "property": "A"}]},
            "#/operations/1/expression",
            "needs expression",
        ),
        (
            {"operations": [{"op": "set", "property": "A", "expression": "1 +"}]},
            "#/operations/0/expression",
            "A value is expected at position 4.",
        ),
        (
            {"operations": [{"op": "remove", "property": "RowKey"}]},
            "#/operations/0/property",
            "operation key",
        ),
    ):
        answer = ask("POST", EDIT, wrong)
        assert answer.status_code == 400, answer.content
        [error] = answer.json()["errors"]
        assert error["pointer"] == pointer and words in error["detail"], error
    answer = ask("POST", EDIT, {**body, "filter": "N eq"})
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (400, "InvalidInput")
    assert problem["detail"] == (
        "Position 5: Syntax error: the filter ends where a property or value is expected."
    )
    answer = ask("POST", EDIT, {**body, "filter": "tolower(N) eq 'x'"})
    assert (answer.status_code, answer.json()["code"]) == (400, "NotImplemented")
    Account.objects.update(read_only=True)
    assert ask("POST", EDIT, body).status_code == 403


def test_a_request_that_does_not_wait_is_answered_by_the_job(call, staff):
    ask = call("eve", "write")
    body = {"operations": [{"op": "set", "property": "N", "expression": "N + 1"}]}
    answer = ask("POST", EDIT, body, Prefer="respond-async")
    job = answer.json()
    assert (answer.status_code, answer["Preference-Applied"]) == (202, "respond-async"), answer.content
    assert (job["kind"], job["table"], job["status"]) == ("entity.bulk-edit", "people", "waiting")
    job_runner.run_all()
    job = ask("GET", answer["Location"]).json()
    assert (job["status"], job["done"], job["total"], job["counts"]) == (
        "done",
        3,
        3,
        {"changed": 2, "skipped": 1},
    )
    assert job["failures"] == [{"subject": "p, c", "reason": "Not edited: N: wrong-type: + of String, Int32"}]
    assert content(staff) == {"a": 2, "b": 3, "c": "\ud800"}
