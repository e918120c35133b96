"""Too little memory: for a statement of PostgreSQL, and for the machine, whose system then kills a process."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from django.conf import settings

from storage.domain.errors import ServerBusy
from storage.sql.lanes import Lanes
from storage.sql.statement import Lane, Statement, integer_at
from tests.faults.test_hung_database import PID
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are changed"),
]

LARGE = Statement(
    "SELECT length(repeat('x', 200000000))", (), Lane.KEY, lambda result: integer_at(result, 0, 0)
)


def limit_memory(process, limit):
    """Change the soft limit of a process, which only its own user may do."""
    command = ["prlimit", f"--pid={process.pid}", f"--as={limit}:"]
    is_other = process.uids().real != os.geteuid()
    user = {"user": process.uids().real, "group": process.gids().real, "extra_groups": []} if is_other else {}
    subprocess.run(command, check=True, **user)


@pytest.mark.django_db(transaction=True)
async def test_a_statement_without_memory_is_refused_and_its_connection_goes_on(caplog):
    result = Lanes(settings.LANES_CONNINFO, counts={Lane.KEY: 1})
    await result.open()
    try:
        backend = psutil.Process(await result.run(PID))
        limit = backend.memory_info().vms + (50 << 20)
        limit_memory(backend, str(limit))
        with pytest.raises(ServerBusy):
            await result.run(LARGE)
        assert await result.run(PID) == backend.pid
        limit_memory(backend, "unlimited")
        assert await result.run(LARGE) == 200_000_000
    finally:
        result.close()
    assert "PostgreSQL has no memory left for a statement: out of memory" in caplog.text


def score(process):
    return int(Path(f"/proc/{process.pid}/oom_score_adj").read_text())


def are_killed_in_order(server, postmaster, workers):
    """Return whether the system would kill workers first, then backends, then the processes that all need.

    The result is false also while a process begins or ends.
    """
    try:
        backends = [score(it) for it in postmaster.children() if "[local]" in " ".join(it.cmdline())]
        results = [score(it) for it in workers]
    except (psutil.Error, FileNotFoundError):
        return False
    return min(results) > max(backends) and min(backends) > max(score(server), score(postmaster))


def workers_of(server):
    try:
        return [it for it in server.children() if "storage.server.worker" in it.cmdline()]
    except psutil.Error:
        return []


def test_the_system_kills_a_worker_first_and_its_end_is_explained(two_workers):
    server, postmaster = psutil.Process(two_workers.pid), psutil.Process(two_workers.postmaster())
    wait_for(lambda: len(workers_of(server)) == 2, "both workers")
    workers = workers_of(server)
    wait_for(lambda: are_killed_in_order(server, postmaster, workers), "the order")

    workers[0].kill()  # as the system does
    explained = (
        "status -9); starting another. The system kills processes like this when it has no memory left"
    )
    wait_for(lambda: any(explained in line for line in two_workers.output), "the message")
