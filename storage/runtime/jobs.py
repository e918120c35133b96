"""Background jobs. Every process of every server tries to run them; locks prevent running one twice."""

import asyncio
import logging
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from django.conf import settings
from django.db.models import DurationField, ExpressionWrapper, F
from django.db.models.functions import Now
from django.utils.module_loading import import_string

from storage.domain.errors import StorageError
from storage.models import Job
from storage.operations.access import api_tokens, retired_keys
from storage.operations.accounts import expiry
from storage.operations.activity import activity
from storage.operations.changes import feed, retention
from storage.operations.counting import metrics, table_use, usage
from storage.operations.health import database_version, disk
from storage.operations.relations import table_relations
from storage.operations.snapshots import snapshots
from storage.operations.tables import (
    adaptive_indexes,
    analytics,
    distribution,
    distribution_requests,
    indexes,
    tables,
)
from storage.runtime import measurements, recovery, request_log
from storage.runtime.clock import ClockWatch
from storage.runtime.threads import in_background
from storage.sql import throughput
from storage.sql.background import job_lock_holder, try_job_lock

logger = logging.getLogger(__name__)

_INTERVAL: Final = 10.0  # seconds
_SOON: Final = 2.0  # for work that a user waits for
_MARK_INTERVAL: Final = 5.0
_ADAPT_INTERVAL: Final = 60.0
_RETENTION_INTERVAL: Final = 30.0
_TIDY_INTERVAL: Final = 600.0
_DAY: Final = 86_400.0
_LATE_AFTER: Final = {
    **dict.fromkeys(("metrics", "accounts", "history"), timedelta(minutes=10)),
    **dict.fromkeys(("indexes", "snapshots", "tables"), timedelta(minutes=20)),
    "tidy": timedelta(hours=1),
    "daily": timedelta(hours=26),
}
_clock: Final = ClockWatch()
_SHUTDOWN_TIMEOUT: Final = 5.0  # seconds for running jobs


class _Job(NamedTuple):
    """``failure`` is logged when the job raises; one that ``deletes`` what has expired waits if the clock jumped."""

    do: Callable[[], object]
    interval: float
    failure: str
    deletes: bool = False


async def run() -> None:
    """Run all jobs until cancelled."""
    writer = analytics.Writer()
    jobs = (
        _Job(
            lambda: tables.drop_expired_tables(),
            _INTERVAL,
            "Deleted tables could not be dropped",
            deletes=True,
        ),
        _Job(_make_indexes, _SOON, "Indexes could not be made or dropped"),
        _Job(
            lambda: distribution_requests.run_pending(),
            _SOON,
            "Tables could not be distributed or brought back",
        ),
        _Job(lambda: recovery.run(), _SOON, "Operations that were killed could not be ended"),
        _Job(lambda: feed.keep_mark(), _MARK_INTERVAL, "The change feed could not be marked"),
        _Job(
            lambda: request_log.tidy(request_log.folder(), datetime.now(UTC)),
            _TIDY_INTERVAL,
            "Logs could not be tidied",
            deletes=True,
        ),
        _Job(lambda: measurements.measure(late), measurements.INTERVAL, "Metrics could not be measured"),
        _Job(disk.Watch(settings.OPTIONS.data).check, _ADAPT_INTERVAL, "The disk could not be examined"),
        _exclusive("metrics", writer.write, _INTERVAL, "Metrics could not be written"),
        _exclusive(
            "indexes", adaptive_indexes.adapt, _ADAPT_INTERVAL, "Adaptive indexes could not be decided on"
        ),
        _exclusive(
            "tables",
            lambda _: table_relations.complete_all(),
            _ADAPT_INTERVAL,
            "Tables of older servers could not be completed",
        ),
        _exclusive("tidy", _tidy, _TIDY_INTERVAL, "Records could not be tidied", deletes=True),
        _exclusive(
            "history", retention.tidy, _RETENTION_INTERVAL, "The history could not be tidied", deletes=True
        ),
        _exclusive(
            "distribution", distribution.tidy, _ADAPT_INTERVAL, "Distributed tables could not be measured"
        ),
        _exclusive(
            "daily",
            _tidy_daily,
            _DAY,
            "Sessions could not be tidied",
            looks_every=_TIDY_INTERVAL,
            deletes=True,
        ),
        _exclusive(
            "accounts",
            expiry.expire,
            _INTERVAL,
            "Expired accounts could not be frozen or deleted",
            deletes=True,
        ),
        _exclusive(
            "snapshots",
            snapshots.tidy,
            _ADAPT_INTERVAL,
            "Snapshots could not be taken or deleted",
            deletes=True,
        ),
    )
    # unlike gather(), which ends with the first that is cancelled, waits for all
    async with asyncio.TaskGroup() as group:
        for job in jobs:
            group.create_task(_repeat(job))


