"""`serve --backup-to`: scheduled backups of the server, and failures of them; test_ending.py ends one."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from storage.backups import last_backup
from storage.backups.last_backup import Kind, LastBackup
from storage.server import embedded, metrics, options
from storage.server.backups import schedule
from storage.server.backups.description import backups as backups_in
from storage.server.backups.stores import FolderStore
from storage.server.refusal import Refusal
from tests.server.test_backup import PASSPHRASE
from tests.waiting import wait_for

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def backups(scratch):
    return scratch / f"backups-{uuid4().hex[:8]}"


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (None, NOW),
        (NOW - timedelta(hours=23), NOW + timedelta(hours=1)),
        (NOW - timedelta(days=3), NOW - timedelta(days=2)),
        (NOW + timedelta(hours=1), NOW),  # by a clock that was set back since
    ],
)
def test_a_backup_is_due_an_interval_after_the_last_good_one(last, expected):
    made = None if last is None else LastBackup(last, "")
    assert last_backup.due_at(NOW, DAY, made) == expected


def test_a_failure_and_a_backup_do_not_overwrite_each_other(tmp_path):
    failure = last_backup.BackupFailure(NOW, "The disk is full.")
    made = LastBackup(NOW, "/backups/a", 100, Kind.DUMP)
    last_backup.record_failure(tmp_path, failure)
    assert last_backup.read(tmp_path) == (None, failure)
    last_backup.record(tmp_path, made)
    assert last_backup.read(tmp_path) == (made, failure)
    (tmp_path / last_backup.NAME).write_text("[]")
    assert last_backup.read(tmp_path) == (None, None)


def test_processes_that_record_at_the_same_instant_do_not_disturb_each_other(tmp_path):
    failure = last_backup.BackupFailure(NOW, "The disk is full.")
    made = LastBackup(NOW, "/backups/a", 100, Kind.DUMP)
    with ThreadPoolExecutor(8) as processes:  # each has a file of its own, as a process would
        done = []
        for _ in range(50):
            done.append(processes.submit(last_backup.record, tmp_path, made))
            done.append(processes.submit(last_backup.record_failure, tmp_path, failure))
        for it in done:
            it.result()
    assert last_backup.read(tmp_path) == (made, failure)
    assert [path.name for path in tmp_path.iterdir()] == [last_backup.NAME]


def test_the_options():
    given = {"TABLERO_BACKUP_TO": "/backups"}
    assert options.read({}).backups is None
    result = options.read(given).backups
    assert (str(result.folder), result.every, result.keep, result.passphrase_file) == (
        "/backups",
        DAY,
        14,
        None,
    )
    assert options.read({**given, "TABLERO_BACKUP_EVERY": "6h"}).backups.every == timedelta(hours=6)
    assert options.read({"TABLERO_BACKUP_TO": "s3://bucket/a"}).backups.folder == "s3://bucket/a"
    assert options.read({**given, "TABLERO_BACKUP_FULL_EVERY": "7"}).backups.full_every == 7
    for text in ("0d", "1", "d", "1w", "1.5h", "999999d"):
        with pytest.raises(Refusal, match="for example 6h"):
            options.read({**given, "TABLERO_BACKUP_EVERY": text})
    with pytest.raises(Refusal, match="TABLERO_BACKUP_KEEP needs TABLERO_BACKUP_TO"):
        options.read({"TABLERO_BACKUP_KEEP": "3"})


def scheduled(data, folder, every, **others):
    """Return the options of a server with this schedule."""
    given = {"TABLERO_BACKUP_TO": str(folder), "TABLERO_BACKUP_EVERY": every, **others}
    return options.read({"TABLERO_DATA": str(data), **given})


@contextmanager
def scheduler(given):
    """Run the database of a server and its scheduler."""
    settings = schedule.database_settings(given)
    with (
        metrics.counting(),
        embedded.running(given, purpose="serve", say=print, settings=settings),
        schedule.running(given),
    ):
        yield


@pytest.mark.long
def test_chains_of_backups_are_made_and_the_newest_kept(used, backups, tmp_path):
    passphrase = tmp_path / "passphrase"
    passphrase.write_text(PASSPHRASE)
    store = FolderStore(backups)
    given = {"TABLERO_BACKUP_FULL_EVERY": "2", "TABLERO_BACKUP_PASSPHRASE_FILE": str(passphrase)}
    with scheduler(scheduled(used, backups, "2s", **given)):
        wait_for(lambda: len(backups_in(store)) >= 3, patience=240)  # each is a whole process
    made = backups_in(store)
    assert [it.kind for it in made][:3] == [Kind.FILES, Kind.INCREMENTAL, Kind.FILES]
    assert [it.parent for it in made][:3] == ["", made[0].name, ""]
    with scheduler(scheduled(used, backups, "2s", TABLERO_BACKUP_KEEP="1", **given)):
        wait_for(lambda: made[-1].name not in {it.name for it in backups_in(store)}, patience=240)
    last = last_backup.read(used).last
    kept = backups_in(store)
    assert len(kept) <= 4  # the last may have been ended while it deleted the oldest
    # or before it was recorded
    assert last in [LastBackup(it.started_at, it.location, it.size, it.kind) for it in kept[-2:]]
    assert all(it.sealing is not None for it in kept)
    assert last_backup.read(used).failure is None


@pytest.mark.long
def test_a_failure_is_logged_and_recorded(used, tmp_path, caplog):
    (tmp_path / "file").touch()
    with metrics.counting(), schedule.running(scheduled(used, tmp_path / "file" / "backups", "1s")):
        failure = wait_for(lambda: last_backup.read(used).failure)
        assert failure.reason.startswith("It is not possible to write to")
        line = f"The scheduled backup failed and is tried again in 1 seconds: {failure.reason}"
        wait_for(lambda: line in caplog.text)


def test_a_schedule_that_cannot_succeed_is_refused_at_the_start(tmp_path):
    (tmp_path / "short").write_text("short")
    with pytest.raises(Refusal, match="is in the data folder"):
        schedule.check(scheduled(tmp_path / "data", tmp_path / "data" / "backups", "1d"))
    short = {"TABLERO_BACKUP_PASSPHRASE_FILE": str(tmp_path / "short")}
    with pytest.raises(Refusal, match="is too short"):
        schedule.check(scheduled(tmp_path / "data", tmp_path, "1d", **short))
