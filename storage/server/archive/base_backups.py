"""Base backups of an archive, and the retention of backups and WAL."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

from storage.server import embedded
from storage.server.archive import archiver, archiving
from storage.server.archive.archiving import Config
from storage.server.archive.catalog import SUFFIX, BaseBackup, Catalog, Segment, number_of
from storage.server.backups import backup, files
from storage.server.backups.programs import Say
from storage.server.options import Options


def make(options: Options, config: Config, passphrase: bytes | None, say: Say) -> BaseBackup:
    """Back up the database into its archive."""
    folder = config.archive / "base"
    request = backup.BackupRequest(str(folder), passphrase, is_recorded=False, seals_all=False)
    made = backup.back_up(options, request, say)
    content = json.loads(files.manifest_of(made))["WAL-Ranges"][-1]
    base = BaseBackup(
        name=made.name,
        finished_at=made.finished_at,
        timeline=content["Timeline"],
        first=number_of(content["Start-LSN"]),
        last=number_of(content["End-LSN"]),
        size=made.size,
    )
    path = folder / f"{made.name}.json"
    draft = path.with_suffix(".new")
    draft.write_text(base.in_json())
    archiver.synchronize(draft)
    draft.rename(path)
    archiver.synchronize(path.parent)
    with embedded.attached(options, purpose="archive", say=say):
        archiving.flush(options)  # moments can be restored from the end of a segment on
    return base


def prune(archive: Path, keep: timedelta, size: int | None, say: Say) -> None:
    """Delete base backups outside the retention period, and the oldest while the archive is too large."""
    catalog = Catalog.read(archive)
    kept = sorted(catalog.needed_bases(datetime.now(UTC) - keep), key=lambda it: it.finished_at)
    while size is not None and len(kept) > 1 and _size(catalog, kept) > size:
        del kept[0]
    if not kept:
        return
    for base in catalog.bases:
        if base not in kept:
            path = archive / "base" / base.name
            path.with_name(f"{base.name}.json").unlink()
            hidden = path.with_name(f".{base.name}.part")
            path.rename(hidden)
            shutil.rmtree(hidden, ignore_errors=True)
            say(f"Deleted the older base backup {base.name}.")
    first = min(it.first for it in kept)
    for path in (archive / "wal").glob(f"*{SUFFIX}"):
        segment = Segment.parse(path.name[:24])
        if segment is not None and segment.number < first:
            path.unlink(missing_ok=True)


def _size(catalog: Catalog, bases: list[BaseBackup]) -> int:
    first = min(it.first for it in bases)
    log = sum(size for segment, size in catalog.segments.items() if segment.number >= first)
    return sum(it.size for it in bases) + log
