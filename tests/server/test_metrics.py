"""Counts of a server: correct over all its processes, and after they end."""

import os
import re
import socket
import subprocess
import sys
import tempfile
from dataclasses import replace

import psutil
import psycopg
import pytest
import requests
from azure.data.tables import TableServiceClient
from django.test import RequestFactory

from console.site import probes
from storage.health import release
from storage.server import metrics, options
from storage.server.data_folder import DataFolder
from storage.server.refusal import Refusal
from tests.live_server import ROOT, start_server
from tests.seeds import seeded
from tests.server.requests_in_flight import find_workers
from tests.waiting import wait_for

TOKEN = {"TABLERO_METRICS_TOKEN": "the-token"}


def get(url, authorization=None):
    headers = {"Authorization": authorization.encode()} if authorization else {}
    response = requests.get(url, headers=headers, timeout=60)
    return response.status_code, response.text


def list_tables(live, times):
    """List tables over a new connection each time, so that all workers get some requests."""
    for _ in range(times):
        with TableServiceClient.from_connection_string(live.connection_string) as sdk:
            list(sdk.list_tables())


def scraped(live, operation="QueryTables"):
    """Return the number of requests for an operation that Prometheus reads."""
    status, text = get(f"{live.url}/ui/metrics", "Bearer the-token")
    assert status == 200
    result = re.findall(rf'^tablero_requests_total{{.*operation="{operation}".*}} (\S+)$', text, re.MULTILINE)
    return sum(map(float, result))


COUNTED = """
    SELECT coalesce(sum((kind ->> 3)::bigint), 0)
    FROM storage_requestseries, jsonb_array_elements(counts -> 0) AS kind
    WHERE kind ->> 0 = %s AND minutes = 1 AND table_id = 0
"""


def stored(live, operation="QueryTables"):
    """Return the number of requests for an operation that survives a crash."""
    with psycopg.connect(
        host=str(DataFolder(live.data).socket_folder), user="tablero", dbname="tablero"
    ) as db:
        return db.execute(COUNTED, [operation]).fetchone()[0]


def settles_at(expected, read, live):
    """Return whether the reading ends at the expected value without exceeding it."""
    wait_for(lambda: read(live) >= expected, patience=120)
    return read(live) == expected


@pytest.mark.long
def test_totals_survive_the_death_and_replacement_of_a_worker(used):
    with start_server(used, "--workers", "2", env=TOKEN) as live:
        list_tables(live, 30)
        assert settles_at(30, scraped, live)
        assert settles_at(30, stored, live)
        first, second = find_workers(live)
        first.kill()
        wait_for(lambda: not first.is_running() and len(find_workers(live)) == 2)
        assert second in find_workers(live)

        assert scraped(live) == 30
        list_tables(live, 30)
        assert settles_at(60, scraped, live)
        assert settles_at(60, stored, live)
        _, text = get(f"{live.url}/ui/metrics", "Bearer the-token")
        assert len(re.findall(r"^tablero_process_resident_bytes \S+$", text, re.MULTILINE)) == 1
        assert "pid=" not in text
        left = find_workers(live)
        live.kill()  # and all of them end with their server
        assert psutil.wait_procs(left, timeout=60)[1] == []


OFTEN = {"storage.runtime.observer": {"_INTERVAL": 0.2}}


@pytest.mark.long
def test_a_crash_loses_nothing_that_was_recorded_and_an_orderly_end_nothing(used):
    with start_server(used, constants=OFTEN) as live:
        list_tables(live, 20)
        assert settles_at(20, stored, live)
        live.kill()
    patient = {"storage.runtime.observer": {"_SHUTDOWN_TIMEOUT": 45.0}}
    with start_server(used, constants=patient) as live:
        list_tables(live, 5)
        live.stop()
    with start_server(used) as live:
        assert stored(live) == 25


