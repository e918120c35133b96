"""Designs of tables by the management API and by the command."""

import json

import pytest
from django.core.management import CommandError, call_command

pytestmark = pytest.mark.django_db(transaction=True)
PATH = "accounts/acme/tables/people/design"


@pytest.fixture
def people(fill, send):
    fill(2_000, "'all'", "'order-' || i", "jsonb_build_object('Email', 'sx' || i % 40, 'Age', i)")
    send("Email eq 'a@b'", 1)


def test_a_design_by_the_api(call, people):
    answered = call("victor")("GET", PATH).json()
    assert {it["kind"]: it["weight"] for it in answered["findings"]} == {
        "one-partition": "hint",
        "unpadded-numbers": "problem",
        "costly-query": "problem",
    }
    one = next(it for it in answered["findings"] if it["kind"] == "one-partition")
    assert one["edit"] == {"operations": [{"op": "key", "partition_key": "Email"}]}
    assert one["facts"] == {"entities": 2_000, "target": 2_000}
    assert answered["partitions"] | {"bytes": 0, "largest": []} == {
        "number": 1,
        "entities": 2_000,
        "bytes": 0,
        "of_one_entity": 0,
        "examined": 1,
        "is_exact": True,
        "largest": [],
        "classes": [{"least": 1_000, "partitions": 1, "entities": 2_000}],
    }
    [query] = answered["queries"]
    assert (query["shape"], query["read"], query["read_for_one"]) == ("Email eq …", 2_000, 2_000.0)
    assert query["pattern"] == "second-copy-across-partitions"
    assert query["edit"]["filter"] == "isset(Email)"
    assert query["edit"]["operations"][0]["table"] == "peopleByEmail"
    [table] = call("victor")("GET", "accounts/acme/design").json()["tables"]
    assert (table["table"], len(table["problems"])) == ("people", 2)


@pytest.fixture
def run(capsys):
    def run(*arguments, status=0):
        """Run the command, which ends with a status; return what it says."""
        ended_with = 0
        try:
            call_command("design", *arguments)
        except SystemExit as ended:
            ended_with = ended.code
        said = capsys.readouterr().out
        assert ended_with == status, said
        return said

    return run


def test_the_command_fails_on_chosen_findings(run, people):
    said = run("acme", status=1)
    assert said.startswith("people: 2,000 entities, 1 partition\n  problem: ")
    assert 'bulk edit: {"operations": [{"op": "key", "partition_key": "Email"}]}' in said
    run("acme/people", "--fail-on", "one-partition,guids", status=1)
    run("acme/people", "--fail-on", "guids")
    run("acme/people", "--fail-on", "none")
    assert json.loads(run("acme/people", "--json", "--fail-on", "good"))["table"] == "people"
    [one] = json.loads(run("acme", "--json", status=1))
    assert len(one["findings"]) == 3


def test_the_command_refuses_unknown_kinds_and_tables(run, table):
    assert "Nothing was found." in run("acme/people")
    for arguments in (["acme", "--fail-on", "odd"], ["nobody"], ["acme/nothing"]):
        with pytest.raises(CommandError) as refused:
            run(*arguments)
        assert refused.value.returncode == 2


@pytest.mark.parametrize(
    ("kind", "keys", "moved"),
    [
        ("unpadded-numbers", [("p", "order-9"), ("p", "order-10")], 1),
        ("unpadded-numbers", [("p", "o'9"), ("p", "o'10")], 1),
        ("unsorted-dates", [("p", "27.11.2026"), ("p", "01.12.2026")], 2),
        ("unsorted-dates", [("p", "1-31-2026"), ("p", "12-1-2026")], 2),
        ("mixed-case", [("Shop", "a"), ("shop", "b")], 1),
    ],
)
def test_edits_of_findings_mend_keys(call, add_entity, kind, keys, moved):
    for partition_key, row_key in keys:
        add_entity(partition_key, row_key, Name="Ada")
    ask = call("max", "write")
    findings = {it["kind"]: it for it in ask("GET", PATH).json()["findings"]}
    edit = findings[kind]["edit"] | {"dry_run": True}
    done = ask("POST", "accounts/acme/tables/people/bulk-edit", edit).json()
    assert (done["moved"], done["skipped"], done["obstacles"]) == (moved, 0, [])
