"""`manage.py serve` as a process: addresses, probes, other databases; test_tls.py and test_ending.py have the rest."""

import itertools
import json
import os
import re
import signal
import socket
from contextlib import ExitStack

import psutil
import psycopg
import pytest
import requests

from storage.accounts import sealed_keys
from storage.server import database, http_server, migration, options, startup_message
from storage.server.data_folder import DataFolder
from storage.server.refusal import Refusal
from storage.sql.lanes import COUNTS
from storage.sql.statement import Lane
from tests.live_server import start_server
from tests.ports import held_port
from tests.seeds import seeded
from tests.server.requests_in_flight import PATIENT, begin_request, command_line, is_listening
from tests.server.test_change_stream import add_reader, events, new_table, put, stream
from tests.waiting import wait_for

SUFFIX = "table.localhost"


def get(url, host=None):
    response = requests.get(url, headers={"Host": host} if host else {}, timeout=60)
    return response.status_code, response.content


def test_says_where_it_serves(server):
    text = "\n".join(server.output)
    assert f"Endpoint:          {server.endpoint}" in text
    assert server.connection_string in text
    assert f"{server.url}/ui/healthz" in text
    assert text.count(f"{server.url}/ui/setup/#token=") == 1


def test_health(server):
    assert get(f"{server.url}/ui/healthz") == (200, b'{"status": "alive"}')
    assert get(f"{server.url}/ui/readyz") == (200, b'{"status": "ready"}')


@pytest.mark.parametrize("path", ["/ui/healthz", "/ui/nothing"])
def test_uploads_cannot_fill_the_disk(server, path):
    """Django writes bodies down before it looks at a request."""
    lines_before = len(server.output)
    megabyte = b"x" * 1024 * 1024
    assert requests.post(server.url + path, data=megabyte, timeout=60).status_code in (200, 403, 404)
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        connection.sendall(b"100000\r\n" + megabyte + b"\r\n1\r\nx\r\n")
        answer = connection.recv(4096)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer.lower()
    assert not any("Traceback" in line for line in server.output[lines_before:])


def test_secrets_stand_in_no_command_line(server):
    family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
    secret = (server.data / "secret").read_text().strip()
    assert not any(secret in " ".join(command_line(process)) for process in family)
    postmaster = psutil.Process(server.postmaster())
    assert not re.search("TABLERO|PATH_INFO", " ".join(postmaster.environ())) or os.geteuid() != 0


@pytest.fixture(scope="module")
def hosted(scratch):
    """Start a server with accounts in host names; the last test ends it."""
    with start_server(seeded(scratch / "hosted"), "--host-suffix", SUFFIX, constants=PATIENT) as live:
        yield live


def test_accounts_in_host_names(hosted):
    assert f"http://devstoreaccount1.{SUFFIX}:{hosted.port}" in "\n".join(hosted.output)
    for path in ("/", "/ui/healthz", "/Tables"):
        assert b"AuthenticationFailed" in get(hosted.url + path, host=f"devstoreaccount1.{SUFFIX}")[1]


@pytest.fixture(scope="module")
def token(hosted):
    return add_reader(hosted)


@pytest.mark.long
def test_many_streams_share_a_poller_and_hold_no_thread_and_no_connection(hosted, token):
    process = psutil.Process(hosted.pid)
    with ExitStack() as stack:
        table = stack.enter_context(new_table(hosted))
        put(table, "warm", 0)
        with stream(hosted, token) as answer:
            next(events(answer))
        backends = connections(hosted)
        threads = process.num_threads()
        following = []
        while len(following) < 20:  # earlier ones may not have ended yet
            answer = stack.enter_context(stream(hosted, token, f"?table={table.table_name}"))
            if answer.status_code == 200:
                following.append(events(answer))
                # before the next one begins: what begins at once takes as many connections for a moment
                assert next(following[-1])[1] is None
        # some are of requests that have just been answered
        wait_for(lambda: process.num_threads() <= threads + 8)
        # streams that wake together read by the lane of keys, which has opened all its connections then
        most = backends + COUNTS[Lane.KEY]
        wait_for(lambda: connections(hosted) <= most < backends + len(following))
        with stream(hosted, token) as refused:
            assert refused.status_code == 429
            assert "20 streams" in refused.json()["detail"]
        put(table, "ada", 1)
        rows = [next(data for _, data in stream_events if data)["row_key"] for stream_events in following]
        assert rows == ["ada"] * 20


