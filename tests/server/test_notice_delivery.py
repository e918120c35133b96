"""Webhooks of a server that is killed while it sends."""

import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import uuid4

import psycopg
import pytest
import requests

from storage.server.data_folder import DataFolder
from tests.live_server import start_server
from tests.notices.conftest import serving
from tests.waiting import wait_for

NUMBER = 9
LOOPBACK = {"TABLERO_WEBHOOK_NETWORKS": "127.0.0.0/8"}
PATIENT = {"storage.notices.sending": {"TIMEOUT": 60.0}}
INSERT = """
    INSERT INTO storage_noticedelivery (webhook_id, event, message_id, body, created_at, due_at, attempts, error)
    SELECT id, 'opened', %s, %s, now(), now() - interval '1 hour', 0, '' FROM storage_webhook
"""


class Receiver:
    """Accepts two messages, then keeps the sender waiting until ``goes_on``."""

    def __init__(self):
        self.received = []
        self.is_reached = threading.Event()
        self.goes_on = threading.Event()

    def take(self, message_id, body):
        self.received.append((message_id, body))
        if len(self.received) > 3:  # two are sent at a time: nothing else is on its way
            self.is_reached.set()
        if len(self.received) > 2:
            self.goes_on.wait(60)


@pytest.mark.long
def test_a_kill_in_the_middle_loses_no_message_and_repeats_it_with_its_id(used):
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

    messages = {str(uuid4()): f'{{"type":"notice.opened","number":{number}}}' for number in range(NUMBER)}
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as (host, port):
        with start_server(used, env=LOOPBACK, constants=PATIENT) as live:
            live.manage("user", "add", "robot", "--admin")
            response = requests.post(
                f"{live.url}/ui/api/v1/webhooks",
                # the server may open notices of other kinds on this machine
                json={"name": "hook", "url": f"http://{host}:{port}/", "kinds": ["errors.high"]},
                headers={"Authorization": f"Bearer {live.add_token('robot', 'hooks')}"},
                timeout=60,
            )
            assert response.status_code == 201, response.text
            with psycopg.connect(f"host={DataFolder(used).socket_folder} user=tablero dbname=tablero") as db:
                db.cursor().executemany(INSERT, list(messages.items()))
            assert receiver.is_reached.wait(60)
            live.kill()
        before = [message_id for message_id, _ in receiver.received]
        receiver.goes_on.set()

        with start_server(used, env=LOOPBACK, constants=PATIENT):
            connection = f"host={DataFolder(used).socket_folder} user=tablero dbname=tablero"
            with psycopg.connect(connection, autocommit=True) as db:
                db.execute("UPDATE storage_noticedelivery SET due_at = now() WHERE due_at IS NOT NULL")
                due = "SELECT 1 FROM storage_noticedelivery WHERE due_at IS NOT NULL"
                wait_for(lambda: not db.execute(due).fetchone())
                ended = db.execute("SELECT message_id::text, status FROM storage_noticedelivery").fetchall()

    assert dict(ended) == dict.fromkeys(messages, 204)
    times = Counter(message_id for message_id, _ in receiver.received)
    assert times.keys() == messages.keys()
    assert set(receiver.received) == set(messages.items())  # a repetition is the same, byte for byte
    repeated = {message_id for message_id, number in times.items() if number > 1}
    assert repeated and repeated <= set(before)
    assert max(times.values()) == 2
