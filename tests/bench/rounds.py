"""Runs of one workload on one server, with the table each needs; and the alternation of two servers."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count, cycle, islice

from tests.bench.entities import Dataset
from tests.bench.load import Expected, Measurement, Run
from tests.bench.requests import JSON, with_body, without_body
from tests.bench.servers import Server
from tests.bench.workloads import BATCH_SIZE, CYCLE, FASTEST, Ground, Site, Workload, loading

WARM_UP = 0.3
LOADERS = 8
LOADED_AT_ONCE = 200
"""Batches in memory while loading, 20 MB."""
PACE = {"Azurite": 0.5}
"""A slower server needs fewer requests made and fewer entities loaded beforehand."""
ONE_CONNECTION = 0.5
"""Share of its throughput that a server reaches with one connection, at most."""

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


def measure(contender: Contender, workload: Workload, connections: int, seconds: float) -> Measurement:
    """One run, on a table of its own when it writes."""
    count = amount(contender, workload, connections, seconds)
    with on_ground(contender, workload, count) as site:
        requests = workload.build(site, count)
        feed = iter(requests) if workload.most else cycle(requests)
        timed = Run(feed, workload.expected(site.data), seconds=seconds, warm_up=min(WARM_UP, seconds))
        used = contender.server.cpu_seconds()
        measured = timed.measure(site.client.address, connections)
        used = contender.server.cpu_seconds() - used
        return replace(measured, cpu=used / max(1, measured.answers) * 1e6)


def amount(contender: Contender, workload: Workload, connections: int, seconds: float) -> int:
    """Different requests to make for a run."""
    duration = seconds + min(WARM_UP, seconds)
    if workload.most is None:
        return min(CYCLE, int(FASTEST * duration) + 1)
    share = PACE.get(contender.server.name, 1.0) * (ONE_CONNECTION if connections == 1 else 1.0)
    return int(workload.most * share * duration) + 1


@contextmanager
def on_ground(contender: Contender, workload: Workload, count: int) -> Iterator[Site]:
    """The table that a run needs, dropped afterwards if it was made for it."""
    server, data = contender.server, contender.site.data
    if workload.ground is Ground.STANDING:
        yield Site(server.client(), contender.site.table, data)
        return
    if workload.ground is Ground.DOOMED:
        data = replace(data, size=max(data.size, -(-count // 1000) * 1000))
    table = create(server)
    try:
        load(server, table, data)
        yield Site(server.client(), table, data)
    finally:
        drop(server, table)


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
    """Each contender once per pair, the order reversed from pair to pair; the others are stopped meanwhile."""
    for number in range(pairs):
        for contender in contenders if number % 2 == 0 else reversed(contenders):
            with ExitStack() as stack:
                for other in contenders:
                    if other is not contender:
                        stack.enter_context(other.server.stopped())
                yield contender


def progress(text: str) -> None:
    sys.stderr.write(f"{text}\n")
