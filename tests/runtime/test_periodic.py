"""Periodic work of a server."""

import asyncio
import logging
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from django.conf import settings
from django.db import InternalError, OperationalError, connection

from storage.accounts import accounts
from storage.core import registry
from storage.models import Activity, PeriodicRun, Table
from storage.relations import table_relations
from storage.runtime import doctor, periodic, prometheus, work_failures
from storage.runtime.idleness import Idleness
from storage.runtime.threads import in_thread
from storage.sql.attempts import attempting_each
from storage.sql.background import try_job_lock
from storage.sql.django import execute, fetch
from storage.tables import tables
from tests.live_server import ROOT, clean_environment
from tests.runtime.test_catalog import eventually, opened

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def deleted():
    """Make a deleted table that still takes space."""
    account = accounts.add("ownerofjobs")
    table = tables.create(account, "people")
    tables.delete(account, "people")
    return table


@pytest.fixture
async def running(monkeypatch):
    monkeypatch.setattr(periodic, "_LONGEST", 0.02)
    monkeypatch.setattr(periodic, "_SHUTDOWN_TIMEOUT", 60.0)  # nothing goes on in the next test
    task = asyncio.create_task(periodic.run())
    yield task
    task.cancel()
    await asyncio.wait([task])


async def until_dropped():
    async with asyncio.timeout(60):
        while await in_thread(Table.objects.exclude(deleted_at=None).exists):  # noqa: ASYNC110 - the event is PostgreSQL's
            await asyncio.sleep(0.01)


async def test_drops_what_was_deleted_even_after_a_failure(deleted, running, monkeypatch, caplog):
    drop = tables._drop

    def fail(pk, over):
        monkeypatch.setattr(tables, "_drop", drop)
        raise RuntimeError("this once")

    monkeypatch.setattr(tables, "_drop", fail)
    with caplog.at_level(logging.ERROR):
        await until_dropped()

    assert "this once" in caplog.text
    with psycopg.connect(settings.LANES_CONNINFO) as connection:
        result = connection.execute("SELECT to_regclass(%s)", [f"deleted_entity_{deleted.pk}"]).fetchone()
    assert result == (None,)


async def test_ends_no_sooner_than_what_is_being_done(monkeypatch):
    begun, end = threading.Event(), threading.Event()

    def take_long():
        begun.set()
        end.wait(60)

    monkeypatch.setattr(periodic, "_LONGEST", 0.02)
    monkeypatch.setattr(tables, "drop_expired_tables", take_long)
    running = asyncio.create_task(periodic.run())
    await asyncio.to_thread(begun.wait, 60)

    running.cancel()
    done, _ = await asyncio.wait([running], timeout=0.3)
    assert not done

    end.set()
    await asyncio.wait([running], timeout=60)
    assert running.cancelled()


def test_leaves_alone_what_another_server_is_dropping(deleted):
    with psycopg.connect(settings.LANES_CONNINFO) as other:
        other.execute("SELECT FROM storage_table WHERE id = %s FOR UPDATE", [deleted.pk])
        assert tables.drop_expired_tables() == 0

    assert tables.drop_expired_tables() == 1


def test_runs_are_rarer_while_the_server_is_idle():
    now = [0.0]
    idleness = Idleness(lambda: now[0])
    intervals = (2.0, 10.0, 30.0, 600.0)

    def current():
        return [periodic.current_interval(interval, idleness) for interval in intervals]

    assert current() == [2.0, 10.0, 30.0, 600.0]
    now[0] = 60.1
    assert current() == [6.0, 30.0, 60.0, 600.0]
    idleness.note_request()
    assert current() == [2.0, 10.0, 30.0, 600.0]


async def test_works_together_at_the_ticks_of_its_process(monkeypatch):
    now = asyncio.get_running_loop().time()
    with monkeypatch.context() as patch:
        patch.setattr(asyncio.get_running_loop(), "time", lambda: now)
        for seconds in (5.0, 7.3, 600.0):
            due = now + periodic._until_tick(seconds)
            assert due >= now + seconds - 0.1
            assert abs(due / periodic._TICK - round(due / periodic._TICK)) < 0.01
    assert periodic._until_tick(0.02) == 0.02


