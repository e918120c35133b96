"""The unit of systemd: what systemd says of it, and a server within its limits."""

import socket
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from azure.data.tables import TableServiceClient

from tests.live_server import ROOT, LiveServer, clean_environment
from tests.service.conftest import SERVICE, needs_limits

UNIT = SERVICE / "tablero.service"
EXPOSURE = 20  # in tenths, of 100; systemd calls what is below 20 well protected


@pytest.fixture(autouse=True)
def systemd_analyze(require):
    return require("systemd-analyze", "the unit")


def test_systemd_accepts_the_unit(systemd_analyze, tmp_path):
    text = UNIT.read_text()
    assert "/opt/tablero/bin/tablero" in text
    unit = tmp_path / "tablero.service"
    unit.write_text(text.replace("/opt/tablero/bin/tablero", sys.executable))
    done = subprocess.run([systemd_analyze, "verify", unit], capture_output=True, text=True)
    assert (done.returncode, [line for line in done.stderr.splitlines() if unit.name in line]) == (0, [])


def test_little_is_exposed(systemd_analyze):
    command = [systemd_analyze, "security", "--no-pager", "--offline=true", f"--threshold={EXPOSURE}", UNIT]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.long
@needs_limits
def test_serves_within_the_limits_of_the_unit(folder_of_nobody):
    """The unit covers the whole life of the server; systemd is notified of start, stop and, in between, of
    readiness.
    """
    address = f"tablero-{uuid4().hex}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{address}")
        manager.settimeout(60)
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.service.sandbox", UNIT, folder_of_nobody, "--"),
                *(sys.executable, ROOT / "manage.py", "serve", "--data", folder_of_nobody / "data"),
                *("--listen", "127.0.0.1:0"),
            ],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={
                **clean_environment(),
                "HOME": str(folder_of_nobody),
                "TMPDIR": str(folder_of_nobody),
                "NOTIFY_SOCKET": f"@{address}",
                "WATCHDOG_USEC": "4000000",
            },
        )
        live = LiveServer(process, folder_of_nobody / "data")
        told = []
        try:
            live.wait_until_ready()
            limits = status(process.pid)
            assert (limits["NoNewPrivs"], limits["Seccomp"], limits["CapEff"]) == ("1", "2", "0" * 16)
            assert status(live.postmaster())["Seccomp"] == "2"
            with TableServiceClient.from_connection_string(live.connection_string) as service:
                people = service.create_table("people")
                people.upsert_entity({"PartitionKey": "se", "RowKey": "ada"})
                assert [it["RowKey"] for it in people.list_entities()] == ["ada"]
            while "WATCHDOG=1" not in told:
                told += manager.recv(4096).decode().splitlines()
            assert live.stop() == 0
        finally:
            if process.poll() is None:
                live.kill()
            live.reader.join(60)
            process.stdout.close()
        while "STOPPING=1" not in told:
            told += manager.recv(4096).decode().splitlines()
    assert told.index("READY=1") < told.index("STOPPING=1")
    assert f"STATUS=Tablero serves on {live.url}" in told


def status(pid):
    """Return the kernel's status of a process, by name."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
