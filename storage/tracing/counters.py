"""This process's Prometheus counters for OpenTelemetry, read when they are sent."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    Sum,
)
from prometheus_client import REGISTRY

_PREFIX: Final = "tablero_"
_UNITS: Final = {"_seconds": "s", "_bytes": "By"}
_CUMULATIVE: Final = AggregationTemporality.CUMULATIVE


def read_counters(began: int, now: int) -> list[Metric]:
    """Return all metrics with their current values; times are in nanoseconds since 1970."""
    metrics = []
    for family in REGISTRY.collect():
        if family.name.startswith(_PREFIX) and family.samples:
            name, unit = _name(family.name)
            metrics.append(Metric(name, family.documentation, unit, _data(family, began, now)))
    return metrics


def _name(name: str) -> tuple[str, str]:
    for suffix, unit in _UNITS.items():
        if name.endswith(suffix):
            return f"tablero.{name.removeprefix(_PREFIX).removesuffix(suffix)}", unit
    return f"tablero.{name.removeprefix(_PREFIX)}", "1"


def _data(family: Any, began: int, now: int) -> Sum | Gauge | Histogram:
    if family.type == "histogram":
        return Histogram(_histograms(family.samples, began, now), _CUMULATIVE)
    is_counter = family.type == "counter"
    points = [
        NumberDataPoint(it.labels, began, now, it.value)
        for it in family.samples
        if not it.name.endswith("_created")
    ]
    return Sum(points, _CUMULATIVE, is_monotonic=True) if is_counter else Gauge(points)


def _histograms(samples: Iterable[Any], began: int, now: int) -> list[HistogramDataPoint]:
    """Return the histogram buckets per label set, as Prometheus's are cumulative."""
    buckets: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    sums: dict[tuple[tuple[str, str], ...], float] = {}
    for sample in samples:
        key = tuple(sorted((name, value) for name, value in sample.labels.items() if name != "le"))
        if sample.name.endswith("_bucket"):
            buckets.setdefault(key, []).append((float(sample.labels["le"]), sample.value))
        elif sample.name.endswith("_sum"):
            sums[key] = sample.value
    return [_histogram(dict(key), counts, sums.get(key, 0.0), began, now) for key, counts in buckets.items()]


def _histogram(
    labels: dict[str, str], buckets: Sequence[tuple[float, float]], total: float, began: int, now: int
) -> HistogramDataPoint:
    ordered = sorted(buckets)
    sums = [round(number) for _, number in ordered]
    counts = [number - before for number, before in zip(sums, [0, *sums], strict=False)]
    bounds = [bound for bound, _ in ordered[:-1]]  # the last is infinite
    # the smallest and the largest value are not known
    return HistogramDataPoint(labels, began, now, sums[-1], total, counts, bounds, None, None)  # type: ignore[arg-type]
