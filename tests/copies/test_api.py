"""Copies from other services by the API: who may start one, and that credentials stay secret."""

import json

import pytest

from storage.models import Job, JobFile
from storage.remote import azurite
from storage.runtime import job_runner
from tests.rest.test_errors import check

pytestmark = pytest.mark.django_db(transaction=True)
TEXT = "AccountName=acme;AccountKey=c2VjcmV0;TableEndpoint=http://127.0.0.1:1/acme;"


@pytest.mark.parametrize("path", ["copy-from", "copy-to"])
def test_maintainers_start_copies(call, table, path):
    fields = {"service": TEXT, "tables": ["p*"], "rename": {"people": "persons"}, "rate": 10}
    check(call("eve", "manage")("POST", f"accounts/acme/{path}", fields), 403)
    check(call("max", "write")("POST", f"accounts/acme/{path}", fields), 403)
    check(call("max", "operate")("POST", f"accounts/acme/{path}", fields), 403)
    ask = call("max", "operate")
    fields["policies"] = False
    answer = ask("POST", f"accounts/acme/{path}", fields)
    assert answer.status_code == 202, answer.content
    job = Job.objects.get()
    assert "c2VjcmV0" not in json.dumps(job.arguments) + answer.content.decode()
    job_runner.run_all()
    result = ask("GET", answer["Location"]).json()
    assert (result["status"], result["kind"]) == (
        "failed",
        f"account.{path.replace('from', 'in').replace('to', 'out')}",
    )
    assert "TABLERO_COPY_NETWORKS" in result["error"]
    job.refresh_from_db()
    assert job.arguments["secret"] == ""


def test_maintainers_copy_from_a_file_of_azurite(call, table):
    keys = {"PartitionKey": "se", "RowKey": "1"}
    content = {
        "collections": [
            {
                "name": "$TABLES_COLLECTION$",
                "data": [{"account": "one", "table": it} for it in ("items", "x")],
            },
            {"name": "one$items", "data": [{**keys, "properties": {**keys, "N": 1}}]},
        ]
    }
    body, path = json.dumps(content).encode(), "accounts/acme/copy-from-file"
    check(call("max", "write")("POST", path, body), 403)
    ask = call("max", "manage")
    answer = ask("POST", f"{path}?table=ite*&rename=items=people", body)
    assert answer.status_code == 202, answer.content
    job_runner.run_all()
    result = ask("GET", answer["Location"]).json()
    assert (result["status"], result["counts"]) == ("done", {"inserted": 1})
    [copied] = result["result"]["tables"]
    assert (copied["source"], copied["target"], copied["verified"]) == ("items", "people", True)

    for wrong, sent in (
        ("", b"{}"),
        ("?file_account=two", body),
        ("?rename=items", body),
        ("?other=1", body),
    ):
        check(ask("POST", path + wrong, sent), 400)
    assert Job.objects.count() == JobFile.objects.count() == 1


def test_invalid_members_are_named(call, table):
    ask = call("max", "manage")
    for wrong, pointer in (
        ({"service": "acme"}, "#/service"),
        ({"service": TEXT, "rate": -1}, "#/rate"),
        ({"service": TEXT, "tables": []}, "#/tables"),
        ({"service": TEXT, "other": 1}, "#/other"),
        ({}, "#/service"),
    ):
        result = check(ask("POST", "accounts/acme/copy-from", wrong), 400)
        assert result["errors"][0]["pointer"] == pointer
    result = check(ask("POST", "accounts/acme/copy-from", {"service": TEXT, "filter": "Age eqq 1"}), 400)
    assert result["detail"] == "Position 5: Unknown operator “eqq”. Did you mean eq?"
    assert not Job.objects.exists()


def test_a_file_with_values_of_other_types_is_refused(call, table):
    for name in (5, None, True, [], {}, "\0"):
        tables = {"name": "$TABLES_COLLECTION$", "data": [{"account": "one", "table": name}]}
        body = json.dumps({"collections": [tables]}).encode()
        answer = call("max", "manage")("POST", "accounts/acme/copy-from-file", body)
        assert (answer.status_code, "is not a file of Azurite" in answer.json()["detail"]) == (400, True)


def test_the_job_checks_a_file_with_late_tables(call, table, monkeypatch):
    for name in ("_PIECE", "_FIRST"):
        monkeypatch.setattr(azurite, name, getattr(azurite, name) // 16)
    tables = {"name": "$TABLES_COLLECTION$", "data": [{"account": "one", "table": "far"}]}
    filling = {"name": "zero$first", "data": [{"properties": {"a": "x" * 1000}}] * 700}
    ask, path = call("max", "manage"), "accounts/acme/copy-from-file"
    begun = ask("POST", path, json.dumps({"collections": [filling, tables]}).encode())
    wrong = ask("POST", f"{path}?file_account=two", json.dumps({"collections": [filling, tables]}).encode())
    damaged = ask("POST", path, json.dumps({"collections": [filling, tables]}).encode()[:-10])
    assert [it.status_code for it in (begun, wrong, damaged)] == [202, 202, 202]
    job_runner.run_all()
    ended = [ask("GET", it["Location"]).json() for it in (begun, wrong, damaged)]
    assert [it["status"] for it in ended] == ["done", "failed", "failed"]
    assert "not a file of Azurite" in ended[2]["error"]
