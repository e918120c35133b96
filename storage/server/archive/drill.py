"""Drills of a server, `serve --backup-drill`: the last backup and a moment of the archive are restored and compared."""

import fcntl
import logging
import os
import random
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from storage.backups import archive as archive_state
from storage.backups import last_backup
from storage.backups.last_backup import Kind
from storage.health import disk
from storage.server.archive import point_in_time
from storage.server.archive.archive_store import SEGMENT, Archive
from storage.server.archive.catalog import Catalog
from storage.server.backups import backup, description, restore, schedule
from storage.server.backups.programs import Say
from storage.server.data_folder import DataFolder
from storage.server.options import ArchiveOptions, BackupSchedule, Options
from storage.server.refusal import Refusal

logger = logging.getLogger(__name__)

_LOOK: Final = 60.0  # seconds
_RETRY: Final = timedelta(hours=6)  # after a failure
_LOWEST: Final = 19  # priority


@contextmanager
def running(options: Options) -> Iterator[None]:
    """Make scheduled drills during the block, and abort a running one at its end."""
    with suppress(Refusal, FileNotFoundError), _folder(options, waits=False):
        pass  # the rest of a killed drill is removed
    if options.drill_every is None:
        yield
        return
    is_stopping = threading.Event()
    run = partial(_run, options, options.drill_every, is_stopping)
    with schedule.in_background("drills", run, is_stopping):
        yield


def _run(options: Options, every: timedelta, is_stopping: threading.Event) -> None:
    pause = min(_LOOK, every.total_seconds())
    while not is_stopping.wait(pause):
        if not is_due(options, every) or not schedule.ONE_AT_A_TIME.acquire(blocking=False):
            continue
        try:
            reason = schedule.run_command(["backup", "--drill", "--data", str(options.data)], is_stopping)
        except OSError as error:
            reason = f"The command backup cannot be started: {error.strerror}."
        finally:
            schedule.ONE_AT_A_TIME.release()
        if is_stopping.is_set():
            return
        if reason:
            logger.error("The drill failed: %s", reason)
        with suppress(OSError):
            last_backup.record_drill(options.data, datetime.now(UTC), reason)


def is_due(options: Options, every: timedelta) -> bool:
    """Return whether a drill is due, and there is something to restore."""
    drill = last_backup.read_drill(options.data)
    if drill is not None and datetime.now(UTC) < drill.at + (min(_RETRY, every) if drill.reason else every):
        return False
    summary = archive_state.read(options.data)
    has_moments = summary is not None and bool(summary.periods)
    return has_moments or (options.backups is not None and last_backup.read(options.data).last is not None)


def perform(options: Options, say: Say) -> None:
    """Restore the last backup, and a random moment of the last interval from the archive; raises Refusal."""
    backups = options.backups if last_backup.read(options.data).last is not None else None
    archive = options.archive if archive_state.read(options.data) is not None else None
    if backups is None and archive is None:
        raise Refusal(
            "A drill needs a backup made with --backup-to, or an archive: there is nothing to restore."
        )
    os.nice(_LOWEST)
    with _folder(options, waits=True) as folder:
        if backups is not None:
            _restore_backup(options, backups, folder, say)
        if archive is not None:
            _restore_moment(options, archive, folder, say)


@contextmanager
def _folder(options: Options, *, waits: bool) -> Iterator[Path]:
    """Lock and empty the folder of drills, and remove it at the end; raises Refusal while another drill has it."""
    folder = DataFolder(options.data).drill
    if waits:
        folder.mkdir(mode=0o711, exist_ok=True)  # root's PostgreSQL, another user, passes through
    lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refusal("Another drill is ending.") from None
        _empty(folder)
        folder.chmod(0o711)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path, ignore_errors=True)


def _restore_backup(options: Options, given: BackupSchedule, folder: Path, say: Say) -> None:
    passphrase = schedule.request(given).passphrase
    made = restore.find(str(given.folder)).opened(passphrase)
    sizes = [it.size for it in description.chain_of(made, passphrase)]
    # a chain is read, and then combined; a dump is smaller than its database
    _check_room(options, 6 * sizes[0] if made.kind is Kind.DUMP else sum(sizes) + (len(sizes) > 1) * sizes[0])
    say(f"Restoring {made.location} ...")
    differences = restore.drill(options, made, say, passphrase=passphrase, within=folder)
    if differences:
        raise Refusal(" ".join([f"The backup {made.location} failed the test.", *differences]))
    _empty(folder)


def _restore_moment(options: Options, given: ArchiveOptions, folder: Path, say: Say) -> None:
    archive = Archive(str(given.folder), given.passphrase_file)
    catalog = Catalog.read(archive)
    periods = catalog.periods()
    if not periods:
        raise Refusal(f"{archive.location} has no base backup with the log since.")
    start, end = periods[-1]
    start = max(start, end - (options.drill_every or end - start))
    moment = start + (end - start) * random.random()  # noqa: S311 (any moment is as good)
    plans = catalog.plan(moment)
    if not plans:
        raise Refusal(f"{moment:%Y-%m-%dT%H:%M:%SZ} cannot be restored from {archive.location}.")
    _check_room(options, plans[0].base.size + 2 * SEGMENT * len(plans[0].segments))
    say(f"Restoring {archive.location} to {moment:%Y-%m-%dT%H:%M:%SZ} ...")
    scratch = replace(options, data=folder / "data", archive=None, backups=None)
    point_in_time.rehearse(scratch, DataFolder(options.data), catalog, plans, moment, say)


def _check_room(options: Options, needed: int) -> None:
    """Refuse a drill after which the disk of the database would be low on space."""
    space = disk.space_of(options.data)
    if disk.Space(space.free - needed, space.total).is_low:
        raise Refusal(
            f"There is no room for the drill: it needs {backup.size_of(needed)} on the disk of {options.data}, of which"
            f" {backup.size_of(space.free)} are free, and some of that must stay free."
        )
