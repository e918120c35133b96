"""State of backups: whether the server is backed up as configured."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Final

from django.conf import settings
from django.utils import timezone

from storage.backups import last_backup
from storage.backups.last_backup import BackupFailure, LastBackup
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

    @property
    def is_failing(self) -> bool:
        return self.failure is not None and (self.last is None or self.failure.failed_at > self.last.made_at)


def state(now: datetime | None = None) -> BackupState:
    """Return the state of this server's backups; overdue after twice the interval, or when the first backup failed."""
    now = now or timezone.now()
    folder, schedule = settings.OPTIONS.data, settings.OPTIONS.backups
    last, failure = last_backup.read(folder)
    if schedule is None:
        return BackupState(last, failure, None, is_overdue=False)
    is_overdue = failure is not None if last is None else now - last.made_at > 2 * schedule.every
    return BackupState(last, failure, last_backup.due_at(now, schedule.every, last), is_overdue)


def is_missing(found: BackupState) -> bool:
    """Return whether the embedded database has had tables for a day without any backup made or scheduled."""
    if found.last is not None or found.next_at is not None or settings.OPTIONS.database_url:
        return False
    return Table.objects.filter(created_at__lt=timezone.now() - _SETTLED).exists()
