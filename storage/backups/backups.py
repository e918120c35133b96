"""State of backups: whether the server is backed up as configured."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Final

from django.conf import settings
from django.utils import timezone

from storage.backups import last_backup
from storage.backups.last_backup import BackupFailure, Drill, LastBackup
from storage.models import Table

OLD: Final = timedelta(days=7)  # age from which a backup without a schedule is old
_SETTLED: Final = timedelta(days=1)  # age of data that should have a backup


@dataclass(frozen=True, slots=True)
class BackupState:
    last: Annotated[LastBackup | None, "The last good backup; null without one."]
    failure: Annotated[
        BackupFailure | None, "The last failure, which may be older than the last good backup."
    ]
    next_at: Annotated[datetime | None, "Null without a schedule."]
    is_overdue: Annotated[
        bool,
        "The last good backup is older than twice the interval of the schedule, or the first one failed.",
    ]
    drill: Annotated[Drill | None, "The last restore by schedule; null without one."] = None
    is_drill_overdue: Annotated[bool, "The last drill that passed is older than twice its interval."] = False

    @property
    def is_drill_failing(self) -> bool:
        return self.drill is not None and bool(self.drill.reason)

    @property
    def is_failing(self) -> bool:
        return self.failure is not None and (self.last is None or self.failure.failed_at > self.last.made_at)


def state(now: datetime | None = None) -> BackupState:
    """Return the state of this server's backups; overdue after twice the interval, or when the first backup failed."""
    now = now or timezone.now()
    folder, schedule = settings.OPTIONS.data, settings.OPTIONS.backups
    last, failure = last_backup.read(folder)
    drill, every = last_backup.read_drill(folder), settings.OPTIONS.drill_every
    passed_at = None if drill is None else drill.passed_at
    is_drill_overdue = every is not None and passed_at is not None and now - passed_at > 2 * every
    if schedule is None:
        return BackupState(last, failure, None, False, drill, is_drill_overdue)
    is_overdue = failure is not None if last is None else now - last.made_at > 2 * schedule.every
    next_at = last_backup.due_at(now, schedule.every, last)
    return BackupState(last, failure, next_at, is_overdue, drill, is_drill_overdue)


def is_missing(found: BackupState) -> bool:
    """Return whether the embedded database has had tables for a day without any backup made or scheduled."""
    if found.last is not None or found.next_at is not None or settings.OPTIONS.database_url:
        return False
    return Table.objects.filter(created_at__lt=timezone.now() - _SETTLED).exists()
