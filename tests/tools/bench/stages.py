"""CPU time of a request, in microseconds per stage: `python3 -m tests.tools.bench.stages`.

Everything runs in one process, without a network: the connection gets the bytes of signed requests from a transport
that only collects the answers, and the lanes send statements to a temporary PostgreSQL. One request is under way at a
time, so that all that happens until its answer belongs to it. Time spent waiting for PostgreSQL is left out.

Rounds with and without timers alternate. Without timers the process's CPU time is the total of a request; with timers
around the functions of STAGES each stage has its own time, without that of the stages it calls. The rest is the total
without the stages: the event loop, and the feeding of requests. Figures are medians. A fixed piece of work after each
request measures the speed of the machine at the moment; figures are those of a machine that does it in YARDSTICK
microseconds, so that they can be compared although other programs run.
"""

import argparse
import gc
import importlib
import inspect
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from time import process_time_ns, thread_time_ns
from typing import Any, NamedTuple
from unittest import mock

from tests.tools.bench import machine, reference, report, servers
from tests.tools.bench.__main__ import words
from tests.tools.bench.entities import Dataset
from tests.tools.bench.in_process import Link, check, loaded_table, product
from tests.tools.bench.load import Expected
from tests.tools.bench.rounds import progress
from tests.tools.bench.servers import scratch_folder
from tests.tools.bench.workloads import WORKLOADS, Workload

# Each function belongs to the stage it is listed under; `module:name` or `module:Class.name`.
STAGES = {
    "service": [  # the steps between the stages, and metrics
        "storage.protocol.table_service:TableService._respond",
        "storage.protocol.table_service:observe",
        "storage.runtime.observer:Observer.record",
    ],
    "connection": [  # the head parsed, the answer written
        "storage.protocol.http_connection:HttpConnection.data_received",
        "storage.protocol.http_exchange:ServiceExchange._write",
    ],
    "head": [
        "storage.protocol.table_service:read_incoming_request",
        "storage.protocol.table_service:resolve_request",
        "storage.protocol.table_service:check_target",
        "storage.protocol.table_service:check_options",
    ],
    "authorize": ["storage.protocol.table_service:TableService._authorize"],
    "body": [
        "storage.protocol.http_request:RequestBody.read",
        "storage.protocol.multipart:read_batch",
        "storage.protocol.batch:_read_change",
        "storage.protocol.entities:ChangeReader.members",
        "storage.protocol.entities:ChangeReader.change",
        "storage.protocol.entities:read_entity_query",
    ],
    "statement": [
        "storage.sql.entities:change",
        "storage.sql.batch:apply",
        "storage.sql.pages:point",
        "storage.sql.pages:_content",
        "storage.sql.walks:walk",
    ],
    "lane": ["storage.sql.lanes:Lanes.run"],  # with the database client
    "rows": ["storage.sql.pages:_read_page"],  # rows of a page; one row is read in the lane
    "answer": [
        "storage.protocol.entities:write_changed",
        "storage.protocol.formats:write_entity",
        "storage.protocol.formats:write_page",
        "storage.protocol.batch:_AnswerWriter.write",
        "storage.protocol.multipart:write_change_set",
        "storage.protocol.table_service:_complete",
    ],
}
STEP = "storage.protocol.http_exchange:ServiceExchange._step"
READABLE = "storage.sql.lanes:_Connection._readable"
LANE = 1 + list(STAGES).index("lane")
REST, TOTAL = "rest", "total"
NAMES = ("get", "insert", "upsert", "replace", "merge", "delete", "batch", "page", "page-minimal", "select")
LARGE = 10  # times the work of other requests: batches and pages
SIZE = 5_000
YARDSTICK = 40.0
TOLERANCE = 1.1
LEAST_DIFFERENCE = 1.0  # microseconds; below, a tenth is noise

Figures = dict[str, dict[str, float]]
"""Microseconds by workload and stage."""


