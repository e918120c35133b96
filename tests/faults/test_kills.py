"""A process is killed in the middle of a long operation, or a user cancels it: nothing is half done, twice, or lost."""

import io
import itertools
import json
import os
from contextlib import nullcontext

import psycopg
import pytest
from django.conf import settings
from django.db import connection

from storage.access import policies
from storage.account_files import account_import
from storage.accounts import removal
from storage.bulk_edit import bulk_edit_work
from storage.domain.entities.entity import read_stored
from storage.domain.filters.query import EntityQuery
from storage.domain.refusals import Refused
from storage.entities import entities
from storage.jobs import files, jobs
from storage.models import Account, Activity, Branch, Job, PropertyIndex, Table
from storage.runtime import job_runner
from storage.sql.django import fetch
from storage.tables import tables
from storage.tabular import entities as transfer
from storage.undo import undo
from tests import emptying
from tests.faults.kill_cases import ADA, CASES
from tests.faults.killed import FEW, NAME, Forge
from tests.sql import citus
from tests.waiting import wait_for

# at which each operation is killed, or by half as many cancelled
POINTS = int(os.environ.get("TEST_KILLS", "2"))
# the kinds that have many transactions; the others are cancelled between two steps
CANCELLED = {
    *("branch", "copy", "copy to Cosmos DB", "import", "export", "restore", "reset", "undo of many", "apply"),
    *("deletion of an account", "check of a file", "export of a table"),
}

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="module")
def forge(django_db_setup):
    with Forge(connection.settings_dict, settings.SERVER_SECRET.decode()) as forge:
        yield forge


@pytest.fixture(params=CASES)
def name(request, monkeypatch):
    monkeypatch.setattr(removal, "_DROPPED_TOGETHER", FEW)
    monkeypatch.setattr(bulk_edit_work, "CHUNK", FEW)
    monkeypatch.setattr(transfer, "CHUNK", FEW)
    with citus.installed() if CASES[request.param].in_cluster else nullcontext():
        yield request.param
        emptying.empty()


def state():
    """Everything but keys, times and numbers: what two runs have in common."""
    return {
        account.name: {
            "kind": account.kind,
            "enabled": account.enabled,
            "properties": account.service_properties,
            "branch": [
                (it.source_name, it.origin is not None, it.originals)
                for it in Branch.objects.filter(account=account)
            ],
            "tables": {
                table.name: content(table) for table in Table.objects.existing().filter(account=account)
            },
            "made": [
                (job.kind, job.counts, made(file))
                for job in Job.objects.filter(account=account, status="done")
                for file in files.to_download(job)
            ],
        }
        for account in Account.objects.all()
    }


def content(table):
    rows = {
        tuple(it.key): dict(read_stored(it).properties)
        for page in entities.all_pages(table, EntityQuery())
        for it in page
    }
    is_masked = table.account.name == "twig" and table.name == "Customers"
    return {
        "entities": sorted(rows) if is_masked else rows,
        "policies": table.account.kind == "storage"
        and policies.stored_by_name(table.account, table.folded_name),
        "indexes": list(PropertyIndex.objects.filter(table=table).values_list("name", "state", "error")),
        "distributed": table.distributed,
    }


def made(file):
    """Return the content of a file to download, without times, which differ in each run."""
    content = b"".join(files.read(file))
    if file.name.endswith(".ndjson"):
        return [(it["RowKey"], it["Name"]) for it in map(json.loads, content.splitlines())]
    if file.name.endswith(".csv"):
        return content
    result = account_import.check(io.BytesIO(content), "there")
    return result.tables, result.entities


def relations():
    """Return the ids of tables that have a relation, perhaps of a deleted table, or a function."""
    result = fetch(
        "SELECT substring(name FROM '[0-9]+')::bigint"
        " FROM (SELECT relname AS name FROM pg_class UNION SELECT proname FROM pg_proc) AS known"
        " WHERE name ~ '^(deleted_)?entity_[0-9]+(_change_set)?$'"
    )
    return {pk for (pk,) in result}


def wait_for_end():
    """Wait until PostgreSQL has noticed the death of the client that was killed."""
    sessions = (
        "SELECT count(*) FROM pg_stat_activity"
        f" WHERE datname = current_database() AND application_name = '{NAME}'"
    )
    wait_for(lambda: fetch(sessions) == [(0,)])


def run_jobs():
    job_runner.run_all()
    tables.drop_expired_tables()


