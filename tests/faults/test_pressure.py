"""Many clients at once, in little memory: see tests/faults/pressure.py for the long form."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
import requests
from azure.data.tables import TableClient

from tests.faults import pressure
from tests.faults.connection import Connection, Request
from tests.faults.memory import MEGABYTE, growth_of
from tests.faults.pressure import TABLE, Load
from tests.seeds import seeded
from tests.waiting import wait_for

pytestmark = pytest.mark.long

CLIENTS = 8
UPLOADS = 13  # one that is read, and all that may wait
MEMORY = 32 * MEGABYTE
LIMITS = {"TABLERO_REQUEST_MEMORY": f"{MEMORY >> 20}M", "TABLERO_METRICS_TOKEN": "a"}


@pytest.fixture(scope="module")
def small(start, scratch):
    """Start a server whose requests may take 32 MiB."""
    folder = scratch / "pressure"
    folder.mkdir(mode=0o711)
    with start(seeded(folder / "tablero"), env=LIMITS) as live:
        with Connection(live) as connection:
            assert connection.create_table(TABLE).status == 204
        yield live


def test_the_server_recovers_completely(small):
    load = Load(idle=40, busy=16, streams=10, slow=10, change_sets=6, requests=60)
    assert pressure.press(small, load, print) == []


def test_a_burst_of_large_change_sets_ends_complete_while_small_requests_are_answered(small):
    """The SDK repeats by itself what is refused, as all is at first: slow uploads have taken the memory."""
    half = "x" * 20_000  # 4 MiB with the heads of parts
    ended = threading.Event()

    def send(number):
        patient = {"retry_total": 60, "retry_status": 60}  # as long as it takes to see that all were refused
        with TableClient.from_connection_string(small.connection_string, TABLE, **patient) as table:
            return len(
                table.submit_transaction([("upsert", entity(number, row, half)) for row in range(100)])
            )

    def ask():
        with Connection(small) as connection:
            statuses = set()
            while not ended.is_set():
                statuses.add(connection.write("PUT", TABLE, ("small", "1"), {"n": 1}).status)
            return statuses

    before = refusals(small)
    with ThreadPoolExecutor(CLIENTS + 1) as pool, growth_of(small.pid) as growth:
        with ExitStack() as uploads:
            for _ in range(UPLOADS):
                begin_upload(uploads.enter_context(Connection(small)))
            asking = pool.submit(ask)
            sending = [pool.submit(send, number) for number in range(CLIENTS)]
            wait_for(lambda: refusals(small) >= before + CLIENTS or any(it.done() for it in sending))
            assert not any(it.done() for it in sending)
        try:
            assert [it.result() for it in sending] == [100] * CLIENTS
        finally:
            ended.set()
        assert asking.result() == {204}
    # far less than the 300 MiB that all of them take at once; the allocator keeps some of the freed memory
    assert growth.most < 6 * MEMORY


def begin_upload(connection):
    headers = [(b"Content-Type", b"multipart/mixed; boundary=b"), (b"Content-Length", b"4000000")]
    target = f"/{connection.account}/$batch".encode()
    connection.send_bytes(connection.written(Request(b"POST", target, headers)))


def refusals(live):
    answer = requests.get(f"{live.url}/ui/metrics", headers={"Authorization": "Bearer a"}, timeout=60)
    result = re.findall('^tablero_memory_refusals_total{share="service"} (.+)$', answer.text, re.MULTILINE)
    return sum(map(float, result))


def entity(number, row, half):
    return {"PartitionKey": f"burst{number}", "RowKey": f"{row:03}", "a": half, "b": half}
