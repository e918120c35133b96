"""Copies from and to another service: a second real server, behind a proxy that throttles; and Azurite's files."""

import json
import threading
import time
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import AccountSasPermissions, ResourceTypes, generate_account_sas, generate_table_sas
from django.core.management import call_command
from django.db import connection

from storage.access import policies
from storage.accounts import accounts, service_properties
from storage.copies import copy_jobs, copying, sides
from storage.copies.copy_jobs import Credentials
from storage.copies.copying import CopyOptions, CopyRefused
from storage.copies.progress import Phase, TableProgress
from storage.domain.access.actor import SERVER, Actor, ActorKind
from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.domain.entities.changes import Delete
from storage.domain.entities.entity import Entity, EntityKey, read_stored, write_stored
from storage.domain.filters.query import EntityQuery
from storage.domain.refusals import Reason
from storage.domain.service_properties.properties import DEFAULT_PROPERTIES, CorsRule
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.domain.values.kinds import AccountKind
from storage.entities import edits, entities
from storage.history import changes
from storage.history.changes import ChangeFilter
from storage.jobs import files, jobs, pacing, running
from storage.jobs.states import JobStatus, Wish
from storage.models import Activity, CopiedTable, Job
from storage.remote import client as remote
from storage.remote.addresses import allow_all
from storage.remote.azurite import FILE_NAME, NotAzurite
from storage.remote.client import RemoteRefused, RemoteUnavailable, TableClient
from storage.remote.endpoints import EndpointMalformed, read_endpoint
from storage.runtime.job_runner import KINDS
from storage.tables import tables
from storage.undo import undo
from tests.live_server import ACCOUNT
from tests.proxy import proxy
from tests.server import object_stores

pytestmark = pytest.mark.django_db(transaction=True)

ADA = Actor(ActorKind.USER, "ada")
VALUES = {
    "Text": EdmValue(Edm.STRING, "ü'\"\\\n𐍈"),
    "Empty": EdmValue(Edm.STRING, ""),
    "Small": EdmValue(Edm.INT32, -5),
    "Large": EdmValue(Edm.INT64, 2**63 - 1),
    "Whole": EdmValue(Edm.DOUBLE, 1.0),
    "Huge": EdmValue(Edm.DOUBLE, 1.7976931348623157e308),
    "Round": EdmValue(Edm.DOUBLE, 1e20),
    "NaN": EdmValue(Edm.DOUBLE, float("nan")),
    "Infinite": EdmValue(Edm.DOUBLE, float("-inf")),
    "When": EdmValue(Edm.DATETIME, 1234567),  # seven digits of a second
    "Id": EdmValue(Edm.GUID, "c9da6455-213d-42c9-9a79-3e9149a57833"),
    "Bytes": EdmValue(Edm.BINARY, b"\x00\xff"),
    "NoBytes": EdmValue(Edm.BINARY, b""),
    "Yes": EdmValue(Edm.BOOLEAN, True),
}
EVERYTHING = CopyOptions()
KEYS = [("", ""), ("a'b", "%41 +&="), ("ü𐍈", '~!@$^*()_+|{}:"<>;,.'), ("p", "1")]


@pytest.fixture(autouse=True)
def quick(monkeypatch, settings):
    monkeypatch.setattr(pacing.Pace, "after_step", lambda self, size: (size, 0))
    settings.COPY_NETWORKS = (ip_network("127.0.0.0/8"),)


@pytest.fixture
def account():
    return accounts.add("acme")


@pytest.fixture
def there(server):
    """Connect a client to the other server."""
    result = TableClient(read_endpoint(server.connection_string), allow_all, time.sleep)
    yield result
    result.close()


@pytest.fixture
def table(there):
    """Make a table on the other server and return its name."""
    name = f"copy{uuid.uuid4().hex}"
    there.create_table(name)
    return name


def row(partition_key, row_key, **values):
    properties = {
        name: value if isinstance(value, EdmValue) else EdmValue(Edm.INT32, value)
        for name, value in values.items()
    }
    return write_stored(Entity(EntityKey(partition_key, row_key), properties), 0)


def fill(there, table, count, partition_key="p", **values):
    for start in range(0, count, 100):
        numbers = range(start, min(start + 100, count))
        there.write(table, [row(partition_key, f"{number:05}", N=number, **values) for number in numbers])


