"""The steps of a form of the benchmark, and their duration."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from storage.tables.index_rules import INDEXED_FROM
from tests.tools.bench.entities import Dataset, Layout
from tests.tools.bench.rounds import REUSED_FROM, WARM_UP
from tests.tools.bench.servers import OURS, PEER, RELAXED
from tests.tools.bench.workloads import FIRST_RANGE, LATER_RANGE, WORKLOADS, Ground, Workload

TABLE_OF_THE_DOCUMENTATION = [
    "get", "insert", "upsert", "replace", "merge", "delete", "batch", "create-table", "delete-table", "page", "select",
    "filter-string", FIRST_RANGE, LATER_RANGE,
]  # fmt: skip
ALL = [workload.name for workload in WORKLOADS]
FULL: dict[str, Any] = {
    "workloads": ALL,
    "sizes": [1_000, 10_000, 100_000],
    "layouts": list(Layout),
    "seconds": 2.0,
    "pairs": 3,
    "pgbench": True,
    "loading": 100_000,
}
STANDARD = {**FULL, "workloads": TABLE_OF_THE_DOCUMENTATION, "seconds": 0.5, "pairs": 1, "pgbench": False}
STANDARD["loading"] = 20_000
QUICK = {
    **STANDARD,
    "workloads": ALL,
    "sizes": [10_000],
    "layouts": [Layout.ONE],
    "seconds": 0.4,
    "loading": 5_000,
}

CLIENTS = (1, 4)
"""Processes that load at once by the SDK."""

# Seconds and paces on two cores of a cloud, for the estimate only.
START = 7.0
"""Of a server of ours; Azurite takes a quarter."""
PER_RUN = 0.35
"""Requests made, servers stopped and continued, a table created and dropped."""
WARM_UP_RUN = 1.1
PGBENCH_RUN = 0.4
SWITCH = 4.0
"""Adaptive indexes off and on again, and an index made."""
LOADED_PER_SECOND = 14_000
SDK_PER_SECOND = 2_500
ANSWERS_PER_SECOND = {"batch": 170, "page": 150, "page-minimal": 130, "select": 250}
"""Of both servers, where a run has to be longer to see three answers on each connection."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A workload on a table, and the servers that take part in it."""

    workload: Workload
    servers: list[str]


def tables(options: argparse.Namespace) -> list[Dataset]:
    return [Dataset(size, layout) for size, layout in product(options.sizes, options.layouts)]


def turns(options: argparse.Namespace, data: Dataset) -> Iterator[Turn]:
    """Yield the workloads on a table, in order: those that make an index come last."""
    for workload in WORKLOADS:
        if workload.name not in options.workloads:
            continue
        if workload.name == LATER_RANGE and (options.endpoint or data.size < INDEXED_FROM):
            continue  # no index is made: testing so few entities takes some milliseconds
        yield Turn(
            workload,
            [name for name in servers(options) if name != RELAXED or workload.is_write],
        )


def servers(options: argparse.Namespace) -> list[str]:
    others = [] if options.endpoint else [RELAXED]
    return [OURS, *others, *([PEER] if options.azurite else [])]


def number_of_runs(options: argparse.Namespace) -> int:
    return sum(
        len(turn.servers) * len(options.connections) * options.pairs
        for data in tables(options)
        for turn in turns(options, data)
    )


def seconds(options: argparse.Namespace) -> float:
    """About how long it takes."""
    return sum(seconds_of_table(options, data) for data in tables(options)) + seconds_of_loading(options)


def seconds_of_table(options: argparse.Namespace, data: Dataset) -> float:
    loaded = [name for name in servers(options) if name != RELAXED]
    total = start(options) + len(loaded) * data.size / LOADED_PER_SECOND
    for turn in turns(options, data):
        runs = len(turn.servers) * options.pairs
        for connections in options.connections:
            total += runs * (length(options, turn.workload, connections) + WARM_UP + PER_RUN)
        total += len(turn.servers) * (WARM_UP_RUN + min(0.5, options.seconds))
        if turn.workload.is_write:
            total += loads(options, turn, data) * data.size / LOADED_PER_SECOND
        if turn.workload.name in (FIRST_RANGE, LATER_RANGE):
            total += SWITCH
        if options.pgbench:
            total += len(options.connections) * (max(1, round(options.seconds)) + PGBENCH_RUN)
    return total


def length(options: argparse.Namespace, workload: Workload, connections: int) -> float:
    """Seconds of a run, which ends after three answers on each connection, or five times the usual time."""
    needed = 3 * connections / ANSWERS_PER_SECOND.get(workload.name, 1e9)
    return max(options.seconds, min(needed, 5 * options.seconds))


def loads(options: argparse.Namespace, turn: Turn, data: Dataset) -> int:
    """Return how often a table is loaded for a workload that writes."""
    if turn.workload.ground in (Ground.NO_TABLES, Ground.TABLES):
        return 0
    if data.size < REUSED_FROM:
        return len(turn.servers) * len(options.connections) * options.pairs
    return len(turn.servers) * (options.pairs if turn.workload.ground is Ground.DOOMED else 1)


def start(options: argparse.Namespace) -> float:
    names = servers(options)
    return START * sum(
        0.25 if name == PEER else 1 for name in names if not (options.endpoint and name == OURS)
    )


def seconds_of_loading(options: argparse.Namespace) -> float:
    if not options.loading:
        return 0.0
    runs = len(servers(options)) * len(CLIENTS)
    return start(options) + runs * (3 + options.loading / SDK_PER_SECOND)
