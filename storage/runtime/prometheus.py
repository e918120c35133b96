"""Prometheus counters of the server's processes, which share files."""

import os
import resource
import sys
import time
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from storage.domain.requests.metrics import LATENCY_BOUNDS, RequestKind, Tally
from storage.health import release
from storage.runtime.idleness import idleness

FOLDER: Final = (
    "PROMETHEUS_MULTIPROC_DIR"  # the library's own variable; it must be set before this is imported
)
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class _Latencies(Histogram):
    """Histogram that accepts pre-counted buckets, unlike the library's."""

    def add(self, latencies: Sequence[int], seconds: float) -> None:
        self._sum.inc(seconds)
        for bucket, number in zip(self._buckets, latencies, strict=True):
            bucket.inc(number)


_REQUESTS: Final = Counter(
    "tablero_requests",
    "Requests to the Table service; status 0: the client closed the connection",
    ("account", "operation", "status", "authentication"),
)
_RECEIVED: Final = Counter("tablero_received_bytes", "Bytes of request bodies", ("account",))
_SENT: Final = Counter("tablero_sent_bytes", "Bytes of response bodies", ("account",))
_SECONDS: Final = _Latencies(
    "tablero_request_seconds",
    "Time from the head of a request to the end of its response",
    ("operation",),
    buckets=LATENCY_BOUNDS,
)
_ERRORS: Final = Counter(
    "tablero_errors", "Requests that were answered with an error, by its code", ("account", "code")
)
_ACCOUNT_SECONDS: Final = _Latencies(
    "tablero_account_request_seconds",
    "As tablero_request_seconds, by account",
    ("account",),
    buckets=LATENCY_BOUNDS,
)
_CPU: Final = Counter("tablero_process_cpu_seconds", "Processor time of all processes of the server")
_PAGES: Final = Counter(
    "tablero_page_requests",
    "Requests to the console and to the management API; status 0: the client closed the connection",
    ("part", "method", "status"),
)
_PAGE_SECONDS: Final = Histogram(
    "tablero_page_seconds",
    "Time from a request to the console or the management API to the head of its response",
    ("part",),
    buckets=LATENCY_BOUNDS,
)
_MEMORY_REFUSALS: Final = Counter(
    "tablero_memory_refusals",
    "Requests refused, and connections closed, because those in flight took all memory they may take",
    ("share",),
)
_WORK_FAILURES: Final = Counter(
    "tablero_job_failures", "Runs of background jobs, or of parts of them, that failed", ("job",)
)
_BUILD: Final = Gauge("tablero_build_info", "1, with the version", ("version",), multiprocess_mode="max")


def _gauge(
    name: str, text: str, mode: Literal["livemostrecent", "livesum"] = "livemostrecent"
) -> tuple[str, Gauge]:
    """Return a gauge by name; the mode ``livesum`` sums over processes."""
    return name, Gauge(f"tablero_{name}", text, multiprocess_mode=mode)


_GAUGES: Final = dict(
    (
        _gauge("process_resident_bytes", "Memory in use by all processes of the server", "livesum"),
        _gauge("disk_free_bytes", "Free space on the disk of the data folder"),
        _gauge("disk_size_bytes", "Size of the disk of the data folder"),
        _gauge("last_backup_timestamp_seconds", "When the last backup was made; 0: never"),
        _gauge("last_drill_timestamp_seconds", "When the last drill of a restore passed; 0: never"),
        _gauge("archive_oldest_timestamp_seconds", "Start of the time to which it can be restored; 0: none"),
        _gauge("archive_latest_timestamp_seconds", "End of the time to which it can be restored; 0: none"),
        _gauge("archive_lag_seconds", "For how long the oldest part of the log waits to be archived"),
        _gauge("archive_size_bytes", "Size of the archive"),
        _gauge("archive_problems", "Problems of the archive, which the command archive describes"),
        _gauge("database_size_bytes", "Size of the database"),
        _gauge("database_connections", "Connections of all clients that PostgreSQL has open"),
        _gauge("database_connections_limit", "Connections that PostgreSQL allows"),
        _gauge(
            "pool_connections",
            "Connections of the console, the management API and jobs that are in use",
            "livesum",
        ),
        _gauge("pool_waiting", "Threads that wait for one of these connections", "livesum"),
        _gauge("jobs_late", "Background jobs that should have run again"),
        _gauge("jobs_failing", "Background jobs, and parts of them, whose last run failed"),
    )
)
UNKNOWN: Final = "Unknown"  # the operation of a request that was refused before it was recognized
NO_ACCOUNT: Final = "(none)"
OTHER_ACCOUNTS: Final = "(other)"


_ACCOUNT_SIZES: Final = {
    name: Gauge(f"tablero_account_{name}", text, ("account",), multiprocess_mode="livemostrecent")
    for name, text in (
        ("entities", "Estimated number of entities, as last sampled"),
        ("size_bytes", "Size of the tables on disk, as last sampled"),
        ("history_bytes", "Size of the history on disk, as last sampled"),
    )
}


def count_page(part: str, method: str, status: int, seconds: float) -> None:
    """Count a request to the console or to the management API."""
    idleness.note_request()
    _PAGES.labels(part, method if method in _METHODS else "other", status).inc()
    _PAGE_SECONDS.labels(part).observe(seconds)


def count_memory_refusal(share: str) -> None:
    _MEMORY_REFUSALS.labels(share).inc()


def count_work_failure(part: str) -> None:
    """Count a failed run of periodic work or a part of it."""
    _WORK_FAILURES.labels(part).inc()


_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def note(**values: float) -> None:
    """Set gauges by their names without the prefix."""
    for name, value in values.items():
        _GAUGES[name].set(value)


def note_account(name: str, *, entities: int, size: int, history: int) -> None:
    values = {"entities": entities, "size_bytes": size, "history_bytes": history}
    for metric, value in values.items():
        _ACCOUNT_SIZES[metric].labels(name).set(value)


class Process:
    """The counters of one process."""

    def __init__(self) -> None:
        self._cpu = 0.0
        _BUILD.labels(release.version()).set(1)

    def add(
        self, counted: Mapping[RequestKind, Tally], names: Mapping[int, str], labelled: Container[int]
    ) -> None:
        """Add counts to the metrics; accounts outside ``labelled`` share one series. ``names`` maps ids to accounts."""
        for kind, tally in counted.items():
            operation = kind.operation or UNKNOWN
            account = names.get(kind.account_id) or NO_ACCOUNT
            if account != NO_ACCOUNT and kind.account_id not in labelled:
                account = OTHER_ACCOUNTS
            _REQUESTS.labels(account, operation, kind.status, kind.authentication).inc(tally.requests)
            _RECEIVED.labels(account).inc(tally.ingress)
            _SENT.labels(account).inc(tally.egress)
            _SECONDS.labels(operation).add(tally.latencies, tally.total_time)
            _ACCOUNT_SECONDS.labels(account).add(tally.latencies, tally.total_time)
            if kind.status >= 400:
                _ERRORS.labels(account, kind.error or kind.status).inc(tally.requests)
        cpu = time.process_time()
        _CPU.inc(cpu - self._cpu)
        self._cpu = cpu
        note(process_resident_bytes=_resident())


def write() -> bytes:
    """Return the metrics of all processes in the Prometheus text format."""
    if not os.environ.get(FOLDER):
        return generate_latest(REGISTRY)
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)


def _resident() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:  # not Linux: the maximum so far
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