def copy(account, server, options, *, rest=lambda seconds: False, text="", **given):
    credentials = text if isinstance(text, Credentials) else Credentials(text or server.connection_string)
    request = copy_jobs.request(account, credentials, options, **given)
    return finish(jobs.start_requested(request, by=ADA), rest)


def finish(job, rest=lambda seconds: False):
    while job.ended_at is None and job.status != JobStatus.PAUSED:
        running.run(job.pk, KINDS, rest)
        job.refresh_from_db()
    return job


def outcome(job):
    assert job.status == JobStatus.DONE, job.error
    [found] = copy_jobs.tables_of(job)
    return found


def only(table, **options):
    return CopyOptions(tables=(table,), with_service_properties=False, **options)


def stored(account, name):
    pages = entities.all_pages(tables.get(account, name), EntityQuery())
    return {it.key: read_stored(it).properties for page in pages for it in page}


def test_types_keys_and_policies_survive_both_ways(account, server, there, table):
    for key in KEYS:
        there.write(table, [row(*key, **VALUES)])
    identifiers = [
        SignedIdentifier("reader", AccessPolicy(expiry="2040-01-01T00:00:00.0000000Z", permission="r"))
    ]
    there.replace_policies(table, identifiers)
    job = copy(account, server, only(table, rename={table: "people"}))
    assert outcome(job)["verified"] and job.counts == {"inserted": 4}
    result = stored(account, "people")
    assert set(result) == {EntityKey(*key) for key in KEYS}
    expected = {name: repr(value) for name, value in VALUES.items()}
    assert all({name: repr(value) for name, value in it.items()} == expected for it in result.values())
    assert policies.stored(tables.get(account, "people")) == identifiers

    # and back, to a table with another name
    back = f"back{table}"
    job = copy(account, server, only("people", rename={"people": back}), is_outgoing=True)
    assert outcome(job)["verified"] and job.counts == {"exported": 4}
    assert there.policies(back) == identifiers
    again = {
        it.key: it for it in (sides.read_item(m, AccountKind.STORAGE) for m in there.page(back).entities)
    }
    assert all(
        {name: repr(value) for name, value in it.entity.properties.items()} == expected
        for it in again.values()
    )
    done = Activity.objects.get(verb="entity.copy-in")
    assert undo.is_undoable(done) and done.detail["rows"] == 4
    undo.undo(done, SERVER)
    assert stored(account, "people") == {}


def test_a_preview_of_a_copy_to_another_service_has_the_numbers_of_the_copy(
    account, server, there, table, capsys
):
    there.write(table, [row("p", f"{number}", N=EdmValue(Edm.INT32, number)) for number in range(35)])
    copy(account, server, only(table, rename={table: "people"}))
    back = f"back{table}"
    arguments = ("copy", "acme", server.connection_string, "--table", "people", "--rename", f"people={back}")
    for count in (
        "35 read, 35 to be {}\n35 entities of 1 table would be read",
        "35 read, 35 {}, 35 verified: equal\n35",
    ):
        preview = ("--dry-run",) if "to be" in count else ()
        capsys.readouterr()
        call_command(*arguments, "--no-properties", "--no-policies", "--full", *preview)
        said = capsys.readouterr().out
        assert said.startswith(f"people -> {back}  {count.format('inserted')}")
    # a preview of an existing table cannot tell which of its entities exist
    for count in ("35 read, 35 to be {}\n", "35 read, 35 {}, 35 verified: equal\n"):
        preview = ("--dry-run",) if "to be" in count else ()
        call_command(*arguments, "--no-properties", "--no-policies", "--full", *preview)
        assert capsys.readouterr().out.startswith(f"people -> {back}  {count.format('written')}")


def wait_for_next_second(there, table):
    """Wait until the service's clock, which has a resolution of one second, has moved on."""
    began = there.page(table).at
    while there.page(table).at < began + 2:
        time.sleep(0.01)


