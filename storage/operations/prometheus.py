"""Metrics for Prometheus: counters of this server's processes, which share files if there are several."""

import os
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from storage.domain.requests.metrics import LATENCY_BOUNDS, RequestKind, Tally

FOLDER: Final = (
    "PROMETHEUS_MULTIPROC_DIR"  # the library's own variable; it must be set before this is imported
)
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class _Latencies(Histogram):
    """A histogram to which counted buckets can be added; the library's takes single observations."""

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
_CPU: Final = Counter("tablero_process_cpu_seconds", "Processor time of all processes of the server")
_MEMORY: Final = Gauge(
    "tablero_process_resident_bytes", "Memory in use, by process", multiprocess_mode="liveall"
)
_REPLICA_IN_USE: Final = Gauge(
    "tablero_replica_in_use", "1 while a replica answers reads", ("replica",), multiprocess_mode="livemin"
)
_REPLICA_LAG: Final = Gauge(
    "tablero_replica_lag_seconds",
    "How far a replica is behind the primary",
    ("replica",),
    multiprocess_mode="livemax",
)


def note_replica(name: str, *, in_use: bool, lag: float | None) -> None:
    _REPLICA_IN_USE.labels(name).set(in_use)
    if lag is not None:
        _REPLICA_LAG.labels(name).set(lag)


class Process:
    """The counters of one process."""

    def __init__(self) -> None:
        self._cpu = 0.0

    def add(self, counted: Mapping[RequestKind, Tally], names: Mapping[int, str]) -> None:
        """Add counts; ``names`` of accounts by id, empty for requests to an account that does not exist."""
        for kind, tally in counted.items():
            account, operation = names.get(kind.account_id, ""), kind.operation or ""
            _REQUESTS.labels(account, operation, kind.status, kind.authentication).inc(tally.requests)
            _RECEIVED.labels(account).inc(tally.ingress)
            _SENT.labels(account).inc(tally.egress)
            _SECONDS.labels(operation).add(tally.latencies, tally.total_time)
        cpu = time.process_time()
        _CPU.inc(cpu - self._cpu)
        self._cpu = cpu
        _MEMORY.set(_resident())


def write() -> bytes:
    """Return the metrics of all processes in the text format."""
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