class Stopwatch:
    """Gives the time to one stage after the other; the first one, number 0, is whatever is in no stage."""

    def __init__(self) -> None:
        self.stage = 0
        self.since = thread_time_ns()
        self.reset()
        self.cost_inside, self.cost_outside = 0.0, 0.0
        self._calibrate()

    def reset(self) -> None:
        self.spent = [0] * (len(STAGES) + 1)
        self.calls = [0] * (len(STAGES) + 1)
        self.inner_calls = [0] * (len(STAGES) + 1)

    def switch(self, stage: int) -> int:
        """Begin a stage; the one that it follows."""
        now = thread_time_ns()
        self.spent[self.stage] += now - self.since
        self.since = now
        previous, self.stage = self.stage, stage
        return previous

    def take(self) -> tuple[list[float], list[float]]:
        """Return the microseconds of all stages since the last call, and the timers' share of them, at reference
        speed.
        """
        self.switch(0)
        spent = [nanoseconds / 1000 for nanoseconds in self.spent[1:]]
        calls = zip(self.calls[1:], self.inner_calls[1:], strict=True)
        cost = [called * self.cost_inside + calling * self.cost_outside for called, calling in calls]
        self.reset()
        return spent, cost

    def timed(self, stage: int, function: Callable[..., Any]) -> Callable[..., Any]:
        def begin() -> int:
            self.calls[stage] += 1
            self.inner_calls[self.stage] += 1
            return self.switch(stage)

        if inspect.iscoroutinefunction(function):

            async def wait(*arguments: Any, **options: Any) -> Any:
                before = begin()
                try:
                    return await function(*arguments, **options)
                finally:
                    self.switch(before)

            return wait

        def call(*arguments: Any, **options: Any) -> Any:
            if self.stage == stage:
                return function(*arguments, **options)
            before = begin()
            try:
                return function(*arguments, **options)
            finally:
                self.switch(before)

        return call

    def stepping(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a step of a request, so that it ends in no stage when the event loop took it: the request waits, or
        is answered.
        """

        def step(exchange: Any, future: Any = None) -> None:
            before = self.stage if future is None else 0
            function(exchange, future)
            self.switch(before)

        return step

    def reading(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """While a result is incomplete, what follows is waiting; a complete one is taken over in the same stage."""

        def read(connection: Any) -> None:
            self.switch(LANE)
            function(connection)
            if connection._waiter is not None:
                self.switch(0)

        return read

    def _calibrate(self) -> None:
        """Microseconds at reference speed that a timed call costs within its stage, and in the stage that calls."""

        def nothing() -> None: ...

        timed, count = self.timed(1, nothing), 300
        inside, outside = [], []
        for _ in range(100):
            began = thread_time_ns()
            for _ in range(count):
                nothing()
            plain = thread_time_ns() - began
            self.take()
            for _ in range(count):
                timed()
            self.switch(0)
            scale = YARDSTICK / yardstick() / count / 1000
            inside.append((self.spent[1] - plain) * scale)
            outside.append(self.spent[0] * scale)
        self.cost_inside, self.cost_outside = max(0.0, median(inside)), median(outside)
        self.reset()


@contextmanager
def timers(watch: Stopwatch) -> Iterator[None]:
    """Time the functions of all stages inside the block."""
    with ExitStack() as stack:
        for number, names in enumerate(STAGES.values(), 1):
            for name in names:
                stack.enter_context(wrapped(name, partial(watch.timed, number)))
        stack.enter_context(wrapped(STEP, watch.stepping))
        yield


@contextmanager
def wrapped(name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    owner, attribute = find(name)
    with mock.patch.object(owner, attribute, wrap(getattr(owner, attribute))):
        yield


def find(name: str) -> tuple[Any, str]:
    module, _, path = name.partition(":")
    *owners, attribute = path.split(".")
    owner: Any = importlib.import_module(module)
    for each in owners:
        owner = getattr(owner, each)
    return owner, attribute


class Extent(NamedTuple):
    """The extent of a measurement: rounds of each kind, and requests in a round."""

    rounds: int
    requests: int


async def measure(workloads: list[Workload], extent: Extent) -> Figures:
    from console import asgi

    watch = Stopwatch()
    # from the beginning, because each lane gives this function to the event loop when it connects
    with wrapped(READABLE, watch.reading):
        await asgi.service.startup()
        # as the server does when it has started
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        link = Link()
        subjects = [await prepare(link, workload, extent) for workload in workloads]
        for number in range(extent.rounds):
            progress(f"round {number + 1} of {extent.rounds}")
            for subject in subjects:
                await measure_round(link, watch, subject)
        await asgi.service.shutdown()
    return {subject.workload.name: subject.figures() for subject in subjects}


@dataclass(slots=True)
class Subject:
    """A workload, the requests still to be sent, and what its rounds have found."""

    workload: Workload
    count: int
    requests: Iterator[bytes]
    expected: Expected
    totals: list[float] = field(default_factory=list)
    stages: list[list[float]] = field(default_factory=list)

    def next_requests(self) -> list[bytes]:
        return list(islice(self.requests, self.count))

    def figures(self) -> dict[str, float]:
        stages = {
            name: median(times) for name, times in zip(STAGES, zip(*self.stages, strict=True), strict=True)
        }
        total = median(self.totals)
        return {**stages, REST: total - sum(stages.values()), TOTAL: total}


async def prepare(link: Link, workload: Workload, extent: Extent) -> Subject:
    """Make and load a table of its own, with all statements prepared."""
    site = await loaded_table(link, f"stages{workload.name.replace('-', '')}", Dataset(SIZE))
    is_large = workload.name in ("batch", "page", "page-minimal", "select")
    count = max(2, extent.requests // (LARGE if is_large else 1))
    requests = workload.build(site, count * (2 * extent.rounds + 1))
    subject = Subject(workload, count, iter(requests), workload.expected(site.data))
    await link.send_all(subject.next_requests(), subject.expected)
    return subject


async def measure_round(link: Link, watch: Stopwatch, subject: Subject) -> None:
    """Send the requests of a round without timers, then as many with timers."""
    requests = subject.next_requests()
    speeds = []
    began = process_time_ns()
    for request in requests:
        await link.send(request)
        speeds.append(yardstick())
    total = (process_time_ns() - began) / 1000 - sum(speeds)
    subject.totals.append(total / len(requests) * YARDSTICK / median(speeds))
    spent, costs, speeds = [], [], []
    with timers(watch):
        for request in subject.next_requests():
            watch.take()
            answer = await link.send(request)
            taken, cost = watch.take()
            spent.append(taken)
            costs.append(cost)
            check(answer, subject.expected)
            speeds.append(yardstick())
    scale = YARDSTICK / median(speeds)
    subject.stages.append(
        [
            median(times) * scale - median(cost)
            for times, cost in zip(zip(*spent, strict=True), zip(*costs, strict=True), strict=True)
        ]
    )


def yardstick() -> float:
    """Microseconds of a fixed piece of work, of the kind that requests consist of."""
    began = thread_time_ns()
    length = 0
    for number in range(100):
        headers = {b"name": b"%d" % number, "value": str(number)}
        length += len(f"{headers['value']}: {number}".encode()) + len(headers[b"name"].decode())
    return (thread_time_ns() - began) / 1000


def compare(figures: Figures, earlier: Figures) -> list[str]:
    """Return the stages that need more time than before: more than a tenth, and more than a microsecond.

    The rest is a difference of larger figures, too uncertain to compare; the total contains it.
    """
    return [
        f"slower: {workload}, {stage}: {earlier[workload][stage]:.1f} → {now:.1f} µs"
        f" (+{now / earlier[workload][stage] - 1:.0%})"
        for workload, stages in figures.items()
        if workload in earlier
        for stage, now in stages.items()
        if stage != REST
        and now > max(earlier[workload][stage] * TOLERANCE, earlier[workload][stage] + LEAST_DIFFERENCE)
    ]


def write(figures: Figures) -> str:
    columns = [*STAGES, REST, TOTAL]
    rows = [
        [workload, *(f"{stages[column]:.1f}" for column in columns)] for workload, stages in figures.items()
    ]
    return "\n".join(report.table(["µs of CPU per request", *columns], rows)) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.tools.bench.stages",
        description="CPU time per request and stage, without a network.",
    )
    parser.add_argument("--workloads", type=words, default=list(NAMES), metavar="NAMES")
    parser.add_argument("--rounds", type=int, default=10, help="of each kind, default 10")
    parser.add_argument(
        "--requests",
        type=int,
        default=200,
        help=f"in a round, default 200; a {LARGE}th of batches and pages",
    )
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument(
        "--compare", type=Path, metavar="FILE", help="name what got slower by more than a tenth since --save"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="only compare with the stored reference; status 1 if it got slower",
    )
    parser.add_argument("--save-reference", action="store_true", help="only renew the stored reference")
    options = parser.parse_args(arguments)
    if options.save_reference:
        return reference.save()
    if options.check:
        return reference.check()
    workloads = [workload for workload in WORKLOADS if workload.name in options.workloads]
    with scratch_folder() as folder, product(folder):
        import uvloop

        figures = uvloop.run(measure(workloads, Extent(options.rounds, options.requests)))
    build = f"Python {machine.python_build()}"
    sys.stdout.write(f"{write(figures)}\n{servers.commit()}, {build}\n")
    if options.save:
        options.save.write_text(json.dumps({"Python": build, "figures": figures}, indent=1))
    if options.compare is None:
        return 0
    slower = compare(figures, json.loads(options.compare.read_text())["figures"])
    sys.stdout.write("\n".join(["", *(slower or ["No stage got slower."])]) + "\n")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
