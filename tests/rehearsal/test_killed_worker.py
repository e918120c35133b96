"""A worker is killed amid rehearsed writes: what was recorded is true, and nothing acknowledged is lost."""

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from storage.server.data_folder import DataFolder
from tests.faults.connection import Connection
from tests.live_server import start_server
from tests.seeds import seeded
from tests.server.requests_in_flight import find_workers
from tests.waiting import wait_for

pytestmark = pytest.mark.long

CLIENTS = 4


def write(server, client, ended):
    """Insert entities, each once, until the end; return the rows that were acknowledged."""
    acknowledged, number = [], 0
    with Connection(server) as connection:
        while not ended.is_set():
            number += 1
            entity = {"PartitionKey": "p", "RowKey": f"{client}-{number}", "N": number}
            try:
                answer = connection.request("POST", "killed", entity)
            except OSError:
                connection.close()
                continue
            if answer.status == 201:
                acknowledged.append(entity["RowKey"])
    return acknowledged


def read(data, query):
    with psycopg.connect(
        host=str(DataFolder(data).socket_folder), user="tablero", dbname="tablero"
    ) as connection:
        return connection.execute(query).fetchall()


def test_records_of_a_killed_worker_are_true(scratch):
    data = seeded(scratch / "killed rehearsal")
    with start_server(data, "--workers", "2") as live:
        live.change_accounts("rehearsals", live.account, "on")
        with Connection(live) as connection:
            connection.create_table("killed")
        live.manage("rehearse", live.account, "ambiguous", "--for", "10m", "--seed", "7")
        ended = threading.Event()
        count = "SELECT count(*) FROM storage_rehearsedrequest"
        with ThreadPoolExecutor(CLIENTS) as pool:
            clients = [pool.submit(write, live, client, ended) for client in range(CLIENTS)]
            try:
                for step in range(1, 4):
                    wait_for(lambda step=step: read(data, count)[0][0] > 200 * step, "writes")
                    workers = wait_for(
                        lambda: len(workers := find_workers(live)) == 2 and workers, "two workers"
                    )
                    workers[0].kill()
            finally:
                ended.set()
            acknowledged = {row for client in clients for row in client.result(180)}
        live.manage("rehearse", live.account, "--stop")
        with Connection(live) as connection:
            stored = {it["RowKey"] for it in connection.entities("killed")}
        [(requests, client)] = read(
            data, "SELECT requests, id FROM storage_rehearsalclient WHERE requests > 100"
        )
        records = read(
            data,
            f"SELECT number, exchange FROM storage_rehearsedrequest WHERE client_id = {client} ORDER BY number",
        )
    assert acknowledged <= stored
    numbers = [number for number, _ in records]
    assert len(set(numbers)) == len(numbers)
    assert requests - 3 * CLIENTS <= len(numbers) <= requests
    inserts = [it for _, it in records if it["operation"] == "InsertEntity"]
    applied = {it["row"] for it in inserts if it["applied"]}
    unapplied = {it["row"] for it in inserts if not it["applied"]}
    assert acknowledged <= applied <= stored
    assert unapplied and not unapplied & stored
    assert (
        len(stored - applied) <= 3 * CLIENTS
    )  # committed when the worker was killed, before they were recorded
