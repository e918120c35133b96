"""Undo by scripts; what it does is tested with the operation."""

import pytest

from storage.cluster import distribution
from storage.entities import edits
from storage.models import Activity
from storage.sql.django import fetch
from storage.sql.record import segment_name
from storage.sql.relations import relation_of
from tests.history.test_changes import REQUESTS, actor, write
from tests.sql import citus
from tests.undo.test_data_undo import content, upsert

UNDO = "accounts/acme/undo"


@pytest.fixture
def mistake(table):
    write(table, actor(1, "other"), *(upsert(name, 1) for name in "ab"))
    write(table, actor(2, "script"), *(upsert(name, 2) for name in "abc"))
    write(table, actor(3, "other"), upsert("b", 3))
    return table


def test_a_dry_run_then_the_undo_and_its_undo(call, mistake):
    ask = call("max")
    foreseen = ask("POST", UNDO, {"actor": "script", "dry_run": True})
    assert foreseen.status_code == 200, foreseen.content
    assert foreseen.json()["activity"] is None
    [table] = foreseen.json()["tables"]
    sample = {it.pop("RowKey"): it for it in table.pop("sample")}
    expected = {"table": "people", "changed": 1, "inserted": 0, "deleted": 1, "skipped": 1, "unchanged": 0}
    assert table == expected
    assert sample == {
        "a": {"PartitionKey": "p", "effect": "changed", "reason": None},
        "b": {"PartitionKey": "p", "effect": "skipped", "reason": "changed"},
        "c": {"PartitionKey": "p", "effect": "deleted", "reason": None},
    }
    assert content(mistake) == {"a": 2, "b": 3, "c": 2}

    done = ask("POST", UNDO, {"request": REQUESTS[2]}).json()
    assert content(mistake) == {"a": 1, "b": 3}
    [table] = done["tables"]
    assert table == {
        **expected,
        "sample": [{"PartitionKey": "p", "RowKey": "b", "effect": "skipped", "reason": "changed"}],
    }
    activity = Activity.objects.get(pk=done["activity"])
    assert (activity.actor, activity.actor_kind, activity.request_id) == ("max", "token", done["request"])

    ask("POST", UNDO, {"request": done["request"]})
    assert content(mistake) == {"a": 2, "b": 3, "c": 2}


def test_selections(call, account, mistake):
    ask = call("max")
    [(number, ticks)] = fetch(
        "SELECT seq, to_char(to_timestamp(ts / 1e7) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"
        f" FROM {segment_name(account.pk, 1)} ORDER BY seq DESC LIMIT 1"
    )

    def changed(**selection):
        answer = ask("POST", UNDO, {**selection, "dry_run": True})
        assert answer.status_code == 200, answer.content
        return [(it["table"], it["changed"], it["deleted"]) for it in answer.json()["tables"]]

    assert changed(ids=[number]) == [("people", 1, 0)]
    assert changed(**{"from": ticks}) == [("people", 1, 0)]
    assert changed(to=ticks, table="people") == [("people", 0, 2)]
    assert changed(actor="scr") == []
    assert changed(table="others") == []


def test_refusals(call, mistake):
    assert call("eve")("POST", UNDO, {"actor": "script"}).status_code == 403
    assert call("max", "read")("POST", UNDO, {"actor": "script"}).status_code == 403
    assert call("sam")("POST", UNDO, {"actor": "script"}).status_code == 404
    ask = call("max")
    for body, words in (
        ({}, "Select the changes"),
        ({"dry_run": True}, "Select the changes"),
        ({"ids": ["1"]}, "integer"),
        ({"ids": [2**63]}, "less than or equal to"),
        ({"request": "x"}, "UUID"),
        ({"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}, "after from"),
        ({"since": "2026-01-02T00:00:00Z"}, "Unknown member"),
        ({"PartitionKey": "p"}, "given together"),
    ):
        answer = ask("POST", UNDO, body)
        assert answer.status_code == 400, answer.content
        assert words in answer.content.decode()
    assert content(mistake) == {"a": 2, "b": 3, "c": 2}


def test_changes_of_a_distributed_table_are_undone(call, table):
    with citus.installed():
        distribution.distribute(table)
        table.refresh_from_db()
        edits.apply(table, [upsert(name, 1) for name in "ab"], by=actor(1, "script"))
        ask, body = call("max"), {"actor": "script"}
        foreseen = ask("POST", UNDO, {**body, "dry_run": True}).json()["tables"]
        assert [(it["deleted"], it["sample"][0]["effect"]) for it in foreseen] == [(2, "deleted")]
        assert content_of(table) == {"a": 1, "b": 1}
        single = ask("POST", UNDO, {"table": "people", "PartitionKey": "p", "RowKey": "a"})
        assert (single.status_code, single.json()["tables"][0]["deleted"]) == (200, 1), single.content
        done = ask("POST", UNDO, body).json()["tables"]
        assert [(it["deleted"], it["skipped"]) for it in done] == [(1, 1)]
        assert content_of(table) == {}


def content_of(table):
    return {
        rk: int(vals.partition(":")[2]) for rk, vals in fetch(f"SELECT rk, vals FROM {relation_of(table)}")
    }


def test_the_changes_of_one_entity(call, mistake):
    ask = call("max")
    done = ask("POST", UNDO, {"PartitionKey": "p", "RowKey": "a", "actor": "script"}).json()
    assert [it["changed"] for it in done["tables"]] == [1]
    assert content(mistake) == {"a": 1, "b": 3, "c": 2}
    assert ask("POST", UNDO, {"PartitionKey": "", "RowKey": "a"}).json()["tables"] == []


def test_an_unsupported_query_is_a_client_error(call, table):
    body = {"filter": "startswith(A, 'x')", "operations": [{"op": "delete"}]}
    refused = call("max")("POST", "accounts/acme/tables/people/bulk-edit", body)
    assert refused.status_code == 400, refused.content
