"""`serve --backup-drill`: the last backup and a moment of the archive are restored by schedule."""

import os
import subprocess
from contextlib import contextmanager
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from storage.backups import archive, last_backup
from storage.health import disk
from storage.server import embedded, metrics, options
from storage.server.archive import archiving, drill, keeper
from storage.server.backups import schedule
from storage.server.refusal import Refusal
from tests.commands import command, manage
from tests.live_server import clean_environment
from tests.waiting import wait_for


@pytest.fixture
def backups(scratch):
    return scratch / f"backups-{uuid4().hex[:8]}"


def test_the_option():
    assert options.read({}).drill_every is None
    given = {"TABLERO_ARCHIVE": "/archive", "TABLERO_BACKUP_DRILL": "7d"}
    assert options.read(given).drill_every.days == 7
    with pytest.raises(Refusal, match="needs TABLERO_BACKUP_TO or TABLERO_ARCHIVE"):
        options.read({"TABLERO_BACKUP_DRILL": "7d"})


def test_a_drill_that_would_fill_the_disk_is_refused(used, backups, monkeypatch):
    monkeypatch.setattr(os, "nice", lambda by: by)
    manage("backup", backups, "--data", used)
    monkeypatch.setattr(disk, "space_of", lambda folder: disk.Space((1 << 30) + (10 << 20), 100 << 30))
    given = {"TABLERO_DATA": str(used), "TABLERO_BACKUP_TO": str(backups)}
    with pytest.raises(Refusal, match="There is no room for the drill"):
        drill.perform(options.read(given), print)
    assert not (used / "drill").exists()


@contextmanager
def serving(data, **given):
    """Run the database of a server, its archive and its drills."""
    result = options.read({"TABLERO_DATA": str(data), **given})
    with (
        metrics.counting(),
        embedded.running(result, purpose="serve", say=print),
        keeper.running(result),
        drill.running(result),
    ):
        yield result


@pytest.mark.long
def test_the_last_backup_and_a_moment_are_restored_and_a_failure_is_recorded(
    used, backups, monkeypatch, caplog
):
    monkeypatch.setattr(keeper, "_LOOK", 1.0)
    monkeypatch.setattr(drill, "_LOOK", 1.0)
    location = backups.with_name(f"{backups.name}-archive")
    given = {
        "TABLERO_BACKUP_TO": str(backups),
        "TABLERO_ARCHIVE": str(location),
        "TABLERO_BACKUP_DRILL": "1s",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)  # the command of the drill reads them
    manage("backup", backups, "--data", used)
    with serving(used, **given) as settings:
        wait_for(lambda: (summary := archive.read(used)) and summary.base_at, patience=300)
        archiving.flush(settings)
        passed = wait_for(lambda: (result := last_backup.read_drill(used)) and result.passed_at and result)
        assert passed.reason == ""
        assert "has restored what it should" in manage("doctor", "--data", used)
        [made] = backups.glob("2*")
        (made / "secret").write_text("changed")
        failed = wait_for(lambda: (result := last_backup.read_drill(used)).reason and result)
    assert "is damaged: secret" in failed.reason and failed.passed_at >= passed.passed_at
    assert f"The drill failed: {failed.reason}" in caplog.text
    assert not (used / "drill").exists()
    assert not list((location / "wal").glob("*.history.gz"))  # no drill has reserved a timeline


@pytest.mark.long
def test_what_a_killed_drill_leaves_is_removed_at_the_next_start(used, backups):
    manage("backup", backups, "--data", used)
    process = subprocess.Popen(
        command("backup", "--drill", "--data", used),
        env={**clean_environment(), "TABLERO_BACKUP_TO": str(backups)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: list((used / "drill").glob("*/data/*")) or process.poll() is not None)
    process.kill()
    process.wait()
    given = options.read({"TABLERO_DATA": str(used), "TABLERO_BACKUP_TO": str(backups)})

    def is_clean():
        with drill.running(given):
            return not (used / "drill").exists()

    wait_for(is_clean)  # a program of it ends in a moment


def test_nothing_is_due_without_something_to_restore(used):
    every = options.read({"TABLERO_ARCHIVE": "/archive", "TABLERO_BACKUP_DRILL": "7d"}).drill_every
    given = options.read(
        {"TABLERO_DATA": str(used), "TABLERO_BACKUP_TO": "/backups", "TABLERO_BACKUP_DRILL": "7d"}
    )
    assert not drill.is_due(given, every)
    with pytest.raises(Refusal, match="there is nothing to restore"):
        drill.perform(given, print)
    last_backup.record(used, last_backup.LastBackup(datetime.now(UTC), "/backups/a"))
    assert drill.is_due(given, every)
    last_backup.record_drill(used, datetime.now(UTC), "")
    assert not drill.is_due(given, every)
    assert schedule.ONE_AT_A_TIME.acquire(blocking=False)
    schedule.ONE_AT_A_TIME.release()
