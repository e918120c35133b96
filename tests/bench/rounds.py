"""Runs of one workload on one server, with the table each needs; and the alternation of two servers."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count, cycle, islice

from tests.bench.entities import Dataset
from tests.bench.load import Expected, Measurement, Run
from tests.bench.requests import JSON, with_body, without_body
from tests.bench.servers import Server
from tests.bench.workloads import BATCH_SIZE, CYCLE, FASTEST, Ground, Site, Workload, loading

WARM_UP = 0.3
HOT = 10_000
LOADERS = 8
LOADED_AT_ONCE = 200
"""Batches in memory while loading, 20 MB."""

tables = (f"bench{number}" for number in count(1))


class WrongAnswerError(Exception):
    """A server answered something else than it had to."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What all runs have in common."""

    seconds: float
    settle: bool


@dataclass(slots=True)
class Contender:
    """A server with the table that is only read."""

    server: Server
    site: Site
    loaded_per_second: float
    pace: float
    """Share of the requests to provide for, against the fastest server."""
    memory: dict[str, int] = field(default_factory=dict)


def enter(server: Server, size: int, pace: float) -> Contender:
    """Load the table of a server; its memory before and after is part of the report."""
    empty = server.memory()
    data = Dataset(size)
    table = create(server)
    per_second = load(server, table, data)
    site = Site(server.client(), table, data)
    contender = Contender(server, site, per_second, pace)
    contender.memory = {"empty": empty, f"with {size:,} entities": server.memory()}
    return contender


def measure(contender: Contender, workload: Workload, connections: int, plan: Plan) -> Measurement:
    """One run, on a table of its own when it writes."""
    with on_ground(contender, workload, plan) as site:
        if plan.settle:
            contender.server.settle()
        return run(contender, workload, site, connections, plan)


@contextmanager
def on_ground(contender: Contender, workload: Workload, plan: Plan) -> Iterator[Site]:
    """The table that a run needs, dropped afterwards if it was made for it."""
    site = ground(contender, workload, amount(contender, workload, plan))
    try:
        yield site
    finally:
        if workload.ground is not Ground.STANDING:
            contender.server.written = True
            drop(contender.server, site.table)


def measure_in_place(
    contender: Contender, workload: Workload, connections: int, seconds: float
) -> Measurement:
    """One run on the loaded table itself, which a write changes."""
    site = replace(contender.site, client=contender.server.client())
    return run(contender, workload, site, connections, Plan(seconds, settle=False))


def run(contender: Contender, workload: Workload, site: Site, connections: int, plan: Plan) -> Measurement:
    requests = workload.build(site, amount(contender, workload, plan))
    feed = iter(requests) if workload.most else cycle(requests)
    warm_up = min(WARM_UP, plan.seconds)
    timed = Run(feed, workload.expected(site.data), seconds=plan.seconds, warm_up=warm_up)
    return timed.measure(site.client.address, connections)


def amount(contender: Contender, workload: Workload, plan: Plan) -> int:
    """Different requests to make for a run."""
    duration = plan.seconds + min(WARM_UP, plan.seconds)
    if workload.most is None:
        return min(CYCLE, int(FASTEST * duration) + 1)
    return int(workload.most * contender.pace * duration) + 1


def rest(contender: Contender) -> None:
    """Let autovacuum come by, which looks for work every 20 seconds."""
    if contender.site.data.size >= HOT:
        time.sleep(22)
    contender.server.settle()


def ground(contender: Contender, workload: Workload, amount: int) -> Site:
    server, client = contender.server, contender.server.client()
    if workload.ground is Ground.STANDING:
        return Site(client, contender.site.table, contender.site.data)
    size = (
        -(-amount // 1000) * 1000 if workload.ground is Ground.DOOMED else min(HOT, contender.site.data.size)
    )
    data = Dataset(size)
    table = create(server)
    load(server, table, data)
    return Site(client, table, data)


def load(server: Server, table: str, data: Dataset) -> float:
    """Insert all entities by batches on several connections; entities per second of the timed parts."""
    server.written = True
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
    """Each contender once per pair, the order reversed from pair to pair."""
    for number in range(pairs):
        yield from contenders if number % 2 == 0 else reversed(contenders)


def progress(text: str) -> None:
    sys.stderr.write(f"{text}\n")
