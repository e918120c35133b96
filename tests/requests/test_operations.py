"""The request log: its limit and retention, and the counts of requests that it leaves out."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from time import perf_counter, time
from uuid import uuid4

import psycopg
import pytest
from django.conf import settings as django_settings
from django.db import OperationalError, connection, transaction

from storage.accounts import accounts, removal
from storage.domain.access.grants import Operation
from storage.domain.errors import AuthenticationFailed, EntityAlreadyExists
from storage.domain.requests.observed import Authentication, Credential, ObservedRequest
from storage.domain.requests.recorded import KeptRequest, RequestLogSettings, SentRequest, read_fault
from storage.metrics.reports import choose_range
from storage.models import RecordedRequest
from storage.requests import recording, requests
from storage.requests.recording import RequestLog
from storage.requests.requests import RequestClass, RequestFilter
from storage.requests.statistics import statistics
from storage.requests.timeline import timeline
from storage.runtime import observer
from storage.runtime.observer import Observer
from storage.runtime.threads import in_thread
from storage.sql.django import execute

pytestmark = pytest.mark.django_db(transaction=True)

SENT = SentRequest(
    "GET", b"/observed/people()", b"", {b"host": b"h", b"x-ms-client-request-id": b"mine"}, "http", ""
)
KEYS = {name: Credential(Authentication.KEY, name) for name in ("key1", "key2")}


@pytest.fixture
async def account():
    return await in_thread(accounts.add, "observed")


@pytest.fixture
async def watching():
    """Start an observer that writes only on demand."""
    return Observer()


def observed(account, error=None, *, seconds=0.001, credential="key1", warnings=()):
    now = perf_counter()
    return ObservedRequest(
        started=now - seconds,
        account_id=account.pk,
        account=account.name,
        operation=Operation.INSERT_ENTITY,
        table="people",
        authentication=Authentication.KEY,
        credential=None if isinstance(error, AuthenticationFailed) else KEYS[credential],
        request_id=str(uuid4()),
        status=201 if error is None else error.status,
        error="" if error is None else error.code,
        refusal=error,
        warnings=warnings,
        answered=now,
        sent=now,
    )


def send(watching, *args, **fields):
    request = observed(*args, **fields)
    if watching.record(request):
        watching.keep(request, SENT)
    assert request.refusal is None  # nothing holds on to what the request has read


def write(account, number, *, age=timedelta()):
    log = RequestLog()
    for _ in range(number):
        add(log, account, age=age)
    log.write()


def add(log, account, *, age=timedelta()):
    request = observed(account, EntityAlreadyExists())
    log.add(KeptRequest(request, SENT, read_fault(request)), time() - age.total_seconds())


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_retried_write_of_the_log_writes_each_row_once(account, is_lost):
    """The database dies while it commits; what is lost is lost with the ids that it had given."""
    log = RequestLog()
    add(log, account)

    def die(run, sql, *args):
        done = run(sql, *args)
        if "INSERT" in sql and is_lost:
            end_session(connection.connection.info.backend_pid)
        elif "INSERT" in sql:
            transaction.on_commit(fail)
        return done

    def fail():
        raise OperationalError("no answer to COMMIT")

    with connection.execute_wrapper(die), pytest.raises(OperationalError):
        log.write()
    connection.close()
    assert RecordedRequest.objects.count() == (0 if is_lost else 1)
    if is_lost:
        execute("SELECT setval(pg_get_serial_sequence('storage_recordedrequest', 'id'), 1, false)")
        write(account, 1)
    add(log, account)
    log.write()
    assert RecordedRequest.objects.count() == (3 if is_lost else 2)


def end_session(pid):
    with psycopg.connect(django_settings.LANES_CONNINFO) as other:
        assert other.execute("SELECT pg_terminate_backend(%s, 60000)", (pid,)).fetchone() == (True,)


async def test_of_served_requests_with_warnings_few_are_kept_and_the_others_counted(account, watching):
    for number in range(100):
        send(watching, account, warnings=("missing_accept", "int32_literal")[: 1 + number % 2])
    await watching.flush()

    rows = await in_thread(lambda: list(RecordedRequest.objects.order_by("pk")))

    kept = [(row.fault["warnings"], row.alike) for row in rows]
    one, both = ["missing_accept"], ["missing_accept", "int32_literal"]
    assert sorted(kept) == [*[(one, 0)] * 4, (one, 45), *[(both, 0)] * 4, (both, 45)]


async def test_under_load_refusals_are_counted_and_samples_dropped(account, watching, monkeypatch):
    monkeypatch.setattr(observer, "_ALIKE", 10)
    monkeypatch.setattr(observer, "_KEPT_LIMIT", 15)
    for _ in range(100):
        send(watching, account)
        send(watching, account, EntityAlreadyExists())
        send(watching, account, EntityAlreadyExists(), credential="key2")
        send(watching, account, AuthenticationFailed())
    send(watching, account, seconds=0.7)
    await watching.flush()

    now = datetime.now(UTC)
    result = await in_thread(statistics, account, now - timedelta(hours=1), now + timedelta(minutes=1))

    assert [(it.status, it.code, it.requests) for it in result.codes] == [
        (409, "EntityAlreadyExists", 200),
        (201, "", 101),
        (403, "AuthenticationFailed", 100),
    ]
    assert [(it.credential, it.code, it.requests) for it in result.credentials] == [
        ("", "AuthenticationFailed", 100),
        ("key1", "EntityAlreadyExists", 100),
        ("key2", "EntityAlreadyExists", 100),
    ]
    assert (result.requests, result.kept) == (401, 5 + 15 + 1)
    hour = choose_range(now - timedelta(hours=1), now + timedelta(minutes=1), now + timedelta(minutes=1))
    for table, done, refused, is_counted in (
        (RequestFilter(), 101, 300, True),
        (RequestFilter(code="EntityAlreadyExists"), 0, 200, True),
        (RequestFilter(status=201, operation=Operation.INSERT_ENTITY), 101, 0, True),
        (RequestFilter(kind=RequestClass.REFUSED), 0, 300, False),
        (RequestFilter(table="none"), 0, 0, False),
        (RequestFilter(credential="key2"), 0, 100, False),
    ):
        bars = await in_thread(timeline, account, table, hour)
        assert bars.counts == {"done": done, "refused": refused, "failed": 0}, table
        assert bars.is_counted == is_counted, table
    slow = await in_thread(requests.page, RequestFilter([account.pk], kind=RequestClass.SLOW))
    assert [(it.outcome, it.seconds > 0.6) for it in slow] == [("done", True)]


async def test_costs_no_more_memory_than_it_may(account, watching, monkeypatch):
    monkeypatch.setattr(observer, "_KEPT_SIZE", 100_000)
    large = replace_sent(path=b"/observed/people()" + b"x" * 50_000)
    for number in range(20):
        request = observed(account, EntityAlreadyExists() if number % 2 else None, seconds=0.7)
        if watching.record(request):
            watching.keep(request, large)
    await watching.flush()
    assert await in_thread(RecordedRequest.objects.count) == 2  # the first of each kind in any case


def replace_sent(**fields):
    return SENT._replace(**fields)


def test_deletes_what_is_old_and_what_is_too_much(account_now, monkeypatch, settings):
    monkeypatch.setattr(recording, "_CHUNK", 10)
    settings.REQUEST_LOG = RequestLogSettings(keep=timedelta(days=7), rows=30)
    other = accounts.add("other")
    write(account_now, 25, age=timedelta(days=7, minutes=1))
    write(other, 5)
    write(account_now, 55)

    recording.tidy(datetime.now(UTC))

    kept = list(RecordedRequest.objects.order_by("-pk").values_list("account_id", "pk"))
    assert [account for account, _ in kept] == [account_now.pk] * 30 + [other.pk] * 5
    monkeypatch.setattr(recording, "_ACCOUNTS", 1)
    settings.REQUEST_LOG = RequestLogSettings(rows=20)
    recording.tidy(datetime.now(UTC))
    assert list(RecordedRequest.objects.order_by("-pk").values_list("pk", flat=True)) == [
        pk for _, pk in kept[:20]
    ]


@pytest.fixture
def account_now(db):
    return accounts.add("observed")


def test_a_follower_misses_nothing_that_commits_late(account_now):
    begun, may_commit = Event(), Event()

    def write_slowly():
        with transaction.atomic():
            write(account_now, 1)
            begun.set()
            may_commit.wait(60)
        connection.close()

    slow, other = (
        Thread(target=write_slowly),
        Thread(target=lambda: (write(account_now, 1), connection.close())),
    )
    slow.start()
    begun.wait(60)
    other.start()
    with psycopg.connect(django_settings.LANES_CONNINFO, autocommit=True) as looking:
        waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while not looking.execute(waiting).fetchall():
            assert requests.following(RequestFilter(), 0) == []
    may_commit.set()
    slow.join()
    other.join()
    assert len(requests.following(RequestFilter(), 0)) == 2


def test_finds_a_request_by_either_id_and_by_what_it_was(account_now):
    write(account_now, 2)
    first, second = RecordedRequest.objects.order_by("pk")

    def found(**fields):
        return [it.pk for it in requests.page(replace(RequestFilter([account_now.pk]), **fields))]

    assert found(identifier=str(first.request_id)) == [first.pk]
    assert found(identifier="mine") == [second.pk, first.pk]
    assert found(code="EntityAlreadyExists", credential="key1", table="PEOPLE", status=409) == [
        second.pk,
        first.pk,
    ]
    assert found(kind=RequestClass.FAILED) == found(identifier="other") == []
    assert requests.get(account_now, first.request_id).pk == first.pk


def test_ends_with_its_account(account_now):
    write(account_now, 3)
    removal.remove("observed")
    assert not RecordedRequest.objects.exists()