def test_a_second_copy_reads_only_changes(account, server, there, table, monkeypatch):
    monkeypatch.setattr(copying, "OVERLAP", 0.0)
    fill(there, table, 30)
    wait_for_next_second(there, table)
    first = outcome(copy(account, server, only(table)))
    assert (first["read"], first["inserted"], first["is_full"]) == (30, 30, True)
    there.write(table, [row("p", "00003", N=99), row("p", "new", N=1)])
    there.delete(table, [EntityKey("p", "00004")])

    second = outcome(copy(account, server, only(table)))
    assert (second["is_full"], second["read"], second["inserted"], second["changed"]) == (False, 2, 1, 1)
    assert (second["extra"], second["missing"], second["differing"], second["verified"]) == (1, 0, 0, True)

    preview = outcome(copy(account, server, only(table, deletes=True, dry_run=True)))
    assert (preview["deleted"], len(stored(account, table))) == (1, 31)
    third = outcome(copy(account, server, only(table, deletes=True)))
    assert (third["deleted"], third["extra"], third["verified"], third["entities"]) == (1, 0, True, 30)
    assert stored(account, table)[EntityKey("p", "00003")]["N"].value == 99

    # a comparison of everything finds local changes and repairs them
    key = EntityKey("p", "00001")
    edits.apply(tables.get(account, table), [Delete(key, ANY)], by=SERVER)
    assert outcome(copy(account, server, only(table)))["missing"] == 1
    mended = outcome(copy(account, server, only(table, is_full=True)))
    assert (mended["inserted"], mended["unchanged"], mended["verified"]) == (1, 29, True)


@pytest.fixture(scope="module")
def feed_token(server):
    server.manage("user", "add", "copier", "--admin")
    return server.add_token("copier", "feed")


@pytest.mark.long
def test_another_servers_change_feed_has_changes_and_deletions(
    account, server, there, table, feed_token, monkeypatch
):
    fill(there, table, 30)
    text = Credentials(server.connection_string, feed_token=feed_token)
    assert outcome(copy(account, server, only(table), text=text))["is_full"]
    there.write(table, [row("p", "00003", N=99), row("p", "new", N=1)])
    there.write(table, [row("p", "new", N=2)])
    there.delete(table, [EntityKey("p", "00004"), EntityKey("p", "00005")])
    monkeypatch.setattr(sides.RemoteSide, "keys", None)  # the keys of the table need not be read
    second = outcome(copy(account, server, only(table, deletes=True), text=text))
    assert (second["read"], second["inserted"], second["changed"], second["deleted"]) == (2, 1, 1, 2)
    assert second["verified"] and len(stored(account, table)) == 29
    assert outcome(copy(account, server, only(table), text=text))["read"] == 0

    there.delete(table, [EntityKey("p", "00006")])
    kept = outcome(copy(account, server, only(table), text=text))
    assert (kept["deleted"], kept["extra"], kept["verified"]) == (0, 1, True)
    monkeypatch.undo()
    CopiedTable.objects.update(progress={**CopiedTable.objects.get().progress, "feed": "of another feed"})
    again = outcome(copy(account, server, only(table, deletes=True), text=text))
    assert (again["deleted"], again["extra"], again["verified"]) == (1, 0, True)


def test_each_entity_once_however_often_a_copy_is_interrupted(account, server, there, table, monkeypatch):
    fill(there, table, 2500)
    stops = iter([True] * 3)
    job = copy(account, server, only(table), rest=lambda seconds: next(stops, False))
    result = outcome(job)
    assert (result["read"], result["inserted"], result["verified"]) == (2500, 2500, True)
    assert (job.counts, job.done, len(stored(account, table))) == ({"inserted": 2500}, 2500, 2500)
    assert changes_of(job) == 2500


def changes_of(job):
    return sum(changes.count_by_table(job.account, ChangeFilter(requests=(str(job.request_id),))).values())


def test_a_new_copy_resumes_a_cancelled_one(account, server, there, table):
    fill(there, table, 1500)
    request = copy_jobs.request(account, Credentials(server.connection_string), only(table))
    job = jobs.start_requested(request, by=ADA)
    assert server.key not in json.dumps(job.arguments) and job.arguments["secret"]

    def cancel(seconds):
        result = Job.objects.get(pk=job.pk)
        if result.done:
            jobs.cancel(result, by=ADA)
        return False

    finish(job, cancel)
    assert (job.status, job.done, job.arguments["secret"]) == (JobStatus.CANCELLED, 1000, "")
    jobs.resume(job, by=ADA)
    job.refresh_from_db()
    assert jobs.error_of(finish(job)).reason is Reason.REMOTE_CREDENTIALS_GONE
    # rows written before the key at which the copy stopped are not missed
    there.write(table, [row("p", "00000", N=-1), row("p", "00000a", N=-1)])
    result = outcome(copy(account, server, only(table)))
    assert (result["inserted"], result["changed"]) == (501, 1)
    assert (result["entities"], result["verified"], len(stored(account, table))) == (1501, True, 1501)


