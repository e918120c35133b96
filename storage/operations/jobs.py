"""What a server does beside answering: each process of each server tries, locks keep them from doing it twice."""

import asyncio
import logging
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from django.conf import settings
from django.utils.module_loading import import_string

from storage.domain.errors import StorageError
from storage.models import Job
from storage.operations import (
    accounts,
    activity,
    analytics,
    api_tokens,
    metrics,
    request_log,
    retired_keys,
    tables,
    usage,
)
from storage.operations.threads import in_background
from storage.sql.background import try_job_lock

logger = logging.getLogger(__name__)

_INTERVAL: Final = 10.0  # seconds
_TIDY_INTERVAL: Final = 600.0
_DAY: Final = 86_400.0
_PATIENCE: Final = 5.0  # with what is being done when the server ends


class _Duty(NamedTuple):
    """``complaint`` is what is logged when it could not be done."""

    do: Callable[[], object]
    interval: float
    complaint: str


async def run() -> None:
    """Runs until it is cancelled."""
    writer = analytics.Writer()
    duties = (
        _Duty(lambda: tables.drop_expired_tables(), _INTERVAL, "Deleted tables could not be dropped"),
        _Duty(
            lambda: run_exclusively("metrics", _INTERVAL, writer.write),
            _INTERVAL,
            "Metrics could not be written",
        ),
        _Duty(
            lambda: run_exclusively("tidy", _TIDY_INTERVAL, _tidy),
            _TIDY_INTERVAL,
            "Records could not be tidied",
        ),
        _Duty(
            lambda: run_exclusively("daily", _DAY, _tidy_daily),
            _TIDY_INTERVAL,
            "Sessions could not be tidied",
        ),
        _Duty(
            lambda: run_exclusively("accounts", _INTERVAL, accounts.expire),
            _INTERVAL,
            "Accounts whose time is over could not be frozen",
        ),
        _Duty(_tidy_logs, _TIDY_INTERVAL, "Logs could not be tidied"),
    )
    # unlike gather(), which ends with the first that is cancelled, waits for all
    async with asyncio.TaskGroup() as group:
        for duty in duties:
            group.create_task(_repeat(duty))


async def _repeat(duty: _Duty) -> None:
    # not all processes at the same moment; and the first time soon, for servers that do not live long
    pause = random.uniform(0.1, 0.5)  # noqa: S311
    while True:
        await asyncio.sleep(duty.interval * pause)
        pause = random.uniform(0.5, 1.5)  # noqa: S311
        doing = asyncio.create_task(_do(duty))
        try:
            await asyncio.shield(doing)
        except asyncio.CancelledError:
            # a thread cannot be cancelled, only waited for
            await asyncio.wait([doing], timeout=_PATIENCE)
            raise


async def _do(duty: _Duty) -> None:
    try:
        await in_background(duty.do)
    except StorageError:
        pass  # the database is away; it has been logged
    except Exception:
        logger.exception(duty.complaint)


def run_exclusively(name: str, interval: float, do: Callable[[datetime], object]) -> bool:
    """Does it, unless another process of any server is at it, or did it within about the interval."""
    now = datetime.now(UTC)
    with try_job_lock(name) as is_alone:
        lately = Job.objects.filter(name=name, done_at__gt=now - timedelta(seconds=0.7 * interval))
        if not is_alone or lately.exists():
            return False
        do(now)
        Job.objects.update_or_create(name=name, defaults={"done_at": now})
        return True


def _tidy(now: datetime) -> None:
    metrics.tidy(now)
    usage.tidy(now)
    activity.tidy(now)
    retired_keys.tidy(now)
    api_tokens.tidy(now)


def _tidy_daily(now: datetime) -> None:
    for name in settings.DAILY:
        import_string(name)(now)


def _tidy_logs() -> None:
    request_log.tidy(request_log.folder(), datetime.now(UTC))
