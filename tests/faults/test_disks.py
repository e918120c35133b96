"""Disks that are full, or that the system makes read-only because of an error."""

import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import requests

from storage.server import metrics
from storage.server.refusal import Refusal
from tests.live_server import ROOT, clean_environment, start_server
from tests.seeds import seeded
from tests.tools.checker.clients import Endpoint, Load
from tests.tools.checker.levels import Checker
from tests.waiting import wait_for

pytestmark = pytest.mark.long

SIZE = "224m"  # a database, its log, and some more
BEFORE = 100


def mounts():
    """Return whether this user may mount file systems."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return False
    folder = Path(tempfile.mkdtemp())
    try:
        with mounted(folder, "-t", "tmpfs", "-o", "size=1m", "tmpfs"):
            return True
    except subprocess.CalledProcessError:
        return False
    finally:
        folder.rmdir()


@contextmanager
def mounted(folder, *what):
    subprocess.run(["mount", *what, folder], check=True, capture_output=True)
    try:
        folder.chmod(0o711)  # root's PostgreSQL passes through
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


needs_mounts = pytest.mark.skipif(not mounts(), reason="only root may mount a small disk")


def endpoint(live):
    return Endpoint(live.port, live.account, live.key)


def writers(live, table):
    load = Load(endpoint(live), table)
    load.add_writers(6)
    return load


def check_nothing_is_lost(load, live):
    checker = Checker(load.history)
    assert checker.violations == []
    assert checker.lost(load.final(endpoint(live))) == []


def readiness(live):
    answer = requests.get(f"{live.url}/ui/readyz", timeout=60)
    return answer.json().get("reason", "")


def doctor(data):
    command = [sys.executable, ROOT / "manage.py", "doctor", "--data", data]
    done = subprocess.run(
        command, env=clean_environment(), capture_output=True, text=True, timeout=180, check=False
    )
    return done.stdout + done.stderr


def refusal(data):
    with start_server(data, wait=False) as live:
        assert live.process.wait(60) == 1
        live.reader.join(60)
    assert not any("Traceback" in line for line in live.output), "\n".join(live.output)
    return live.output[-1]


@needs_mounts
def test_a_full_disk_loses_nothing_and_the_server_recovers(start, scratch, table):
    small = scratch / "small"
    small.mkdir()
    with mounted(small, "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs"), start(seeded(small / "data")) as live:
        load = writers(live, table)
        with load.running():
            load.wait_for_answers(BEFORE)
            filler = small / "filler"
            with filler.open("wb") as file, suppress(OSError):
                while True:
                    os.write(file.fileno(), bytes(65536))
            wait_for(lambda: load.history.refused and says_full(live), "the disk to be full")
            assert "PostgreSQL cannot write. Make room on it." in doctor(live.data)
            filler.unlink()
            load.wait_for_answers(BEFORE)
            wait_for(lambda: readiness(live) == "", "readiness")
        check_nothing_is_lost(load, live)


def says_full(live):
    """PostgreSQL stops only when it needs another file for its log; until then it answers reads."""
    said = "\n".join(live.output)
    return "PostgreSQL has no space left on its disk" in said or "The disk is full." in said


@needs_mounts
def test_a_read_only_disk_is_named_and_loses_nothing(require, start, scratch, table):
    """ext4 does so after an error of its device, with files open; it is repaired and mounted again."""
    mkfs, fsck = (require(name, "a disk with errors") for name in ("mkfs.ext4", "fsck.ext4"))
    folder, image, repaired = scratch / "ext4", scratch / "image", scratch / "repaired"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(300 << 20)
    subprocess.run([mkfs, "-q", image], check=True)
    data = folder / "data"
    with mounted(folder, "-o", "loop", image):
        seeded(data)
        subprocess.run(["sync", "--file-system", folder], check=True)  # copied files are not part of the test
        with start(data) as live:
            load = writers(live, table)
            with load.running():
                load.wait_for_answers(BEFORE)
                subprocess.run(["mount", "-o", "remount,abort", folder], check=True)
                reason = "The disk of the database is read-only."
                wait_for(lambda: readiness(live) == reason, "the reason")
                wait_for(lambda: "(Read-only file system)" in "\n".join(live.output), "the message")
            assert live.process.poll() is None
            assert live.stop() == 0
        assert f"The file system of {data} is read-only. Repair it, and mount it again." in refusal(data)
    # a copy, since the file system lives on where other tests have taken its mount along into a namespace of theirs
    subprocess.run(["cp", "--sparse=always", image, repaired], check=True)
    subprocess.run([fsck, "-y", repaired], check=False, capture_output=True)
    with mounted(folder, "-o", "loop", repaired), start(data) as live:
        check_nothing_is_lost(load, live)


def test_an_unusable_temporary_folder(scratch, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(scratch / "missing"))
    with pytest.raises(Refusal, match=r"No temporary files can be made .*TMPDIR"), metrics.counting():
        pass