class Attempt:
    """One run from the beginning, in a database that is empty but for relations of other tests."""

    def __init__(self, case):
        self.case = case
        connection.close()  # a session gets slow with all the relations that it has seen
        emptying.empty()
        self.others = relations()
        case.prepare()
        self.before, self.since = state(), Activity.objects.latest("pk").pk

    def check_nothing_is_left(self):
        assert not Job.objects.filter(ended_at=None).exists()
        assert not relations() - self.others - set(Table.objects.values_list("pk", flat=True))

    def end(self, after, *, is_repeated):
        """End what was killed by the same request or by jobs, and return what became of it."""
        if is_repeated:
            self.case.request()
            # jobs killed before they changed an account as a whole have recorded their progress
            run_jobs()
            assert state() == after
            return "finished by the same request"
        run_jobs()
        self.check_nothing_is_left()
        if (present := state()) == self.before:
            return "removed, or not begun"
        if present == after:
            return "complete after jobs"
        if self.case.undone:
            self.undo()
            assert state() == self.before
            return "undone"
        self.case.request()
        assert state() == after
        return "finished after jobs"

    def undo(self):
        """Undo what is in the activity log, the latest first."""
        result = Activity.objects.filter(pk__gt=self.since, actor=ADA.name, verb__in=self.case.undone)
        for done in list(result.order_by("-pk")):
            undo.undo(done, ADA)


def test_killed_at_any_moment(name, forge):
    case = CASES[name]
    whole = Attempt(case)
    number = forge.run(name)
    after = state()
    assert after != whole.before
    whole.check_nothing_is_left()

    outcomes = {}
    for place, point in enumerate(
        sorted({number * (2 * place + 1) // (2 * POINTS) + 1 for place in range(POINTS)})
    ):
        attempt = Attempt(case)
        assert forge.run(name, after=point) is None
        wait_for_end()
        outcome = attempt.end(after, is_repeated=place % 2 == 0)
        attempt.check_nothing_is_left()
        outcomes.setdefault(outcome, []).append(point)
    print(f"{name}: {number} statements, killed after", outcomes)


CANCEL = (
    "UPDATE storage_jobs SET wish = 'cancel' WHERE id IN"
    " (SELECT id FROM storage_jobs WHERE ended_at IS NULL FOR UPDATE SKIP LOCKED)"
)


@pytest.fixture
def cancel_after(monkeypatch):
    """Have what runs cancelled by another session after a number of statements, or the next one that lets it."""
    wait = psycopg.Connection.wait
    with psycopg.connect(settings.LANES_CONNINFO, autocommit=True) as other:

        def cancel_after(number, operation):
            """Run an operation; return how many statements it has, and whether it was cancelled."""
            counter, cancelled = itertools.count(), []

            def counting(self, *arguments, **options):
                result = wait(self, *arguments, **options)
                if self is not other and next(counter) >= number and not cancelled:
                    cancelled[:] = other.execute(CANCEL).rowcount * [True]
                return result

            with monkeypatch.context() as patched:
                patched.setattr(psycopg.Connection, "wait", counting)
                try:
                    operation()
                except Refused:
                    assert cancelled
            return next(counter)

        yield cancel_after


def latest_job():
    """Return the requested job instead of one that cleans up."""
    return Job.objects.filter(actor__name=ADA.name).latest("pk")


def describe_progress():
    job = latest_job()
    return job.status, job.done, job.counts


@pytest.mark.parametrize("name", sorted(CANCELLED), indirect=True)
def test_cancelled_at_any_moment(name, cancel_after):
    case = CASES[name]
    Attempt(case)
    number = cancel_after(float("inf"), case.request)
    after, progress = state(), describe_progress()

    outcomes = {}
    for place in range(POINTS // 2):
        attempt = Attempt(case)
        point = number * (2 * place + 1) // (POINTS // 2 * 2)
        cancel_after(point, case.request)
        run_jobs()
        attempt.check_nothing_is_left()
        job = latest_job()
        outcomes.setdefault((job.status, "changed" if state() != attempt.before else "as before"), []).append(
            point
        )
        if job.status == "cancelled" and name == "import":  # the file was that of the process
            case.request()
        elif job.status == "cancelled":
            jobs.resume(job, by=ADA)
            run_jobs()
        attempt.check_nothing_is_left()
        assert state() == after
        assert describe_progress() == progress
    print(f"{name}: {number} statements, cancelled after", outcomes)
