"""The command copy as users run it: from another server, killed in the middle, and back to it."""

import os
import re
import signal
import subprocess
import sys
import time
import uuid

from storage.domain.entities.entity import Entity, EntityKey, write_stored
from storage.domain.values.edm import Edm, EdmValue
from storage.remote.addresses import allow_all
from storage.remote.client import TableClient
from storage.remote.endpoints import read_endpoint
from tests.live_server import ROOT, clean_environment, start_server

NUMBER = 4000
VARIABLE = "OTHER_SERVICE"
PATIENCE = 60


def client_of(live):
    return TableClient(read_endpoint(live.connection_string), allow_all, time.sleep)


def begin(here, there, *arguments):
    line = [sys.executable, str(ROOT / "manage.py"), "copy", "--data", str(here.data), *arguments]
    environment = {**clean_environment(), VARIABLE: there.connection_string}
    return subprocess.Popen(
        line,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def run(here, there, *arguments):
    process = begin(here, there, *arguments)
    said, _ = process.communicate(timeout=PATIENCE)
    return process.returncode, said


def count(client, table):
    try:
        page, number = client.page(table), 0
    except Exception:  # the table is not made yet
        return 0
    while page.next is not None:
        number += len(page.entities)
        page = client.page(table, page.next)
    return number + len(page.entities)


def test_a_command_that_is_killed_is_finished_by_the_server(server, used):
    table = f"copy{uuid.uuid4().hex[:8]}"
    source = client_of(server)
    source.create_table(table)
    for start in range(0, NUMBER, 100):
        rows = [
            write_stored(Entity(EntityKey("p", f"{it:06}"), {"N": EdmValue(Edm.INT32, it)}), 0)
            for it in range(start, start + 100)
        ]
        source.write(table, rows)
    with start_server(used) as here:
        target = client_of(here)
        process = begin(
            here,
            server,
            f"env:{VARIABLE}",
            here.account,
            "--table",
            table,
            "--rename",
            f"{table}=mine",
            "--rate",
            "1500",
        )
        deadline = time.monotonic() + PATIENCE
        while not 0 < count(target, "mine") < NUMBER:
            assert process.poll() is None and time.monotonic() < deadline, process.stdout.read()
        os.killpg(process.pid, signal.SIGKILL)
        said = process.communicate()[0]
        assert server.key not in said
        [job] = re.findall(r"^(\d+)  account.copy-in", here.manage("job", "list"), re.MULTILINE)
        said = here.manage("job", "wait", job)
        assert f"inserted: {NUMBER:,}" in said and count(target, "mine") == NUMBER

        status, said = run(
            here, server, here.account, f"env:{VARIABLE}", "--table", "mine", "--rename", f"mine={table}b"
        )
        assert status == 0 and f"{NUMBER:,} verified: equal" in said, said
        assert count(source, f"{table}b") == NUMBER
        status, said = run(here, server, "one", "two")
        assert status == 1 and "One of the two must be an account of this server" in said
        status, said = run(here, server, str(ROOT / "no.json"), here.account)
        assert status == 1 and "cannot be read" in said
        target.close()
    source.close()
