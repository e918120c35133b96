"""Prometheus gauges: disk, database, connections and jobs."""

from collections.abc import Callable, Sized
from typing import Any, Final, cast

from django.conf import settings
from django.db import connection

from storage.core import registry
from storage.core.subject import Hook
from storage.health import connections, disk
from storage.metrics import sizes
from storage.metrics.series import WHOLE
from storage.models import Account
from storage.runtime import prometheus
from storage.sql import diagnosis
from storage.sql.attempts import attempting_each

INTERVAL: Final = 30.0  # seconds


def measure(late_jobs: Callable[[], Sized], failing_parts: Callable[[], Sized] = tuple) -> None:
    """Update the gauges of this process; gauges that need no database come first."""
    with attempting_each("Not everything could be measured") as attempt:
        for part in (_measure_disk, *registry.hooks(Hook.MEASURES), _measure_pool):
            with attempt():
                prometheus.note(**part())
        with attempt():
            _measure_database(late_jobs, failing_parts)
        with attempt():
            _measure_accounts()


def _measure_disk() -> dict[str, float]:
    space = disk.space_of(settings.OPTIONS.data)
    return {"disk_free_bytes": space.free, "disk_size_bytes": space.total}


def _measure_database(late_jobs: Callable[[], Sized], failing_parts: Callable[[], Sized]) -> None:
    counts = connections.state().counts
    prometheus.note(
        database_size_bytes=diagnosis.about().size,
        database_connections=counts.used,
        database_connections_limit=counts.allowed,
        jobs_late=len(late_jobs()),
        jobs_failing=len(failing_parts()),
    )


def labelled_accounts() -> frozenset[int]:
    """Return the accounts with metric series of their own: the oldest ones, so that short-lived branches add none."""
    return frozenset(_labelled_names())


def _labelled_names() -> dict[int, str]:
    oldest = Account.objects.order_by("pk").values_list("pk", "name")
    return dict(oldest[: settings.OPTIONS.metrics_accounts])


def _measure_accounts() -> None:
    names = _labelled_names()
    for (account_id, _), size in sizes.latest([(pk, WHOLE) for pk in names]).items():
        prometheus.note_account(names[account_id], **size._asdict())


def _measure_pool() -> dict[str, float]:
    pool = cast("Any", connection).pool
    if pool is None:
        return {}
    stats = pool.get_stats()
    used = stats.get("pool_size", 0) - stats.get("pool_available", 0)
    return {"pool_connections": used, "pool_waiting": stats.get("requests_waiting", 0)}
