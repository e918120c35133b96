"""Scheduled backups of a server: `serve --backup-to`."""

import logging
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from storage.backups import last_backup
from storage.backups.last_backup import BackupFailure
from storage.server import metrics, workers
from storage.server.backups import backup, sealing
from storage.server.data_folder import DataFolder
from storage.server.options import BackupSchedule, Options

logger = logging.getLogger(__name__)

# a drill reads backups that another backup, of the server or of its archive, would delete
ONE_AT_A_TIME: Final = threading.Lock()
_FIRST_LOOK: Final = timedelta(minutes=1)  # after the start, which may be one of many
_PAUSE: Final = timedelta(minutes=15)  # after an attempt
_LOOK: Final = timedelta(minutes=1)  # for backups that others made, and for clocks that were set
_POLL: Final = 0.2  # seconds
_PATIENCE: Final = 15.0  # seconds for a backup that is ended to remove its files


def check(options: Options) -> None:
    """Raise Refusal for a schedule whose backups cannot work."""
    if options.backups is not None:
        backup.check(options, request(options.backups))


def request(schedule: BackupSchedule) -> backup.BackupRequest:
    """Return the next backup request of a schedule; raises Refusal if its passphrase is unreadable."""
    file = schedule.passphrase_file
    passphrase = None if file is None else sealing.read_passphrase(file)
    return backup.BackupRequest(str(schedule.folder), passphrase, full_every=schedule.full_every)


def database_settings(options: Options) -> dict[str, str]:
    """Return PostgreSQL settings needed for incremental backups."""
    is_incremental = options.backups is not None and options.backups.full_every > 1
    return {"summarize_wal": "on"} if is_incremental else {}


@contextmanager
def running(options: Options) -> Iterator[None]:
    """Make scheduled backups during the block, and abort a running one at its end."""
    if options.backups is None:
        yield
        return
    DataFolder(options.data).create()  # has the record of the last backup, also with DATABASE_URL
    is_stopping = threading.Event()
    scheduler = _Scheduler(options.data, options.backups, is_stopping)
    with in_background("backups", scheduler.run, is_stopping):
        yield


@contextmanager
def in_background(
    name: str, run: Callable[[], object], is_stopping: threading.Event, *, patience: float | None = None
) -> Iterator[None]:
    """Run a function in a thread during the block; at its end, set the event and wait for so many seconds."""
    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_stopping.set()
        thread.join(patience)


class _Scheduler:
    def __init__(self, data: Path, schedule: BackupSchedule, is_stopping: threading.Event) -> None:
        self._data = data
        self._schedule = schedule
        self._is_stopping = is_stopping

    def run(self) -> None:
        self._wait(_FIRST_LOOK)
        while not self._is_stopping.is_set():
            left = self._time_left()
            if left > timedelta(0):
                self._is_stopping.wait(min(left, _LOOK).total_seconds())
                continue
            try:
                reason = self._back_up()
            except OSError as error:
                reason = f"The command backup cannot be started: {error.strerror}."
            if reason and not self._is_stopping.is_set():
                self._report(reason)
            self._wait(_PAUSE)

    def _wait(self, longest: timedelta) -> None:
        self._is_stopping.wait(min(longest, self._schedule.every).total_seconds())

    def _time_left(self) -> timedelta:
        now = datetime.now(UTC)
        return last_backup.due_at(now, self._schedule.every, last_backup.read(self._data).last) - now

    def _back_up(self) -> str:
        """Make a backup; return the error, or an empty string."""
        with ONE_AT_A_TIME:
            return run_command(["backup", *self._arguments()], self._is_stopping)

    def _arguments(self) -> list[str]:
        schedule = self._schedule
        arguments = ["--data", str(self._data), "--keep", str(schedule.keep)]
        if schedule.full_every > 1:
            arguments += ["--full-every", str(schedule.full_every)]
        if schedule.passphrase_file is not None:
            arguments += ["--passphrase-file", str(schedule.passphrase_file)]
        return [*arguments, str(schedule.folder)]

    def _report(self, reason: str) -> None:
        seconds = min(_PAUSE, self._schedule.every).total_seconds()
        logger.error("The scheduled backup failed and is tried again in %.0f seconds: %s", seconds, reason)
        with suppress(OSError):  # an error that has been logged
            last_backup.record_failure(self._data, BackupFailure(datetime.now(UTC), reason))


def run_command(arguments: list[str], is_stopping: threading.Event) -> str:
    """Run a command of the server until it ends or the server stops; return its error, or an empty string."""
    environment = workers.environment()
    del environment[metrics.FOLDER]  # its counts are of no interest
    with tempfile.TemporaryFile() as output:
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "storage.server.backups.scheduled", *arguments],
            stdin=subprocess.PIPE,  # ends when we do, and with it the command
            stdout=subprocess.DEVNULL,
            stderr=output,
            env=environment,
            process_group=0,  # Ctrl-C is for the server
        ) as process:
            while process.poll() is None and not is_stopping.wait(_POLL):
                pass
            assert process.stdin is not None
            process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE)
            process.kill()
        output.seek(0)
        lines = output.read().decode(errors="replace").split("\n")
    return _reason(arguments[0], process.returncode, [line.strip() for line in lines if line.strip()])


def _reason(command: str, status: int, lines: list[str]) -> str:
    if status < 0:
        return f"The command {command} was ended by {signal.Signals(-status).name}."
    if status == 0:
        return ""
    return (
        lines[-1].removeprefix("tablero: ") if lines else f"The command {command} ended with status {status}."
    )