def _exclusive(
    name: str,
    do: Callable[[datetime], object],
    interval: float,
    failure: str,
    *,
    looks_every: float = 0.0,
    deletes: bool = False,
) -> _Job:
    """Return a job that one of all processes runs once in the interval."""
    return _Job(lambda: run_exclusively(name, interval, do), looks_every or interval, failure, deletes)


async def _repeat(job: _Job) -> None:
    # at random, so that processes do not run it simultaneously; first soon, for short-lived servers
    pause = random.uniform(0.1, 0.5)  # noqa: S311
    while True:
        await asyncio.sleep(job.interval * pause)
        pause = random.uniform(0.5, 1.5)  # noqa: S311
        running = asyncio.create_task(_run_once(job))
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            # a thread cannot be cancelled, only waited for
            await asyncio.wait([running], timeout=_SHUTDOWN_TIMEOUT)
            raise


async def _run_once(job: _Job) -> None:
    if database_version.is_outdated():
        return  # a server of the newer version runs it
    if job.deletes and not _clock.may_delete():
        return
    try:
        await in_background(job.do)
    except StorageError:
        pass  # the database is not available, which has been logged
    except Exception:
        logger.exception(job.failure)


def run_exclusively(name: str, interval: float, do: Callable[[datetime], object]) -> bool:
    """Run a job unless another process runs it, or ran it within about the interval; return whether it ran."""
    with try_job_lock(name) as is_alone:
        # by the clock of the database: those of servers differ; if it has been set back, the job may run again
        since = Now() - timedelta(seconds=0.7 * interval)
        lately = Job.objects.filter(name=name, done_at__gt=since, done_at__lte=Now())
        if not is_alone or lately.exists():
            return False
        now = datetime.now(UTC)
        do(now)
        Job.objects.update_or_create(name=name, defaults={"done_at": Now()})
        return True


class LateJob(NamedTuple):
    """``holder``: the process id of the session of PostgreSQL that has its lock, if one has."""

    name: str
    done_at: datetime
    holder: int | None


def late() -> list[LateJob]:
    """Return the jobs that should have run again long ago."""
    return [
        LateJob(job.name, job.done_at, job_lock_holder(job.name))
        for job in Job.objects.annotate(age=ExpressionWrapper(Now() - F("done_at"), DurationField()))
        if job.age > _LATE_AFTER.get(job.name, timedelta.max)
    ]


def _make_indexes() -> None:
    try:
        adaptive_indexes.add_for_new_scans(datetime.now(UTC))
    finally:
        indexes.run_pending()


def _tidy(now: datetime) -> None:
    metrics.tidy(now)
    usage.tidy(now)
    table_use.tidy(now)
    activity.tidy(now)
    adaptive_indexes.tidy(now)
    retired_keys.tidy(now)
    api_tokens.tidy(now)
    feed.tidy()
    throughput.tidy()


def _tidy_daily(now: datetime) -> None:
    for name in settings.DAILY:
        import_string(name)(now)
