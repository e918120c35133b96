"""Imports: what each mode does to entities that exist, the same rules as for the protocol, and undo as one."""

import io
import uuid
from datetime import UTC, datetime

import pytest

from storage.accounts import accounts
from storage.accounts.accounts import NewAccount
from storage.domain.access.actor import SERVER, Actor, ActorKind, dump_actor
from storage.domain.entities.entity import EntityKey, read_stored
from storage.domain.errors import InsufficientAccountPermissions
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.kinds import AccountKind
from storage.editing.input_context import InputContext
from storage.entities import entities, writing
from storage.entities.writing import WriteMode
from storage.history import changes
from storage.jobs import jobs, running
from storage.jobs.jobs import JobError
from storage.models import Account, Activity, Job
from storage.runtime import job_runner
from storage.tables import tables
from storage.tabular import entities as rows
from storage.tabular.file import RowFile
from storage.tabular.mapping import ColumnMapping
from storage.tabular.rejects import Fault, Repair
from storage.transfer import import_jobs, imports
from storage.transfer.imports import Import, ImportOutcome
from storage.undo import undo

pytestmark = pytest.mark.django_db(transaction=True)

NOW = datetime(2026, 11, 26, tzinfo=UTC)
ADA = Actor(ActorKind.USER, "ada")
MAPPING = ColumnMapping("{PartitionKey}", "{RowKey}")


@pytest.fixture
def table():
    return tables.create(accounts.add("acme"), "people")


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch):
    """Several chunks of a small file."""
    monkeypatch.setattr(rows, "CHUNK", 3)


def chunks(text, kind=AccountKind.STORAGE, **start):
    return RowFile(lambda: io.BytesIO(text.encode())).chunks(MAPPING, InputContext(NOW, kind), **start)


def csv(*found):
    return "PartitionKey,RowKey,A,B\n" + "".join(f"{line}\n" for line in found)


def run(table, text, mode, **options):
    wanted = Import(table, mode, ADA, "people.csv")
    return import_jobs.run(wanted, chunks(text, AccountKind(table.account.kind)), **options)


def check(table, text, mode):
    return imports.check(Import(table, mode, ADA), chunks(text))


def content(table):
    page = entities.page(table, EntityQuery())
    result = map(read_stored, page.entities)
    return {it.key.row_key: {name: value.value for name, value in it.properties.items()} for it in result}


def numbers(outcome):
    return outcome.inserted, outcome.changed, outcome.skipped, outcome.rejected


FIRST = csv("p,1,a,", "q,2,b,x", "p,3,c,", "p,4,d,", "p,5,e,")
SECOND = csv("p,1,z,", "q,2,,z", "p,6,f,", "p,6,g,h", "r/,7,x,")


@pytest.mark.parametrize(
    ("mode", "expected", "after"),
    [
        (WriteMode.INSERT, (1, 0, 0, 4), {"1": {"A": "a"}, "2": {"A": "b", "B": "x"}, "6": {"A": "f"}}),
        (WriteMode.SKIP, (1, 0, 3, 1), {"1": {"A": "a"}, "2": {"A": "b", "B": "x"}, "6": {"A": "f"}}),
        (
            WriteMode.MERGE,
            (1, 3, 0, 1),
            {"1": {"A": "z"}, "2": {"A": "b", "B": "z"}, "6": {"A": "g", "B": "h"}},
        ),
        (WriteMode.REPLACE, (1, 3, 0, 1), {"1": {"A": "z"}, "2": {"B": "z"}, "6": {"A": "g", "B": "h"}}),
    ],
)
def test_modes_their_counts_and_undo(table, mode, expected, after):
    assert numbers(run(table, FIRST, WriteMode.INSERT)) == (5, 0, 0, 0)
    before = content(table)

    checked = check(table, SECOND, mode)
    assert content(table) == before and checked.rows == 5
    assert (checked.repeated, checked.repeated_lines) == (1, [(4, 5)])

    outcome = run(table, SECOND, mode)
    assert numbers(outcome) == expected
    assert {key: value for key, value in content(table).items() if key in after} == after
    groups = {group.fault: (group.lines, group.repairs) for group in outcome.groups.listed()}
    assert groups.pop(Fault.KEY_CHARACTERS) == ([6], (Repair.KEY_CHARACTERS,))
    assert groups == (
        {Fault.EXISTS: ([2, 3, 5], (Repair.SKIP, Repair.REPLACE))} if mode is WriteMode.INSERT else {}
    )
    assert numbers(checked) == expected
    assert [it.dump() for it in checked.groups.listed()] == [it.dump() for it in outcome.groups.listed()]

    done = outcome.activity
    assert (done.verb, done.actor, done.table_name) == ("entity.import", "ada", "people")
    assert done.detail["rows"] == outcome.written and done.detail["mode"] == mode
    assert len({it.actor.request_id for it in changes.made_by(done)}) == 1
    undo.undo(done, SERVER)
    assert content(table) == before
    assert not Job.objects.filter(ended_at=None).exists()


def test_rows_written_before_a_failure_stay_and_are_recorded(table):
    def stop(outcome):
        if outcome.rows == 3:
            Account.objects.update(read_only=True)

    with pytest.raises(InsufficientAccountPermissions):
        run(table, FIRST, WriteMode.INSERT, progress=stop)
    assert len(content(table)) == 3
    done = Activity.objects.get(verb="entity.import")
    assert (done.detail["rows"], done.detail["interrupted"]) == (3, True)
    Account.objects.update(read_only=False)
    undo.undo(done, SERVER)
    assert content(table) == {}


