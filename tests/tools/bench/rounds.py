"""Runs of one workload on one server, with the table each needs; and the alternation of two servers."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count, cycle, islice

from tests.tools.bench.entities import Dataset
from tests.tools.bench.load import Expected, Measurement, Run
from tests.tools.bench.processes import Use
from tests.tools.bench.requests import JSON, with_body, without_body
from tests.tools.bench.servers import PEER, Server
from tests.tools.bench.workloads import (
    BATCH_SIZE,
    CYCLE,
    FASTEST,
    Ground,
    Site,
    Workload,
    create_table,
    delete_table,
    loading,
)

WARM_UP = 0.3
LOADERS = 8
LOADED_AT_ONCE = 200
"""Batches in memory while loading, 20 MB."""
REUSED_FROM = 50_000
"""From so many entities on several runs write to the same table: loading it would take most of the time."""
WARM_UP_SIZE = 1_000
PACE = {PEER: 0.5}
"""A slower server needs fewer requests made and fewer entities loaded beforehand."""
ONE_CONNECTION = 0.5
"""Share of its throughput that a server reaches with one connection, at most."""
OF_TABLES = (Ground.NO_TABLES, Ground.TABLES)

tables = (f"bench{number}" for number in count(1))


class WrongAnswerError(Exception):
    """A server answered something else than it had to."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A server with the table that is only read."""

    server: Server
    site: Site
    loaded_per_second: float


def enter(server: Server, data: Dataset) -> Contender:
    """Load the table of a server."""
    table = create(server)
    per_second = load(server, table, data)
    return Contender(server, Site(server.client(), table, data), per_second)


def enter_for_writes(server: Server, data: Dataset) -> Contender:
    """Take part without a table to read."""
    return Contender(server, Site(server.client(), "", data), 0.0)


def measure(
    contender: Contender,
    workload: Workload,
    connections: int,
    seconds: float,
    grounds: "Grounds | None" = None,
) -> Measurement:
    """Measure one run; writes get a table of their own unless grounds are given."""
    count = amount(contender, workload, connections, seconds)
    with ExitStack() as stack:
        grounds = grounds or stack.enter_context(Grounds(workload))
        site = stack.enter_context(grounds.site(contender, count))
        requests = workload.build(site, count)
        feed = iter(requests) if workload.most else cycle(requests)
        timed = Run(feed, workload.expected(site.data), seconds=seconds, warm_up=min(WARM_UP, seconds))
        used, before = contender.server.cpu_seconds(), Use.now()
        measured = timed.measure(site.client.address, connections)
        after, used = Use.now(), contender.server.cpu_seconds() - used
        return replace(
            measured,
            cpu=used / max(1, measured.answers) * 1e6,
            client=after.client_since(before),
            # a server that runs elsewhere is one of the others
            others=after.others_since(before) if contender.server.pid else 0.0,
        )


def warm_up(contender: Contender, workload: Workload, connections: int, seconds: float) -> None:
    """Compilers and caches first; writes go to a small table."""
    with Grounds(workload, WARM_UP_SIZE) as grounds:
        measure(contender, workload, connections, seconds, grounds)


def amount(contender: Contender, workload: Workload, connections: int, seconds: float) -> int:
    """Different requests to make for a run."""
    duration = seconds + min(WARM_UP, seconds)
    if workload.most is None:
        return min(CYCLE, int(FASTEST * duration) + 1)
    # at its pace with tables no server is the slower one
    pace = 1.0 if workload.ground in OF_TABLES else PACE.get(contender.server.name, 1.0)
    share = pace * (ONE_CONNECTION if connections == 1 else 1.0)
    return int(workload.most * share * duration) + 1


class Grounds:
    """The tables that the runs of a workload go to: the loaded one, or a new one for each run.

    Where loading takes long, a server's runs continue on one table, as long as it has what they need.
    """

    def __init__(self, workload: Workload, largest: int | None = None) -> None:
        self._kind = workload.ground
        self._largest = largest
        self._kept: dict[Server, Site] = {}

    def __enter__(self) -> "Grounds":
        return self

    def __exit__(self, *raised: object) -> None:
        for server, site in self._kept.items():
            drop(server, site.table)

    @contextmanager
    def site(self, contender: Contender, count: int) -> Iterator[Site]:
        """Yield the table for a run of so many requests."""
        server = contender.server
        if self._kind is Ground.STANDING:
            yield Site(server.client(), contender.site.table, contender.site.data)
            return
        if self._kind in OF_TABLES:
            site = Site(server.client(), next(tables), contender.site.data)
            if self._kind is Ground.TABLES:
                send(server, create_table(site, count), Expected(b"204"), LOADERS)
            yield site
            # those that are there
            rest = Run(iter(delete_table(site, count)), Expected(b"204"), seconds=1e6, warm_up=0)
            rest.measure(site.client.address, LOADERS)
            return
        site = self._take(server, count) or self._make(contender, count)
        try:
            yield replace(site, client=server.client())
        finally:
            self._kept[server] = replace(site, first=site.first + count)
            if site.data.size < REUSED_FROM:
                drop(server, self._kept.pop(server).table)

    def _take(self, server: Server, count: int) -> Site | None:
        site = self._kept.pop(server, None)
        if site is not None and self._kind is Ground.DOOMED and site.first + count > site.data.size:
            drop(server, site.table)
            return None
        return site

    def _make(self, contender: Contender, count: int) -> Site:
        server, data = contender.server, contender.site.data
        data = replace(data, size=min(data.size, self._largest or data.size))
        if self._kind is Ground.DOOMED:
            data = replace(data, size=max(data.size, -(-count // 1000) * 1000))
        table = create(server)
        load(server, table, data)
        return Site(server.client(), table, data)


def load(server: Server, table: str, data: Dataset) -> float:
    """Insert all entities by batches on several connections; entities per second of the timed parts."""
    spent = 0.0
    step = LOADED_AT_ONCE * BATCH_SIZE
    for start in range(0, data.size, step):
        site = Site(server.client(), table, data)
        requests = loading(site, range(start, min(start + step, data.size)))
        began = time.perf_counter()
        send(server, requests, Expected(b"202", b"HTTP/1.1 204", BATCH_SIZE), LOADERS)
        spent += time.perf_counter() - began
    return data.size / spent


def create(server: Server) -> str:
    table = next(tables)
    head = server.client().head("POST", "/Tables", content=JSON, extra="Prefer: return-no-content\r\n")
    send(server, [with_body(head, f'{{"TableName":"{table}"}}')], Expected(b"204"))
    return table


def drop(server: Server, table: str) -> None:
    send(server, [without_body(server.client().head("DELETE", f"/Tables('{table}')"))], Expected(b"204"))


def send(server: Server, requests: Iterable[bytes], expected: Expected, connections: int = 1) -> None:
    run = Run(iter(requests), expected, seconds=1e6, warm_up=0)
    errors = run.measure(server.client().address, connections).errors
    if errors:
        raise WrongAnswerError(f"{server.name}: {', '.join(islice(errors, 3))}")


def alternate(contenders: list[Contender], pairs: int) -> Iterator[Contender]:
    """Yield each contender once per pair, in reverse order from pair to pair; the others are stopped meanwhile."""
    for number in range(pairs):
        for contender in contenders if number % 2 == 0 else reversed(contenders):
            with ExitStack() as stack:
                for other in contenders:
                    if other is not contender:
                        stack.enter_context(other.server.stopped())
                yield contender


def progress(text: str) -> None:
    sys.stderr.write(f"{text}\n")
