"""Whatever a client sends, wherever it puts it: no signature and no key of an entity is written down."""

import json
import re
import socket
from urllib.parse import unquote

import psycopg
import pytest
import requests

from storage.server.data_folder import DataFolder
from tests.collector import collecting
from tests.faults import marked
from tests.faults.connection import Closed, Connection, Request
from tests.seeds import seeded
from tests.waiting import wait_for

pytestmark = pytest.mark.long

# every request is kept, and every refusal explained
PATIENT = {
    "storage.runtime.observer": dict.fromkeys(
        ("_ALIKE", "_KEPT_LIMIT", "_GROUPS_LIMIT", "_SAMPLES_LIMIT", "_KEPT_SIZE"), 10**9
    ),
    "storage.requests.recording": {
        "_EXPLAINED": 10**9,
        "_WAIT": 60.0,
        "_UNWRITTEN": 10**9,
    },
}
VARIABLES = {
    "TABLERO_LOG_LEVEL": "debug",
    "TABLERO_REQUEST_LOG_SAMPLE": "1000",
    "OTEL_BSP_SCHEDULE_DELAY": "50",
    "OTEL_BSP_MAX_QUEUE_SIZE": "100000",
    "OTEL_METRIC_EXPORT_INTERVAL": "500",
    "TABLERO_TRUSTED_PROXIES": "127.0.0.1",
    "TABLERO_HOST_SUFFIX": "table.localhost",
}
MAY_HAVE_VALUES = "storage_requestseries"  # how often a partition is used


@pytest.fixture(scope="module")
def collector():
    with collecting() as collector:
        yield collector


@pytest.fixture(scope="module")
def live(start, scratch, collector):
    variables = {**VARIABLES, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint}
    with start(seeded(scratch / "secrets"), env=variables, constants=PATIENT) as live:
        yield live


@pytest.fixture(scope="module")
def bearer(live):
    live.manage("user", "add", "robot", "--admin")
    return live.add_token("robot", "secrets")


@pytest.fixture(scope="module")
def ask(live, bearer):
    """Return a function that sends a GET to the management API, with a path below the account."""
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {bearer}"

    def ask(path):
        url = path if path.startswith("http") else f"{live.url}/ui/api/v1/accounts/{live.account}/{path}"
        answer = session.get(url, timeout=120)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return ask


def test_no_client_secret_is_logged_or_stored(live, bearer, ask, collector):
    marks = marked.Marks("Zq7")
    sent = [*marked.write_all(live.account, marks), *marked.write_pages(live.account, marks, bearer)]
    assert len(marks.given) == len({*marks.given}) > 900
    with Connection(live) as connection:
        connection.create_table("people")
        statuses = [(send(connection, it), it.where) for it in sent]
        last = [(b"x-ms-client-request-id", b"the-last"), marked.JSON]
        connection.send(Request(b"GET", f"/{live.account}/nothing()".encode(), last))
    assert not [it for it in statuses if it[0] >= 500 and it[0] not in (501, 503, 505)]
    wait_for(lambda: ask("requests?id=the-last")["items"])

    requests = listed(ask)
    assert len(requests) > 800
    written = {
        "log of the server": "\n".join(live.output),
        "traces and metrics": b"".join(map(bytes, serialized(collector))).decode("latin-1"),
        "management API": json.dumps(requests),
        "command": live.manage("requests", live.account, "--all", "--limit", "5000"),
        **dict(stored(live)),
        "log of PostgreSQL": (live.data / "postgres.log").read_text("latin-1"),
    }
    assert "QueryEntities" in written["traces and metrics"]
    places = {it.mark.lower(): it.where for it in sent}
    understood = {it.mark.lower() for it in sent if it.is_understood}
    leaks = sorted(
        (places.get(mark, "a second mark"), mark, name, context)
        for name, text in written.items()
        for mark, context in find_marks(text)
        if mark not in understood or not re.search(MAY_HAVE_VALUES, name)
    )
    assert not leaks, "\n".join(map(str, leaks))


def find_marks(text):
    """Yield marks in any letter case and encoding, with the surrounding text."""
    for read in {text, unquote(text), unquote(unquote(text))}:
        for found in re.finditer("Zq7[0-9]{4}x", read, re.IGNORECASE):
            yield found[0].lower(), read[max(0, found.start() - 80) : found.end() + 40]


def send(connection, sent):
    """Return the status of the answer, 0 if there was none."""
    if isinstance(sent.request, Request):
        return connection.send(sent.request).status
    connection.close()
    connection.send_bytes(sent.request)
    try:
        connection.open().shutdown(socket.SHUT_WR)
        return connection.read(head=sent.request.startswith(b"HEAD")).status
    except (Closed, OSError):
        return 0
    finally:
        connection.close()


def listed(ask):
    """Return all requests of the log."""
    items, path = [], "requests?limit=500"
    while path:
        page = ask(path)
        items += page["items"]
        path = page["next"]
    return items


def serialized(collector):
    return (it.SerializeToString() for it in [*collector.traces, *collector.metrics])


def stored(live):
    """Yield every row of the database, by table."""
    folder = DataFolder(live.data).socket_folder
    tables = "SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    with psycopg.connect(f"postgresql:///tablero?host={folder}&user=tablero") as connection:
        for (name,) in connection.execute(tables).fetchall():
            rows = connection.execute(f"SELECT row::text FROM {name} AS row").fetchall()
            yield name, "\n".join(row for (row,) in rows)