def test_is_cancelled_but_neither_paused_nor_resumed(table):
    """Another process would not find the file."""

    def stop(outcome):
        if outcome.rows == 3:
            job = Job.objects.get()
            with pytest.raises(JobError, match="a file of the command"):
                jobs.pause(job, by=ADA)
            jobs.cancel(job, by=ADA)

    with pytest.raises(JobError, match="paused or cancelled"):
        run(table, FIRST, WriteMode.INSERT, progress=stop)
    assert len(content(table)) == 3
    assert Activity.objects.get(verb="entity.import").detail["interrupted"]
    with pytest.raises(JobError, match="a file of the command"):
        jobs.resume(Job.objects.get(), by=ADA)


def test_a_command_that_has_died_has_its_import_recorded(table, monkeypatch):
    """Another process does not find the file, and ends the job."""

    def die(outcome):
        raise RuntimeError

    monkeypatch.setattr(running._Runner, "_fail", lambda runner, error: None)  # as a process that is killed
    with pytest.raises(RuntimeError):
        run(table, FIRST, WriteMode.INSERT, progress=die)
    monkeypatch.undo()
    assert Job.objects.get().ended_at is None and not Activity.objects.filter(verb="entity.import").exists()
    job_runner.run_all()
    job = Job.objects.get()
    assert job.status == "failed" and "the process that has read it was ended" in job.error
    assert job.activity.detail | {"began": ""} == {
        "file": "people.csv",
        "mode": "insert",
        "inserted": 3,
        "changed": 0,
        "skipped": 0,
        "rows": 3,
        "began": "",
        "interrupted": True,
    }
    undo.undo(job.activity, SERVER)
    assert content(table) == {}


def test_a_command_of_an_older_version_that_has_died_has_its_import_recorded(table):
    detail = {"file": "people.csv", "mode": "insert", "inserted": 3, "rows": 3}
    job = Job.objects.create(
        kind="entity.import-local", account=table.account, table=table, table_name=table.name, status="running",
        actor=dump_actor(ADA), request_id=uuid.uuid4(), state={"detail": detail},
        arguments={"file": "people.csv", "place": "elsewhere"},
    )  # fmt: skip
    job_runner.run_all()
    job.refresh_from_db()
    assert job.status == "failed" and job.activity.detail == {**detail, "interrupted": True}


def test_steps_go_on_in_another_process(table):
    """A chunk with its state is one transaction: what was saved says where to go on."""
    first, *_ = chunks(FIRST)
    started = Import(table, WriteMode.INSERT, ADA)
    assert started.step(first) == []
    state = started.outcome.dump()

    later = Import(table, WriteMode.INSERT, ADA, outcome=ImportOutcome.load(state))
    for chunk in chunks(FIRST, start=first.position):
        later.step(chunk)
    assert numbers(later.outcome) == (5, 0, 0, 0) and later.outcome.rows == 5
    assert len(content(table)) == 5


def test_a_step_that_fails_changes_nothing(table, monkeypatch):
    operation = Import(table, WriteMode.INSERT, ADA)
    first, *_ = chunks(csv("p,1,a,", "p/,2,b,"))

    def fail(table):
        raise RuntimeError

    monkeypatch.setattr(writing.table_use, "record_write", fail)  # after the entities were written
    with pytest.raises(RuntimeError):
        operation.step(first)
    monkeypatch.undo()
    assert content(table) == {} and operation.outcome == ImportOutcome(groups=operation.outcome.groups)
    assert [it.fault for it in operation.step(first)] == [Fault.KEY_CHARACTERS]
    assert numbers(operation.outcome) == (1, 0, 0, 1)


@pytest.mark.parametrize("mode", list(WriteMode))
def test_long_keys_and_what_a_merge_makes_too_large(table, mode):
    long = "ş" * 1024
    large = "x" * 30_000
    names = ",".join(f"P{number}" for number in range(17))
    text = f"PartitionKey,RowKey,{names}\n{long},{long},{large}\np,1,{','.join([large] * 17)}\n"
    assert numbers(run(table, text, mode))[0] == 2
    text = text.replace("P", "Q").replace("Qartition", "Partition").replace("p,1", "p,1")
    outcome = run(table, text, mode)
    expected = {
        WriteMode.INSERT: (0, 0, 0, 2), WriteMode.SKIP: (0, 0, 2, 0), WriteMode.MERGE: (0, 1, 0, 1),
        WriteMode.REPLACE: (0, 2, 0, 0),
    }  # fmt: skip
    assert numbers(outcome) == expected[mode]
    if mode is WriteMode.MERGE:
        assert [group.fault for group in outcome.groups.listed()] == [Fault.LARGE]


def test_accounts_without_history_and_of_the_kind_cosmos():
    account = accounts.add("cosmos", NewAccount(kind=AccountKind.COSMOS))
    table = tables.create(account, "people")
    assert numbers(run(table, csv("p,1,a,", ",2,b,"), WriteMode.REPLACE)) == (1, 0, 0, 1)
    stored = entities.get(table, EntityKey("p", "1"))
    assert read_stored(stored).properties == {"A": EdmValue(Edm.STRING, "a")}


def test_a_missing_table_can_be_checked(table):
    missing = type(table)(account=table.account, name="later")
    assert numbers(check(missing, FIRST, WriteMode.INSERT)) == (5, 0, 0, 0)
