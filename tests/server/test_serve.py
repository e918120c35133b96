"""`manage.py serve` as a process: addresses, signals, workers, TLS, another database."""

import json
import os
import pty
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
import warnings

import psutil
import psycopg
import pytest
import requests
from azure.data.tables import TableServiceClient
from psycopg.conninfo import make_conninfo

from storage.server.data_folder import DataFolder
from tests.certificates import make_certificate
from tests.live_server import ROOT, clean_environment, start_server
from tests.service import container
from tests.waiting import wait_for

PATIENT = {"storage.server.http_server": {"DRAIN": 50}}  # seconds for requests in flight, in place of ten
UNFINISHED = (
    b"POST /devstoreaccount1/Tables HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Length: 20\r\nExpect: 100-continue\r\n\r\n"
)


def get(url, host=None):
    response = requests.get(url, headers={"Host": host} if host else {}, timeout=60)
    return response.status_code, response.content


def begin_request(live):
    connection = socket.create_connection(("127.0.0.1", live.port), timeout=60)
    connection.sendall(UNFINISHED)
    assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.sendall(b"{")
    return connection


def is_listening(live):
    try:
        socket.create_connection(("127.0.0.1", live.port), timeout=60).close()
    except ConnectionRefusedError:
        return False
    return True


def refusal(*arguments, data, env=None):
    """What a server says that does not start."""
    with start_server(data, *arguments, env=env, wait=False) as live:
        assert live.process.wait(60) == 1
        live.reader.join(60)
        assert not any("Traceback" in line for line in live.output), live.output
        return live.output[-1]


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
def test_nobody_fills_the_disk_through_the_console(server, path):
    """Django writes bodies down before it looks at a request."""
    said = len(server.output)
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
    assert not any("Traceback" in line for line in server.output[said:])


def test_drains_no_longer_than_it_may_and_the_development_account_is_only_on_loopback(used):
    """Ten seconds, here one."""
    hurried = {"storage.server.http_server": {"DRAIN": 1}}
    with start_server(used, "--listen", "0.0.0.0:0", hurried=hurried) as live, begin_request(live):
        text = "\n".join(live.output)
        assert "No account exists yet" in text and "without TLS" in text
        assert b"AuthenticationFailed" in get(f"http://127.0.0.1:{live.port}/devstoreaccount1/Tables")[1]
        began = time.monotonic()
        live.stop()
        assert time.monotonic() - began > 0.9
    assert live.gave_up_requests


def test_second_signal_stops_at_once_and_the_development_account_can_be_allowed(used):
    arguments = ("--listen", "0.0.0.0:0", "--allow-development-account")
    with start_server(used, *arguments, hurried=PATIENT) as live, begin_request(live):
        assert "its key is public" in "\n".join(live.output)
        with TableServiceClient.from_connection_string(live.connection_string) as sdk:
            assert list(sdk.list_tables()) == []
        postmaster, said = live.postmaster(), len(live.output)
        live.process.send_signal(signal.SIGINT)
        while is_listening(live):  # two signals that wait together are one
            time.sleep(0.1)
        live.process.send_signal(signal.SIGINT)
        live.process.wait(60)
        assert not psutil.pid_exists(postmaster)
        live.reader.join(60)
        # not a word of the lost database, nor of ten seconds that are over
        assert live.output[said:] == ["Stopping ..."]


def test_signal_while_starting_leaves_nothing_behind_that_the_next_start_minds(scratch):
    """At a path with all kinds of characters, and with a umask that forbids all others everything."""
    parent = scratch / "parent"
    parent.mkdir()
    parent.chmod(0o751)
    data = parent / "it's new, 100 % é"
    before = os.umask(0o077)
    try:
        with start_server(data, wait=False) as live:
            wait_for(data.exists)
            live.process.send_signal(signal.SIGTERM)
            live.process.wait(60)
            # PostgreSQL's of an initdb that was killed ends when it has noticed that
            wait_for(lambda: not any(str(data) in " ".join(command_line(it)) for it in psutil.process_iter()))
        (data / "database.new" / "base").mkdir(parents=True, exist_ok=True)  # where a kill would have left it
        with start_server(data) as live:
            assert get(f"{live.url}/ui/readyz")[0] == 200
            private = (data / "secret", data / "database", DataFolder(data).socket_folder)
            modes = [path.stat().st_mode & 0o777 for path in private]
    finally:
        os.umask(before)
    assert modes == [0o600, 0o700, 0o700]
    assert data.stat().st_mode & 0o066 == 0
    assert (parent.stat().st_mode & 0o777, parent.stat().st_uid) == (0o751, os.geteuid())