def test_a_copy_interrupted_at_its_end_reads_later_changes():
    progress = TableProgress(phase=Phase.SETTLE, mark=5.0, entities=3)
    progress.begin_run("", is_full=False)
    assert (progress.phase, progress.since, progress.mark, progress.entities) == (Phase.COPY, 5.0, 0, 3)


def test_entities_missing_in_the_target_are_copied_again(account, server, there, table, monkeypatch):
    monkeypatch.setattr(copying, "OVERLAP", -60.0)  # so that later copies find no change
    fill(there, table, 3)
    assert outcome(copy(account, server, only(table)))["verified"]
    edits.apply(tables.get(account, table), [Delete(EntityKey("p", "00001"), ANY)], by=ADA)
    result = outcome(copy(account, server, only(table)))
    assert (result["read"], result["missing"], result["verified"]) == (0, 1, False)
    result = outcome(copy(account, server, only(table)))
    assert (result["inserted"], result["unchanged"], result["verified"]) == (1, 2, True)

    back = only(table, rename={table: f"to{table}"})
    assert outcome(copy(account, server, back, is_outgoing=True))["verified"]
    there.delete(f"to{table}", [EntityKey("p", "00001")])
    result = outcome(copy(account, server, back, is_outgoing=True))
    assert (result["read"], result["missing"], result["verified"]) == (0, 1, False)
    there.write(f"to{table}", [row("p", "other")])  # as many entities again, but others
    result = outcome(copy(account, server, back, is_outgoing=True))
    assert (result["read"], result["extra"], result["verified"]) == (3, 1, True)
    there.delete(f"to{table}", [EntityKey("p", "00002")])
    result = outcome(copy(account, server, back, is_outgoing=True))
    assert (result["read"], result["differing"], result["verified"]) == (0, 1, False)


def test_credentials_are_deleted_even_if_the_end_cannot_be_recorded(
    account, server, there, table, monkeypatch
):
    def fail(*arguments, **options):
        raise RuntimeError

    fill(there, table, 1)
    monkeypatch.setattr(copy_jobs.activity, "record", fail)
    job = copy(account, server, only(table))
    assert job.status == JobStatus.FAILED and job.arguments["secret"] == ""


def test_hostile_answers_end_and_are_stored(account, server, table):
    token = [("x-ms-continuation-nextpartitionkey", "a"), ("x-ms-continuation-nextrowkey", "b")]
    endless = (200, [*token, ("x-ms-continuation-nexttablename", "a")], b'{"value":[]}')
    with proxy(server, lambda number: endless) as text:
        client = TableClient(read_endpoint(text), allow_all, time.sleep)
        with pytest.raises(RemoteRefused):
            list(client.tables())
        with pytest.raises(RemoteRefused):
            client.page(table, client.page(table).next)
        client.close()
    keys = {"PartitionKey": "a\0", "RowKey": "x" * 100_000}
    answers = {1: (200, [], json.dumps({"value": [keys, {"PartitionKey": 1}, {}]}).encode())}
    with proxy(server, answers.get) as text:
        job = copy(account, server, only(table, with_policies=False, verifies=False), text=text)
    assert (job.status, job.failed) == (JobStatus.DONE, 3)
    assert len(json.dumps(job.failures)) < 10_000


def test_entities_changed_during_a_copy_are_in_the_next(account, server, there, table, monkeypatch):
    fill(there, table, 1500)

    def change(seconds):
        there.write(table, [row("p", "00000", N=-1), row("p", "later", N=-1)])
        return False

    assert outcome(copy(account, server, only(table), rest=change))["verified"]
    result = outcome(copy(account, server, only(table)))
    assert result["verified"] and stored(account, table)[EntityKey("p", "00000")]["N"].value == -1