@pytest.mark.parametrize(
    ("token", "authorization", "status"),
    [
        ("", "", 404),
        ("", "Bearer ", 404),
        *(("the-token", sent, 401) for sent in ("", "Bearer", "Bearer wrong", "Bearer the-tokens")),
        ("the-token", "Basic the-token", 401),
        ("the-token", "Bearer ä", 401),
    ],
)
async def test_metrics_require_the_token(settings, token, authorization, status):
    settings.OPTIONS = replace(settings.OPTIONS, metrics_token=token)
    request = RequestFactory().get("/ui/metrics", headers={"Authorization": authorization})
    assert (await probes.metrics(request)).status_code == status


def test_a_port_for_metrics_that_is_in_use_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as used, metrics.counting():
        address = f"127.0.0.1:{used.getsockname()[1]}"
        listening = metrics.listening(options.read({"TABLERO_METRICS_LISTEN": address}))
        with pytest.raises(Refusal, match="choose another address with --metrics-listen"), listening:
            pass


@pytest.fixture(scope="module")
def measured(scratch):
    """Start a server that has answered a request of each kind."""
    arguments = ("--metrics-listen", "127.0.0.1:0", "--metrics-accounts", "0")
    constants = {"storage.runtime.measurements": {"INTERVAL": 1.0}}
    with start_server(seeded(scratch / "measured"), *arguments, env=TOKEN, constants=constants) as live:
        list_tables(live, 1)
        assert requests.get(f"{live.url}/missing/Tables", timeout=60).status_code == 403
        assert get(f"{live.url}/ui/login/")[0] == 200
        assert get(f"{live.url}/ui/api/v1/accounts")[0] == 401
        assert requests.request("TRACE-ME", f"{live.url}/devstoreaccount1", timeout=60).status_code >= 400
        yield live


@pytest.mark.long
def test_the_listener_shows_metrics_to_everyone_who_can_reach_it(measured):
    assert settles_at(1, scraped, measured)
    url = re.search(r"^Metrics: +(\S+)$", "\n".join(measured.output), re.MULTILINE)[1]
    status, text = get(url)
    assert status == 200
    assert 'operation="QueryTables",status="200"' in text
    head = requests.head(url, timeout=60)
    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.long
def test_metrics_tell_what_the_server_is_and_name_no_accounts_beyond_the_limit(measured):
    lines = [
        f'tablero_build_info{{version="{release.version()}"}} 1.0',
        'tablero_page_requests_total{method="GET",part="console",status="200"} 1.0',
        'tablero_page_requests_total{method="GET",part="api",status="401"} 1.0',
        'tablero_requests_total{account="(other)"',
        'tablero_requests_total{account="(none)"',
        "tablero_disk_free_bytes ",
        "tablero_last_backup_timestamp_seconds 0.0",
        "tablero_database_size_bytes ",
        "tablero_database_connections ",
        "tablero_pool_connections ",
        "tablero_jobs_late 0.0",
    ]
    wait_for(lambda: all(line in metrics_of(measured) for line in lines))
    text = metrics_of(measured)
    assert 'operation=""' not in text
    assert 'account="devstoreaccount1"' not in text


def metrics_of(live):
    status, text = get(f"{live.url}/ui/metrics", "Bearer the-token")
    assert status == 200
    return text


def test_the_folder_of_a_killed_server_is_removed_by_the_next_one(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    crash = (
        "import os; from storage.server import metrics; it = metrics.counting(); it.__enter__(); os._exit(1)"
    )
    subprocess.run(
        [sys.executable, "-c", crash], cwd=ROOT, env={**os.environ, "TMPDIR": str(tmp_path)}, check=False
    )
    [abandoned] = tmp_path.iterdir()
    with metrics.counting():
        [mine] = tmp_path.iterdir()
        assert mine != abandoned
        metrics._remove_abandoned()
        assert mine.exists()
    assert list(tmp_path.iterdir()) == []
