"""The report: tables in Markdown, ready for the documentation.

Servers slow down with the size of a table and with the size or the number of its partitions, each in its own way. So
the headline is the median over all tables that were measured, the worst is named beside it, and every table follows."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from operator import itemgetter
from statistics import median
from typing import Any, NamedTuple

from tests.tools.bench.entities import Dataset, Layout
from tests.tools.bench.load import Measurement
from tests.tools.bench.sdk_loading import Loading
from tests.tools.bench.servers import OURS, PEER, RELAXED
from tests.tools.bench.workloads import Goal, Workload

BUSY, DISTURBED = 0.5, 0.25
"""Cores that other programs keep busy: on average over a run of the benchmark, and in one measurement."""
CLIENT_BUSY = 0.8
"""Cores from which on the load generator may be what is measured."""
NOTHING = "–"
IN_LAYOUT = {Layout.ONE: "in one partition", Layout.MANY: "in partitions of a hundred"}


class Cell(NamedTuple):
    """A unit of comparison: a workload on a table at a number of connections."""

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
    sdk: dict[tuple[int, str, int], Loading] = field(default_factory=dict)
    """By entities, server and clients."""
    disturbances: list[str] = field(default_factory=list)
    """Why the machine was too busy for ratios of one connection, where wake-ups of processes are most of the time."""

    def is_disturbed(self, cell: Cell) -> bool:
        return any(
            run.others > DISTURBED
            for name in (OURS, RELAXED, PEER)
            for run in self.runs.get((cell, name), ())
        )

    def others(self) -> float:
        """Cores that other programs kept busy during the runs, on average."""
        results = [run.others for runs in self.runs.values() for run in runs]
        return sum(results) / len(results) if results else 0.0

    def tables(self) -> list[Dataset]:
        return list(dict.fromkeys(cell.data for cell, _ in self.runs))

    def value(self, cell: Cell, server: str, name: str) -> float | None:
        """Return the median over the runs of a cell."""
        runs = self.runs.get((cell, server))
        return median(getattr(run, name) for run in runs) if runs else None

    def ratio(self, cell: Cell, server: str = OURS, figure: str = "per_second") -> float | None:
        """Return how many times better than Azurite: more requests per second, or a lower response time."""
        if cell.connections == 1 and self.disturbances:
            return None
        ours, theirs = self.value(cell, server, figure), self.value(cell, PEER, figure)
        return divide(ours, theirs) if figure == "per_second" else divide(theirs, ours)

    def share_of_raw(self, cell: Cell) -> float | None:
        if cell.connections == 1 and self.disturbances:
            return None
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
            "disturbances": self.disturbances,
            "sdk": [
                {"entities": entities, "server": server, "clients": clients, **asdict(loading)}
                for (entities, server, clients), loading in self.sdk.items()
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
        *goals(results, workloads, connections),
        *latency(results, workloads, connections),
        *sdk(results),
        *(text for data in results.tables() for text in one_table(results, workloads, connections, data)),
        "## Conditions",
        "",
        *(f"- {name}: {text}" for name, text in results.conditions.items()),
        "",
        *invalid(results),
    ]
    return "\n".join(parts) + "\n"


def headline(results: Results, workloads: list[Workload], connections: list[int]) -> list[str]:
    def at_each(workload: Workload, server: str, figure: str) -> str:
        return joined(
            times(over_tables(results, workload, number, lambda cell: results.ratio(cell, server, figure)))
            + mark(results, cells(results, workload, [number]))
            for number in connections
        )

    overall = [
        middle(results.ratio(Cell(workload.name, data, number)) for workload in workloads for data in tables)
        for tables in [results.tables()]
        for number in connections
    ]
    rows = [
        [
            titled(workload, server),
            at_each(workload, server, "per_second"),
            at_each(workload, server, "p50"),
            worst(results, workload, connections, server),
        ]
        for workload in workloads
        for server in of_ours(results, workload)
    ]
    return [
        f"## Against {PEER}",
        "",
        f"Median over all operations and tables: {joined(map(times, overall))} times {PEER}'s throughput.",
        "",
        *(f"No ratios of one connection: {text}." for text in results.disturbances),
        *([""] if results.disturbances else []),
        *table(
            [
                f"relative to {PEER} at {joined(map(str, connections))} connections, medians",
                "requests/s",
                "p50, times lower",
                "worst requests/s",
            ],
            rows,
        ),
        "",
        f"\\* While it was measured, other programs used more than {DISTURBED:g} cores.",
        "",
    ]


def titled(workload: Workload, server: str) -> str:
    return f"{workload.title}, equal durability" if server == RELAXED else workload.title


def of_ours(results: Results, workload: Workload) -> list[str]:
    """Return our servers that were measured with a workload: for writes, also the one with relaxed durability."""
    names = {server for _, server in results.runs}
    return [OURS, *([RELAXED] if workload.is_write and RELAXED in names else [])]


def goals(results: Results, workloads: list[Workload], connections: list[int]) -> list[str]:
    rows = [
        goal_row(results, workload, goal, connections)
        for workload in workloads
        for goal in workload.goals
        if set(goal.least) & set(connections)
    ]
    heading = ["goal", "to reach", "median", "reached", "worst"]
    return ["## Goals", "", *table(heading, rows), ""]


def goal_row(results: Results, workload: Workload, goal: Goal, connections: list[int]) -> list[str]:
    server = RELAXED if goal.is_relaxed else OURS
    ratios = {
        number: over_tables(results, workload, number, lambda cell: results.ratio(cell, server, goal.figure))
        for number in goal.least
        if number in connections
    }
    missed = [
        f"at {number}" for number, ratio in ratios.items() if ratio is not None and ratio < goal.least[number]
    ]
    unknown = [f"at {number}" for number, ratio in ratios.items() if ratio is None]
    verdicts = [f"no, {joined(missed)}"] if missed else []
    verdicts += [f"not known {joined(unknown)}"] if unknown else []
    return [
        f"{titled(workload, server)}, {'p50' if goal.figure == 'p50' else 'requests/s'} at {joined(map(str, ratios))}",
        joined(f"{goal.least[number]:g}" for number in ratios),
        joined(times(ratio) for ratio in ratios.values()),
        "; ".join(verdicts) or "yes",
        worst(results, workload, list(ratios), server, goal.figure),
    ]


def worst(
    results: Results,
    workload: Workload,
    connections: list[int],
    server: str = OURS,
    figure: str = "per_second",
) -> str:
    measured = [
        (ratio, cell)
        for cell in cells(results, workload, connections)
        if (ratio := results.ratio(cell, server, figure)) is not None
    ]
    if not measured:
        return NOTHING
    ratio, cell = min(measured, key=itemgetter(0))
    return f"{times(ratio)}{mark(results, [cell])} at {cell.connections}, {described(cell.data)}"


def mark(results: Results, found: Iterable[Cell]) -> str:
    """Return a star for figures that were measured while other programs ran."""
    return "\\*" if any(map(results.is_disturbed, found)) else ""


def latency(results: Results, workloads: list[Workload], connections: list[int]) -> list[str]:
    def at_each(workload: Workload, value: Callable[[Cell], float | None]) -> str:
        return joined(amount(over_tables(results, workload, number, value)) for number in connections)

    def of(server: str, name: str) -> Callable[[Cell], float | None]:
        return lambda cell: results.value(cell, server, name)

    rows = [
        [
            titled(workload, ours),
            *(at_each(workload, of(server, name)) for name in ("p50", "p99") for server in (ours, PEER)),
            at_each(workload, of(ours, "cpu")),
            at_each(workload, of(ours, "client")),
            at_each(workload, results.share_of_raw) if ours == OURS else "",
        ]
        for workload in workloads
        for ours in of_ours(results, workload)
    ]
    heading = [f"medians over all tables at {joined(map(str, connections))} connections"]
    heading += [f"{name} of {server}, ms" for name in ("p50", "p99") for server in (OURS, PEER)]
    heading += [f"CPU of {OURS}, µs/request", "load generator, cores", "share of raw PostgreSQL"]
    return ["## Response times and cost", "", *table(heading, rows), "", *bound_by_client(results)]


def bound_by_client(results: Results) -> list[str]:
    """Warn where the load generator had no time left, so that a server may be faster than it seems."""
    measured = sorted(
        {
            f"{server}, {cell.workload} at {cell.connections}"
            for (cell, server), runs in results.runs.items()
            if any(run.client > CLIENT_BUSY for run in runs)
        }
    )
    return [f"**The load generator was busy all the time**: {'; '.join(measured)}.", ""] if measured else []


def sdk(results: Results) -> list[str]:
    if not results.sdk:
        return []
    counts = dict.fromkeys(clients for _, _, clients in results.sdk)
    entities = next(iter(results.sdk))[0]
    rows = []
    for server in dict.fromkeys(server for _, server, _ in results.sdk):
        measured = [results.sdk[entities, server, clients] for clients in counts]
        peer = [results.sdk.get((entities, PEER, clients)) for clients in counts]
        rows.append(
            [
                server,
                joined(amount(loading.per_second) for loading in measured),
                joined(
                    times(
                        None
                        if clients == 1 and results.disturbances
                        else divide(one.per_second, it and it.per_second)
                    )
                    for clients, one, it in zip(counts, measured, peer, strict=True)
                ),
                joined(amount(loading.cores) for loading in measured),
            ]
        )
    heading = [
        f"change sets of 100 by {joined(map(str, counts))} clients",
        "entities/s",
        f"relative to {PEER}",
    ]
    return [
        f"## Loading {entities:,} entities by the Python SDK",
        "",
        *table([*heading, "CPU of the clients, cores"], rows),
        "",
    ]


def one_table(
    results: Results, workloads: list[Workload], connections: list[int], data: Dataset
) -> list[str]:
    rows = []
    for workload in workloads:
        row = [Cell(workload.name, data, number) for number in connections]
        if not any((cell, OURS) in results.runs for cell in row):
            continue
        rows += [table_row(results, row, titled(workload, ours), ours) for ours in of_ours(results, workload)]
    ours, peer = (results.loading.get((data, server)) for server in (OURS, PEER))
    rows.append(
        ["loading by batches, entities/s", amount(ours), amount(peer), times(divide(ours, peer)), "", "", ""]
    )
    heading = [f"requests/s at {joined(map(str, connections))} connections", OURS, PEER]
    return [
        f"## {described(data)}",
        "",
        *table([*heading, "ratio", "p50 lower by", "p99 lower by", "raw PostgreSQL"], rows),
        "",
    ]


def table_row(results: Results, row: list[Cell], title: str, ours: str) -> list[str]:
    """Return the row of one operation on one table, by connections."""
    runs = [run for cell in row for name in (ours, PEER) for run in results.runs.get((cell, name), ())]
    raw = [results.raw.get(cell) if ours == OURS else None for cell in row]
    return [
        title + (", answers in part" if any(run.partial for run in runs) else ""),
        *(joined(amount(results.value(cell, name, "per_second")) for cell in row) for name in (ours, PEER)),
        *(
            joined(times(results.ratio(cell, ours, figure)) + mark(results, [cell]) for cell in row)
            for figure in ("per_second", "p50", "p99")
        ),
        joined(amount(median(values) if values else None) for values in raw),
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
    results = [value for value in values if value is not None]
    return median(results) if results else None


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
        return NOTHING
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def times(value: float | None) -> str:
    if value is None:
        return NOTHING
    return f"{value:.0f}" if value >= 20 else f"{value:.1f}" if value >= 5 else f"{value:.2f}"
