"""Benefit and cost of indexes of properties: `python3 -m tests.tools.bench.indexes`, some minutes.

Each filter runs without and with indexes, and on Azurite; then writes run on tables with more and more indexes, and
the CPU time of the backend shows their cost.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import LiteralString

from psycopg import Connection, sql

from storage.server.data_folder import DataFolder
from storage.sql.filters import INDEXED_NUMBER, INDEXED_TEXT
from tests.tools.bench import raw, report, rounds, servers
from tests.tools.bench.entities import PER_OWNER, Dataset
from tests.tools.bench.rounds import Contender, progress
from tests.tools.bench.servers import ROOT, Server, UnavailableError, scratch_folder
from tests.tools.bench.workloads import (
    PAGE_SIZE,
    WORKLOADS,
    Ground,
    Workload,
    by_number,
    by_string,
    entities,
    query,
)

INDEXED = ("Score", "Owner", "Visits")
MOST = ("Score", "Owner", "Visits", "City", "Created", "Id", "Level", "Notes")
"""As many as the server adds by itself."""
LEVELS = (0, 1, 4, len(MOST))
INDEXED_COLUMNS: LiteralString = f"{INDEXED_NUMBER}, {INDEXED_TEXT}"
FULL = 20_000
"""Entities of a table that is written to."""
WRITES = {"insert": 1_000, "merge": 1_000, "batch": 20}
"""Requests of a round."""
ACCOUNT = "devstoreaccount1"


@dataclass(frozen=True, slots=True)
class Filter:
    title: str
    options: Callable[[Dataset, int], str]
    count: Callable[[Dataset], int]

    def workload(self) -> Workload:
        return Workload(self.title, self.title, Ground.STANDING, query(self.options), entities(self.count))


def few(data: Dataset) -> int:
    return PER_OWNER


def many(data: Dataset) -> int:
    return min(data.size // 100, PAGE_SIZE)


def by_many_numbers(data: Dataset, number: int) -> str:
    least = number % (data.size - many(data))
    return f"$filter=Score ge {least}.0 and Score lt {least + many(data)}.0"


def by_prefix(data: Dataset, number: int) -> str:
    return f"$filter=Owner ge '{data.owner(number)}' and Owner lt '{data.owner(number)}:'"


def by_int64(data: Dataset, number: int) -> str:
    least = 5_000_000_000 + number % (data.size - PER_OWNER)
    return f"$filter=Visits ge {least}L and Visits lt {least + PER_OWNER}L"


def by_number_in_partition(data: Dataset, number: int) -> str:
    return f"{by_number(data, number)} and PartitionKey eq '{data.key(0)[0]}'"


FILTERS = [
    Filter("equality, string", by_string, few),
    Filter("range of Double", by_number, few),
    Filter("range of Double, one in a hundred", by_many_numbers, many),
    Filter("range of Int64", by_int64, few),
    Filter("prefix of String", by_prefix, few),
    Filter("range of Double in a partition", by_number_in_partition, few),
]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests.tools.bench.indexes", description=__doc__)
    parser.add_argument("--size", type=int, default=100_000, help="entities in one partition, default 100000")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each run, default 1")
    parser.add_argument("--connections", type=int, default=8, help="default 8")
    parser.add_argument("--azurite", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument(
        "--rounds", type=int, default=15, help="of writes with more and more indexes, default 15"
    )
    parser.add_argument("--costs", action="store_true", help="only what indexes cost writes")
    parser.add_argument(
        "--soon",
        type=int,
        nargs="+",
        metavar="SIZE",
        help="instead, how soon the server makes an index by itself",
    )
    options = parser.parse_args(arguments)
    if options.costs:
        data = Dataset(min(options.size, FULL))
        with scratch_folder() as folder, servers.tablero(folder) as server:
            switch_adaptive_indexes(folder, "off")
            with raw.connect(DataFolder(folder / "tablero")) as database:
                lines = costs(server, data, database, options.rounds)
        sys.stdout.write("\n".join(lines) + "\n")
        return 0
    if options.soon:
        sys.stdout.writelines(f"{line}\n" for line in how_soon(options.soon))
        return 0
    with scratch_folder() as folder, ExitStack() as stack:
        data = Dataset(options.size)
        ours = rounds.enter(stack.enter_context(servers.tablero(folder)), data)
        progress("loaded")
        switch_adaptive_indexes(folder, "off")
        peer = None
        if options.azurite:
            peer = rounds.enter(stack.enter_context(servers.azurite(folder, servers.find_azurite())), data)
            progress("loaded into Azurite")
        with raw.connect(DataFolder(folder / "tablero")) as database:
            theirs = run(options, [ours, *([peer] if peer else [])], peer)
            scans = run(options, [ours, *([peer] if peer else [])], ours)
            for name in INDEXED:
                add_index(folder, ours, name)
            ranges = run(options, [ours, *([peer] if peer else [])], ours)
            weighed = costs(ours.server, Dataset(min(options.size, FULL)), database, options.rounds)
        lines = [
            *report.table(
                [
                    "requests/s",
                    "no index",
                    "index",
                    "Azurite",
                    "ratio, no index",
                    "ratio, index",
                    "of an equality",
                ],
                [row(it.title, scans, ranges, theirs) for it in FILTERS],
            ),
            "",
            *weighed,
        ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def how_soon(sizes: list[int]) -> Iterator[str]:
    """Ask for the same ranges until an index finds the entities, in a table of each size."""
    yield "| entities | first query | second query | index after | then |"
    yield "| --- | --- | --- | --- | --- |"
    with scratch_folder() as folder, servers.tablero(folder) as server:
        for size in sizes:
            ours = rounds.enter(server, Dataset(size))
            progress(f"loaded {size:,}")
            first, second = ask_once(ours), ask_once(ours)
            waited = wait_for_index(folder, ours.site.table, "Score", limit=600)
            then = min(ask_once(ours) for _ in range(5))
            yield f"| {size:,} | {first:.1f} ms | {second:.1f} ms | {waited:.1f} s | {then:.1f} ms |"


def ask_once(contender: Contender) -> float:
    """Milliseconds of a range on a connection of its own."""
    workload = Filter("range of Double", by_number, few).workload()
    began = perf_counter()
    rounds.send(contender.server, workload.build(contender.site, 1), workload.expected(contender.site.data))
    return (perf_counter() - began) * 1e3


def run(
    options: argparse.Namespace, contenders: list[Contender], measured: Contender | None
) -> dict[str, float]:
    """Return the requests per second of one of the servers by filter; the other is stopped meanwhile."""
    results: dict[str, float] = {}
    for contender in rounds.alternate(contenders, 1):
        if contender is not measured:
            continue
        for it in FILTERS:
            result = rounds.measure(contender, it.workload(), options.connections, options.seconds)
            if result.errors:
                raise rounds.WrongAnswerError(f"{it.title}: {result.errors}")
            results[it.title] = result.per_second
            progress(
                f"{contender.server.name}, {it.title}: {result.per_second:,.0f}/s, p50 {result.p50:.2f} ms"
            )
    return results


def add_index(folder: Path, contender: Contender, name: str) -> None:
    began = perf_counter()
    manage(folder, "index", "add", ACCOUNT, contender.site.table, name)
    progress(f"indexed {name} in {perf_counter() - began:.1f} s")


def switch_adaptive_indexes(folder: Path, state: str) -> None:
    """Turn them ``on`` or ``off`` for the account of the benchmark, so that a scan stays one or gets its index."""
    manage(folder, "account", "adaptive-indexes", ACCOUNT, state)


def manage(folder: Path, command: str, *arguments: str) -> None:
    full = [sys.executable, "manage.py", command, "--data", str(folder / "tablero"), *arguments]
    subprocess.run(full, cwd=ROOT, capture_output=True, check=True)


INDEX_STATE = """
SELECT i.state FROM storage_propertyindex AS i JOIN storage_table AS t ON t.id = i.table_id
JOIN storage_account AS a ON a.id = t.account_id
WHERE a.name = %s AND t.folded_name = %s AND t.deleted_at IS NULL AND i.name = %s
"""


def wait_for_index(folder: Path, table: str, name: str, limit: float = 60.0) -> float:
    """Wait until the server of ``folder`` has made the index of a property; return the seconds that it took.

    Raises UnavailableError after the limit, or when the index could not be made.
    """
    began = monotonic()
    with raw.connect(DataFolder(folder / "tablero")) as database:
        while True:
            result = database.execute(INDEX_STATE, (ACCOUNT, table.lower(), name)).fetchone()
            seconds = monotonic() - began
            if result == ("ready",):
                return seconds
            if result == ("failed",) or seconds > limit:
                state = result[0] if result else "not asked for"
                raise UnavailableError(f"the index of {name} is {state} after {seconds:.0f} s")
            sleep(0.05)


BACKENDS = (
    "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
)


def make_indexes(database: "Connection", table: str, names: Iterable[str]) -> None:
    """Make the indexes of properties that the product would make, without telling it: queries do not use them."""
    result = database.execute("SELECT id FROM storage_table WHERE name = %s AND deleted_at IS NULL", (table,))
    row = result.fetchone()
    assert row is not None
    relation = sql.Identifier(f"entity_{row[0]}")
    for name in names:
        columns = sql.SQL(INDEXED_COLUMNS).format(name=sql.Literal(name))
        database.execute(sql.SQL("CREATE INDEX ON {} ({})").format(relation, columns))


def costs(server: Server, data: Dataset, database: "Connection", turns: int) -> list[str]:
    """Return the CPU time that writes cost PostgreSQL with a growing number of indexes: the least per request, in
    turns.
    """
    tables = {}
    for level in LEVELS:
        tables[level] = rounds.enter(server, data)
        make_indexes(database, tables[level].site.table, MOST[:level])
    lines = []
    for workload in (it for it in WORKLOADS if it.name in WRITES):
        each = max(1, WRITES[workload.name] * data.size // FULL)
        requests = {
            level: workload.build(contender.site, turns * each) for level, contender in tables.items()
        }
        least = dict.fromkeys(LEVELS, float("inf"))
        for number in range(turns):
            for level in LEVELS if number % 2 else reversed(LEVELS):
                now = requests[level][number * each : (number + 1) * each]
                before = cpu_of_backends(database)
                rounds.send(server, now, workload.expected(tables[level].site.data))
                after = cpu_of_backends(database)
                # CPU of the only connection in use; the others belong to background jobs
                used = max(after[pid] - before[pid] for pid in before.keys() & after.keys())
                least[level] = min(least[level], used / each / 1e3)
        ratios = [report.times(report.divide(least[level], least[0])) for level in LEVELS[1:]]
        lines.append(f"| {workload.title} | {report.amount(least[0])} µs | {' | '.join(ratios)} |")
        progress(lines[-1])
    heads = " | ".join("an index" if level == 1 else f"{level} indexes" for level in LEVELS[1:])
    return [f"| CPU of the backend | no index | {heads} |", f"|{' --- |' * (len(LEVELS) + 1)}", *lines]


def cpu_of_backends(database: "Connection") -> dict[int, int]:
    """Nanoseconds that each connection of the server has used, by process id."""
    pids = [pid for (pid,) in database.execute(BACKENDS).fetchall()]
    results = {}
    for pid in pids:
        with suppress(OSError):  # one that has just ended
            results[pid] = nanoseconds(Path(f"/proc/{pid}/schedstat"))
    return results


def nanoseconds(schedstat: Path) -> int:
    """Return the CPU time of a process."""
    return int(schedstat.read_text().split()[0])


def row(title: str, scans: dict[str, float], ranges: dict[str, float], theirs: dict[str, float]) -> list[str]:
    scan, indexed, peer = scans[title], ranges[title], theirs.get(title)
    return [
        title,
        report.amount(scan),
        report.amount(indexed),
        report.amount(peer),
        report.times(report.divide(scan, peer)),
        report.times(report.divide(indexed, peer)),
        report.times(report.divide(indexed, ranges[FILTERS[0].title])),
    ]


if __name__ == "__main__":
    sys.exit(main())
