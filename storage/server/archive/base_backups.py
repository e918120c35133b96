"""Base backups of an archive, and the retention of backups and WAL."""

import json
from datetime import UTC, datetime, timedelta

from storage.server import embedded
from storage.server.archive import archiving
from storage.server.archive.archive_store import BASES, LOG, SUFFIX, Archive
from storage.server.archive.catalog import BaseBackup, Catalog, number_of
from storage.server.backups import backup, files
from storage.server.backups.programs import Say
from storage.server.options import Options


def make(options: Options, archive: Archive, say: Say) -> BaseBackup:
    """Back up the database into its archive."""
    archive.open()
    location, passphrase = archive.store.sub(BASES).location, archive.passphrase()
    request = backup.BackupRequest(location, passphrase, is_recorded=False, seals_all=archive.is_sealed)
    made = backup.back_up(options, request, say)
    content = json.loads(files.manifest_of(archive.base(made.name)))["WAL-Ranges"][-1]
    base = BaseBackup(
        name=made.name,
        finished_at=made.finished_at,
        timeline=content["Timeline"],
        first=number_of(content["Start-LSN"]),
        last=number_of(content["End-LSN"]),
        size=made.size,
    )
    archive.write(BASES, f"{made.name}.json", base.in_json().encode())
    with embedded.attached(options, purpose="archive", say=say):
        archiving.flush(options)  # moments can be restored from the end of a segment on
    return base


def prune(archive: Archive, keep: timedelta, size: int | None, say: Say) -> None:
    """Delete base backups outside the retention period, and the oldest while the archive is too large."""
    catalog = Catalog.read(archive)
    kept = sorted(catalog.needed_bases(datetime.now(UTC) - keep), key=lambda it: it.finished_at)
    while size is not None and len(kept) > 1 and _size(catalog, kept) > size:
        del kept[0]
    if not kept:
        return
    for base in catalog.bases:
        if base not in kept:
            archive.remove(BASES, f"{base.name}.json")
            archive.store.sub(BASES).delete(base.name)
            say(f"Deleted the older base backup {base.name}.")
    first = min(it.first for it in kept)
    for segment in catalog.segments:
        if segment.number < first:
            archive.remove(LOG, f"{segment.name}{SUFFIX}")


def _size(catalog: Catalog, bases: list[BaseBackup]) -> int:
    first = min(it.first for it in bases)
    log = sum(size for segment, size in catalog.segments.items() if segment.number >= first)
    return sum(it.size for it in bases) + log
