"""What a server has counted: right over its processes, and over their ends."""

import os
import re
import subprocess
import sys
import tempfile
import time

import psutil
import psycopg
import requests
from azure.data.tables import TableServiceClient

from storage.health import release
from storage.server import metrics
from storage.server.data_folder import DataFolder
from tests.live_server import ROOT, start_server

TOKEN = {"TABLERO_METRICS_TOKEN": "the-token"}


def get(url, authorization=None):
    headers = {"Authorization": authorization.encode()} if authorization else {}
    response = requests.get(url, headers=headers, timeout=60)
    return response.status_code, response.text


def list_tables(live, times):
    """Each over a connection of its own, so that all workers get some."""
    for _ in range(times):
        with TableServiceClient.from_connection_string(live.connection_string) as sdk:
            list(sdk.list_tables())


def scraped(live, operation="QueryTables"):
    """The number of requests for an operation that Prometheus is told."""
    status, text = get(f"{live.url}/ui/metrics", "Bearer the-token")
    assert status == 200
    found = re.findall(rf'^tablero_requests_total{{.*operation="{operation}".*}} (\S+)$', text, re.MULTILINE)
    return sum(map(float, found))


COUNTED = """
    SELECT coalesce(sum((kind ->> 3)::bigint), 0)
    FROM storage_requestseries, jsonb_array_elements(counts -> 0) AS kind
    WHERE kind ->> 0 = %s AND minutes = 1 AND table_id = 0
"""


def stored(live, operation="QueryTables"):
    """The number of requests for an operation that a crash does not lose any more."""
    with psycopg.connect(
        host=str(DataFolder(live.data).socket_folder), user="tablero", dbname="tablero"
    ) as db:
        return db.execute(COUNTED, [operation]).fetchone()[0]


def settles_at(expected, read, live, seconds=120):
    """Whether that is what is read in the end, and never more."""
    deadline = time.monotonic() + seconds
    while (found := read(live)) != expected:
        assert found < expected, found
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
    return True


def workers(live):
    return [
        child for child in psutil.Process(live.pid).children() if "storage.server.worker" in child.cmdline()
    ]


def test_totals_are_right_over_workers_when_one_is_killed_and_replaced_and_all_end_with_their_server(used):
    with start_server(used, "--workers", "2", env=TOKEN) as live:
        list_tables(live, 30)
        assert settles_at(30, scraped, live)
        assert settles_at(30, stored, live)
        first, second = workers(live)
        first.kill()
        while first.is_running() or len(workers(live)) < 2:
            time.sleep(0.1)
        assert second in workers(live)

        assert scraped(live) == 30
        list_tables(live, 30)
        assert settles_at(60, scraped, live)
        assert settles_at(60, stored, live)
        _, text = get(f"{live.url}/ui/metrics", "Bearer the-token")
        assert len(re.findall(r"^tablero_process_resident_bytes \S+$", text, re.MULTILINE)) == 1
        assert "pid=" not in text
        left = workers(live)
        live.kill()
        assert psutil.wait_procs(left, timeout=60)[1] == []


OFTEN = {"storage.runtime.observer": {"_INTERVAL": 0.2}}


def test_a_crash_loses_nothing_that_was_recorded_and_an_orderly_end_nothing(used):
    with start_server(used, hurried=OFTEN) as live:
        list_tables(live, 20)
        assert settles_at(20, stored, live)
        live.kill()
    patient = {"storage.runtime.observer": {"_SHUTDOWN_TIMEOUT": 45.0}}
    with start_server(used, hurried=patient) as live:
        list_tables(live, 5)
        live.stop()
    with start_server(used) as live:
        assert stored(live) == 25


def test_metrics_are_for_who_has_the_token_and_tell_what_the_server_is(server, used):
    assert get(f"{server.url}/ui/metrics")[0] == 404
    assert get(f"{server.url}/ui/metrics", "Bearer ")[0] == 404
    arguments = ("--metrics-listen", "127.0.0.1:0", "--metrics-accounts", "0")
    hurried = {"storage.runtime.measurements": {"INTERVAL": 1.0}}
    with start_server(used, *arguments, env=TOKEN, hurried=hurried) as live:
        for authorization in (
            None,
            "Bearer",
            "Bearer wrong",
            "Bearer the-tokens",
            "Basic the-token",
            "Bearer ä",
        ):
            assert get(f"{live.url}/ui/metrics", authorization)[0] == 401
        list_tables(live, 1)
        assert settles_at(1, scraped, live)

        # the listener is for who may reach it
        url = re.search(r"^Metrics: +(\S+)$", "\n".join(live.output), re.MULTILINE)[1]
        status, text = get(url)
        assert status == 200
        assert 'operation="QueryTables",status="200"' in text
        head = requests.head(url, timeout=60)
        assert (head.status_code, head.content) == (200, b"")
        port = url.rpartition(":")[2].partition("/")[0]
        with start_server(used / "other", "--metrics-listen", f"127.0.0.1:{port}", wait=False) as other:
            assert other.process.wait(60) == 1
        assert "choose another address with --metrics-listen" in other.output[-1]

        assert requests.get(f"{live.url}/missing/Tables", timeout=60).status_code == 403
        assert get(f"{live.url}/ui/login/")[0] == 200
        assert get(f"{live.url}/ui/api/v1/accounts")[0] == 401
        assert requests.request("TRACE-ME", f"{live.url}/devstoreaccount1", timeout=60).status_code >= 400
        wanted = [
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
        deadline = time.monotonic() + 60
        while missing := [line for line in wanted if line not in (text := metrics_of(live))]:
            assert time.monotonic() < deadline, missing
            time.sleep(0.2)
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
