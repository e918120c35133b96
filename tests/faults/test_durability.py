"""Processes killed with SIGKILL while clients write: acknowledged writes are there afterwards, none is half there."""

import os
import signal
import time

import psutil
import pytest

from tests.faults.connection import Connection
from tests.faults.write_load import WriteLoad

BEFORE = 150  # acknowledged writes before the kill, and after the recovery
OUTAGE = 0.7  # seconds after which the end of a process has been noticed
RECOVERY = 25.0  # seconds without an acknowledged write


def kill_the_server(live):
    live.kill()


def kill_everything(live):
    server = psutil.Process(live.pid)
    family = [server, *server.children(recursive=True)]
    for process in family:
        process.suspend()  # so that nobody has the time to do anything about it
    for process in family:
        process.kill()
    live.process.wait(30)


def kill_the_postmaster(live):
    os.kill(live.postmaster(), signal.SIGKILL)


def kill_a_backend(live):
    backends = [
        child
        for child in psutil.Process(live.postmaster()).children()
        if "[local]" in " ".join(child.cmdline())
    ]
    backends[len(backends) // 2].kill()


def kill_the_supervisor(live):
    psutil.Process(live.postmaster()).parent().kill()


@pytest.mark.parametrize("kill", [kill_the_server, kill_everything])
def test_acknowledged_writes_survive_the_end_of_the_server(kill, start, scratch):
    data = scratch / kill.__name__
    with start(data) as live:
        load = WriteLoad(live, "load")
        with load.running():
            load.wait_for_answers(BEFORE)
            kill(live)
            time.sleep(0.2)
        assert set(load.outages) <= {
            "Closed",
            "ConnectionRefusedError",
            "ConnectionResetError",
            "BrokenPipeError",
        }

    with start(data) as live, Connection(live) as connection:
        load.check(connection)
        assert connection.insert("load", {"PartitionKey": "insert", "RowKey": "after"}).status == 204


@pytest.fixture(scope="module")
def survivor(start, scratch):
    with start(scratch / "survivor") as live:
        yield live


@pytest.mark.parametrize("kill", [kill_a_backend, kill_the_postmaster, kill_the_supervisor])
def test_server_recovers_from_the_end_of_its_database(kill, survivor, table):
    load = WriteLoad(survivor, table)
    with load.running():
        load.wait_for_answers(BEFORE)
        kill(survivor)
        time.sleep(OUTAGE)
        load.wait_for_answers(BEFORE)

    assert load.longest_pause < RECOVERY, load.outages
    with Connection(survivor) as connection:
        load.check(connection)
    assert survivor.process.poll() is None


def test_a_killed_worker_is_replaced(two_workers, table):
    workers = [
        child
        for child in psutil.Process(two_workers.pid).children()
        if "storage.server.worker" in child.cmdline()
    ]
    load = WriteLoad(two_workers, table)
    with load.running():
        load.wait_for_answers(BEFORE)
        workers[0].kill()
        time.sleep(OUTAGE)
        load.wait_for_answers(BEFORE)

    assert set(load.outages) <= {"Closed", "ConnectionResetError", "BrokenPipeError"}
    assert load.longest_pause < RECOVERY
    with Connection(two_workers) as connection:
        load.check(connection)