def test_a_table_sas_and_a_sas_without_list_permission(account, server, there, table):
    fill(there, table, 3)
    credential = AzureNamedKeyCredential(server.account, server.key)
    expiry = datetime.now(UTC) + timedelta(hours=1)
    of_table = generate_table_sas(credential, table, permission="r", expiry=expiry)
    of_account = generate_account_sas(
        credential, ResourceTypes(object=True), AccountSasPermissions(read=True), expiry
    )
    result = outcome(copy(account, server, EVERYTHING, text=f"{server.endpoint}?{of_table}"))
    assert (result["inserted"], result["verified"]) == (3, True)
    assert result["notes"] == ["the source does not tell its stored access policies"]
    # a token that does not list tables, so that their names have to be given
    text = f"{server.endpoint}?{of_account}"
    assert outcome(copy(account, server, only(table), text=text))["unchanged"] == 3
    job = copy(account, server, only("copy*"), text=text)
    assert jobs.error_of(job).reason is Reason.REMOTE_FORBIDDEN and "sig=" not in job.error


def test_a_key_that_was_regenerated_meanwhile_is_no_service_without_policies(server, monkeypatch):
    def refuse(*arguments):
        raise RemoteRefused(server.endpoint, "Get Table ACL", 403, "AuthenticationFailed")

    monkeypatch.setattr(TableClient, "policies", refuse)
    monkeypatch.setattr(TableClient, "replace_policies", refuse)
    for text, is_key in ((server.connection_string, True), (f"{server.endpoint}?sv=2019-02-02&sig=x", False)):
        client = TableClient(read_endpoint(text), allow_all, time.sleep)
        side = sides.RemoteSide(client, AccountKind.STORAGE)
        if is_key:
            with pytest.raises(RemoteRefused):
                side.policies("people")
            with pytest.raises(RemoteRefused):
                side.replace_policies("people", [])
        else:
            assert side.policies("people") is None
            assert not side.replace_policies("people", [])
        client.close()


def test_copies_between_the_same_two_wait_for_each_other(account, server, there, table):
    fill(there, table, 2500)
    preview, first, second = (
        copy_jobs.request(account, Credentials(server.connection_string), only(table, dry_run=it))
        for it in (True, False, False)
    )
    preview, first, second = (jobs.start_requested(it, by=ADA) for it in (preview, first, second))
    assert not running.run(second.pk, KINDS, lambda seconds: False)

    def pause(seconds):
        if Job.objects.get(pk=first.pk).done:
            jobs.pause(first, by=ADA)
        return False

    assert finish(first, pause).done == 1000
    while not Job.objects.get(pk=second.pk).done:
        running.run(second.pk, KINDS, lambda seconds: True)  # one page
    jobs.resume(first, by=ADA)
    first.refresh_from_db()
    assert not running.run(first.pk, KINDS, lambda seconds: False)  # also between the turns of the other
    assert outcome(finish(preview))["inserted"] == 2500 - 2000
    second.refresh_from_db()
    first_result, again = outcome(finish(second)), outcome(finish(first))
    assert (first_result["verified"], again["verified"], again["inserted"]) == (True, True, 0)
    assert len(stored(account, table)) == changes_of(first) + changes_of(second) == 2500


@pytest.mark.parametrize(
    ("number", "is_outgoing"),
    [(0, False), (1, False), (1, True)],
    ids=["names of tables", "a page", "a transaction"],
)
def test_a_copy_ends_while_the_service_does_not_answer(
    account, server, there, table, monkeypatch, number, is_outgoing
):
    monkeypatch.setattr(remote, "TIMEOUT", 3600.0)
    fill(there, table, 3)
    if is_outgoing:
        assert outcome(copy(account, server, only(table)))["inserted"] == 3
    is_answering = threading.Event()

    def hold(request_number):
        if request_number == number:
            Job.objects.filter(ended_at=None).update(wish=Wish.CANCEL)
            connection.close()
            is_answering.wait()

    with proxy(server, hold) as text:
        try:
            job = copy(account, server, only(table), text=text, is_outgoing=is_outgoing)
        finally:
            is_answering.set()
    assert (job.status, job.counts) == (JobStatus.CANCELLED, {})


