"""Inspection of an archive: restorable periods, damage, and whether a base backup is due."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from storage.backups.archive import (
    LATE,
    ArchiveSummary,
    Found,
    Problem,
)
from storage.server.archive import archiver
from storage.server.archive.archive_store import BASES, LOG, SEGMENT, TIMELINES, Archive
from storage.server.archive.catalog import BaseBackup, Catalog, Segment
from storage.server.backups import files, restore
from storage.server.backups.programs import Say
from storage.server.data_folder import DataFolder
from storage.server.refusal import Refusal

_MOST_LOG: Final = 4 << 30  # bytes since a base backup, or twice its size: replaying more takes too long


class Inspection(NamedTuple):
    """The state of an archive, and its content unless it is unreadable."""

    summary: ArchiveSummary
    catalog: Catalog | None


def inspect(
    folder: DataFolder | None, archive: Archive, every: timedelta | None = None, size: int | None = None
) -> Inspection:
    """Inspect an archive, with the data folder of the server that uses it, and that server's options if known."""
    now = datetime.now(UTC)
    failure = None if folder is None else archiver.read_state(folder.archiving / "state.json")["failure"]
    lag = 0.0 if folder is None else lag_of(folder)
    problems = []
    if failure is not None:
        problems.append(Found(Problem.FAILING, failure["reason"]))
    elif lag > LATE.total_seconds():
        problems.append(Found(Problem.LAGGING))
    try:
        catalog = Catalog.read(archive)
        periods = tuple(catalog.periods())
    except (Refusal, OSError) as error:
        problems.insert(0, Found(Problem.UNREADABLE, str(error)))
        return Inspection(ArchiveSummary(now, archive.location, lag=lag, problems=tuple(problems)), None)
    base = last_base(catalog)
    if base is None:
        problems.append(Found(Problem.NO_BASE))
    else:
        if catalog.missing(base) or (folder is not None and _was_dropped(folder, base)):
            problems.append(Found(Problem.INTERRUPTED))
        if every is not None and now - base.finished_at > 2 * every:
            problems.append(Found(Problem.OVERDUE))
    if size is not None and catalog.size > size and len(catalog.bases) == 1:
        problems.append(Found(Problem.TOO_LARGE))
    summary = ArchiveSummary(
        at=now,
        folder=archive.location,
        periods=periods,
        base_at=None if base is None else base.finished_at,
        size=catalog.size,
        lag=lag,
        problems=tuple(problems),
    )
    return Inspection(summary, catalog)


def verify(archive: Archive, say: Say) -> list[str]:
    """Return a sentence for each damaged base backup or segment, and for the segments that are missing."""
    faults = []
    catalog = Catalog.read(archive)
    for base in catalog.bases:
        say(f"Verifying the base backup {base.name} ...")
        try:
            files.verify(archive.base(base.name))
        except Refusal as refusal:
            faults.append(str(refusal))
    say(f"Verifying {len(catalog.segments):,} segments of the log ...")
    for segment in sorted(catalog.segments):
        try:
            catalog.read_segment(segment)
        except Refusal as refusal:
            faults.append(str(refusal))
    return [*faults, *_describe_gaps(catalog)]


def _describe_gaps(catalog: Catalog) -> Iterator[str]:
    def run(it: tuple[int, Segment]) -> tuple[int, int]:
        position, segment = it
        return segment.timeline, segment.number - position

    for _, numbered in groupby(enumerate(catalog.gaps()), run):
        names = [segment.name for _, segment in numbered]
        which = f"{names[0]} is" if len(names) == 1 else f"{names[0]} to {names[-1]} are"
        yield f"{which} missing in {catalog.archive.location}/{LOG}."


def unseal(archive: Archive, folder: Path, say: Say) -> None:
    """Copy an archive into a folder of plain files, which PostgreSQL can replay."""
    catalog = Catalog.read(archive)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    plain = Archive(str(folder))
    if plain.store.entries():
        raise Refusal(f"{folder} has other files; choose an empty folder.")
    plain.create(catalog.system)
    plain.open()
    for base in catalog.bases:
        restore.unseal(archive.base(base.name), folder / BASES, say, passphrase=archive.passphrase())
        plain.write(BASES, f"{base.name}.json", base.in_json().encode())
    say(f"Reading {len(catalog.segments):,} segments of the log ...")
    for place in (TIMELINES, LOG):
        for name in archive.names(place):
            if not name.startswith("."):
                plain.write(place, name, archive.read(place, name))


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
