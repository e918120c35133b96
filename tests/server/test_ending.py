"""The end of a server: with requests in flight, by signals, and with its terminal."""

import os
import pty
import signal
import subprocess
import sys
import time
from uuid import uuid4

import psutil
import pytest
import requests
from azure.data.tables import TableServiceClient

from storage.backups import last_backup
from storage.server.backups import description
from storage.server.backups.stores import FolderStore
from storage.server.data_folder import DataFolder
from tests.live_server import ROOT, clean_environment, start_server
from tests.server.requests_in_flight import PATIENT, begin_request, command_line, is_listening
from tests.waiting import wait_for

pytestmark = pytest.mark.long
ANYWHERE = ("--listen", "0.0.0.0:0")

IN_A_TERMINAL = """
import fcntl, os, signal, sys, termios
os.setsid()
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # who runs the tests with nohup has it ignored
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def test_drains_no_longer_than_it_may_and_ends_its_backup(used, scratch):
    """Ten seconds, here one. The development account is only on loopback."""
    backups = scratch / f"backups-{uuid4().hex[:8]}"
    constants = {
        "storage.server.http_server": {"DRAIN": 1},
        "storage.server.backups.schedule": {"_PATIENCE": 45.0},
    }
    arguments = (*ANYWHERE, "--backup-to", str(backups), "--backup-every", "1s")
    with start_server(used, *arguments, constants=constants) as live:
        text = "\n".join(live.output)
        assert "No account exists yet" in text and "without TLS" in text
        address = f"http://127.0.0.1:{live.port}/devstoreaccount1/Tables"
        assert b"AuthenticationFailed" in requests.get(address, timeout=60).content
        with begin_request(live):
            wait_for(lambda: list(backups.glob(".*.part")))
            began = time.monotonic()
            assert live.stop() == 0
            assert time.monotonic() - began > 0.9
    assert live.gave_up_requests
    made = ["", *(it.location for it in description.backups(FolderStore(backups)))]
    last = last_backup.read(used).last
    assert (last.path if last else "") in made[-2:]  # the newest may have ended before it was recorded
    assert not list(backups.glob(".*.part"))
    assert last_backup.read(used).failure is None


def test_the_next_start_does_not_mind_a_signal_while_starting_and_a_second_signal_stops_at_once(scratch):
    """The path has all kinds of characters, and the umask forbids everything to all others."""
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
        with start_server(data, *ANYWHERE, "--allow-development-account", constants=PATIENT) as live:
            assert requests.get(f"http://127.0.0.1:{live.port}/ui/readyz", timeout=60).status_code == 200
            private = (
                data / "secret",
                data / "database.lock",
                data / "database",
                DataFolder(data).socket_folder,
            )
            modes = [path.stat().st_mode & 0o777 for path in private]
            stop_at_once(live)
    finally:
        os.umask(before)
    assert modes == [0o600, 0o600, 0o700, 0o700]
    assert data.stat().st_mode & 0o066 == 0
    assert (parent.stat().st_mode & 0o777, parent.stat().st_uid) == (0o751, os.geteuid())


def stop_at_once(live):
    """Stop a server that may have the development account, by two signals, with a request in flight."""
    assert "its key is public" in "\n".join(live.output)
    with TableServiceClient.from_connection_string(live.connection_string) as sdk:
        assert list(sdk.list_tables()) == []
    with begin_request(live):
        postmaster, lines_before = live.postmaster(), len(live.output)
        live.process.send_signal(signal.SIGINT)
        wait_for(lambda: not is_listening(live))  # two signals that wait together are one
        live.process.send_signal(signal.SIGINT)
        live.process.wait(60)
        assert not psutil.pid_exists(postmaster)
        live.reader.join(60)
        # not a word of the lost database, nor of ten seconds that are over
        assert live.output[lines_before:] == ["Stopping ..."]


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
