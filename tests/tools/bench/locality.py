"""Three regions on one machine: what each operation costs where, at each consistency level.

The primary is in the first region; the others have a replica each, and links with a delay to the first. Servers read
from the replica beside them and write to the primary.

python3 -m tests.tools.bench.locality
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from uuid import uuid4

from tests.live_server import ACCOUNT, KEY, LiveServer, start_server
from tests.replication.postgres import Group, Node
from tests.replication.world import SESSIONS, set_levels
from tests.tools.bench.rounds import progress
from tests.tools.bench.servers import scratch_folder
from tests.tools.checker.clients import Client, Endpoint
from tests.tools.checker.history import Write
from tests.tools.checker.proxy import Proxy

PAGE = 100  # entities
BATCH = 10
FRESH = 8  # tables that a server has not seen yet
CLIENTS = 32
READS = ("Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual")


@dataclass
class Region:
    """``distance`` is the time of a round trip to the primary, in seconds."""

    name: str
    distance: float
    server: LiveServer
    replica: Node | None
    times: dict[str, list[float]] = field(default_factory=dict)  # seconds by operation
    per_second: dict[str, float] = field(default_factory=dict)

    def client(self, account: str, table: str, **options: object) -> Client:
        return Client(Endpoint(self.server.port, account, KEY), table, **options)


def main(arguments: list[str] | None = None) -> int:
    options = read(arguments)
    with scratch_folder() as folder, regions(folder, options.distances) as started:
        tables = {account: prepare(started[0], account) for account in (ACCOUNT, SESSIONS)}
        for region in started:
            progress(f"{region.name}: {1e3 * region.distance:g} ms from the primary")
            fresh = [prepare(started[0], ACCOUNT, size=1) for _ in range(FRESH)]
            measure(region, tables, options.times)
            measure_first(region, fresh)
            crowd(region, tables[ACCOUNT])
    sys.stdout.write(report(started))
    return 0


def read(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m tests.tools.bench.locality", description=__doc__)
    parser.add_argument(
        "--distances",
        type=float,
        nargs="+",
        default=[0, 80, 160],
        metavar="MS",
        help="of each region from the primary, round trips in milliseconds; default 0 80 160",
    )
    parser.add_argument("--times", type=int, default=40, help="each operation is done, default 40")
    return parser.parse_args(arguments)


@contextmanager
def regions(folder: Path, distances: Sequence[float]) -> Iterator[list[Region]]:
    with ExitStack() as stack:
        nodes = Group(folder / "nodes")
        stack.callback(nodes.stop)
        primary = nodes.primary()
        shared = {"TABLERO_SECRET": uuid4().hex, "TABLERO_ACCOUNTS": f"{ACCOUNT}:{KEY};{SESSIONS}:{KEY}"}
        results: list[Region] = []
        for number, distance in enumerate(distances):
            name = f"region {chr(ord('A') + number)}"
            link = stack.enter_context(Proxy(primary.port, delay=distance / 2e3))
            env = {**shared, "DATABASE_URL": primary.url(link.port)}
            replica = None
            if number:
                replica = nodes.replica(f"replica{number}", primary, through=link.port)
                env["TABLERO_REPLICAS"] = replica.url()
            server = stack.enter_context(start_server(folder / f"server{number}", env=env))
            if not number:
                set_levels(primary)
            results.append(Region(name, distance / 1e3, server, replica))
        yield results


def prepare(region: Region, account: str, size: int = PAGE) -> str:
    """Make a table with a page of entities."""
    table = f"t{uuid4().hex}"
    with region.client(account, table) as client:
        client.create_table()
        for number in range(size):
            client.upsert(("page", f"r{number:03}"), number)
    return table


def measure(region: Region, tables: Mapping[str, str], times: int) -> None:
    def write_and_read(client: Client) -> None:
        mine = new_key()
        client.upsert(mine, 1)
        assert client.get(mine).value == 1

    with region.client(ACCOUNT, tables[ACCOUNT]) as client:
        run(region, "insert or replace", times, lambda: client.upsert(new_key(), 1))
        run(region, "merge", times, lambda: client.upsert(new_key(), 1, merge=True))
        run(
            region,
            f"batch of {BATCH}",
            times,
            lambda: client.change_set([Write("", new_key(), 1, 0) for _ in range(BATCH)]),
        )
    for level in READS:
        account = SESSIONS if level == "Session" else ACCOUNT
        with region.client(account, tables[account], level=level) as client:
            run(region, f"get, {level}", times, lambda: client.get(("page", "r007")))
            run(region, f"page of {PAGE}, {level}", times, lambda: client.page("page"))
            if level in ("Strong", "Session"):
                run(region, f"write, then get it, {level}", times, lambda: write_and_read(client))


def measure_first(region: Region, tables: Sequence[str]) -> None:
    """Measure the first requests to tables, for which a server has to look them up."""
    taken = []
    for table in tables:
        with region.client(ACCOUNT, table) as client:
            began = time.perf_counter()
            client.get(("page", "r000"))
            taken.append(time.perf_counter() - began)
    region.times["first get of a table, Strong"] = taken
    with region.client(ACCOUNT, "") as client:
        taken = []
        for _ in tables:
            began = time.perf_counter()
            client.create_table(f"t{uuid4().hex}")
            taken.append(time.perf_counter() - began)
    region.times["create table"] = taken


ROWS = count(1)


def new_key() -> tuple[str, str]:
    return "new", f"r{next(ROWS)}"


def run(region: Region, name: str, times: int, operation: Callable[[], object]) -> None:
    """Measure an operation after each connection of the server has prepared its statement."""
    for _ in range(8):
        operation()
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        operation()
        taken.append(time.perf_counter() - began)
    region.times[name] = taken


def crowd(region: Region, table: str, seconds: float = 3.0) -> None:
    """Throughput of many clients, which go to the database together."""
    operations = {
        "insert or replace": lambda client: client.upsert(new_key(), 1),
        "get, Strong": lambda client: client.get(("page", "r007")),
        "get, Eventual": lambda client: client.get(("page", "r008")),
    }
    for name, operation in operations.items():
        level = name.partition(", ")[2]

        def work(operation: Callable[[Client], object] = operation, level: str = level) -> int:
            done = 0
            with region.client(ACCOUNT, table, level=level) as client:
                operation(client)
                until = time.monotonic() + seconds
                while time.monotonic() < until:
                    operation(client)
                    done += 1
            return done

        with ThreadPoolExecutor(CLIENTS) as pool:
            done = sum(future.result() for future in [pool.submit(work) for _ in range(CLIENTS)])
        region.per_second[name] = done / seconds


def report(measured: Sequence[Region]) -> str:
    first = measured[0]
    names = [f"{region.name}, {1e3 * region.distance:g} ms" for region in measured]
    lines = [
        f"{os.cpu_count()} cores for all of it; load at the end {os.getloadavg()[0]:.1f}.",
        "",
        "Median of one client in ms; in brackets the round trips to the primary that it holds.",
        "",
        f"| operation | {' | '.join(names)} |",
        f"|---|{'---|' * len(measured)}",
    ]
    for name in first.times:
        local = statistics.median(first.times[name])
        cells = [cell(region, statistics.median(region.times[name]), local) for region in measured]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", f"Operations per second of {CLIENTS} clients.", ""]
    lines += [f"| operation | {' | '.join(names)} |", f"|---|{'---|' * len(measured)}"]
    for name in first.per_second:
        cells = [f"{region.per_second[name]:,.0f}" for region in measured]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def cell(region: Region, median: float, local: float) -> str:
    if not region.distance:
        return f"{1e3 * median:.1f}"
    trips = round(max(0.0, median - local) / region.distance)
    return f"{1e3 * median:.1f} ({trips})"


if __name__ == "__main__":
    sys.exit(main())
