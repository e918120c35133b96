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
from tests.certificates import make_certificate
from tests.live_server import ROOT, start_server
from tests.seeds import seeded
from tests.server.requests_in_flight import find_workers
from tests.server.test_tls import read_the_certificate_again, shown_certificate
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
    lines = rf'^tablero_requests_total{{.*operation="{operation}".*}} (\S+)$'
    result = re.findall(lines, metrics_of(live), re.MULTILINE)
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
def folder(tmp_path_factory):
    """Return the folder of the server's certificate."""
    return tmp_path_factory.mktemp("certificate")


@pytest.fixture(scope="module")
def measured(scratch, folder):
    """Start a server with TLS and two workers that have answered a request of each kind; the last test ends it."""
    cert, key = map(str, make_certificate(folder))
    arguments = ("--metrics-listen", "127.0.0.1:0", "--metrics-accounts", "0", "--workers", "2")
    constants = {"storage.runtime.measurements": {"INTERVAL": 1.0}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REQUESTS_CA_BUNDLE", cert)  # the clients of these tests trust it
        data = seeded(scratch / "measured")
        certified = ("--tls-cert", cert, "--tls-key", key)
        with start_server(data, *arguments, *certified, env=TOKEN, constants=constants) as live:
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
        "tablero_last_drill_timestamp_seconds 0.0",
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


@pytest.mark.long
def test_workers_read_the_certificate_again(measured, folder):
    read_the_certificate_again(measured, folder)
    make_certificate(folder)  # also without a signal, as where a volume of secrets is renewed
    cert = (folder / "cert.pem").read_text().strip()
    wait_for(lambda: all(shown_certificate(measured) == cert for _ in range(10)))


@pytest.mark.long
def test_totals_survive_the_death_and_replacement_of_a_worker(measured):
    """The last test of this server."""
    before = scraped(measured)
    list_tables(measured, 30)
    assert settles_at(before + 30, scraped, measured)
    assert settles_at(before + 30, stored, measured)
    first, second = find_workers(measured)
    first.kill()
    wait_for(lambda: not first.is_running() and len(find_workers(measured)) == 2)
    assert second in find_workers(measured)

    assert scraped(measured) == before + 30
    list_tables(measured, 30)
    assert settles_at(before + 60, scraped, measured)
    assert settles_at(before + 60, stored, measured)
    text = metrics_of(measured)
    assert len(re.findall(r"^tablero_process_resident_bytes \S+$", text, re.MULTILINE)) == 1
    assert "pid=" not in text
    left = find_workers(measured)
    measured.kill()  # and all of them end with their server
    assert psutil.wait_procs(left, timeout=60)[1] == []


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
