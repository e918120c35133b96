"""Findings of ``doctor`` about backups and the archive."""

from collections.abc import Iterator

from django.utils import timezone

from storage.backups import archive, backups
from storage.health.findings import Finding, fine, warning


def examine_backups() -> Iterator[Finding]:
    state = backups.state()
    if state.last is None:
        yield fine(
            "The command backup has made no backup of this server yet. Make one with the command backup DIR."
        )
    else:
        text = f"The last backup is of {state.last.made_at:%Y-%m-%d %H:%M} UTC, in {state.last.path}."
        if state.is_overdue:
            yield warning(f"{text} That is more than twice the interval of the schedule ago.")
        elif state.next_at is None and timezone.now() - state.last.made_at > backups.OLD:
            yield warning(f"{text} Make one at least every {backups.OLD.days} days.")
        else:
            yield fine(text)
    if state.failure is not None and state.is_failing:
        at = state.failure.failed_at
        yield warning(f"The backup of {at:%Y-%m-%d %H:%M} UTC failed: {state.failure.reason}")
    if state.drill is not None:
        text = f"The drill of {state.drill.at:%Y-%m-%d %H:%M} UTC"
        if state.is_drill_failing:
            yield warning(f"{text} failed: {state.drill.reason}")
        elif state.is_drill_overdue:
            yield warning(f"{text} was the last one. That is more than twice the interval of drills ago.")
        else:
            yield fine(f"{text} has restored what it should.")


def examine_archive() -> Iterator[Finding]:
    summary = archive.summary()
    if summary is None:
        yield fine(
            "The log is not archived; serve --archive DIR does, and the database can be restored to any moment."
        )
        return
    for it in summary.problems:
        yield warning(f"{archive.describe(it)} The archive is {summary.folder}.")
    if summary.periods:
        start, end = summary.periods[-1]
        yield fine(
            f"The database can be restored to {start:%Y-%m-%d %H:%M:%S} UTC until {end:%Y-%m-%d %H:%M:%S} UTC."
        )
