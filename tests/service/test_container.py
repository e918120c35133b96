"""The Containerfile: its steps, and a container of it that is healthy, writes only its volume, and ends in order."""

import json
import re
import shutil
import signal
import socket
import subprocess
import sys

import pytest
from azure.data.tables import TableServiceClient

from tests.live_server import ROOT, LiveServer, clean_environment
from tests.ports import held_port
from tests.seeds import seeded
from tests.service import container
from tests.service.conftest import needs_limits
from tests.waiting import wait_for

PATIENCE = 800  # seconds; a wheel is built and installed
KEY = "c2VjcmV0IGtleSBvZiBhIHRlc3Q="


def test_the_instructions_are_read():
    result = container.read('# first\nFROM python:3 AS build\nRUN one \\\n    && two\n\nCMD ["x"]\n')
    assert result == [("FROM", "python:3 AS build"), ("RUN", "one && two"), ("CMD", '["x"]')]
    with pytest.raises(ValueError, match="unknown instruction SHELL"):
        container.read('SHELL ["bash"]')


def test_packages_come_from_the_lock_and_no_index_is_named():
    text = container.CONTAINERFILE.read_text()
    installs = [line for line in text.splitlines() if "-m pip" in line]
    assert installs
    assert all("--require-hashes -r .lock/run.txt" in line or "--no-deps" in line for line in installs)
    assert "://" not in text and "index" not in text


@pytest.mark.long
@pytest.mark.timeout(1000)
@needs_limits
def test_a_container_is_healthy_and_ends_requests_in_flight(scratch):
    folder, data = scratch / "container", scratch / "volume"
    for path in (folder, data):
        path.mkdir()
    seeded(data / "tablero")
    with held_port() as port:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.service.container", folder, data, str(port)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={
                **clean_environment(),
                "TABLERO_ACCOUNTS": f"acme:{KEY}",
                "TABLERO_LOG_LEVEL": "info",
            },
        )
        live = LiveServer(process, data / "tablero", account="acme", key=KEY, url=f"http://127.0.0.1:{port}")
        try:
            wait_for(lambda: "healthy" in live.output or process.poll() is not None, patience=PATIENCE)
            assert process.poll() is None, live.output
            with TableServiceClient.from_connection_string(live.connection_string) as service:
                service.create_table("people").upsert_entity({"PartitionKey": "se", "RowKey": "ada"})
            with socket.create_connection(("127.0.0.1", port), timeout=60) as unfinished:
                unfinished.sendall(
                    b"POST /acme/Tables HTTP/1.1\r\nHost: localhost\r\n"
                    b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n"
                )
                assert unfinished.recv(100).startswith(b"HTTP/1.1 100")
                process.send_signal(signal.SIGTERM)
                unfinished.sendall(b"{}")
                answer = unfinished.recv(4096).decode()
                assert answer.startswith("HTTP/1.1 403")
            assert process.wait(60) == 0, live.output
            live.reader.join(60)
            number = re.search(r"x-ms-request-id: (\S+)", answer)[1]
            # one line for each event, including those of the start
            logged = [json.loads(line) for line in live.output if line != "healthy"]
            [refused] = [it for it in logged if it.get("request_id") == number]
            assert (refused["level"], refused["account"], refused["operation"]) == (
                "info",
                "acme",
                "CreateTable",
            )
        finally:
            if process.poll() is None:
                process.kill()
                process.wait(60)
            live.reader.join(60)
            process.stdout.close()
            shutil.rmtree(data, ignore_errors=True)