def test_filter_and_misfits(account, server, there, table):
    fill(there, table, 10)
    there.write(table, [row("q", "1", Text=EdmValue(Edm.STRING, "x" * 20_000), N=1)])
    result = outcome(copy(account, server, only(table, filter="N ge 8")))
    assert (result["inserted"], result["verified"]) == (2, True)
    with pytest.raises(CopyRefused):
        CopyOptions(tables=("x*",)).pairs(["people"])
    with pytest.raises(CopyRefused):
        CopyOptions(rename={"a": "B"}).pairs(["a", "b"])
    cosmos = read_endpoint(server.connection_string)
    with pytest.raises(RemoteUnavailable):
        TableClient(replace(cosmos, url="http://127.0.0.1:1/x"), allow_all, lambda seconds: None).page("x")


def test_service_properties_follow(account, server, there):
    rule = CorsRule(("https://example.com",), ("GET",), ("x-a",), (), 5)
    properties = replace(DEFAULT_PROPERTIES, cors=(rule,))
    before = there.service_properties()
    there.replace_service_properties(properties)
    try:
        job = copy(account, server, CopyOptions(tables=("*",), dry_run=False, filter="PartitionKey eq '?'"))
        assert job.status == JobStatus.DONE
        assert service_properties.get(account) == properties
    finally:
        there.replace_service_properties(before)


def test_throttling_is_waited_for_in_both_directions(account, server, there, table, monkeypatch):
    monkeypatch.setattr(remote, "_FIRST_DELAY", 0.01)
    fill(there, table, 1200)
    waits = []
    sleep = copying.Copying.wait
    monkeypatch.setattr(
        copying.Copying, "wait", lambda self, seconds: (waits.append(seconds), sleep(self, 0.001))
    )
    refusals = {1: (503, [], b""), 2: (429, [("Retry-After", "2")], b""), 4: (500, [], b"")}
    with proxy(server, lambda number: refusals.get(number)) as text:
        assert outcome(copy(account, server, only(table), text=text))["verified"]
        assert len(waits) == 3 and max(waits) == 2.0
        waits.clear()
        refusals = {number: (429, [("x-ms-retry-after-ms", "30")], b"") for number in range(3, 200, 3)}
        refusals[5] = (
            202,
            [],
            b"--x\r\n\r\nHTTP/1.1 503 Service Unavailable\r\n\r\n",
        )  # a refused transaction
        options = only(table, rename={table: f"to{table}"})
        job = copy(account, server, options, text=text, is_outgoing=True)
        assert outcome(job)["verified"] and job.failed == 0
        assert len(waits) > 3


def test_addresses_are_checked_unless_an_admin_says_otherwise(account, server, table, settings):
    settings.COPY_NETWORKS = ()
    job = copy(account, server, only(table))
    assert (job.status, jobs.error_of(job).reason) == (JobStatus.FAILED, Reason.REMOTE_PRIVATE)
    assert "TABLERO_COPY_NETWORKS" in str(jobs.error_of(job)) and job.arguments["secret"] == ""
    assert outcome(copy(account, server, only(table), is_unlimited=True))["verified"]
    # the server's network is not probed: an unknown host name is refused like a known one
    settings.COPY_NETWORKS = (ip_network("10.0.0.0/8"),)
    for host in ("localhost", "none.invalid"):
        text = f"https://{host}/acme?sv=2019-02-02&ss=t&srt=sco&sp=r&se=2099-01-01&sig=x"
        job = copy(account, server, only(table), text=text)
        assert jobs.error_of(job).reason == Reason.REMOTE_PRIVATE, host


KEY = "a2V5"


@pytest.mark.parametrize(
    ("text", "url", "account", "table"),
    [
        (f"AccountName=acme;AccountKey={KEY}", "https://acme.table.core.windows.net", "acme", ""),
        (
            f"AccountName=acme;AccountKey={KEY};TableEndpoint=https://acme.table.cosmos.azure.com:443/;",
            "https://acme.table.cosmos.azure.com:443",
            "acme",
            "",
        ),
        ("UseDevelopmentStorage=true", "http://127.0.0.1:10002/devstoreaccount1", "devstoreaccount1", ""),
        (
            "TableEndpoint=http://127.0.0.1:9/acme;SharedAccessSignature=sv=1&sig=x",
            "http://127.0.0.1:9/acme",
            "acme",
            "",
        ),
        (
            "https://acme.table.core.windows.net/?sv=1&sig=x",
            "https://acme.table.core.windows.net",
            "acme",
            "",
        ),
        (
            "https://acme.table.core.windows.net/p?tn=p&sig=x",
            "https://acme.table.core.windows.net",
            "acme",
            "p",
        ),
        ("http://tables.example.com/acme?tn=p&sig=x", "http://tables.example.com/acme", "acme", "p"),
    ],
)
def test_pasted_connection_settings_are_read(text, url, account, table):
    endpoint = read_endpoint(text)
    assert (endpoint.url, endpoint.account, endpoint.table, endpoint.has_credentials) == (
        url,
        account,
        table,
        True,
    )
    assert KEY not in repr(endpoint) and "sig=x" not in repr(endpoint)