# work that one process does for all


def fail(now):
    raise RuntimeError("this once")


def test_does_once_what_many_try_until_it_is_time_again():
    done = []
    with pytest.raises(RuntimeError):
        periodic.run_exclusively("work", 60, fail)
    assert [periodic.run_exclusively("work", 60, done.append) for _ in range(3)] == [True, False, False]
    assert len(done) == 1
    assert periodic.run_exclusively("other work", 60, done.append)
    PeriodicRun.objects.update(done_at=datetime.now(UTC) - timedelta(seconds=60))

    assert periodic.run_exclusively("work", 60, done.append)


async def test_work_of_another_process_is_left_to_it():
    begun, end, done = threading.Event(), threading.Event(), []

    def take_long(now):
        begun.set()
        end.wait(60)

    other = asyncio.create_task(in_thread(periodic.run_exclusively, "work", 0, take_long))
    await asyncio.to_thread(begun.wait, 60)
    assert not await in_thread(periodic.run_exclusively, "work", 0, done.append)
    assert await in_thread(periodic.run_exclusively, "other work", 0, done.append)
    end.set()

    assert await other
    assert await in_thread(periodic.run_exclusively, "work", 0, done.append)


async def test_the_doctor_names_jobs_that_are_late():
    def findings():
        results = [finding for part, finding in doctor.examine() if part == "jobs"]
        return [(finding.severity.value, finding.text.split(";")[0]) for finding in results]

    async def is_idle():
        return (await in_thread(findings))[0] == ("ok", "No process serves this database, so no job runs.")

    await eventually(is_idle)  # when the connections of earlier tests are gone
    async with opened():
        await in_thread(periodic.run_exclusively, "accounts", 60, lambda now: None)
        assert await in_thread(findings) == [("ok", "All jobs ran when they were due.")]
        await in_thread(lambda: PeriodicRun.objects.update(done_at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC)))
        [(severity, text)] = await in_thread(findings)
        assert (severity, text) == ("warning", "The job accounts last ran at 2026-01-02 03:04 UTC")


def test_tells_which_session_holds_the_lock_of_a_late_job():
    PeriodicRun.objects.create(name="accounts", done_at=datetime.now(UTC) - timedelta(days=1))
    assert [job.holder for job in periodic.late()] == [None]
    with try_job_lock("accounts"):
        [(pid,)] = fetch("SELECT pg_backend_pid()")
        assert [job.holder for job in periodic.late()] == [pid]


def test_a_process_that_hangs_loses_its_lock_and_others_keep_their_connections():
    def settings_of_session():
        names = (
            "idle_session_timeout",
            "client_connection_check_interval",
            "idle_in_transaction_session_timeout",
        )
        return [fetch("SELECT current_setting(%s)", name)[0][0] for name in names]

    before = settings_of_session()
    with try_job_lock("work"):
        assert settings_of_session() == ["5min", "5s", "1min"]
    assert settings_of_session() == before


AT_WORK = """
import django
django.setup()
from storage.sql.background import try_job_lock
from storage.sql.django import execute
with try_job_lock("work") as is_locked:
    print(is_locked, flush=True)
    execute("SELECT pg_sleep(600)")
"""


@pytest.mark.long
def test_takes_over_from_a_process_that_was_killed_while_its_statement_runs(postgres):
    url = f"postgresql:///test_tablero?host={postgres['host']}&user=tablero"
    environ = {**clean_environment(), "DJANGO_SETTINGS_MODULE": "console.settings", "DATABASE_URL": url}
    command = [sys.executable, "-c", AT_WORK]
    with subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "True\n"
        done = []
        assert not periodic.run_exclusively("work", 0, done.append)

        other.kill()
        deadline = time.monotonic() + 60
        while not periodic.run_exclusively("work", 0, done.append):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert len(done) == 1


