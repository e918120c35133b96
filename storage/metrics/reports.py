"""Reports on traffic and size of an account or table over a range of equal periods."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final, NamedTuple

from django.db import transaction

from storage.activity import activity
from storage.activity.activity import ActivityFilter
from storage.core import registry
from storage.domain.access.actor import Actor
from storage.domain.refusals import Reason, Refused
from storage.domain.requests.series import PeriodCounts
from storage.metrics import series, sizes
from storage.metrics.sizes import Size
from storage.metrics.subject import MetricsVerb
from storage.models import Account, Activity, Table

STEPS: Final = (1, 5, 15, 30, 60, 120, 240, 480, 1440)  # minutes
LONGEST: Final = timedelta(days=90)
POINTS: Final = 100  # that a chart has room for
POINTS_LIMIT: Final = 1500
_MARKS_LIMIT: Final = 200


class UnknownRange(Refused):
    """The range of time is not valid for a report."""


class Range(NamedTuple):
    """Equal periods from ``since`` to ``until``.

    ``step`` is their length and ``stored`` the length of the stored periods they are made of, in minutes.
    """

    since: datetime
    until: datetime
    step: int
    stored: int

    @property
    def periods(self) -> list[datetime]:
        length = timedelta(minutes=self.step)
        return [self.since + number * length for number in range((self.until - self.since) // length)]

    @property
    def before(self) -> "Range":
        """Return the preceding range of the same length."""
        return self._replace(since=self.since - (self.until - self.since), until=self.since)


def choose_range(since: datetime, until: datetime, now: datetime, step: int | None = None) -> Range:
    """Divide a time range into periods, by default with a step for charts; raises UnknownRange."""
    until = min(until, now)
    if since >= until:
        raise UnknownRange(Reason.METRICS_RANGE)
    if since < now - LONGEST - timedelta(minutes=STEPS[-1]):
        raise UnknownRange(Reason.METRICS_TOO_OLD)
    for minutes in STEPS if step is None else (step,):
        candidate = _with_step(since, until, minutes)
        points = (candidate.until - candidate.since) // timedelta(minutes=minutes)
        if is_kept(candidate, now) and points <= (POINTS + 1 if step is None else POINTS_LIMIT):
            return candidate
    if step is None:
        return _with_step(since, until, STEPS[-1])
    raise UnknownRange(Reason.METRICS_STEP, step=step, points=POINTS_LIMIT)


def _with_step(since: datetime, until: datetime, step: int) -> Range:
    last = series.start_of(until - timedelta(microseconds=1), step) + timedelta(minutes=step)
    stored = max(minutes for minutes in series.KEPT if step % minutes == 0)
    return Range(series.start_of(since, step), last, step, stored)


def is_kept(wanted: Range, now: datetime) -> bool:
    """Return whether the counts of a range are kept from its start."""
    longest = max(series.KEPT)
    return wanted.since >= now - series.KEPT[wanted.stored] or wanted.stored == longest


@dataclass(frozen=True)
class Report:
    """Report with ``counts``, ``observed`` (whether a server ran) and ``sizes`` by period; ``marks`` oldest first."""

    range: Range
    counts: Sequence[PeriodCounts]
    observed: Sequence[bool]
    sizes: Sequence[Size | None]
    marks: Sequence[Activity]

    @cached_property
    def total(self) -> PeriodCounts:
        return series.sum_counts(self.counts)


def report(account: Account, table: Table | None, span: Range) -> Report:
    table_id = series.WHOLE if table is None else table.pk
    periods = span.periods
    return Report(
        span,
        series.read(account.pk, table_id, periods, span.until, span.stored, with_frequent=True),
        series.observed_periods(periods, span.until, span.stored),
        sizes.read((account.pk, table_id), periods, span.until),
        _marks(account, table, span),
    )


def total_before(account: Account, table: Table | None, span: Range, now: datetime) -> PeriodCounts | None:
    """Return the counts of the preceding range of the same length; None if they are not kept."""
    before = span.before
    if before.since < now - LONGEST or not is_kept(before, now):
        return None
    table_id = series.WHOLE if table is None else table.pk
    return series.read(account.pk, table_id, [before.since], before.until, before.stored)[0]


def _marks(account: Account, table: Table | None, span: Range) -> list[Activity]:
    """Return the activities to mark in a range, about the table or the whole account."""
    marked = activity.page(
        ActivityFilter(
            account_ids=[account.pk], verbs=registry.marked_verbs(), since=span.since, until=span.until
        ),
        top=_MARKS_LIMIT,
    ).activities
    return [it for it in reversed(marked) if table is None or it.table_id in (None, table.pk)]


@transaction.atomic
def mark_deployment(account: Account, name: str, *, by: Actor) -> Activity:
    """Record a client's deployment, to be marked in reports."""
    return activity.record(MetricsVerb.DEPLOYMENT_MARK, by, account=account, detail={"deployment": name})
