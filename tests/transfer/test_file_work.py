"""Files of users cost requests little: their beginning is read once, in a lane, and of their jobs there are so many."""

import json

import pytest
from django.db import connection, transaction

from console.models import User
from storage.accounts import accounts
from storage.domain.access.actor import COMMAND, Actor, ActorKind
from storage.domain.errors import ServerBusy
from storage.domain.refusals import Reason
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import TABLE_NAME_LIMIT
from storage.entities.writing import WriteMode
from storage.jobs import files, jobs
from storage.models import ImportDraft, Job
from storage.runtime import job_runner
from storage.tables import tables
from storage.tabular.layout import FileRefused, Wishes
from storage.tabular.mapping import ColumnMapping, MappingRefused
from storage.transfer import file_work, import_drafts, import_jobs, samples
from storage.transfer.file_work import TooMuchFileWork

pytestmark = pytest.mark.django_db(transaction=True)

ADA, BOB = Actor(ActorKind.USER, "ada"), Actor(ActorKind.TOKEN, "bob", token="ci")
TEXT = b"PartitionKey,RowKey,name\n" + b"".join(b"p,%d,x\n" % number for number in range(20))
MAPPING = ColumnMapping("{PartitionKey}", "{RowKey}")


@pytest.fixture
def account():
    return accounts.add("acme")


@pytest.fixture
def table(account):
    return tables.create(account, "people")


@pytest.fixture
def reads(monkeypatch):
    """Record, for each read of a file, whether a transaction is open."""
    read, where = files.FileReader.readinto, []

    def note_and_read(self, buffer):
        where.append(connection.in_atomic_block)
        return read(self, buffer)

    monkeypatch.setattr(files.FileReader, "readinto", note_and_read)
    return where


def draft_of(account, content=TEXT, by=ADA):
    draft = import_drafts.create(account, "people", "people.csv", len(content), by=by)
    import_drafts.receive(draft, 0, content, by=by)
    return draft


@pytest.mark.parametrize(
    ("column", "value"),
    [("mapping", json.dumps({**MAPPING.dump(), "newer": 1})), ("mode", "newer")],
    ids=["mapping", "mode"],
)
def test_a_draft_of_a_newer_version_is_shown_and_not_imported(account, column, value):
    draft = draft_of(account)
    import_drafts.save_mapping(draft, MAPPING, WriteMode.MERGE)
    setattr(draft, column, value)
    draft.wishes = json.dumps({"format": "newer", "newer": 1})
    draft.save()
    assert import_drafts.read(draft).proposal.names == ("PartitionKey", "RowKey", "name")
    with pytest.raises(MappingRefused):
        import_drafts.run(draft, by=ADA)


def test_a_draft_is_read_once_and_never_in_a_transaction(account, reads):
    draft = draft_of(account)
    result = import_drafts.read(draft)
    number = len(reads)
    assert number
    import_drafts.save_mapping(draft, result.mapping, WriteMode.MERGE)
    assert len(import_drafts.sample(draft, import_drafts.read(draft)).entities) == import_drafts.SAMPLE
    assert len(import_drafts.sample_changes(draft)) == import_drafts.SAMPLE
    job = import_drafts.check(draft, by=ADA)
    assert len(reads) == number
    import_drafts.read_otherwise(draft, Wishes(delimiter=";"))
    assert (draft.mapping, import_drafts.read(draft).proposal.names) == ("", ("PartitionKey,RowKey,name",))
    import_drafts.read_otherwise(draft, Wishes())
    assert len(reads) > number
    job = import_drafts.run(draft, by=ADA)
    job_runner.run_all()
    job.refresh_from_db()
    assert (job.counts["inserted"], set(reads)) == (20, {False})


def test_a_draft_that_was_changed_while_it_was_read_is_read_again(account, monkeypatch):
    draft = draft_of(account)
    import_drafts.check(draft, by=ADA)
    changed, read = [MAPPING.with_column(MAPPING.column("name"))], import_drafts.read

    def change_meanwhile(given_draft):
        taken = read(given_draft)
        if changed:
            import_drafts.save_mapping(
                import_drafts.get(account, draft.pk, by=ADA), changed.pop(), WriteMode.MERGE
            )
        return taken

    monkeypatch.setattr(import_drafts, "read", change_meanwhile)
    job = import_drafts.run(draft, by=ADA)
    assert import_jobs.arguments_of(job).read_mapping() == MAPPING.with_column(MAPPING.column("name"))
    assert import_drafts.run(draft, by=ADA) == job  # pressed twice


def test_a_refusal_is_kept_as_well(account, reads):
    draft = draft_of(account, b"PartitionKey,RowKey\n" + b"\n" * 200_000)
    for _ in range(2):
        with pytest.raises(FileRefused, match="There is no row for a long way"):
            import_drafts.read(draft)
        number = len(reads)
    assert len(reads) == number


def test_each_user_reads_one_file_at_a_time_and_few_wait(account, monkeypatch):
    monkeypatch.setattr(file_work, "_PATIENCE", 0)
    monkeypatch.setattr(file_work, "_LOOK", 0)
    with file_work.reading("ada"), file_work.reading("bob"):
        assert connection.connection is None
        for user in ("ada", "cleo"):  # ada is reading already, and no place is left for cleo
            with pytest.raises(ServerBusy), file_work.reading(user):
                pass
    with file_work.reading("cleo"), file_work.reading("ada"):
        monkeypatch.setattr(file_work, "_MOST_WAITING", 1)
        with pytest.raises(TooMuchFileWork, match="Several of your files"), file_work.reading("ada"):
            pass
    with file_work.reading("ada"):
        pass
    assert not file_work._waiting and not file_work._reading


def test_an_import_is_prepared_for_a_table_with_a_long_name(account):
    account.kind = AccountKind.COSMOS
    account.save()
    name = "x" * TABLE_NAME_LIMIT
    import_drafts.create(account, name, "people.csv", len(TEXT), by=ADA)
    assert ImportDraft.objects.get().table_name == name


def test_no_connection_is_held_while_a_file_is_parsed(account, monkeypatch):
    draft, held = draft_of(account, TEXT * 10_000), []
    monkeypatch.setattr(file_work, "check_process", lambda: held.append(connection.connection is not None))
    samples.take(draft.file)
    assert held and not any(held)


def test_only_so_many_jobs_of_files_may_wait(account, table, settings):
    settings.QUOTAS = {**settings.QUOTAS, "import": 2, "account_import": 3}
    for name in ("ada", "bob"):
        User.objects.create_user(name, "a password of 8")

    def start(by, of=table, kind=import_jobs.start_check):
        file = files.create("people.csv", account=of.account, by=by)
        files.upload(file, [TEXT])
        return kind(of, file, import_jobs.open_rows(file), MAPPING, WriteMode.MERGE, by=by)

    first = start(ADA)
    start(ADA, kind=import_jobs.start)
    with pytest.raises(TooMuchFileWork) as refused:
        start(ADA)
    assert refused.value.refusal.reason is Reason.TOO_MANY_IMPORTS
    jobs.cancel(first, by=ADA)
    start(ADA)
    start(BOB)
    with pytest.raises(TooMuchFileWork) as refused:
        start(BOB)
    assert refused.value.refusal.reason is Reason.TOO_MANY_ACCOUNT_IMPORTS
    start(BOB, tables.create(accounts.add("other"), "people"))
    start(COMMAND)
    with transaction.atomic(), pytest.raises(TooMuchFileWork):
        file_work.require_room(account, by=BOB)
    job_runner.run_all()
    assert not Job.objects.filter(ended_at=None).exists()
    start(ADA)