def test_tidies_the_record_of_activity(deleted):
    assert Activity.objects.exists()
    periodic._tidy(datetime.now(UTC) + timedelta(days=91))
    assert not Activity.objects.exists()


# parts that fail


def failing_part(now):
    raise RuntimeError("this part")


def test_a_part_that_fails_does_not_stop_the_others_and_is_logged_once(caplog):
    done = []
    parts = {"first": done.append, "second": failing_part, "third": done.append}
    now = datetime.now(UTC)
    for _ in range(3):
        periodic.run_parts("work", parts, now)
    assert len(done) == 6
    logged = [it for it in caplog.records if it.exc_info]
    assert ["work.second" in it.getMessage() for it in logged] == [True]
    assert "this part" in caplog.text
    assert [it.name for it in work_failures.failing()] == ["work.second"]
    assert b'tablero_job_failures_total{job="work.second"} 3.0' in prometheus.write()

    periodic.run_parts("work", {**parts, "second": done.append}, now)
    assert work_failures.failing() == []
    assert "work.second of the periodic work succeeds again" in caplog.text


def test_a_part_that_fails_in_another_way_is_logged_again(caplog):
    def fail_otherwise(now):
        raise ValueError("another way")

    for part in (failing_part, failing_part, fail_otherwise, fail_otherwise):
        periodic.run_parts("work", {"other part": part}, datetime.now(UTC))
    assert [it.exc_info[0] for it in caplog.records if it.exc_info] == [RuntimeError, ValueError]


def test_the_log_has_each_reason_of_a_part_that_fails_for_several_items(caplog):
    def fail_thrice(now):
        with attempting_each("Not every item could be tidied") as attempt:
            for reason in ("no space left.", "no right", "no space left."):
                with attempt():
                    raise RuntimeError(reason)

    periodic.run_parts("work", {"items": fail_thrice}, datetime.now(UTC))
    assert (
        "(work.items): Not every item could be tidied: no space left; no right. It is tried again"
        in caplog.text
    )


def test_a_statement_of_a_part_that_fails_does_not_stop_the_others():
    """Unlike a connection that is lost, which would fail them all."""
    done = []

    def wait_for_lock(now):
        execute("SET statement_timeout = '1ms'")
        try:
            execute("SELECT pg_sleep(60)")
        finally:
            execute("SET statement_timeout TO DEFAULT")

    periodic.run_parts("work", {"slow": wait_for_lock, "next": done.append}, datetime.now(UTC))
    assert len(done) == 1

    def lose_connection(now):
        execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(OperationalError):
        periodic.run_parts("work", {"lost": lose_connection, "next": done.append}, datetime.now(UTC))
    connection.close()
    assert len(done) == 1


def test_all_that_is_tidied_has_a_name_that_the_database_can_keep():
    names = [f"tidy.{name}" for name in registry.tidying()]
    names += [f"daily.{periodic._name_of(path)}" for path in registry.daily()]
    assert len(set(names)) == len(names)
    limit = PeriodicRun._meta.get_field("name").max_length
    assert [name for name in names if len(f"{work_failures._PREFIX}{name}") > limit] == []


async def test_the_doctor_names_parts_that_fail():
    async with opened():
        await in_thread(periodic.run_parts, "work", {"broken": failing_part}, datetime.now(UTC))
        result = await in_thread(lambda: [it.text for part, it in doctor.examine() if part == "jobs"])
    assert [text.split(" has failed since ")[0] for text in result] == ["The job work.broken"]


def test_a_deleted_table_that_cannot_be_dropped_does_not_keep_the_others(deleted, monkeypatch):
    other = tables.create(deleted.account, "others")
    tables.delete(deleted.account, "others")
    drop = table_relations.drop

    def refuse(tables):
        if deleted in tables:
            raise InternalError("failure on connection marked as essential")
        drop(tables)

    monkeypatch.setattr(table_relations, "drop", refuse)
    with pytest.raises(ExceptionGroup):
        tables.drop_expired_tables()
    assert not Table.objects.filter(pk=other.pk).exists()
    monkeypatch.undo()
    assert tables.drop_expired_tables() == 1
