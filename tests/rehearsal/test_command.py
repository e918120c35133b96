"""`manage.py rehearse`."""

import json
import signal
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from storage.accounts import account_settings, accounts
from storage.core.rehearsals import Exchange
from storage.domain.requests.strictness import StrictRule
from storage.models import Rehearsal, RehearsalClient, RehearsedRequest
from storage.rehearsal import rehearsals
from storage.rehearsal.management.commands import rehearse
from storage.rehearsal.records import dump_exchange

pytestmark = pytest.mark.django_db(transaction=True)
AGENT = "azsdk-python-data-tables/12.7.0"


@pytest.fixture
def account(db):
    account = accounts.add("acme")
    account_settings.change(account, may_rehearse=True)
    return account


@pytest.fixture
def run(capsys):
    def run(*arguments, status=0):
        """Run the command, which ends with a status; return what it says."""
        ended_with = 0
        try:
            call_command("rehearse", *arguments)
        except SystemExit as ended:
            ended_with = ended.code
        said = capsys.readouterr().out
        assert ended_with == status, said
        return said

    return run


def insert_untyped(rehearsal):
    """Record an insert without a Content-Type, which Azure refuses, and that a rule has struck."""
    client = RehearsalClient.objects.create(
        rehearsal=rehearsal,
        agent=f"{AGENT}\x9b2J",
        credential="authenticated:key1",
        requests=1,
        matches=[1, 1],
    )
    began = rehearsal.started_at.timestamp()
    exchange = Exchange(
        began=began, ended=began, operation="InsertEntity", method="POST", table="people", status=201,
        rules=["throttle"], faulted=True, applied=True, warnings=[StrictRule.MISSING_CONTENT_TYPE],
    )  # fmt: skip
    RehearsedRequest.objects.create(
        rehearsal=rehearsal, client=client, number=1, at=datetime.now(UTC), request_id=uuid4(),
        exchange=json.loads(dump_exchange(exchange)),
    )  # fmt: skip


def test_a_rehearsal_is_started_reported_and_stopped(account, run):
    said = run("acme", "short-pages", "--for", "10m", "--seed", "7", "--table", "people")
    started = rehearsals.running(account)
    assert (started.seed, (started.ends_at - started.started_at).total_seconds()) == (7, 600)
    assert said.splitlines() == [
        f"short-pages is rehearsed in the table people of acme until {started.ends_at:%Y-%m-%d %H:%M:%S} UTC, seed 7.",
        "Most pages of queries end early, some are empty, and all of these have a continuation token.",
        "To stop it and see what clients did: rehearse acme --stop --report",
    ]
    assert "Nothing was requested under short-pages (seed 7)." in run("acme", "--report")
    insert_untyped(started)
    assert run("acme", "--list").split("  ")[1:] == [
        "running", "short-pages", "seed 7", "table people", "1 request, of which 1 was struck\n"
    ]  # fmt: skip
    said = run("acme", "--stop", "--report", status=1)
    assert said.startswith("short-pages (seed 7) in acme: 1 request, of which 1 was struck.\n")
    assert (
        f"\n{AGENT}\N{REPLACEMENT CHARACTER}2J, authenticated:key1: 1 request, of which 1 was struck\n  fault: "
        in said
    )
    assert said.endswith("Not held under short-pages (seed 7): 1 fault.\n")
    report = json.loads(run("acme", "--report", "--json", status=1))
    assert (report["held"], report["clients"][0]["findings"][0]["kind"]) == (False, "azure-refuses")
    assert rehearsals.running(account) is None


def test_it_waits_for_the_end(account, run, monkeypatch):
    def stop_elsewhere(seconds):
        rehearsals.stop(rehearsals.running(account))

    monkeypatch.setattr(rehearse.time, "sleep", stop_elsewhere)
    said = run("acme", "flaky", "--wait")
    assert "flaky is rehearsed in acme until " in said
    assert "Nothing was requested under flaky" in said

    def interrupt(seconds):
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(rehearse.time, "sleep", interrupt)
    report = json.loads(run("acme", "flaky", "--wait", "--json"))
    assert report["is_final"]
    assert rehearsals.running(account) is None


def test_rules_of_a_file(account, run, tmp_path):
    (tmp_path / "very busy.json").write_text('[{"effect": "throttle"}]')
    told = json.loads(run("acme", "--rules", str(tmp_path / "very busy.json"), "--for", "2s", "--json"))
    assert (told["set"], told["state"], told["rules"]) == (
        "very-busy", "running", [{"name": "throttle", "effect": "throttle"}]
    )  # fmt: skip
    assert json.loads(run("acme", "--stop", "--json"))["state"] == "ended"


def test_sets_are_listed(account, run):
    rehearsals.save_set(account, "mine", [{"effect": "error"}], text="All fail.")
    lines = run("acme").splitlines()
    assert lines[0].startswith("throttled        Every fifth request")
    assert lines[-1] == "mine             All fail."


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere", "flaky"], "does not exist"),
        (["acme", "nothing"], "no set of rules"),
        (["acme", "flaky", "--for", "1d"], "90s, 10m or 2h"),
        (["acme", "flaky", "--for", "30h"], "24 hours"),
        (["acme", "flaky", "--table", "1"], "possible name"),
        (["acme", "flaky", "--stop"], "Start a rehearsal, or use --stop"),
        (["acme", "--stop"], "No rehearsal is running"),
        (["acme", "--report"], "No rehearsal was started"),
        (["acme", "--rules", "/nowhere.json"], "cannot be read"),
    ],
)
def test_refusals_end_with_two(account, arguments, said):
    with pytest.raises(CommandError, match=said) as refused:
        call_command("rehearse", *arguments)
    assert refused.value.returncode == 2
    assert not Rehearsal.objects.exists()
