"""Periodic work, mostly declared by subjects."""

import asyncio
import logging
import math
import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, NamedTuple

from django.conf import settings
from django.db.models import DurationField, ExpressionWrapper, F
from django.db.models.functions import Now
from django.utils.module_loading import import_string

from storage.core import registry
from storage.core.subject import Periodic
from storage.domain.errors import StorageError
from storage.health import database_version, disk
from storage.models import PeriodicRun
from storage.runtime import measurements
from storage.runtime.clock import ClockWatch
from storage.runtime.idleness import Idleness, idleness
from storage.runtime.threads import in_background
from storage.runtime.work_failures import failing, work_failures
from storage.sql import throughput
from storage.sql.background import job_lock_holder, try_job_lock
from storage.sql.django import is_lost

logger = logging.getLogger(__name__)

_TICK: Final = 5.0  # seconds; most work begins at a multiple of it
_IDLE_FACTOR: Final = 3.0
_IDLE_INTERVAL: Final = 60.0  # work that comes less often anyway goes on as ever
_ADAPT_INTERVAL: Final = 60.0
_TIDY_INTERVAL: Final = 600.0
_DAY: Final = 86_400.0
_LONGEST: Final = math.inf  # seconds between two runs of declared work; tests set less
# periods of the engine's own work; subjects declare theirs
_LATE_AFTER: Final = {
    "tidy": timedelta(hours=1),
    "daily": timedelta(hours=26),
}
_clock: Final = ClockWatch()
_SHUTDOWN_TIMEOUT: Final = 5.0  # seconds to end the present work


class _Work(NamedTuple):
    """Periodic work with its function and interval; ``failure`` is logged when it raises.

    Work that ``deletes`` expired rows is postponed after a jump of the clock. Work whose parts can fail alone
    logs these failures itself: see run_parts. ``is_wanted`` tells, without the database, whether there is
    work.
    """

    name: str
    do: Callable[[], object]
    interval: float
    failure: str
    deletes: bool = False
    is_wanted: Callable[[], bool] = lambda: True


async def run() -> None:
    """Run all periodic work until cancelled."""
    works = (
        *map(_declared, registry.periodic()),
        _Work(
            "measurements",
            lambda: measurements.measure(late, failing),
            measurements.INTERVAL,
            "Metrics could not be measured",
        ),
        _Work(
            "disk",
            disk.Watch(settings.OPTIONS.data).check,
            _ADAPT_INTERVAL,
            "The disk could not be examined",
        ),
        _exclusive("tidy", _tidy, _TIDY_INTERVAL, "Records could not be tidied", deletes=True),
        _exclusive(
            "daily",
            _tidy_daily,
            _DAY,
            "Sessions could not be tidied",
            looks_every=_TIDY_INTERVAL,
            deletes=True,
        ),
    )
    # unlike gather(), which ends with the first that is cancelled, waits for all
    async with asyncio.TaskGroup() as group:
        for work in works:
            group.create_task(_repeat(work))


def _declared(work: Periodic) -> _Work:
    """Convert a subject's declaration to periodic work."""

    # imported before the first run, which may find no file descriptor left to read a module
    function = import_string(work.do)

    def do(now: datetime) -> object:
        return function(now) if work.takes_time else function()

    is_wanted = import_string(work.is_wanted) if work.is_wanted else lambda: True
    every = min(work.every, _LONGEST)
    if work.is_exclusive:
        return _exclusive(
            work.name,
            do,
            every,
            work.failure,
            looks_every=work.looks_every,
            deletes=work.deletes,
            is_wanted=is_wanted,
        )
    return _Work(work.name, lambda: do(datetime.now(UTC)), every, work.failure, work.deletes, is_wanted)


def _exclusive(
    name: str,
    do: Callable[[datetime], object],
    interval: float,
    failure: str,
    *,
    looks_every: float = 0.0,
    deletes: bool = False,
    is_wanted: Callable[[], bool] = lambda: True,
) -> _Work:
    """Return work that one of all processes does once per interval."""
    return _Work(
        name,
        lambda: run_exclusively(name, interval, do),
        looks_every or interval,
        failure,
        deletes,
        is_wanted,
    )


