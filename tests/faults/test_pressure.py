"""Many clients at once, in little memory: see tests/faults/pressure.py for the long form."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from azure.data.tables import TableClient

from tests.faults import pressure
from tests.faults.connection import Connection
from tests.faults.memory import MEGABYTE, growth_of
from tests.faults.pressure import TABLE, Load
from tests.seeds import seeded

CLIENTS = 16  # more than may wait
MEMORY = 32 * MEGABYTE
LIMITS = {"TABLERO_REQUEST_MEMORY": f"{MEMORY >> 20}M", "TABLERO_METRICS_TOKEN": "a"}


@pytest.fixture(scope="module")
def small(start, scratch):
    """A server whose requests may take 32 MiB."""
    folder = scratch / "pressure"
    folder.mkdir(mode=0o711)
    with start(seeded(folder / "tablero"), env=LIMITS) as live:
        yield live


def test_the_server_is_afterwards_what_it_was(small):
    load = Load(idle=40, busy=16, streams=10, slow=10, change_sets=6, requests=60)
    assert pressure.press(small, load, print) == []


def test_a_burst_of_large_change_sets_ends_complete_while_small_requests_are_answered(small):
    """The SDK repeats by itself what was refused."""
    half = "x" * 20_000  # 4 MiB with the heads of parts
    ended = threading.Event()
    refused = []

    def send(number):
        with TableClient.from_connection_string(small.connection_string, TABLE) as table:
            rows = [("upsert", entity(number, row, half)) for row in range(100)]
            return len(table.submit_transaction(rows, raw_response_hook=notice))

    def notice(response):
        if response.http_response.status_code == 503:
            refused.append(response)

    def ask():
        with Connection(small) as connection:
            statuses = set()
            while not ended.is_set():
                statuses.add(connection.write("PUT", TABLE, ("small", "1"), {"n": 1}).status)
            return statuses

    with ThreadPoolExecutor(CLIENTS + 1) as pool, growth_of(small.pid) as growth:
        asking = pool.submit(ask)
        try:
            assert list(pool.map(send, range(CLIENTS))) == [100] * CLIENTS
        finally:
            ended.set()
        assert asking.result() == {204}
    answer = requests.get(f"{small.url}/ui/metrics", headers={"Authorization": "Bearer a"}, timeout=30)
    [counted] = re.findall('^tablero_memory_refusals_total{share="service"} (.+)$', answer.text, re.MULTILINE)
    assert float(counted) >= len(refused) > 0
    # far less than the 600 MiB that all of them take at once; the allocator keeps some of what it frees
    assert growth.most < 8 * MEMORY


def entity(number, row, half):
    return {"PartitionKey": f"burst{number}", "RowKey": f"{row:03}", "a": half, "b": half}
