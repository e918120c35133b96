"""Samples of a server under load: one line of JSON each, what drifts in them, and their drawing."""

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from statistics import linear_regression, median, quantiles
from threading import Condition

import psutil

from tests.tools.bench import processes

WARMING_UP = 0.3  # the part of a piece in which caches fill and connections are opened
FEWEST = 6  # samples after that from which a trend can be computed
GROWTH = 0.15  # the limit of growth, relative to the median, over the rest of a piece
MEGABYTE = 1 << 20
# permitted growth: garbage that is not yet collected, connections at the moment of a sample
ALLOWANCES = {
    "memory of the server, MB": 40,
    "memory of PostgreSQL, MB": 60,
    "descriptors": 40,
    "connections": 8,
}


@dataclass
class Sample:
    """A sample of values, by name."""

    piece: int  # the number of the server's start
    hours: float  # load of all pieces so far
    values: dict[str, float]
    errors: dict[str, int] = field(default_factory=dict)


class Latencies:
    """Durations of requests since the last sample, and errors."""

    def __init__(self) -> None:
        self._lock = Condition()
        self._taken: dict[str, list[float]] = defaultdict(list)
        self._errors: Counter[str] = Counter()

    def add(self, kind: str, seconds: float) -> None:
        with self._lock:
            self._taken[kind].append(seconds)
            self._lock.notify_all()

    def wait_for(self, kind: str, patience: float) -> bool:
        """Wait so many seconds for a request of a kind, and return whether one was answered since the last sample."""
        with self._lock:
            return self._lock.wait_for(lambda: kind in self._taken, patience)

    def fail(self, kind: str, error: object) -> None:
        with self._lock:
            self._errors[f"{kind}: {error}"[:300]] += 1

    def drain(self) -> tuple[dict[str, float], dict[str, int]]:
        with self._lock:
            taken, errors = self._taken, dict(self._errors)
            self._taken, self._errors = defaultdict(list), Counter()
        results: dict[str, float] = {}
        for kind, seconds in taken.items():
            cuts = quantiles([*seconds, *seconds], n=100)  # twice, because there may be only one
            results |= {
                f"{kind}: p50, ms": 1e3 * cuts[49],
                f"{kind}: p99, ms": 1e3 * cuts[98],
                f"{kind}: requests": len(seconds),
            }
        return results, errors


def measure(pid: int, data: Path) -> dict[str, float]:
    """Measure the processes of a server, and its data."""
    result: Counter[str] = Counter()
    for number in processes.tree(pid):
        try:
            process = psutil.Process(number)
            command = " ".join(process.cmdline())
            descriptors = process.num_fds()
        except psutil.Error:
            continue
        is_database = "postgres" in command.partition(" ")[0]
        rollup = dict(
            line.split()[:2] for line in processes.read(Path(f"/proc/{number}/smaps_rollup")).splitlines()[1:]
        )
        name = "PostgreSQL" if is_database else "the server"
        # shared memory is PostgreSQL's buffers, which fill up to their size
        shared = int(rollup.get("Pss_Shmem:", 0))
        result[f"memory of {name}, MB"] += (int(rollup.get("Pss:", 0)) - shared) / 1024
        result["buffers, MB"] += shared / 1024
        result["descriptors"] += 0 if is_database else descriptors
        result["connections"] += "[local]" in command
    return {**result, "disk, MB": disk(data) / MEGABYTE}


def disk(folder: Path) -> int:
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(f"{root}/{name}").st_blocks * 512
            except OSError:  # gone meanwhile
                continue
    return total


def append(path: Path, sample: Sample) -> None:
    with path.open("a") as file:
        file.write(json.dumps(asdict(sample)) + "\n")


def read(path: Path) -> list[Sample]:
    if not path.exists():
        return []
    return [Sample(**json.loads(line)) for line in path.read_text().splitlines()]


def problems(samples: Sequence[Sample]) -> list[str]:
    """Return problems: errors, and values that grow throughout a piece."""
    errors: Counter[str] = Counter()
    for sample in samples:
        errors.update(sample.errors)
    results = [f"{number} times {error}" for error, number in errors.most_common(20)]
    for piece in sorted({it.piece for it in samples}):
        own = [it for it in samples if it.piece == piece]
        warm = own[int(len(own) * WARMING_UP) :]
        if len(warm) < FEWEST:
            continue
        for name, allowance in ALLOWANCES.items():
            values = [it.values.get(name, 0.0) for it in warm]
            slope, _ = linear_regression([it.hours for it in warm], values)
            growth = slope * (warm[-1].hours - warm[0].hours)
            if growth > max(allowance, GROWTH * median(values)):
                results.append(f"{name} grew by {growth:.0f} in piece {piece}, {slope:.0f} an hour")
    return results


def summary(samples: Sequence[Sample]) -> str:
    """Return a table with each value at the beginning, in the middle and at most."""
    lines = [
        f"{samples[-1].hours:.2f} hours, {len(samples)} samples, {samples[-1].piece} pieces",
        "",
        "| | first | median | last | most |",
        "|---|---|---|---|---|",
    ]
    for name in names_of(samples):
        values = [it.values[name] for it in samples if name in it.values]
        total = f" ({sum(values):,.0f} in all)" if name.endswith("requests") else ""
        lines.append(
            f"| {name}{total} | {values[0]:,.1f} | {median(values):,.1f} | {values[-1]:,.1f} | {max(values):,.1f} |"
        )
    return "\n".join(lines) + "\n"


def names_of(samples: Iterable[Sample]) -> list[str]:
    return list(dict.fromkeys(name for it in samples for name in it.values))


# drawing

WIDTH, HEIGHT, MARGIN = 420, 120, 30


def draw(samples: Sequence[Sample]) -> str:
    """Draw an SVG with a chart for each value over the hours; a line begins with each piece."""
    names = names_of(samples)
    rows = (len(names) + 1) // 2
    charts = [
        _chart(
            name,
            samples,
            MARGIN + place % 2 * (WIDTH + 2 * MARGIN),
            place // 2 * (HEIGHT + 2 * MARGIN) + MARGIN,
        )
        for place, name in enumerate(names)
    ]
    size = f'width="{2 * WIDTH + 4 * MARGIN}" height="{rows * (HEIGHT + 2 * MARGIN) + MARGIN}"'
    style = "text{font:11px sans-serif}path{fill:none;stroke:#06c}rect{fill:none;stroke:#ccc}"
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{style}</style>{"".join(charts)}</svg>\n'


def _chart(name: str, samples: Sequence[Sample], left: int, top: int) -> str:
    shown = [it for it in samples if name in it.values]
    most = max(it.values[name] for it in shown) or 1.0
    hours = max(it.hours for it in samples) or 1.0
    pieces: Mapping[int, list[str]] = defaultdict(list)
    for it in shown:
        x, y = left + WIDTH * it.hours / hours, top + HEIGHT * (1 - it.values[name] / most)
        pieces[it.piece].append(f"{x:.1f},{y:.1f}")
    lines = "".join(f'<path d="M{" L".join(points)}"/>' for points in pieces.values())
    return (
        f'<text x="{left}" y="{top - 6}">{escape(name)}: at most {most:,.1f}, {hours:.2f} h</text>'
        f'<rect x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}"/>{lines}'
    )
