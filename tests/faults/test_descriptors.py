"""Too few file descriptors: a server refuses to start, or refuses clients beyond the limit and serves the others."""

import socket
import sys
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from storage.server.descriptors import LEAST, RESERVED
from tests.faults.connection import Connection
from tests.live_server import start_server
from tests.seeds import seeded
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are changed"),
]

CLIENTS = LEAST - RESERVED


def answer(client):
    """Return what a server says to a client that asks nothing."""
    client.settimeout(30)
    return b"".join(iter(lambda: client.recv(4096), b"")).decode()


def test_a_server_with_far_too_few_refuses_to_start(scratch):
    with start_server(scratch / "few", wait=False, shell="ulimit -n 64") as live:
        assert live.process.wait(60) == 1
        live.reader.join(60)
    [said] = live.output
    assert said.startswith(
        "tablero: This process may open 64 files, and a server needs at least 256. Raise the hard"
    )


@pytest.fixture(scope="module")
def narrow(start, scratch):
    """Start a server with a low hard limit, to which it raises its soft limit."""
    with start(seeded(scratch / "narrow"), shell=f"ulimit -Sn 100 && ulimit -Hn {LEAST}") as live:
        assert psutil.Process(live.pid).rlimit(psutil.RLIMIT_NOFILE) == (LEAST, LEAST)
        yield live


def test_clients_beyond_the_limit_are_refused_and_the_others_served(narrow, table):
    process = psutil.Process(narrow.pid)
    with Connection(narrow) as connection, ExitStack() as stack:
        connection.create_table(table)
        for _ in range(CLIENTS - 1):
            stack.enter_context(socket.create_connection(("127.0.0.1", narrow.port)))
        wait_for(lambda: len(process.net_connections()) > CLIENTS, "the clients")
        for _ in range(3 * CLIENTS):  # more than there are descriptors
            with socket.create_connection(("127.0.0.1", narrow.port)) as client:
                said = answer(client)
        assert said.startswith("HTTP/1.1 503 Service Unavailable\r\n")
        assert "\r\nretry-after: 1\r\n" in said and "<m:code>ServerBusy</m:code>" in said

        # open connections are served, also if they need new connections and files
        assert connection.insert(table, {"PartitionKey": "p", "RowKey": "a"}).status == 204
        assert connection.get(table, ("p", "a")).status == 200
        assert process.num_fds() < LEAST
    with Connection(narrow) as connection:
        wait_for(lambda: connection.get(table, ("p", "a")).status == 200, "a place")
    said = f"Refused a client: {CLIENTS} connections are open."
    wait_for(lambda: said in "\n".join(narrow.output), "the message")


def test_without_any_left_connections_are_closed_and_the_server_lives(narrow, table):
    """With the reserve used up as well, accepting fails; it must neither end the server nor keep it busy."""
    process = psutil.Process(narrow.pid)
    with Connection(narrow) as connection:
        connection.create_table(table)
        highest = max(int(path.name) for path in Path(f"/proc/{narrow.pid}/fd").iterdir())
        limit = min(highest + 1, CLIENTS)  # with which no client is one too many
        process.rlimit(psutil.RLIMIT_NOFILE, (limit, LEAST))
        try:
            with ExitStack() as stack:
                clients = [
                    stack.enter_context(socket.create_connection(("127.0.0.1", narrow.port)))
                    for _ in range(limit)
                ]
                assert answer(clients[-1]) == ""
                began = sum(process.cpu_times()[:2])
                assert connection.insert(table, {"PartitionKey": "p", "RowKey": "a"}).status in (204, 503)
                assert sum(process.cpu_times()[:2]) - began < 0.5
        finally:
            process.rlimit(psutil.RLIMIT_NOFILE, (LEAST, LEAST))
        wait_for(lambda: connection.get(table, ("p", "a")).status in (200, 404), "an answer")
    assert narrow.process.poll() is None