@pytest.mark.parametrize(
    "text",
    ["", "acme", "AccountName=acme", "AccountName=acme;AccountKey=%", "https://acme.table.core.windows.net",
     "https://user:x@acme.table.core.windows.net?sig=x", "ftp://a/b?sig=x", "http://127.0.0.1:9?sig=x"],
)  # fmt: skip
def test_other_texts_are_refused(text):
    with pytest.raises(EndpointMalformed):
        read_endpoint(text)


@pytest.mark.parametrize("token", ["a\nb", "a b", "ü"])
def test_tokens_invalid_in_headers_are_refused_unquoted(token):
    for credentials in (Credentials("https://a.table.core.windows.net", token), Credentials(KEY, "", token)):
        with pytest.raises(EndpointMalformed) as caught:
            replace(credentials, text="https://a.table.core.windows.net?sig=x").read()
        assert token not in str(caught.value)
    assert Credentials("https://a.table.core.windows.net", " token\n").read().bearer == "token"


def test_an_impossible_host_name_is_unreachable():
    client = TableClient(read_endpoint("https://a..b/acme?sig=x"), allow_all, lambda seconds: None)
    with pytest.raises(RemoteUnavailable):
        client.page("x")


def test_a_bearer_token_authorizes():
    assert read_endpoint("https://acme.table.core.windows.net", "token").bearer == "token"


def test_all_doubles_are_sent_with_their_type():
    values = {
        f"D{it}": EdmValue(Edm.DOUBLE, number) for it, number in enumerate((1.0, -0.0, 1e20, 1e-9, 1.5e300))
    }
    sent = json.loads(remote._write_entity(row("p", "1", **values)))
    assert [sent[f"{name}@odata.type"] for name in values] == ["Edm.Double"] * 5


# Azurite


def collection(name, documents):
    return {"name": name, "data": documents, "idIndex": list(range(3000)), "DynamicViews": []}


def document(row_key, **properties):
    keys = {"PartitionKey": "p", "RowKey": row_key}
    return {**keys, "properties": {**keys, "Timestamp": "2026-11-26T04:19:52.4423128Z", **properties}}


DATABASE = {
    "filename": "x",
    "collections": [
        collection(
            "$TABLES_COLLECTION$",
            [
                {"account": "one", "table": "People", "tableAcl": [
                    {"id": "reader", "accessPolicy": {"permission": "r", "expiry": "2040-01-01T00:00:00.000Z"}},
                    {"id": "plain"},
                ]},
                {"account": "one", "table": "empty"},
                {"account": "two", "table": "People"},
            ],
        ),
        collection(
            "$SERVICES_COLLECTION$",
            [{"accountName": "one", "cors": [{
                "allowedOrigins": "https://a,https://b", "allowedMethods": "GET", "allowedHeaders": "",
                "exposedHeaders": "x-a", "maxAgeInSeconds": 9,
            }]}],
        ),
        collection("one$people", [
            document("1", Guid="YzlkYTY0NTUtMjEzZC00MmM5LTlhNzktM2U5MTQ5YTU3ODMz", **{"Guid@odata.type": "Edm.Guid"},
                     Whole=1, **{"Whole@odata.type": "Edm.Double"}, Text="ü" * 9, Gone=None),
            *(document(f"{number:06}", N=number) for number in range(1100)),
            document("bad", **{"no name": 1}),
        ]),
        collection("one$empty", []),
        collection("two$People", [document("1", N=1)]),
    ],
    "databaseVersion": 1.5,
}  # fmt: skip


def start_from_file(account, content, options=EVERYTHING, name="one", rest=lambda seconds: False):
    file = files.create("__azurite_db_table__.json", account=account, by=ADA)
    files.upload(file, [content])
    return finish(copy_jobs.start_from_file(account, file, name, options, by=ADA), rest)


