"""Records of the last backup and the last failed backup, in a file in the data folder.

The command `backup` writes the file; the metric, the doctor, the console and the management API read it.
"""

import fcntl
import json
import os
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

NAME: Final = "last-backup.json"


class Kind(StrEnum):
    FILES = "files"  # a full copy of the embedded database
    INCREMENTAL = "incremental"
    DUMP = "dump"  # a dump of the database in DATABASE_URL


class LastBackup(NamedTuple):
    made_at: datetime
    path: Annotated[str, "On the machine that made it."]
    size: Annotated[int, "Bytes."] = 0
    kind: Annotated[
        Kind, "`files`: a full copy of the embedded database; `dump`: of the database in `DATABASE_URL`."
    ] = Kind.FILES


class BackupFailure(NamedTuple):
    """A backup that failed."""

    failed_at: datetime
    reason: str  # one or more sentences


class BackupRecord(NamedTuple):
    """Last successful backup and last failure, which may be older; None if there was none."""

    last: LastBackup | None
    failure: BackupFailure | None


class Drill(NamedTuple):
    """A restore by schedule, to see whether it succeeds."""

    at: datetime
    reason: Annotated[str, "Why it failed; empty if it passed."]
    passed_at: Annotated[datetime | None, "When the last one passed."]


def record(folder: Path, made: LastBackup) -> None:
    """Record a complete backup."""
    _update(folder, {**made._asdict(), "made_at": made.made_at.isoformat()})


def record_failure(folder: Path, failure: BackupFailure) -> None:
    """Record the failure of a backup, replacing an earlier one."""
    _update(folder, {**failure._asdict(), "failed_at": failure.failed_at.isoformat()})


def record_drill(folder: Path, at: datetime, reason: str) -> None:
    """Record a drill, which failed if there is a reason."""
    passed = {} if reason else {"drill_passed_at": at.isoformat()}
    _update(folder, {"drill_at": at.isoformat(), "drill_reason": reason, **passed})


def read_drill(folder: Path) -> Drill | None:
    """Return the last drill; None without one."""
    content = _content(folder)
    try:
        passed_at = content.get("drill_passed_at")
        return Drill(
            datetime.fromisoformat(content["drill_at"]),
            content["drill_reason"],
            passed_at and datetime.fromisoformat(passed_at),
        )
    except (ValueError, KeyError, TypeError):
        return None


def read(folder: Path) -> BackupRecord:
    """Read the record of backups; an unreadable file counts as empty."""
    content = _content(folder)
    last, failure = None, None
    try:
        made_at = datetime.fromisoformat(content["made_at"])
        last = LastBackup(
            made_at, content["path"], content.get("size", 0), Kind(content.get("kind", Kind.FILES))
        )
    except (ValueError, KeyError, TypeError):
        pass
    try:
        failure = BackupFailure(datetime.fromisoformat(content["failed_at"]), content["reason"])
    except (ValueError, KeyError, TypeError):
        pass
    return BackupRecord(last, failure)


def due_at(now: datetime, every: timedelta, last: LastBackup | None) -> datetime:
    """Return when the next backup is due: one interval after the last, or now if there is none."""
    if last is None or last.made_at > now:  # the clock was set back
        return now
    return last.made_at + every


def _content(folder: Path) -> dict[str, Any]:
    try:
        content = json.loads((folder / NAME).read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _update(folder: Path, facts: dict[str, Any]) -> None:
    """Merge facts into the file atomically, under a lock; only its owner can read it."""
    lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        draft = folder / f"{NAME}.new"
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(_content(folder) | facts, file)
        draft.replace(folder / NAME)
    finally:
        os.close(lock)
