"""Free space on the disk of the data folder, which has the embedded database and its log."""

import errno
import logging
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from django.conf import settings

from storage.health.findings import (
    Finding,
    error,
    fine,
    warning,
)

logger = logging.getLogger(__name__)

# PostgreSQL writes its log in segments of 16 MiB, so that it stops while a little space is left
FULL: Final = 32 << 20
LOW: Final = 1 << 30
_REMIND: Final = 3600.0  # seconds after which a warning is repeated


class Space(NamedTuple):
    """Free and total disk space in bytes."""

    free: int
    total: int

    @property
    def is_full(self) -> bool:
        return self.free < FULL

    @property
    def is_low(self) -> bool:
        return self.free < min(LOW, self.total // 5)


def space_of(folder: Path) -> Space:
    """Return the space of the disk that holds a folder, which need not exist yet."""
    existing = next(it for it in (folder, *folder.parents) if it.exists())
    usage = shutil.disk_usage(existing)
    return Space(usage.free, usage.total)


def is_read_only(folder: Path) -> bool:
    """Return whether the file system of a folder is read-only, as after a disk error."""
    flags = getattr(os, "O_TMPFILE", 0)
    try:
        if not flags:
            return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
        os.close(os.open(folder, flags | os.O_WRONLY, 0o600))  # a file without a name
    except OSError as failure:
        return failure.errno == errno.EROFS
    return False


def examine(folder: Path) -> Finding:
    """Check the free space of the disk with the data folder, and whether it is read-only."""
    if is_read_only(folder):
        return error(problem(folder))
    space = space_of(folder)
    text = describe(folder, space)
    if space.is_full:
        return error(f"{text} PostgreSQL cannot write. Make room on it.")
    return warning(f"{text} Writes fail once it is full.") if space.is_low else fine(text)


def problem(folder: Path, space: Space | None = None) -> str:
    """Return a sentence if a folder cannot be written to; otherwise an empty string."""
    if is_read_only(folder):
        return f"The file system of {folder} is read-only. Repair it, and mount it again."
    space = space or space_of(folder)
    if not space.is_full:
        return ""
    return f"The disk of {folder} is full: {_size(space.free)} are free. Make room on it."


def reason_for_no_database() -> str:
    """Return why the database is unreachable, if known on this machine; the text is public."""
    if not settings.OPTIONS.database_url:
        if is_read_only(settings.OPTIONS.data):
            return "The disk of the database is read-only."
        if space_of(settings.OPTIONS.data).is_full:
            return "The disk of the database is full."
    return "The database cannot be reached."


def describe(folder: Path, space: Space) -> str:
    return f"{_size(space.free)} of {_size(space.total)} are free on the disk of {folder}."


class Watch:
    """Disk watch that logs a warning when space is low, and again each hour until it is not."""

    def __init__(self, folder: Path, measure: Callable[[Path], Space] = space_of) -> None:
        self._folder = folder
        self._measure = measure
        self._warned_at: float | None = None

    def check(self) -> None:
        space = self._measure(self._folder)
        if settings.OPTIONS.database_url or not space.is_low:
            self._warned_at = None
        elif self._warned_at is None or time.monotonic() - self._warned_at > _REMIND:
            self._warned_at = time.monotonic()
            logger.warning("%s Writes fail once it is full.", describe(self._folder, space))


def _size(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{size / 2**20:,.0f} MiB"
