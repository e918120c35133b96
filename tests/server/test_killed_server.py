"""A server that is killed in the middle of everything, and the next one on its data.

One server is killed for all of these tests: each part begins something beforehand and looks at it afterwards.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import psutil
import psycopg
import pytest
import requests

from storage.domain.entities.entity import Entity, EntityKey, write_stored
from storage.domain.values.edm import Edm, EdmValue
from storage.remote.addresses import allow_all
from storage.remote.client import RemoteRefused, TableClient
from storage.remote.endpoints import read_endpoint
from storage.server import database, embedded, options
from tests.live_server import ACCOUNT, ROOT, clean_environment, start_server
from tests.notices.conftest import serving
from tests.proxy import proxy
from tests.seeds import seeded
from tests.server.test_metrics import list_tables, settles_at, stored
from tests.waiting import wait_for

pytestmark = pytest.mark.long
PATIENCE = 60
LOOPBACK = {"TABLERO_WEBHOOK_NETWORKS": "127.0.0.0/8"}
CONSTANTS = {
    "storage.notices.sending": {"TIMEOUT": 60.0},
    "storage.runtime.observer": {"_INTERVAL": 0.2, "_SHUTDOWN_TIMEOUT": 45.0},
}


@pytest.fixture(scope="module")
def begun(scratch, server):
    """Kill a server in the middle of a copy and of messages; yield what was begun, and the next server."""
    data = seeded(scratch / "killed")
    with ExitStack() as stack, start_server(data, env=LOOPBACK, constants=CONSTANTS) as killed:
        kill_parts_of_the_database(killed)
        copy = stack.enter_context(begin_copy(server, killed))
        receiver = stack.enter_context(begin_messages(killed))
        list_tables(killed, 20)
        assert settles_at(20, stored, killed)
        postmaster = killed.postmaster()
        killed.kill()
        receiver.received_before = [message_id for message_id, _ in receiver.received]
        receiver.goes_on.set()
        copy.opened.set()
        # at once: waits for the database of the killed one to go
        with start_server(data, env=LOOPBACK, constants=CONSTANTS) as live:
            assert not psutil.pid_exists(postmaster)
            yield SimpleNamespace(live=live, killed=killed, copy=copy, receiver=receiver)


def is_ready(live):
    try:
        return requests.get(live.url + "/ui/readyz", timeout=60).ok
    except requests.ConnectionError:
        return False


def new_postmaster(live, old):
    try:
        return live.postmaster() != old
    except (OSError, IndexError, ValueError):
        return False


def idle_backend(postmaster):
    processes = psutil.process_iter(["ppid", "cmdline"])
    return next(
        it
        for it in processes
        if it.info["ppid"] == postmaster and "idle" in " ".join(it.info["cmdline"] or ())
    )


def is_alive(process):
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def kill_parts_of_the_database(live):
    """Kill a backend, the supervisor and the postmaster; each time the database comes back."""
    wait_for(lambda: is_ready(live))
    idle_backend(live.postmaster()).kill()
    wait_for(lambda: is_ready(live))

    postmaster = live.postmaster()
    process = psutil.Process(postmaster)
    process.parent().kill()  # the supervisor, which takes PostgreSQL along
    wait_for(lambda: not is_alive(process))
    wait_for(lambda: new_postmaster(live, postmaster))
    wait_for(lambda: is_ready(live))
    # and what was restarted is restarted again
    postmaster = live.postmaster()
    backends = psutil.Process(postmaster).children()
    os.kill(postmaster, signal.SIGKILL)
    wait_for(lambda: new_postmaster(live, postmaster))
    assert not any(is_alive(backend) for backend in backends)
    wait_for(lambda: is_ready(live))


def test_whatever_is_killed_of_the_database_comes_back(begun):
    assert any("started again" in line for line in begun.killed.output)
    assert is_ready(begun.live)


# copies from another server, and back to it

NUMBER = 4000
VARIABLE = "OTHER_SERVICE"
TABLE = f"copy{uuid.uuid4().hex[:8]}"


def client_of(live):
    return TableClient(read_endpoint(live.connection_string), allow_all, time.sleep)


def begin(here, text, *arguments):
    line = [sys.executable, str(ROOT / "manage.py"), "copy", "--data", str(here.data), *arguments]
    return subprocess.Popen(
        line,
        env={**clean_environment(), VARIABLE: text},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def run(here, text, *arguments):
    process = begin(here, text, *arguments)
    said, _ = process.communicate(timeout=PATIENCE)
    return process.returncode, said


def count(client, table):
    """Return the number of entities of a table, each counted once, or 0 if there is no table yet."""
    try:
        page = client.page(table)
    except RemoteRefused:
        return 0
    keys = [it["RowKey"] for it in page.entities]
    while page.next is not None:
        page = client.page(table, page.next)
        keys += [it["RowKey"] for it in page.entities]
    assert len(set(keys)) == len(keys)
    return len(keys)


@contextmanager
def gate(server, requests):
    """Yield a proxy that holds what comes after some requests: its text, whether it does, and what opens it."""
    held, opened = threading.Event(), threading.Event()

    def hold(number):
        if number >= requests:
            held.set()
            opened.wait()

    with proxy(server, hold) as text:
        try:
            yield SimpleNamespace(text=text, held=held, opened=opened)
        finally:
            opened.set()


def kill_held(here, gate, *arguments):
    """Kill a copy that waits for the other side; return what it has said."""
    process = begin(here, gate.text, *arguments)
    assert gate.held.wait(PATIENCE), process.poll()
    os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()[0]


def wait_for_job(here, kind):
    number = re.findall(rf"^(\d+)  {kind}", here.manage("job", "list"), re.MULTILINE)[0]
    return here.manage("job", "wait", number)


@contextmanager
def begin_copy(server, here):
    """Kill the command while the other side does not answer."""
    source = client_of(server)
    source.create_table(TABLE)
    for start in range(0, NUMBER, 100):
        rows = [
            write_stored(Entity(EntityKey("p", f"{it:06}"), {"N": EdmValue(Edm.INT32, it)}), 0)
            for it in range(start, start + 100)
        ]
        source.write(TABLE, rows)
    source.close()
    with gate(server, 3) as waiting:
        arguments = (f"env:{VARIABLE}", ACCOUNT, "--table", TABLE, "--rename", f"{TABLE}=mine")
        assert server.key not in kill_held(here, waiting, *arguments, "--no-properties")
        yield waiting


def test_a_killed_copy_is_finished_with_each_entity_once(begun, server):
    """The command and the server were killed while the other side did not answer; on the way back, the command."""
    here = begun.live
    assert f"inserted: {NUMBER:,}" in wait_for_job(here, "account.copy-in")
    target = client_of(here)
    assert count(target, "mine") == NUMBER
    target.close()
    back = (ACCOUNT, f"env:{VARIABLE}", "--table", "mine", "--rename", f"mine={TABLE}b", "--no-properties")
    with gate(server, 12) as waiting:
        kill_held(here, waiting, *back)
        waiting.opened.set()
        wait_for_job(here, "account.copy-out")
        source = client_of(server)
        assert count(source, f"{TABLE}b") == NUMBER
        source.close()
        status, said = run(here, waiting.text, *back)
    assert status == 0 and "equal" in said, said
    status, said = run(here, "", "one", "two")
    assert status == 1 and "One of the two must be an account of this server" in said
    status, said = run(here, "", str(ROOT / "no.json"), ACCOUNT)
    assert status == 1 and "cannot be read" in said


# messages of webhooks

MESSAGES = {str(uuid.uuid4()): f'{{"type":"notice.opened","number":{number}}}' for number in range(9)}
INSERT = """
    INSERT INTO storage_noticedelivery (webhook_id, event, message_id, body, created_at, due_at, attempts, error)
    SELECT id, 'opened', %s, %s, now(), now() - interval '1 hour', 0, '' FROM storage_webhook
