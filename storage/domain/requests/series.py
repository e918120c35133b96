"""Request counts of an account or table over a period, in a mergeable form."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final, NamedTuple

from storage.domain.requests.metrics import LATENCY_BOUNDS, Tally

# seconds, ten for each power of ten (the preferred numbers R10); LATENCY_BOUNDS are among them
HISTOGRAM_BOUNDS: Final = tuple(
    float(f"{digits}e{power}")
    for power in range(-4, 2)
    for digits in (1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8)
)
BUCKETS: Final = len(HISTOGRAM_BOUNDS) + 1
_COARSE: Final = [bisect_left(LATENCY_BOUNDS, bound) for bound in HISTOGRAM_BOUNDS] + [len(LATENCY_BOUNDS)]

FREQUENT_LIMIT: Final = 32  # partitions, and credentials, that are counted in a period
_KINDS_LIMIT: Final = 100
_KEY_LIMIT: Final = 128  # characters


def coarsened(tally: Tally) -> Tally:
    """Convert a tally from the buckets of HISTOGRAM_BOUNDS to the buckets of LATENCY_BOUNDS."""
    latencies = [0] * (len(LATENCY_BOUNDS) + 1)
    for bucket, number in enumerate(tally.latencies):
        latencies[_COARSE[bucket]] += number
    return Tally(tally.requests, tally.ingress, tally.egress, tally.server_time, tally.total_time, latencies)


class SeriesKind(NamedTuple):
    """Key by which requests are counted; the key with empty fields collects the rest beyond a limit of kinds."""

    operation: str = ""
    status: int = 0  # 0: the client closed the connection
    error: str = ""

    @property
    def is_error(self) -> bool:
        return is_error(self.status)


def is_error(status: int) -> bool:
    return status >= 400


@dataclass(slots=True)
class Traffic:
    """Number of requests, their bytes in and out, and a latency histogram by bucket of HISTOGRAM_BOUNDS."""

    requests: int = 0
    ingress: int = 0
    egress: int = 0
    latencies: dict[int, int] = field(default_factory=dict)

    def add(self, other: "Traffic") -> None:
        self.requests += other.requests
        self.ingress += other.ingress
        self.egress += other.egress
        for bucket, number in other.latencies.items():
            self.latencies[bucket] = self.latencies.get(bucket, 0) + number

    def add_tally(self, tally: Tally) -> None:
        numbers = {bucket: number for bucket, number in enumerate(tally.latencies) if number}
        self.add(Traffic(tally.requests, tally.ingress, tally.egress, numbers))

    def percentile(self, share: float) -> float | None:
        """Return the latency percentile in seconds, at most 13 % off; None without requests."""
        buckets = sorted(self.latencies)
        totals = list(accumulate(self.latencies[bucket] for bucket in buckets))
        if not totals:
            return None
        rank = share * totals[-1]
        place = min(bisect_left(totals, rank), len(totals) - 1)
        bucket = buckets[place]
        if bucket >= len(HISTOGRAM_BOUNDS):
            return HISTOGRAM_BOUNDS[-1]
        lower, upper = _lower_bound(bucket), HISTOGRAM_BOUNDS[bucket]
        number = self.latencies[bucket]
        return lower + (upper - lower) * (rank - (totals[place] - number)) / number

    def exceeded(self, share: float) -> float:
        """Return the largest bound in seconds exceeded by more than a share of requests, such as 0.05."""
        buckets = sorted(self.latencies)
        totals = list(accumulate(self.latencies[bucket] for bucket in buckets))
        return _lower_bound(buckets[bisect_left(totals, (1 - share) * totals[-1])]) if totals else 0.0


def _lower_bound(bucket: int) -> float:
    return HISTOGRAM_BOUNDS[bucket - 1] if bucket else 0.0


@dataclass(slots=True)
class Frequent:
    """Most frequent keys of a stream in bounded space, as a mergeable Misra-Gries summary."""

    counts: dict[str, int] = field(default_factory=dict)
    missed: int = 0

    def add(self, counts: Mapping[str, int], missed: int = 0) -> None:
        self.missed += missed
        for key, number in counts.items():
            self.counts[key] = self.counts.get(key, 0) + number
        if len(self.counts) > FREQUENT_LIMIT:
            excess = sorted(self.counts.values(), reverse=True)[FREQUENT_LIMIT]
            self.counts = {key: number - excess for key, number in self.counts.items() if number > excess}
            self.missed += excess

    def top(self, number: int) -> list[tuple[str, int]]:
        return sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))[:number]


@dataclass(slots=True)
class PeriodCounts:
    """Requests to an account or table in a period; ``credentials`` use the format of write_credential."""

    kinds: dict[SeriesKind, Traffic] = field(default_factory=dict)
    partitions: Frequent = field(default_factory=Frequent)
    credentials: Frequent = field(default_factory=Frequent)

    @property
    def requests(self) -> int:
        return sum(traffic.requests for traffic in self.kinds.values())

    def requests_where(self, is_counted: Callable[[int], bool]) -> int:
        """Return the number of requests whose status satisfies a predicate."""
        return sum(traffic.requests for kind, traffic in self.kinds.items() if is_counted(kind.status))

    def traffic(self, kind: SeriesKind) -> Traffic:
        """Return the mutable traffic of a kind, merged into the rest beyond the limit of kinds."""
        if kind not in self.kinds and len(self.kinds) >= _KINDS_LIMIT:
            kind = SeriesKind()
        return self.kinds.setdefault(kind, Traffic())

    def add(self, other: "PeriodCounts") -> None:
        for kind, traffic in other.kinds.items():
            self.traffic(kind).add(traffic)
        self.partitions.add(other.partitions.counts, other.partitions.missed)
        self.credentials.add(other.credentials.counts, other.credentials.missed)

    def total(self) -> Traffic:
        total = Traffic()
        for traffic in self.kinds.values():
            total.add(traffic)
        return total

    def by_operation(self) -> dict[str, tuple[Traffic, int]]:
        """Return traffic and number of errors by operation, most frequent first."""
        operations: dict[str, tuple[Traffic, int]] = {}
        for kind, traffic in self.kinds.items():
            total, errors = operations.get(kind.operation, (Traffic(), 0))
            total.add(traffic)
            operations[kind.operation] = total, errors + (traffic.requests if kind.is_error else 0)
        return dict(sorted(operations.items(), key=lambda item: (-item[1][0].requests, item[0])))

    def by_code(self) -> dict[tuple[int, str], int]:
        """Return the number of requests by status and code, most frequent first."""
        counts: Counter[tuple[int, str]] = Counter()
        for kind, traffic in self.kinds.items():
            counts[kind.status, kind.error] += traffic.requests
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def errors(self) -> dict[tuple[int, str], int]:
        """Return the number of errors by status and code, most frequent first."""
        return {kind: number for kind, number in self.by_code().items() if is_error(kind[0])}

    @property
    def failed(self) -> int:
        return self.requests_where(is_error)


def shorten_key(key: str) -> str:
    """Truncate a key of a Frequent to its limit, with an ellipsis."""
    return key if len(key) <= _KEY_LIMIT else f"{key[: _KEY_LIMIT - 1]}…"


def write_credential(authentication: str, name: str) -> str:
    return f"{authentication}:{name}"


def read_credential(text: str) -> tuple[str, str]:
    """Parse the authentication and name of a credential from ``write_credential``'s form."""
    authentication, _, name = text.partition(":")
    return authentication, name


def write_counts(counts: PeriodCounts) -> list[Any]:
    """Serialize counts to JSON: a list per kind, and the most frequent partitions and credentials."""
    kinds = [
        [
            *kind,
            it.requests,
            it.ingress,
            it.egress,
            [n for item in sorted(it.latencies.items()) for n in item],
        ]
        for kind, it in counts.kinds.items()
    ]
    frequent = [[it.counts, it.missed] for it in (counts.partitions, counts.credentials)]
    return [kinds, *frequent]


def read_counts(written: Sequence[Any]) -> PeriodCounts:
    kinds, partitions, credentials = written
    return PeriodCounts(read_kinds(kinds), Frequent(*partitions), Frequent(*credentials))


def read_kinds(written: Sequence[Any]) -> dict[SeriesKind, Traffic]:
    return {
        SeriesKind(operation, status, error): Traffic(
            requests, ingress, egress, dict(zip(latencies[::2], latencies[1::2], strict=True))
        )
        for operation, status, error, requests, ingress, egress, latencies in written
    }