def command_line(process):
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def find_workers(live):
    return [
        child
        for child in psutil.Process(live.pid).children()
        if "storage.server.worker" in command_line(child)
    ]


def test_host_style_a_database_that_is_away_and_requests_in_flight_at_the_end(used):
    with start_server(used, "--host-suffix", "table.localhost", hurried=PATIENT) as live:
        assert f"http://devstoreaccount1.table.localhost:{live.port}" in "\n".join(live.output)
        for path in ("/", "/ui/healthz", "/Tables"):
            assert b"AuthenticationFailed" in get(live.url + path, host="devstoreaccount1.table.localhost")[1]
        live.process.send_signal(signal.SIGHUP)  # which without TLS changes nothing
        is_not_ready_without_its_database(live)
        connection = begin_request(live)
        live.process.send_signal(signal.SIGTERM)
        while is_listening(live):
            time.sleep(0.1)
        assert live.process.poll() is None
        connection.sendall(b" " * 19)
        assert connection.recv(100).startswith(b"HTTP/1.1 ")
        assert live.process.wait(60) == 0
        connection.close()


def is_not_ready_without_its_database(live):
    at = {"host": str(DataFolder(live.data).socket_folder), "user": "tablero", "dbname": "postgres"}
    with psycopg.connect(**at, autocommit=True) as conn:
        conn.execute("ALTER DATABASE tablero CONNECTION LIMIT 0")
        conn.execute("ALTER DATABASE tablero ALLOW_CONNECTIONS false")
        conn.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'tablero'")
        status, body = get(f"{live.url}/ui/readyz")
        assert (status, json.loads(body)["status"]) == (503, "unavailable")
        assert get(f"{live.url}/ui/healthz")[0] == 200
        conn.execute("ALTER DATABASE tablero ALLOW_CONNECTIONS true CONNECTION LIMIT -1")
        wait_for(lambda: get(f"{live.url}/ui/readyz")[0] == 200)


def test_tls_and_an_idle_client_that_does_not_delay_the_end(used, scratch):
    cert, key = map(str, make_certificate(scratch))
    arguments = ("--tls-cert", cert, "--tls-key", key)
    with start_server(used, *arguments, hurried=PATIENT) as live, requests.Session() as idle:
        assert live.url.startswith("https://")
        with TableServiceClient.from_connection_string(live.connection_string, connection_verify=cert) as sdk:
            assert list(sdk.list_tables()) == []
        assert idle.get(f"{live.url}/ui/healthz", verify=cert).status_code == 200
        assert idle.get(f"{live.url}/ui/login/", verify=cert).headers["Set-Cookie"].count("; Secure") == 1
        assert "GCM" in agreed(live, ssl.TLSVersion.TLSv1_2)
        for version, ciphers in ((ssl.TLSVersion.TLSv1_1, "ALL"), (ssl.TLSVersion.TLSv1_2, "ECDHE+AES+SHA")):
            with pytest.raises(ssl.SSLError):
                agreed(live, version, ciphers)
        assert health(live.port) == 0
        sighup_reads_the_certificate_again(live, scratch)
        assert live.stop() == 0
    assert not live.gave_up_requests
    assert health(live.port) == 1


def test_workers_read_the_certificate_again(used, scratch):
    cert, key = map(str, make_certificate(scratch))
    with start_server(used, "--tls-cert", cert, "--tls-key", key, "--workers", "2") as live:
        sighup_reads_the_certificate_again(live, scratch)
        make_certificate(scratch)  # also without a signal, as where a volume of secrets is renewed
        wait_for(lambda: all(shown(live) == (scratch / "cert.pem").read_text().strip() for _ in range(10)))
        workers = find_workers(live)
        assert live.stop() == 0
        assert not any(worker.is_running() for worker in workers)


