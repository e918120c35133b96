"""Bulk edits by scripts; what they do is tested with the operation."""

import pytest

from storage.domain.access.actor import SERVER
from storage.domain.entities.changes import Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.values.edm import Edm, EdmValue
from storage.entities import edits
from storage.models import Account, Activity
from storage.runtime import job_runner
from storage.tables import tables
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
    numbers = {
        "changed": 2,
        "moved": 0,
        "deleted": 0,
        "copied": 0,
        "replaced": 0,
        "left_over": 0,
        "unchanged": 0,
        "skipped": 1,
    }
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


COPY = {"op": "second-copy", "row_key": "'n-' + string(N)", "table": "numbers"}


def test_second_copies_are_made_checked_and_repaired(call, staff):
    body = {"filter": "RowKey lt 'c'", "operations": [COPY]}
    ask, check = call("max", "write"), EDIT.replace("bulk-edit", "second-copies/check")
    refused = call("eve", "write")("POST", EDIT, body)
    assert (refused.status_code, refused.json()["detail"]) == (
        *(403, "This operation needs the role maintainer in the account acme."),
    )
    done = ask("POST", EDIT, body).json()
    assert (done["copied"], done["matches"], done["skipped"]) == (2, 2, 0)
    numbers = tables.get(staff.account, "numbers")
    assert content(numbers) == {"n-1": 1, "n-2": 2}
    read = call("victor", "read")
    assert read("POST", check, body).json()["in_step"] is True

    edits.apply_one(
        staff, Upsert(Entity(EntityKey("p", "a"), {"N": EdmValue(Edm.INT32, 5)}), merge=False), by=SERVER
    )
    edits.apply_one(
        numbers, Upsert(Entity(EntityKey("p", "n-2"), {"N": EdmValue(Edm.INT32, 2)}), merge=False), by=SERVER
    )
    result = read("POST", check, body).json()
    read_at = result.pop("read_at")
    pair = {"partition_key": "p", "row_key": "n-5"}, {"partition_key": "p", "row_key": "n-2"}
    assert result == {
        "in_step": False,
        "complete": True,
        "examined": 2,
        "up_to_date": 0,
        "missing": 1,
        "differing": 1,
        "left_over": 1,
        "obstacles": [],
        "missing_examples": [{"original": {"partition_key": "p", "row_key": "a"}, "copy": pair[0]}],
        "differing_examples": [{"original": {"partition_key": "p", "row_key": "b"}, "copy": pair[1]}],
        "left_over_examples": [{"partition_key": "p", "row_key": "n-1"}],
    }
    repair = {**body, "operations": [{**COPY, "replace": True, "delete_left_over": True}], "read_at": read_at}
    foreseen = ask("POST", EDIT, repair | {"dry_run": True}).json()
    assert [
        (it["before"]["RowKey"], it["after"] and it["after"]["RowKey"]) for it in foreseen["samples"]
    ] == [
        *(("a", "n-5"), ("n-2", "n-2"), ("n-1", None)),
    ]
    done = ask("POST", EDIT, repair).json()
    assert (done["copied"], done["replaced"], done["left_over"], done["matches"]) == (1, 1, 1, 2)
    assert read("POST", check, body).json()["in_step"] is True
    for wrong, pointer in (
        ({"operations": [{"op": "delete"}]}, "#/operations"),
        ({"operations": [{"op": "second-copy", "row_key": "'a'"}]}, "#/operations/0/copies"),
        ({"operations": [COPY | {"table": "a b"}]}, "#/operations/0/table"),
    ):
        answer = read("POST", check, wrong)
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, pointer), answer.content
    Account.objects.update(read_only=True)
    assert read("POST", check, body).json()["in_step"] is True
