"""The report: tables in Markdown, ready for the documentation.

Servers slow down with the size of a table and with the size or the number of its partitions, each in its own way. So
the headline is the median over all tables that were measured, the worst is named beside it, and every table follows."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, NamedTuple

from tests.bench.entities import Dataset, Layout
from tests.bench.load import Measurement
from tests.bench.workloads import Workload

OURS, PEER = "Tablero", "Azurite"
IN_LAYOUT = {Layout.ONE: "in one partition", Layout.MANY: "in partitions of a hundred"}


class Cell(NamedTuple):
    """What is compared: a workload on a table at a number of connections."""

    workload: str
    data: Dataset
    connections: int


@dataclass(slots=True)
class Results:
    """All that was measured."""

    conditions: dict[str, str] = field(default_factory=dict)
    runs: dict[tuple[Cell, str], list[Measurement]] = field(default_factory=lambda: defaultdict(list))
    """By cell and server."""
    raw: dict[Cell, list[float]] = field(default_factory=lambda: defaultdict(list))
    loading: dict[tuple[Dataset, str], float] = field(default_factory=dict)
    """Entities per second by table and server."""

    def tables(self) -> list[Dataset]:
        return list(dict.fromkeys(cell.data for cell, _ in self.runs))

    def value(self, cell: Cell, server: str, name: str) -> float | None:
        """The median over the runs of a cell."""
        runs = self.runs.get((cell, server))
        return median(getattr(run, name) for run in runs) if runs else None

    def ratio(self, cell: Cell) -> float | None:
        return divide(self.value(cell, OURS, "per_second"), self.value(cell, PEER, "per_second"))

    def p99_ratio(self, cell: Cell) -> float | None:
        """How many times lower ours is."""
        return divide(self.value(cell, PEER, "p99"), self.value(cell, OURS, "p99"))

    def share_of_raw(self, cell: Cell) -> float | None:
        raw = self.raw.get(cell)
        return divide(self.value(cell, OURS, "per_second"), median(raw) if raw else None)

    def errors(self) -> list[str]:
        return [
            f"{server}, {cell.workload} at {cell.connections}, {described(cell.data)}: {count} times {what}"
            for (cell, server), runs in self.runs.items()
            for run in runs
            for what, count in run.errors.items()
        ]

    def as_json(self) -> dict[str, Any]:
        return {
            "conditions": self.conditions,
            "runs": [
                {**written(cell), "server": server, **asdict(run)}
                for (cell, server), runs in self.runs.items()
                for run in runs
            ],
            "pgbench": [{**written(cell), "per_second": values} for cell, values in self.raw.items()],
            "loading": [
                {"size": data.size, "layout": data.layout.value, "server": server, "per_second": value}
                for (data, server), value in self.loading.items()
            ],
        }


def written(cell: Cell) -> dict[str, Any]:
    return {
        "workload": cell.workload,
        "size": cell.data.size,
        "layout": cell.data.layout.value,
        "connections": cell.connections,
    }


def described(data: Dataset) -> str:
    return f"{data.size:,} {IN_LAYOUT[data.layout]}"


def write(results: Results, workloads: list[Workload], connections: list[int]) -> str:
    parts = [
        *headline(results, workloads, connections),
        *latency(results, workloads, connections),
        *(text for data in results.tables() for text in one_table(results, workloads, connections, data)),
        "## Conditions",
        "",
        *(f"- {name}: {text}" for name, text in results.conditions.items()),
        "",
        *invalid(results),
    ]
    return "\n".join(parts) + "\n"


def headline(results: Results, workloads: list[Workload], connections: list[int]) -> list[str]:
    at = joined(map(str, connections))
    overall = [
        middle(results.ratio(Cell(workload.name, data, number)) for workload in workloads for data in tables)
        for tables in [results.tables()]
        for number in connections
    ]
    rows = [
        [
            workload.title,
            joined(times(over_tables(results, workload, number, results.ratio)) for number in connections),
            worst(results, workload, connections),
            joined(times(workload.target and workload.target.least.get(number)) for number in connections),
            joined(times(workload.target and workload.target.hoped.get(number)) for number in connections),
            missed(results, workload, connections),
        ]
        for workload in workloads
    ]
    heading = [f"requests/s relative to {PEER} at {at} connections", "median", "worst"]
    return [
        f"## Against {PEER}",
        "",
        f"Median over all operations and tables: {joined(map(times, overall))} times {PEER}'s throughput.",
        "",
        *table([*heading, "to reach", "hoped", "missed"], rows),
        "",
    ]


def worst(results: Results, workload: Workload, connections: list[int]) -> str:
    found = [
        (ratio, cell)
        for cell in cells(results, workload, connections)
        if (ratio := results.ratio(cell)) is not None
    ]
    if not found:
        return "-"
    ratio, cell = min(found)
    return f"{times(ratio)} at {cell.connections}, {described(cell.data)}"


def missed(results: Results, workload: Workload, connections: list[int]) -> str:
    """The connections at which the median misses the target, and in how many cells the p99 of a write is too high."""
    least = workload.target.least if workload.target else {}
    texts = [
        str(number)
        for number in connections
        if (over_tables(results, workload, number, results.ratio) or 1e9) < least.get(number, 0)
    ]
    if workload.is_write:
        ratios = [
            ratio
            for cell in cells(results, workload, connections)
            if (ratio := results.p99_ratio(cell)) is not None
        ]
        if higher := sum(ratio < 1 for ratio in ratios):
            texts.append(f"p99 in {higher} of {len(ratios)}")
    return ", ".join(texts)


def latency(results: Results, workloads: list[Workload], connections: list[int]) -> list[str]:
    def at_each(workload: Workload, value: Callable[[Cell], float | None]) -> str:
        return joined(amount(over_tables(results, workload, number, value)) for number in connections)

    def of(server: str, name: str) -> Callable[[Cell], float | None]:
        return lambda cell: results.value(cell, server, name)

    rows = [
        [
            workload.title,
            *(at_each(workload, of(server, name)) for name in ("p50", "p99") for server in (OURS, PEER)),
            at_each(workload, of(OURS, "cpu")),
            at_each(workload, results.share_of_raw),
        ]
        for workload in workloads
    ]
    heading = [f"medians over all tables at {joined(map(str, connections))} connections"]
    heading += [f"{name} of {server}, ms" for name in ("p50", "p99") for server in (OURS, PEER)]
    heading += [f"CPU of {OURS}, µs/request", "share of raw PostgreSQL"]
    return ["## Response times and cost", "", *table(heading, rows), ""]


def one_table(
    results: Results, workloads: list[Workload], connections: list[int], data: Dataset
) -> list[str]:
    rows = []
    for workload in workloads:
        row = [Cell(workload.name, data, number) for number in connections]
        runs = [
            run for cell in row for server in (OURS, PEER) for run in results.runs.get((cell, server), ())
        ]
        rows.append(
            [
                workload.title + (", answers in part" if any(run.partial for run in runs) else ""),
                *(
                    joined(amount(results.value(cell, server, "per_second")) for cell in row)
                    for server in (OURS, PEER)
                ),
                joined(times(results.ratio(cell)) for cell in row),
                joined(times(results.p99_ratio(cell)) for cell in row),
                joined(amount(median(raw) if (raw := results.raw.get(cell)) else None) for cell in row),
            ]
        )
    ours, peer = (results.loading.get((data, server)) for server in (OURS, PEER))
    rows.append(
        ["loading by batches, entities/s", amount(ours), amount(peer), times(divide(ours, peer)), "", ""]
    )
    heading = [f"requests/s at {joined(map(str, connections))} connections", OURS, PEER]
    return [
        f"## {described(data)}",
        "",
        *table([*heading, "ratio", "p99 lower by", "raw PostgreSQL"], rows),
        "",
    ]


def invalid(results: Results) -> list[str]:
    errors = results.errors()
    if not errors:
        return ["Every answer of every run was the expected one."]
    return ["**Invalid: wrong answers.**", "", *(f"- {error}" for error in errors)]


def cells(results: Results, workload: Workload, connections: list[int]) -> list[Cell]:
    return [Cell(workload.name, data, number) for data in results.tables() for number in connections]


def over_tables(
    results: Results, workload: Workload, connections: int, value: Callable[[Cell], float | None]
) -> float | None:
    return middle(value(cell) for cell in cells(results, workload, [connections]))


def middle(values: Iterable[float | None]) -> float | None:
    found = [value for value in values if value is not None]
    return median(found) if found else None


def divide(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


def table(heading: list[str], rows: list[list[str]]) -> list[str]:
    return [line(heading), line(["---"] * len(heading)), *map(line, rows)]


def line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def joined(texts: Iterable[str]) -> str:
    return " / ".join(texts)


def amount(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def times(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 20 else f"{value:.1f}" if value >= 5 else f"{value:.2f}"
