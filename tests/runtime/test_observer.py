"""The observer of a process: the requests it records, counts and writes."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from math import inf
from time import perf_counter

import psycopg
import pytest
from django.conf import settings

from storage.accounts import accounts
from storage.domain.access.grants import Operation
from storage.domain.filters.parser import parse
from storage.domain.filters.query import EntityQuery
from storage.domain.requests.observed import Authentication, Credential, ObservedRequest
from storage.domain.requests.series import HISTOGRAM_BOUNDS, Traffic
from storage.metrics import series, usage
from storage.models import CredentialUse, RequestSeries, SeenCredential, Table
from storage.runtime import observer, prometheus
from storage.runtime.idleness import idleness
from storage.runtime.observer import Observer
from storage.runtime.threads import in_thread
from storage.tables import tables

pytestmark = pytest.mark.django_db(transaction=True)

KEY1 = Credential(Authentication.KEY, "key1")
TOKEN = Credential(Authentication.SAS, "ab" * 32, (("sv", "2019-02-02"), ("sp", "r")))


@pytest.fixture
async def account():
    return (await in_thread(accounts.add, "observed")).pk


@pytest.fixture
async def watching():
    """Start an observer that writes only on demand."""
    return Observer()


def seen(account, credential=KEY1, *, milliseconds=3.0, **fields):
    now = perf_counter()
    request = ObservedRequest(
        started=now - milliseconds / 1000,
        account_id=account,
        account="observed" if account else "",
        operation=Operation.QUERY_ENTITY,
        authentication=Authentication.KEY if credential is None else credential.authentication,
        credential=credential,
        address="192.0.2.1",
        agent=b"agent",
        status=200,
        ingress=10,
        egress=100,
        answered=now,
        sent=now,
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


async def counted(account):
    """Status and number of the requests of this hour and the one before."""
    now = datetime.now(UTC)
    [period] = await in_thread(series.read, account, series.WHOLE, [now - timedelta(hours=1)], now, 1)
    totals = {}
    for kind, traffic in period.kinds.items():
        totals.setdefault(kind.status, Traffic()).add(traffic)
    return totals


async def used(account, credential=KEY1):
    return await in_thread(
        usage.credential, account, credential.authentication, credential.name, datetime.now(UTC)
    )


async def test_a_process_is_idle_until_it_has_answered_something(watching, monkeypatch):
    for answer in (
        lambda: watching.record(seen(0, None, status=403, error="AuthenticationFailed")),
        lambda: prometheus.count_page("console", "GET", 200, 0.1),
    ):
        monkeypatch.setattr(idleness, "_requested_at", -inf)
        await watching.flush()
        assert idleness.is_idle()
        answer()
        await watching.flush()
        assert not idleness.is_idle()


async def test_says_once_a_minute_that_it_runs(monkeypatch):
    start = observer._now().replace(second=30)
    monkeypatch.setattr(observer, "_now", lambda: start)
    watching = Observer()
    for seconds, minutes in ((0, 1), (20, 1), (30, 2), (60, 2), (100, 3)):
        monkeypatch.setattr(observer, "_now", lambda at=start + timedelta(seconds=seconds): at)
        await watching.flush()
        await watching.flush()
        servers = RequestSeries.objects.filter(account_id=series.SERVER)
        assert await in_thread(servers.count) == minutes, seconds


async def test_counts_requests(account, watching):
    for number in range(3):
        watching.record(seen(account))
        await watching.flush()
        assert (await used(account)).uses == number + 1
    # requests that failed to authenticate, or were aborted, used no credential
    watching.record(seen(account, None, status=403, error="AuthenticationFailed", milliseconds=70))
    watching.record(seen(account, None, status=0, answered=0.0, sent=0.0))
    watching.record(seen(0, None, status=403, error="AuthenticationFailed"))
    await watching.flush()

    result = await counted(account)

    assert {status: tally.requests for status, tally in result.items()} == {200: 3, 403: 1, 0: 1}
    assert (result[200].ingress, result[200].egress) == (30, 300)
    [bucket] = result[403].latencies
    assert HISTOGRAM_BOUNDS[bucket - 1] < 0.07 <= HISTOGRAM_BOUNDS[bucket]
    assert await in_thread(SeenCredential.objects.count) == 1
    servers = await in_thread(lambda: list(RequestSeries.objects.filter(account_id=series.SERVER)))
    assert {it.requests for it in servers} == {0}


async def test_uses_are_recorded_by_credential(account, watching):
    before = datetime.now(UTC)
    watching.record(seen(account))
    watching.record(seen(account, TOKEN, address="2001:db8::1", agent=b"other"))
    await watching.flush()

    result = await used(account, TOKEN)

    assert (result.parameters, result.address, result.agent) == (TOKEN.parameters, "2001:db8::1", "other")
    assert before <= result.last <= datetime.now(UTC)
    assert (await used(account)).address == "192.0.2.1"


@pytest.mark.parametrize(
    "fields",
    [
        {"agent": b"\x00zero"},
        {"agent": b"\xff" * 5000},
        {"address": "not\x00 an address " * 100},
        {"credential": Credential(Authentication.BEARER, "subject\x00\ud800" * 100)},
        {"credential": Credential(Authentication.SAS, "cd" * 32, (("spk", "a\x00b\ud800"),))},
    ],
)
async def test_nothing_that_was_sent_keeps_the_rest_from_being_written(account, watching, fields, caplog):
    watching.record(seen(account, **fields))
    watching.record(seen(account))
    await watching.flush()

    assert (await counted(account))[200].requests == 2
    assert await used(account) is not None
    assert await in_thread(CredentialUse.objects.count) == 2
    assert caplog.records == []


async def test_keeps_what_a_database_that_is_away_does_not_take(account, watching):
    with psycopg.connect(settings.LANES_CONNINFO) as other:
        other.execute("ALTER TABLE storage_requestseries RENAME TO moved")
        other.execute("ALTER TABLE storage_credentialuse RENAME TO moved_too")
        watching.record(seen(account))
        flushing = asyncio.create_task(watching.flush())
        # when it waits for the lock of the renaming its connection is lost
        with psycopg.connect(settings.LANES_CONNINFO, autocommit=True) as killer:
            query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            while not killer.execute(query).fetchall():  # noqa: ASYNC110 - the event is PostgreSQL's
                await asyncio.sleep(0.02)
        await flushing
        other.rollback()

    await watching.flush()  # with nothing new
    assert (await counted(account))[200].requests == 1
    watching.record(seen(account))
    await watching.flush()

    assert (await counted(account))[200].requests == 2
    assert (await used(account)).uses == 2


async def test_gives_up_what_can_never_be_written(account, watching, monkeypatch, caplog):
    def fail(self):
        raise ValueError("never")

    watching.record(seen(account))
    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR):
        patch.setattr(usage.Uses, "write", fail)
        await watching.flush()

    assert "Counts could not be written and are lost" in caplog.text
    assert (await counted(account))[200].requests == 1
    await watching.flush()
    assert await used(account) is None


async def test_does_not_remember_more_clients_than_it_can_keep(account, watching, monkeypatch):
    monkeypatch.setattr(observer, "_CLIENTS_LIMIT", 5)
    for number in range(20):
        watching.record(seen(account, agent=b"%d" % number))
    await watching.flush()

    for number in range(20):
        watching.record(seen(account, Credential(Authentication.SAS, f"{number}", (("sp", "r"),))))
    await watching.flush()

    assert await in_thread(CredentialUse.objects.count) == 5 + 1 + 5 + 5 + 1
    assert (await used(account)).uses == 20
    assert (await counted(account))[200].requests == 40


async def test_counts_partitions_and_credentials_by_table(account, watching, monkeypatch):
    await in_thread(tables.create, await in_thread(accounts.find, "observed"), "People")
    monkeypatch.setattr(observer, "_PARTITIONS_LIMIT", 3)
    for number in range(6):
        watching.record(seen(account, table="people", partition=f"p{number}"))
    watching.record(seen(account, TOKEN, table="PEOPLE", partition="p0\0\ud800"))
    for text in ["PartitionKey eq 'p1' and RowKey gt 'a'"] * 40 + ["Score gt 1"] * 24:
        watching.record(seen(account, table="People", query=EntityQuery(parse(text))))
    watching.record(seen(account, None, table="", status=403, error="AuthenticationFailed"))
    await watching.flush()

    minute = datetime.now(UTC) - timedelta(minutes=5)

    def read(table_id):
        end = minute + timedelta(minutes=10)
        [period] = series.read(account, table_id, [minute], end, 1, with_frequent=True)
        return period

    whole = await in_thread(read, series.WHOLE)
    people = await in_thread(read, (await in_thread(Table.objects.get)).pk)
    assert (whole.requests, whole.failed, people.requests, people.failed) == (72, 1, 71, 0)
    assert people.credentials.counts == {"authenticated:key1": 70, f"sas:{'ab' * 32}": 1}
    # the keys of the first 32 of 64 queries were read
    assert people.partitions.counts == {"p0": 1, "p1": 65, "p2": 1}
    assert people.partitions.missed == 4
    assert whole.partitions.counts == {"people/p0": 1, "people/p1": 1, "people/p2": 1, "People/p1": 64}


async def test_kinds_that_callers_invent_are_bounded(account, watching, monkeypatch):
    monkeypatch.setattr(observer, "_KINDS_LIMIT", 5)
    for number in range(20):
        watching.record(seen(account, table=f"invented{number}"))
    assert len(watching._batch.tallies) == 6
    await watching.flush()
    assert (await counted(account))[200].requests == 20


async def test_writes_by_itself_and_at_the_end(account, monkeypatch):
    monkeypatch.setattr(observer, "_INTERVAL", 0.05)
    running = Observer()
    await running.open()
    running.record(seen(account))
    async with asyncio.timeout(60):
        while not await counted(account):  # noqa: ASYNC110 - the event is PostgreSQL's
            await asyncio.sleep(0.01)

    monkeypatch.setattr(observer, "_INTERVAL", 60)
    await asyncio.sleep(0.1)
    running.record(seen(account))
    await running.close()

    assert (await counted(account))[200].requests == 2
