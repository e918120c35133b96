"""Inspection of an archive: restorable periods, damage, and whether a base backup is due."""

import gzip
import time
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from storage.backups.archive import (
    LATE,
    ArchiveSummary,
    Found,
    Problem,
)
from storage.server.archive import archiver
from storage.server.archive.archiving import Config
from storage.server.archive.catalog import SEGMENT, BaseBackup, Catalog, NotAnArchive
from storage.server.backups import files
from storage.server.backups.description import Backup
from storage.server.backups.programs import Say
from storage.server.backups.stores import FolderStore
from storage.server.data_folder import DataFolder
from storage.server.refusal import Refusal

_MOST_LOG: Final = 4 << 30  # bytes since a base backup, or twice its size: replaying more takes too long


def summarize(
    folder: DataFolder, config: Config, every: timedelta | None = None, size: int | None = None
) -> ArchiveSummary:
    """Summarize the archive; ``every`` and ``size`` are the server's options, if known."""
    now = datetime.now(UTC)
    state = archiver.read_state(folder.archiving / "state.json")
    lag = lag_of(folder)
    problems = []
    if (failure := state["failure"]) is not None:
        problems.append(Found(Problem.FAILING, failure["reason"]))
    elif lag > LATE.total_seconds():
        problems.append(Found(Problem.LAGGING))
    try:
        catalog = Catalog.read(config.archive)
        periods = tuple(catalog.periods())
    except (NotAnArchive, OSError, ValueError) as error:
        problems.insert(0, Found(Problem.UNREADABLE, str(error)))
        return ArchiveSummary(now, str(config.archive), lag=lag, problems=tuple(problems))
    base = last_base(catalog)
    if base is None:
        problems.append(Found(Problem.NO_BASE))
    else:
        if catalog.missing(base) or _was_dropped(folder, base):
            problems.append(Found(Problem.INTERRUPTED))
        if every is not None and now - base.finished_at > 2 * every:
            problems.append(Found(Problem.OVERDUE))
    if size is not None and catalog.size > size and len(catalog.bases) == 1:
        problems.append(Found(Problem.TOO_LARGE))
    return ArchiveSummary(
        at=now,
        folder=str(config.archive),
        periods=periods,
        base_at=None if base is None else base.finished_at,
        size=catalog.size,
        lag=lag,
        problems=tuple(problems),
    )


def verify(archive: Path, say: Say) -> list[str]:
    """Return a sentence for each unreadable base backup or segment."""
    faults = []
    catalog = Catalog.read(archive)
    for base in catalog.bases:
        say(f"Verifying the base backup {base.name} ...")
        try:
            files.verify(Backup.read(FolderStore(archive / "base"), base.name))
        except Refusal as refusal:
            faults.append(str(refusal))
    say(f"Verifying {len(catalog.segments):,} segments of the log ...")
    for segment in sorted(catalog.segments):
        try:
            read_segment(catalog.path_of(segment))
        except Refusal as refusal:
            faults.append(str(refusal))
    return faults


def read_segment(path: Path) -> bytes:
    """Read a segment; raises Refusal if it is damaged."""
    if len(content := read_compressed(path)) != SEGMENT:
        raise Refusal(f"{path} is not a complete segment.")
    return content


def read_compressed(path: Path) -> bytes:
    """Read a compressed WAL file; raises Refusal if it is damaged."""
    try:
        return gzip.decompress(path.read_bytes())
    except FileNotFoundError:
        raise Refusal(f"{path} is missing.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise Refusal(f"{path} is damaged.") from None
    except OSError as error:
        raise Refusal(f"{path} cannot be read: {error.strerror}.") from None


def lag_of(folder: DataFolder) -> float:
    """Return the seconds that the oldest complete segment has waited for archiving."""
    ages = [0.0]
    for path in (folder.database / "pg_wal" / "archive_status").glob("*.ready"):
        try:
            ages.append(time.time() - path.stat().st_mtime)
        except FileNotFoundError:
            continue
    return max(ages)


def is_base_due(folder: DataFolder, catalog: Catalog, every: timedelta, size: int | None) -> bool:
    base = last_base(catalog)
    if base is None:
        return True
    log = sum(it.number > base.last for it in catalog.segments) * SEGMENT
    packed = sum(length for it, length in catalog.segments.items() if it.number > base.last)
    return (
        base.timeline != catalog.uses[-1].timeline
        or datetime.now(UTC) - base.finished_at >= every
        or base.finished_at > datetime.now(UTC) + every  # the clock was set back
        or bool(catalog.missing(base))
        or _was_dropped(folder, base)
        or log > max(_MOST_LOG, 2 * base.size)
        or (size is not None and catalog.size > size and packed > base.size)
    )


def last_base(catalog: Catalog) -> BaseBackup | None:
    """Return the newest base backup from which the WAL leads to the present."""
    found = catalog.bases_for(catalog.uses[-1].timeline) if catalog.uses else []
    return found[-1] if found else None


def _was_dropped(folder: DataFolder, base: BaseBackup) -> bool:
    gap = archiver.read_state(folder.archiving / "state.json")["gap"]
    return gap is not None and datetime.fromisoformat(gap["until"] or gap["at"]) > base.finished_at