def shown(live):
    return ssl.get_server_certificate(("127.0.0.1", live.port)).strip()


def sighup_reads_the_certificate_again(live, folder):
    before = shown(live)
    assert before == (folder / "cert.pem").read_text().strip()
    (folder / "key.pem").write_text("half a key")
    live.process.send_signal(signal.SIGHUP)
    wait_for(lambda: any("goes on with the certificate it has" in line for line in live.output))
    assert shown(live) == before
    cert, _ = make_certificate(folder)
    live.process.send_signal(signal.SIGHUP)
    wait_for(lambda: all(shown(live) == cert.read_text().strip() for _ in range(10)))


def health(port):
    """The exit status of the health check of the image for a server at a port."""
    text = container.CONTAINERFILE.read_text()
    [program] = [it for name, it in container.read(text[text.rindex("\nFROM") :]) if name == "HEALTHCHECK"]
    code = json.loads(program.partition("CMD ")[2])[-1]
    patient = code.replace("10002", str(port)).replace("timeout=4", "timeout=60")
    return subprocess.run([sys.executable, "-c", patient], check=False).returncode


def agreed(live, version, ciphers="DEFAULT"):
    """The cipher suite of a connection of this version of TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with warnings.catch_warnings(action="ignore"):  # for the old version
        context.minimum_version = context.maximum_version = version
    context.set_ciphers(f"{ciphers}:@SECLEVEL=0")
    with (
        socket.create_connection(("127.0.0.1", live.port), 60) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        return secure.cipher()[0]


IN_A_TERMINAL = """
import fcntl, os, signal, sys, termios
os.setsid()
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # who runs the tests with nohup has it ignored
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def test_a_server_ends_with_its_terminal(used):
    terminal, end = pty.openpty()
    command = [sys.executable, "-c", IN_A_TERMINAL, str(ROOT / "manage.py"), "serve", "--data", str(used)]
    with subprocess.Popen(
        [*command, "--listen", "127.0.0.1:0"], stdin=end, stdout=end, stderr=end, env=clean_environment()
    ) as process:
        os.close(end)
        said = b""
        while b"Ready" not in said:
            said += os.read(terminal, 4096)
        os.close(terminal)
        assert process.wait(60) == 0


def test_refuses_a_certificate_that_is_none(data, scratch):
    (scratch / "none.pem").write_text("nothing")
    none = str(scratch / "none.pem")
    assert "cannot be used" in refusal("--tls-cert", none, "--tls-key", none, data=data)
    assert "cannot be used" in refusal("--tls-cert", "/missing", "--tls-key", none, data=data)


def test_refuses_a_port_in_use(server, data):
    said = refusal("--listen", f"127.0.0.1:{server.port}", data=data)
    assert f"The port {server.port} on 127.0.0.1 is in use; choose another with --listen" in said


def test_refuses_the_public_key_elsewhere(data, server):
    env = {
        "AZURITE_ACCOUNTS": f"other:{server.key}",
        "DATABASE_URL": f"postgresql:///tablero?host={DataFolder(server.data).socket_folder}&user=tablero",
        "TABLERO_SECRET": (server.data / "secret").read_text().strip(),
    }
    assert "has the public key of" in refusal("--listen", "0.0.0.0:0", data=data, env=env)


def test_another_database(data, postgres):
    """Two servers that start at once on one empty database, with one secret and one declared account."""
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
    said = refusal(data=data / "three", env={**env, "TABLERO_SECRET": "not the secret the others know"})
    assert "sealed with another secret" in said


def test_database_that_cannot_be_reached(data):
    env = {"DATABASE_URL": "postgresql://user:verysecret@127.0.0.1:9/none"}
    said = refusal(data=data, env=env)
    assert "The database cannot be reached" in said
    assert "verysecret" not in said


def test_secrets_stand_in_no_command_line(server):
    family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
    secret = (server.data / "secret").read_text().strip()
    assert not any(secret in " ".join(command_line(process)) for process in family)
    postmaster = psutil.Process(server.postmaster())
    assert not re.search("TABLERO|PATH_INFO", " ".join(postmaster.environ())) or os.geteuid() != 0
