"""Findings of ``doctor`` about backups and the archive."""

from collections.abc import Iterator

from django.utils import timezone

from storage.backups import archive, backups
from storage.health.findings import Finding, fine, warning


def examine_backups() -> Iterator[Finding]:
    found = backups.state()
    if found.last is None:
        yield fine(
            "The command backup has made no backup of this server yet. Make one with the command backup DIR."
        )
    else:
        text = f"The last backup is of {found.last.made_at:%Y-%m-%d %H:%M} UTC, in {found.last.path}."
        if found.is_overdue:
            yield warning(f"{text} That is more than twice the interval of the schedule ago.")
        elif found.next_at is None and timezone.now() - found.last.made_at > backups.OLD:
            yield warning(f"{text} Make one at least every {backups.OLD.days} days.")
        else:
            yield fine(text)
    if found.failure is not None and found.is_failing:
        at = found.failure.failed_at
        yield warning(f"The backup of {at:%Y-%m-%d %H:%M} UTC failed: {found.failure.reason}")


def examine_archive() -> Iterator[Finding]:
    found = archive.summary()
    if found is None:
        yield fine(
            "The log is not archived; serve --archive DIR does, and the database can be restored to any moment."
        )
        return
    for it in found.problems:
        yield warning(f"{archive.describe(it)} The archive is {found.folder}.")
    if found.periods:
        start, end = found.periods[-1]
        yield fine(
            f"The database can be restored to {start:%Y-%m-%d %H:%M:%S} UTC until {end:%Y-%m-%d %H:%M:%S} UTC."
        )
