"""The report: tables in Markdown, ready for the README."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from tests.bench.load import Measurement
from tests.bench.workloads import Target, Workload

MEGABYTE = 1 << 20
OURS, PEER = "Tablero", "Azurite"


@dataclass(slots=True)
class Results:
    """All that was measured."""

    conditions: dict[str, str] = field(default_factory=dict)
    ceiling: dict[str, dict[int, float]] = field(default_factory=dict)
    runs: dict[tuple[str, int, str], list[Measurement]] = field(default_factory=lambda: defaultdict(list))
    """By workload, connections and server."""
    raw: dict[tuple[str, int], list[float]] = field(default_factory=lambda: defaultdict(list))
    loading: dict[str, float] = field(default_factory=dict)
    memory: dict[str, dict[str, int]] = field(default_factory=dict)
    growth: dict[tuple[str, int], Measurement] = field(default_factory=dict)
    """By workload and size."""
    growth_loading: dict[int, float] = field(default_factory=dict)
    growth_memory: dict[int, int] = field(default_factory=dict)

    def per_second(self, workload: str, connections: int, server: str) -> float | None:
        runs = self.runs.get((workload, connections, server))
        return median(run.per_second for run in runs) if runs else None

    def p99(self, workload: str, connections: int, server: str) -> float | None:
        runs = self.runs.get((workload, connections, server))
        return median(run.p99 for run in runs) if runs else None

    def ratio(self, workload: str, connections: int) -> float | None:
        return divide(
            self.per_second(workload, connections, OURS), self.per_second(workload, connections, PEER)
        )

    def p99_ratio(self, workload: str, connections: int) -> float | None:
        """How many times lower ours is."""
        return divide(self.p99(workload, connections, PEER), self.p99(workload, connections, OURS))

    def errors(self) -> list[str]:
        found = [
            (f"{server}, {workload} at {connections}", run)
            for (workload, connections, server), runs in self.runs.items()
            for run in runs
        ]
        found += [
            (f"{OURS}, {workload} at {size:,} entities", run) for (workload, size), run in self.growth.items()
        ]
        return [
            f"{where}: {count} times {what}" for where, run in found for what, count in run.errors.items()
        ]

    def as_json(self) -> dict[str, Any]:
        return {
            "conditions": self.conditions,
            "ceiling": self.ceiling,
            "runs": [
                {"workload": workload, "connections": connections, "server": server, **asdict(run)}
                for (workload, connections, server), runs in self.runs.items()
                for run in runs
            ],
            "pgbench": [
                {"workload": workload, "connections": connections, "per_second": values}
                for (workload, connections), values in self.raw.items()
            ],
            "loading": self.loading,
            "memory": self.memory,
            "growth": [
                {"workload": workload, "size": size, **asdict(run)}
                for (workload, size), run in self.growth.items()
            ],
            "growth_loading": self.growth_loading,
            "growth_memory": self.growth_memory,
        }


def divide(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


def write(results: Results, workloads: list[Workload], connections: list[int]) -> str:
    parts = [
        *against_peer(results, workloads, connections),
        *against_raw(results, workloads, connections),
        *growth(results, workloads),
        *memory(results),
        *ceiling(results),
        *conditions(results),
        *invalid(results),
    ]
    return "\n".join(parts) + "\n"


def against_peer(results: Results, workloads: list[Workload], connections: list[int]) -> list[str]:
    at = " / ".join(map(str, connections))
    rows = []
    for workload in workloads:
        used = [number for number in connections if number <= workload.busiest]
        ratios = [results.ratio(workload.name, number) for number in used]
        p99 = [results.p99_ratio(workload.name, number) for number in used]
        rows.append(
            [
                workload.title,
                joined(amount(results.per_second(workload.name, number, OURS)) for number in used),
                joined(amount(results.per_second(workload.name, number, PEER)) for number in used),
                joined(map(times, ratios)),
                joined(map(times, p99)),
                wanted(workload.target, used),
                verdict(
                    workload.target, dict(zip(used, ratios, strict=True)), dict(zip(used, p99, strict=True))
                ),
            ]
        )
    if results.loading:
        ours, peer = results.loading.get(OURS), results.loading.get(PEER)
        rows.append(
            [
                "loading by batches, entities/s",
                amount(ours),
                amount(peer),
                times(divide(ours, peer)),
                "",
                "",
                "",
            ]
        )
    heading = [f"requests/s at {at} connections", OURS, PEER, "ratio", "p99 lower", "to reach", "met"]
    return ["## Against Azurite", "", *table(heading, rows), ""]


def against_raw(results: Results, workloads: list[Workload], connections: list[int]) -> list[str]:
    if not results.raw:
        return []
    rows = []
    for workload in workloads:
        measured = [number for number in connections if (workload.name, number) in results.raw]
        if not measured:
            continue
        ours = [results.per_second(workload.name, number, OURS) for number in measured]
        limit = [median(results.raw[workload.name, number]) for number in measured]
        rows.append(
            [
                workload.title,
                joined(map(amount, ours)),
                joined(map(amount, limit)),
                joined(times(divide(one, other)) for one, other in zip(ours, limit, strict=True)),
            ]
        )
    at = " / ".join(map(str, connections))
    return [
        "## Against raw PostgreSQL (pgbench)",
        "",
        *table([f"requests/s at {at} connections", OURS, "pgbench", "ratio"], rows),
        "",
    ]


def growth(results: Results, workloads: list[Workload]) -> list[str]:
    sizes = sorted({size for _, size in results.growth})
    if not sizes:
        return []
    rows = []
    for workload in workloads:
        runs = [results.growth.get((workload.name, size)) for size in sizes]
        if runs[0] is None:
            continue
        costs = [1000 / run.per_second if run else None for run in runs]
        partial = ", answers in part" if any(run and run.partial for run in runs) else ""
        rows.append(
            [
                workload.title + partial,
                *(f"{cost:.3g}" if cost else "-" for cost in costs),
                times(divide(costs[-1], costs[0])),
            ]
        )
    rows.append(["loading, entities/s", *(amount(results.growth_loading.get(size)) for size in sizes), ""])
    rows.append(
        ["memory of the server, MB", *(megabytes(results.growth_memory.get(size, 0)) for size in sizes), ""]
    )
    heading = [
        "ms from answer to answer",
        *(f"{size:,} entities" for size in sizes),
        "last / first, at most 1.3 where an index serves",
    ]
    return ["## Growth with the table", "", *table(heading, rows), ""]


def memory(results: Results) -> list[str]:
    columns = list(dict.fromkeys(moment for moments in results.memory.values() for moment in moments))
    if not columns:
        return []
    rows = [
        [server, *(megabytes(moments.get(column, 0)) for column in columns)]
        for server, moments in results.memory.items()
    ]
    return [
        "## Memory",
        "",
        "Resident memory of all processes of the server in MB; what they share counts once.",
        "",
        *table(["", *columns], rows),
        "",
    ]


def ceiling(results: Results) -> list[str]:
    if not results.ceiling:
        return []
    rows = [
        [kind, joined(amount(value) for value in by_connections.values())]
        for kind, by_connections in results.ceiling.items()
    ]
    connections = " / ".join(str(number) for number in next(iter(results.ceiling.values())))
    return [
        "## The load generator itself",
        "",
        *table(["", f"answers/s at {connections} connections from a process that does nothing else"], rows),
        "",
    ]


def conditions(results: Results) -> list[str]:
    return ["## Conditions", "", *(f"- {name}: {text}" for name, text in results.conditions.items()), ""]


def invalid(results: Results) -> list[str]:
    errors = results.errors()
    if not errors:
        return ["Every answer of every run was the expected one."]
    return ["**Invalid: wrong answers.**", "", *(f"- {error}" for error in errors)]


def wanted(target: Target | None, connections: list[int]) -> str:
    if target is None:
        return ""
    p99 = f", p99 {target.p99:g}x lower" if target.p99 else ""
    return joined(f"{target.ratios.get(number, 0) or '-'}" for number in connections) + p99


def verdict(target: Target | None, ratios: dict[int, float | None], p99: dict[int, float | None]) -> str:
    """Yes, no, or the connections at which it is missed."""
    if target is None or None in ratios.values() or not ratios:
        return ""
    missed = [f"{number}" for number, least in target.ratios.items() if (ratios.get(number) or least) < least]
    if target.p99:
        missed += [
            f"p99 at {number}" for number, value in p99.items() if value is not None and value < target.p99
        ]
    return f"no: {', '.join(missed)}" if missed else "yes"


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


def megabytes(value: int) -> str:
    return f"{value / MEGABYTE:,.0f}" if value else "-"
