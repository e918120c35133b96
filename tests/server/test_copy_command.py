"""The command copy as users run it: from another server, killed in the middle, and back to it."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from contextlib import contextmanager

import pytest

from storage.domain.entities.entity import Entity, EntityKey, write_stored
from storage.domain.values.edm import Edm, EdmValue
from storage.remote.addresses import allow_all
from storage.remote.client import RemoteRefused, TableClient
from storage.remote.endpoints import read_endpoint
from tests.live_server import ACCOUNT, ROOT, clean_environment, start_server
from tests.proxy import proxy

NUMBER = 4000
VARIABLE = "OTHER_SERVICE"
PATIENCE = 60


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
    """Yield the text of a proxy that holds what comes after some requests, whether it does, and what opens it."""
    held, opened = threading.Event(), threading.Event()

    def hold(number):
        if number >= requests:
            held.set()
            opened.wait()

    with proxy(server, hold) as text:
        try:
            yield text, held, opened
        finally:
            opened.set()


def kill_held(here, text, held, *arguments):
    """Kill a copy that waits for the other side; return what it has said."""
    process = begin(here, text, *arguments)
    assert held.wait(PATIENCE), process.poll()
    os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()[0]


def wait_for_job(here, kind):
    number = re.findall(rf"^(\d+)  {kind}", here.manage("job", "list"), re.MULTILINE)[0]
    return here.manage("job", "wait", number)


@pytest.mark.long
def test_a_killed_copy_is_finished_with_each_entity_once(server, used):
    """The command, and once the server too, are killed while the other side does not answer."""
    table = f"copy{uuid.uuid4().hex[:8]}"
    source = client_of(server)
    source.create_table(table)
    for start in range(0, NUMBER, 100):
        rows = [
            write_stored(Entity(EntityKey("p", f"{it:06}"), {"N": EdmValue(Edm.INT32, it)}), 0)
            for it in range(start, start + 100)
        ]
        source.write(table, rows)
    into = (f"env:{VARIABLE}", ACCOUNT, "--table", table, "--rename", f"{table}=mine", "--no-properties")
    back = (ACCOUNT, f"env:{VARIABLE}", "--table", "mine", "--rename", f"mine={table}b", "--no-properties")
    with gate(server, 3) as (text, held, opened):
        with start_server(used) as here:
            assert server.key not in kill_held(here, text, held, *into)
            here.kill()
        opened.set()
        with start_server(used) as here:
            assert f"inserted: {NUMBER:,}" in wait_for_job(here, "account.copy-in")
            target = client_of(here)
            assert count(target, "mine") == NUMBER
            target.close()
            with gate(server, 12) as (text, held, opened):
                kill_held(here, text, held, *back)
                opened.set()
                wait_for_job(here, "account.copy-out")
                assert count(source, f"{table}b") == NUMBER
                status, said = run(here, text, *back)
            assert status == 0 and "equal" in said, said
            status, said = run(here, "", "one", "two")
            assert status == 1 and "One of the two must be an account of this server" in said
            status, said = run(here, "", str(ROOT / "no.json"), ACCOUNT)
            assert status == 1 and "cannot be read" in said
    source.close()