async def _repeat(work: _Work) -> None:
    # at random, so that processes do not run it simultaneously; first soon, for short-lived servers
    pause = random.uniform(0.1, 0.5)  # noqa: S311
    while True:
        await asyncio.sleep(_until_tick(current_interval(work.interval) * pause))
        pause = random.uniform(0.5, 1.5)  # noqa: S311
        if not work.is_wanted():
            continue
        running = asyncio.create_task(_run_once(work))
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            # a thread cannot be cancelled, only waited for
            await asyncio.wait([running], timeout=_SHUTDOWN_TIMEOUT)
            raise


def current_interval(interval: float, idleness: Idleness = idleness) -> float:
    """Return the current interval in seconds, up to three times as long while idle."""
    return max(interval, min(_IDLE_FACTOR * interval, _IDLE_INTERVAL)) if idleness.is_idle() else interval


def _until_tick(seconds: float) -> float:
    """Round a delay up to a shared tick, as waking up costs more than most work."""
    if seconds < _TICK:
        return seconds
    now = asyncio.get_running_loop().time()
    return math.ceil((now + seconds) / _TICK) * _TICK - now


async def _run_once(work: _Work) -> None:
    if database_version.is_outdated():
        return  # a server of the newer version runs it
    try:
        await in_background(partial(_do, work))
    except StorageError:
        pass  # the database is not available, which has been logged
    except Exception:
        logger.exception(work.failure)


def _do(work: _Work) -> None:
    """Run work if the clock has not jumped, which is checked right before."""
    if not work.deletes or _clock.may_delete():
        _attempt(work.name, work.do, work.failure)


def _attempt(part: str, do: Callable[[], object], failure: str = "") -> None:
    """Run work or a part of it and note its success or failure; raises only errors of a lost database."""
    try:
        do()
    except Exception as error:
        if is_lost(error):
            raise
        work_failures.note(part, error, failure)
    else:
        work_failures.note_success(part)


def run_parts(work: str, parts: Mapping[str, Callable[[datetime], object]], now: datetime) -> None:
    """Run each part of work separately; failures are noted by part and do not stop others."""
    for name, part in parts.items():
        _attempt(f"{work}.{name}", partial(part, now))


def run_exclusively(name: str, interval: float, do: Callable[[datetime], object]) -> bool:
    """Run work unless another process runs it or did so within the interval; return whether it ran."""
    with try_job_lock(name) as is_alone:
        # by the clock of the database: clocks of servers differ; if it has been set back, the work may be done again
        since = Now() - timedelta(seconds=0.7 * interval)
        lately = PeriodicRun.objects.filter(name=name, done_at__gt=since, done_at__lte=Now())
        if not is_alone or lately.exists():
            return False
        now = datetime.now(UTC)
        do(now)
        if not PeriodicRun.objects.filter(name=name).update(done_at=Now()):  # one statement, nearly always
            PeriodicRun.objects.create(name=name, done_at=Now())
        return True


class LateWork(NamedTuple):
    """Overdue periodic work."""

    name: str
    done_at: datetime
    holder: int | None  # the process id of the PostgreSQL session that has its lock, if one has


def late() -> list[LateWork]:
    """Return the work that is long overdue."""
    declared = {work.name: work.late_after for work in registry.periodic() if work.late_after is not None}
    late_after = _LATE_AFTER | declared
    return [
        LateWork(job.name, job.done_at, job_lock_holder(job.name))
        for job in PeriodicRun.objects.annotate(age=ExpressionWrapper(Now() - F("done_at"), DurationField()))
        if job.age > late_after.get(job.name, timedelta.max)
    ]


def _tidy(now: datetime) -> None:
    parts: dict[str, Callable[[datetime], object]] = {
        name: import_string(path) for name, path in registry.tidying().items()
    }
    run_parts("tidy", {**parts, "throughput": lambda _: throughput.tidy()}, now)


def _tidy_daily(now: datetime) -> None:
    run_parts("daily", {_name_of(path): import_string(path) for path in registry.daily()}, now)


def _name_of(path: str) -> str:
    """Return a short name for a dotted function path: its module."""
    return path.split(".")[-2]
