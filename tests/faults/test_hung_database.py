"""A database that hangs: its processes are stopped, and its connections stay open."""

import asyncio
import os
import signal
from threading import get_ident

import psutil
import psycopg
import pytest
from django.conf import settings

from storage.domain.errors import ServerBusy
from storage.health.findings import fine
from storage.runtime import doctor, threads
from storage.server import database, embedded, options
from storage.sql import interruption, lanes
from storage.sql.django import fetch
from storage.sql.lanes import Lanes
from storage.sql.statement import Lane, Statement, integer_at
from tests.seeds import seeded
from tests.waiting import wait_for

pytestmark = pytest.mark.long

PID = Statement("SELECT pg_backend_pid()", (), Lane.KEY, lambda result: integer_at(result, 0, 0))


@pytest.fixture
def stopped():
    """Stop processes until the test ends."""
    results = []

    def stop(pid):
        os.kill(pid, signal.SIGSTOP)
        results.append(pid)

    yield stop
    for pid in results:
        if psutil.pid_exists(pid):
            os.kill(pid, signal.SIGCONT)


@pytest.mark.django_db(transaction=True)
async def test_an_unanswered_statement_is_aborted(stopped, monkeypatch, caplog):
    monkeypatch.setattr(lanes, "_LOOK_INTERVAL", 0.1)
    result = Lanes(settings.LANES_CONNINFO, counts={Lane.KEY: 1})
    await result.open()
    try:
        former = await result.run(PID)
        stopped(former)
        with monkeypatch.context() as hurried:  # a slow database must not fail outside this block
            hurried.setattr(lanes, "_HUNG_AFTER", 2.0)
            with pytest.raises(ServerBusy):
                await asyncio.wait_for(result.run(PID), 60)
        assert await result.run(PID) != former
    finally:
        result.close()
    assert "The database gave no answer for" in caplog.text


@pytest.mark.django_db(transaction=True)
async def test_a_thread_without_an_answer_is_freed(stopped, monkeypatch, caplog):
    monkeypatch.setattr(threads, "_PATIENCE", 60)  # a slow database is not a hung one
    first = await threads.in_thread(backend)
    hanging, wait = [], asyncio.wait

    def hang():
        stopped(backend())
        hanging.append(get_ident())
        return backend()

    def hangs():
        return hanging and any(it.waiting_thread in hanging for it in interruption._opened)

    async def wait_until_it_hangs(tasks, **_):
        await asyncio.to_thread(wait_for, hangs, "the thread to hang")
        return await wait(tasks, timeout=0.2)

    with monkeypatch.context() as hurried:
        hurried.setattr(asyncio, "wait", wait_until_it_hangs)
        for _ in range(threads._threads._max_workers + 1):
            hanging.clear()
            with pytest.raises(ServerBusy):
                await asyncio.wait_for(threads.in_thread(hang), 60)
            wait_for(lambda: not any(it.waiting_thread for it in interruption._opened), "the thread")
    assert await threads.in_thread(backend) != first
    assert "The database gave no answer for" in caplog.text


def backend():
    return fetch("SELECT pg_backend_pid()")[0][0]


@pytest.mark.django_db(transaction=True)
def test_the_doctor_continues_after_a_hanging_part(stopped, monkeypatch):
    monkeypatch.setattr(doctor, "_LIMIT", 1.0)
    monkeypatch.setattr(doctor, "_GRACE", 0.5)

    def hang():
        stopped(backend())
        yield fine(str(backend()))

    def wait():
        fetch("SELECT pg_sleep(60)")
        yield fine("")

    parts = {"hung": hang, "slow": wait, "well": lambda: [fine("here")]}
    monkeypatch.setattr(doctor, "parts", lambda: parts)
    late = "This could not be examined: it took longer than 1 seconds"
    assert [(part, it.text) for part, it in doctor.examine()] == [
        ("hung", late),
        ("slow", late),
        ("well", "here"),
    ]


def test_a_hung_postgresql_is_killed_and_started_again(scratch, monkeypatch, stopped, capfd):
    """No acknowledged write is lost, and a stopped process does not keep the others from ending."""
    monkeypatch.setattr(embedded, "HUNG_AFTER", 10.0)  # longer than a busy machine takes to connect
    data = seeded(scratch / "hung")
    result = options.read({"TABLERO_DATA": str(data)})
    with embedded.running(result, purpose="test", say=print):
        conninfo = database.conninfo(result)
        with psycopg.connect(conninfo, autocommit=True) as client:
            client.execute("CREATE TABLE written (n integer)")
            client.execute("INSERT INTO written VALUES (1)")
            postmaster = client.execute("SELECT pg_postmaster_start_time()").fetchone()
            parent = psutil.Process(client.info.backend_pid).parent()
            for process in [parent, *parent.children()]:
                stopped(process.pid)

        def is_back():
            try:
                with psycopg.connect(conninfo, connect_timeout=10) as client:
                    return client.execute("SELECT pg_postmaster_start_time()").fetchone() != postmaster
            except psycopg.OperationalError:
                return False

        wait_for(is_back, "another PostgreSQL")
        with psycopg.connect(conninfo) as client:
            assert client.execute("SELECT n FROM written").fetchall() == [(1,)]
    said = capfd.readouterr().err
    assert "PostgreSQL has accepted no connection for" in said
    assert "PostgreSQL ended unexpectedly (SIGKILL) and is being started again." in said