def connections(live):
    folder = DataFolder(live.data).socket_folder
    with psycopg.connect(f"host={folder} user=tablero dbname=tablero") as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        return connection.execute(query).fetchone()[0]


@pytest.mark.long
def test_is_alive_and_not_ready_without_its_database(hosted):
    at = {"host": str(DataFolder(hosted.data).socket_folder), "user": "tablero", "dbname": "postgres"}
    with psycopg.connect(**at, autocommit=True) as conn:
        conn.execute("ALTER DATABASE tablero CONNECTION LIMIT 0")
        conn.execute("ALTER DATABASE tablero ALLOW_CONNECTIONS false")
        conn.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'tablero'")
        status, body = get(f"{hosted.url}/ui/readyz")
        assert (status, json.loads(body)["status"]) == (503, "unavailable")
        assert get(f"{hosted.url}/ui/healthz")[0] == 200
        conn.execute("ALTER DATABASE tablero ALLOW_CONNECTIONS true CONNECTION LIMIT -1")
        wait_for(lambda: get(f"{hosted.url}/ui/readyz")[0] == 200)


@pytest.mark.long
def test_streams_end_and_a_request_in_flight_is_answered_before_the_end(hosted, token):
    """The last test of this server."""
    for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        hosted.process.send_signal(number)  # changes nothing without TLS
    with ExitStack() as stack:
        opened = (stack.enter_context(stream(hosted, token)) for _ in itertools.count())
        # earlier ones may not have ended yet
        following = events(wait_for(lambda: (answer := next(opened)).status_code == 200 and answer))
        next(following)
        connection = stack.enter_context(begin_request(hosted))
        hosted.process.send_signal(signal.SIGTERM)
        wait_for(lambda: not is_listening(hosted))
        list(following)  # would raise if the end of the body were missing
        assert hosted.process.poll() is None
        connection.sendall(b" " * 19)
        assert connection.recv(100).startswith(b"HTTP/1.1 ")
        assert hosted.process.wait(60) == 0
    assert not hosted.gave_up_requests
    assert not any("Traceback" in line for line in hosted.output), hosted.output


@pytest.mark.django_db
def test_the_message_at_the_start_shows_no_key_of_an_account(account):
    text = "\n".join(startup_message.lines(options.read({}), 10002))
    assert f"Endpoint:          http://127.0.0.1:10002/{account.name}\n" in text
    assert sealed_keys.encode_key(sealed_keys.key_of(account, 1)) not in text


def test_refuses_a_port_in_use():
    with socket.create_server(("127.0.0.1", 0)) as used:
        address = f"127.0.0.1:{used.getsockname()[1]}"
        with pytest.raises(
            Refusal, match=r"^The port \d+ on 127.0.0.1 is in use; choose another with --listen"
        ):
            http_server.bind(options.read({"TABLERO_LISTEN": address}))


def test_refuses_a_port_that_another_server_has_begun_to_use_during_the_start():
    with held_port() as port:
        chosen = options.read({"TABLERO_LISTEN": f"127.0.0.1:{port}"})
        with http_server.bind(chosen) as first, http_server.bind(chosen) as second:
            http_server.listen(chosen, first)
            with pytest.raises(Refusal, match=rf"^The port {port} on 127.0.0.1 is in use"):
                http_server.listen(chosen, second)


def test_a_database_that_cannot_be_reached_is_named_without_its_password(settings):
    settings.OPTIONS = options.read({"DATABASE_URL": "postgresql://user:verysecret@127.0.0.1:9/none"})
    settings.LANES_CONNINFO = database.conninfo(settings.OPTIONS)
    with pytest.raises(Refusal, match="The database cannot be reached") as refused:
        migration.prepare(settings.OPTIONS, print)
    assert "verysecret" not in str(refused.value)