"""


class Receiver:
    """Accepts two messages, then keeps the sender waiting until ``goes_on``."""

    def __init__(self):
        self.received = []
        self.received_before = []
        self.is_reached = threading.Event()
        self.goes_on = threading.Event()

    def take(self, message_id, body):
        self.received.append((message_id, body))
        if len(self.received) > 3:  # two are sent at a time: nothing else is on its way
            self.is_reached.set()
        if len(self.received) > 2:
            self.goes_on.wait(60)


def connected(data):
    conninfo = database.conninfo(options.read({"TABLERO_DATA": str(data)}))
    return psycopg.connect(conninfo, autocommit=True)


@contextmanager
def begin_messages(live):
    """Let a receiver keep the server waiting with some of the messages that it has sent."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            length = int(self.headers["Content-Length"])
            body = self.rfile.read(length)
            if len(body) < length:  # the sender was killed before it was sent
                return
            receiver.take(self.headers["webhook-id"], body.decode())
            self.send_response(204)
            self.end_headers()

        def log_message(self, *arguments):
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as (host, port):
        live.manage("user", "add", "robot", "--admin")
        response = requests.post(
            f"{live.url}/ui/api/v1/webhooks",
            # the server may open notices of other kinds on this machine
            json={"name": "hook", "url": f"http://{host}:{port}/", "kinds": ["errors.high"]},
            headers={"Authorization": f"Bearer {live.add_token('robot', 'hooks')}"},
            timeout=60,
        )
        assert response.status_code == 201, response.text
        with connected(live.data) as db:
            db.cursor().executemany(INSERT, list(MESSAGES.items()))
        assert receiver.is_reached.wait(60)
        yield receiver


def test_no_message_is_lost_and_one_is_repeated_with_its_id(begun):
    with connected(begun.live.data) as db:
        db.execute("UPDATE storage_noticedelivery SET due_at = now() WHERE due_at IS NOT NULL")
        due = "SELECT 1 FROM storage_noticedelivery WHERE due_at IS NOT NULL"
        wait_for(lambda: not db.execute(due).fetchone())
        ended = db.execute("SELECT message_id::text, status FROM storage_noticedelivery").fetchall()
    assert dict(ended) == dict.fromkeys(MESSAGES, 204)
    times = Counter(message_id for message_id, _ in begun.receiver.received)
    assert times.keys() == MESSAGES.keys()
    assert set(begun.receiver.received) == set(MESSAGES.items())  # a repetition is the same, byte for byte
    repeated = {message_id for message_id, number in times.items() if number > 1}
    assert repeated and repeated <= set(begun.receiver.received_before)
    assert max(times.values()) == 2


def test_the_orderly_end_of_the_next_server_leaves_nothing_behind(begun):
    """The last of these tests. No count of requests was lost, neither by the kill nor by the end."""
    data = begun.live.data
    postmaster = begun.live.postmaster()
    list_tables(begun.live, 5)
    assert begun.live.stop() == 0
    assert not psutil.pid_exists(postmaster)
    assert "database system is shut down" in (data / "postgres.log").read_text()  # needs no recovery
    assert not (data / "database" / "postmaster.pid").exists()
    with embedded.running(options.read({"TABLERO_DATA": str(data)}), purpose="test", say=print):
        assert stored(begun.live) == 25
