"""`manage.py serve` as a process: addresses, probes, other databases; test_tls.py and test_ending.py have the rest."""

import json
import os
import re
import signal
import socket

import psutil
import psycopg
import pytest
import requests
from azure.data.tables import TableServiceClient
from psycopg.conninfo import make_conninfo

from storage.server import database, http_server, migration, options
from storage.server.data_folder import DataFolder
from storage.server.refusal import Refusal
from tests.live_server import start_server
from tests.seeds import seeded
from tests.server.requests_in_flight import PATIENT, begin_request, command_line, is_listening
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
    assert text.count(f"{server.url}/ui/setup/?token=") == 1


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
def test_a_request_in_flight_is_answered_before_the_end(hosted):
    hosted.process.send_signal(signal.SIGHUP)  # changes nothing without TLS
    with begin_request(hosted) as connection:
        hosted.process.send_signal(signal.SIGTERM)
        wait_for(lambda: not is_listening(hosted))
        assert hosted.process.poll() is None
        connection.sendall(b" " * 19)
        assert connection.recv(100).startswith(b"HTTP/1.1 ")
        assert hosted.process.wait(60) == 0


def test_refuses_a_port_in_use():
    with socket.create_server(("127.0.0.1", 0)) as used:
        address = f"127.0.0.1:{used.getsockname()[1]}"
        with pytest.raises(
            Refusal, match=r"^The port \d+ on 127.0.0.1 is in use; choose another with --listen"
        ):
            http_server.bind(options.read({"TABLERO_LISTEN": address}))


def test_a_database_that_cannot_be_reached_is_named_without_its_password(settings):
    settings.OPTIONS = options.read({"DATABASE_URL": "postgresql://user:verysecret@127.0.0.1:9/none"})
    settings.LANES_CONNINFO = database.conninfo(settings.OPTIONS)
    with pytest.raises(Refusal, match="The database cannot be reached") as refused:
        migration.prepare(settings.OPTIONS, print)
    assert "verysecret" not in str(refused.value)


@pytest.mark.long
def test_servers_that_start_at_once_on_an_empty_database_share_it_and_their_secret(data, postgres):
    name = "elsewhere"
    with psycopg.connect(make_conninfo("", **postgres), autocommit=True) as conn:
        conn.execute(f"CREATE DATABASE {name}")
    env = {
        "DATABASE_URL": f"postgresql:///{name}?host={postgres['host']}&user=tablero",
        "TABLERO_SECRET": "a secret that both servers know",
        "AZURITE_ACCOUNTS": "ada:QUJD:REVG",
    }

    def sdk_of(live, key):
        live.account, live.key = "ada", key
        return TableServiceClient.from_connection_string(live.connection_string)

    with (
        start_server(data / "one", env=env, wait=False) as one,
        start_server(data / "two", env=env, wait=False) as two,
    ):
        one.wait_until_ready()
        two.wait_until_ready()
        text = "\n".join(one.output)
        assert "ada" in text and "QUJD" not in text
        with sdk_of(one, "QUJD") as sdk:
            sdk.create_table("shared")
        with sdk_of(two, "REVG") as sdk:
            assert [table.name for table in sdk.list_tables()] == ["shared"]
        assert not (data / "one" / "database").exists()
    env["TABLERO_SECRET"] = "not the secret the others know"
    with start_server(data / "three", env=env, wait=False) as live:
        assert live.process.wait(60) == 1
        live.reader.join(60)
    assert "sealed with another secret" in live.output[-1]