def test_an_azurite_file_is_read_whole_and_differences_are_copied(account, monkeypatch):
    content = json.dumps(DATABASE, ensure_ascii=False).encode()
    stops = iter([True])
    job = start_from_file(account, content, rest=lambda seconds: next(stops, False))
    assert job.status == JobStatus.DONE and job.counts["inserted"] == 1101
    assert [it.subject for it in jobs.failures_of(job)] == ["People p bad"]
    results = {it["source"]: it for it in copy_jobs.tables_of(job)}
    assert (
        results["People"]["verified"] and results["empty"]["verified"] and results["People"]["rejected"] == 1
    )
    first = stored(account, "people")[EntityKey("p", "1")]
    assert first["Guid"] == VALUES["Id"] and repr(first["Whole"]) == repr(VALUES["Whole"])
    assert set(first) == {"Guid", "Whole", "Text"}
    [reader, plain] = policies.stored(tables.get(account, "people"))
    assert (reader.policy.expiry, plain) == ("2040-01-01T00:00:00.0000000Z", SignedIdentifier("plain"))
    assert service_properties.get(account).cors[0].origins == ("https://a", "https://b")
    changed = content.replace(b'"N": 1099', b'"N": 7777')
    job = start_from_file(account, changed, CopyOptions(tables=("people",), deletes=True))
    assert (job.counts["changed"], job.counts["unchanged"]) == (1, 1100)


def test_another_file_of_the_same_name_is_read_from_its_beginning(account):
    def cancel(seconds):
        job = Job.objects.get(account=account)
        if job.done:
            jobs.cancel(job, by=ADA)
        return False

    content = json.dumps(DATABASE).encode()
    assert start_from_file(account, content, rest=cancel).status == JobStatus.CANCELLED
    people = collection("one$people", [document(f"x{number}", N=number) for number in range(20)])
    others = [people if it["name"] == "one$people" else it for it in DATABASE["collections"]]
    job = start_from_file(account, json.dumps({**DATABASE, "collections": others}).encode())
    assert job.status == JobStatus.DONE and EntityKey("p", "x0") in stored(account, "people")


@pytest.mark.long
def test_azurite_itself_both_ways_and_its_file(account, server, there, table, require, scratch):
    require("node", "Azurite")
    folder = scratch / uuid.uuid4().hex[:8]
    for key in KEYS:
        there.write(table, [row(*key, **VALUES)])
    assert outcome(copy(account, server, only(table, rename={table: "People"})))["verified"]
    expected = stored(account, "people")
    with object_stores.azurite(require("npm", "Azurite"), folder, "table") as endpoint:
        text = f"AccountName={ACCOUNT};AccountKey={server.key};TableEndpoint={endpoint};"
        assert outcome(copy(account, server, only("people"), text=text, is_outgoing=True))["verified"]
        back = only("People", rename={"People": "back"})
        assert outcome(copy(account, server, back, text=text))["verified"]
        deadline = time.monotonic() + 60
        # it is written now and then
        while (content := (folder / FILE_NAME).read_bytes()).count(b'"Infinite":') < len(KEYS):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert repr(stored(account, "back")) == repr(expected)
    job = start_from_file(account, content, CopyOptions(rename={"People": "file"}), "")
    assert outcome(job)["verified"]
    assert repr(stored(account, "file")) == repr(expected)


def test_other_files_are_refused(account):
    for content, reason in (
        (b"{}", Reason.FILE_NOT_AZURITE),
        (json.dumps(DATABASE).encode(), Reason.FILE_ACCOUNTS),
        (b'{"collections": [{"name": "$TABLES_COLLECTION$", "data": [{', Reason.FILE_NOT_AZURITE),
        (b"PK\x03\x04", Reason.FILE_NOT_AZURITE),
        (b'{"x": ' + b"[" * 100_000, Reason.FILE_NOT_AZURITE),
        (b'{"x": ' + b"9" * 5000 + b"}", Reason.FILE_NOT_AZURITE),
    ):
        with pytest.raises(NotAzurite) as refused:
            start_from_file(account, content, name="")
        assert refused.value.refusal.reason is reason
    with pytest.raises(CopyRefused):
        start_from_file(account, json.dumps(DATABASE).encode(), CopyOptions(filter="N eq 1"))
    assert not CopiedTable.objects.exists()
