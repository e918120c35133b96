"""Records of an account's changes: all that are kept, or those of a period."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q

from storage.models import Account, HistorySegment
from storage.sql.record import Record, after_last_gap

SLACK: Final = timedelta(minutes=1)  # by which the end of a segment may be recorded too early


@dataclass(frozen=True, slots=True)
class KeptHistory:
    """Segments of an account since the last gap, oldest first; empty without a history."""

    account_id: int
    segments: Sequence[HistorySegment]

    @property
    def since(self) -> datetime | None:
        return self.segments[0].started_at if self.segments else None

    def is_complete(self, account: Account) -> bool:
        """Return whether the history reaches back to the creation of the account."""
        return self.since is not None and self.since <= account.created_at

    def after(self, moment: datetime | None = None) -> Record:
        """Return the record of all changes, or those after a moment."""
        return Record.of(
            self.account_id,
            (
                it.number
                for it in self.segments
                if moment is None or it.ended_at is None or it.ended_at > moment - SLACK
            ),
        )


def kept_history(account_id: int) -> KeptHistory:
    found = list(HistorySegment.objects.filter(account_id=account_id).order_by("number"))
    is_open = bool(found) and found[-1].ended_at is None
    return KeptHistory(account_id, after_last_gap(found) if is_open else [])


def recorded_changes(account_id: int, since: datetime | None = None, until: datetime | None = None) -> Record:
    """Return the record of the changes in a period that still exist; others may have been pruned."""
    segments = HistorySegment.objects.filter(account_id=account_id, dropped_at=None)
    if since is not None:
        segments = segments.filter(Q(ended_at=None) | Q(ended_at__gt=since - SLACK))
    if until is not None:
        segments = segments.filter(started_at__lt=until + SLACK)
    return Record.of(account_id, segments.order_by("number").values_list("number", flat=True))
