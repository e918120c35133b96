"""Cost of the request log per request, and its size after a million refused ones.

python3 -m tests.tools.bench.request_log
python3 -m tests.tools.bench.request_log --seconds 2
python3 -m tests.tools.bench.request_log --refused 1000000

Everything runs in one process, without a network, as in tests.tools.bench.stages. The work of the log is timed where
it happens: at the end of a request, and in the background. As a check, short rounds with the log and without it follow
each other in turn, and each is compared with its neighbour: the last column, with its standard error.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from statistics import median, stdev
from typing import Any
from unittest import mock

from tests.tools.bench import report, servers
from tests.tools.bench.entities import Dataset
from tests.tools.bench.in_process import Link, check, loaded_table, product
from tests.tools.bench.load import Expected
from tests.tools.bench.requests import without_body
from tests.tools.bench.rounds import progress
from tests.tools.bench.servers import scratch_folder
from tests.tools.bench.workloads import WORKLOADS, Site, Workload

SIZE = 2_000
PART = 1_000  # requests that are made at a time
ROUND = {"get": 50, "insert": 50, "page": 5, "refused": 20}  # requests
NAMES = ("get", "insert", "page")
REFUSED = Expected(b"403")


def refused(site: Site) -> Iterator[bytes]:
    """Yield requests that no key has signed, from as many clients as a log has to tell apart."""
    number = 0
    while True:
        head = site.client.head("GET", f"/{site.table}()", extra=f"User-Agent: client {number % 100}\r\n")
        signature = head.partition("SharedKey ")[2].partition("\r\n")[0]
        number += 1
        yield without_body(head.replace(signature, f"{signature.partition(':')[0]}:{'A' * 43}="))


def uncounted(service: Any, head: Any, observed: Any) -> None:
    """Finish a request as the service does without a request log."""
    service._service.observer.record(observed)
    observed.refusal = None


@dataclass
class Timer:
    """The CPU time of functions, in nanoseconds."""

    spent: int = 0

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            began = time.thread_time_ns()
            try:
                return function(*arguments, **options)
            finally:
                self.spent += time.thread_time_ns() - began

        return call


async def measure(options: argparse.Namespace) -> list[list[str]]:
    from console import asgi
    from storage.requests.recording import RequestLog
    from storage.runtime.observer import Observer

    await asgi.service.startup()
    link, rows, at_once, background = Link(), [], Timer(), Timer()
    with ExitStack() as stack:
        for timer, owner, name in (
            (at_once, Observer, "keep"),
            (background, RequestLog, "add"),
            (background, RequestLog, "write"),
        ):
            timed = timer.timed(getattr(owner, name))
            stack.enter_context(mock.patch.object(owner, name, timed))
        for name, requests, expected in await subjects(link):
            progress(name)
            await asgi.service._service.observer.flush()
            at_once.spent = background.spent = 0
            with_log, without = await compare(link, requests, expected, ROUND[name], options.seconds)
            await asgi.service._service.observer.flush()
            number = len(with_log) * ROUND[name]
            kept = at_once.spent / number / 1000
            # a log of all requests, not of every other round, would have as many to write
            behind = background.spent / (2 * number) / 1000
            usual = median(without)
            figures = (usual, kept, behind, 100 * (kept + behind) / usual)
            differences = [it - other for it, other in zip(with_log, without, strict=True)]
            rows.append([name, *(f"{figure:.2f}" for figure in figures), difference(differences)])
    await asgi.service.shutdown()
    return rows


def difference(found: list[float]) -> str:
    """Write the median, and how far it may be off."""
    error = 1.25 * stdev(found) / len(found) ** 0.5 if len(found) > 1 else 0.0
    return f"{median(found):.1f} ± {error:.1f}"


async def compare(
    link: Link, requests: Iterator[bytes], expected: Expected, number: int, seconds: float
) -> tuple[list[float], list[float]]:
    """Send rounds of requests with the log and without it; microseconds of the event loop's CPU time for a request."""
    from storage.protocol.table_service import TableService

    recording = TableService._record
    figures: tuple[list[float], list[float]] = ([], [])
    ways = list(zip(figures, (recording, uncounted), strict=True))
    until = time.monotonic() + seconds
    while time.monotonic() < until or not figures[0]:
        for times, record in ways:
            several = list(islice(requests, number))
            TableService._record = record
            began = time.thread_time_ns()
            for request in several:
                check(await link.send(request), expected)
            times.append((time.thread_time_ns() - began) / 1000 / number)
        ways.reverse()
    TableService._record = recording
    return figures


async def subjects(link: Link) -> list[tuple[str, Iterator[bytes], Expected]]:
    results = []
    for workload in WORKLOADS:
        if workload.name in NAMES:
            site = await loaded_table(link, f"log{workload.name}", Dataset(SIZE))
            requests = endless(site, workload)
            results.append((workload.name, requests, workload.expected(site.data)))
    site = await loaded_table(link, "logrefused", Dataset(1_000))
    return [*results, ("refused", refused(site), REFUSED)]


def endless(site: Site, workload: Workload) -> Iterator[bytes]:
    """Yield requests without a repeated write."""
    while True:
        yield from workload.build(site, PART)
        site = replace(site, first=site.first + PART)


async def flood(number: int) -> list[str]:
    """Send so many requests that are refused; what the log has of them, and what it takes."""
    from django.conf import settings

    from console import asgi
    from storage.models import Account, RecordedRequest
    from storage.requests.recording import tidy
    from storage.requests.statistics import statistics
    from storage.runtime.threads import in_thread
    from storage.sql.django import fetch

    await asgi.service.startup()
    link = Link()
    requests = refused(await loaded_table(link, "logrefused", Dataset(1_000)))
    began, most = time.monotonic(), 0
    since = utc_now()
    for count in range(number):
        await link.send(next(requests))
        if count % 20_000 == 0:
            most = max(most, await in_thread(RecordedRequest.objects.count))
            progress(f"{count:,} of {number:,}, {most:,} rows at most")
    seconds = time.monotonic() - began
    await asyncio.sleep(3)
    await in_thread(tidy, utc_now())
    account = await in_thread(Account.objects.get)
    result = await in_thread(statistics, account, since.replace(second=0, microsecond=0), utc_now())
    size = await in_thread(fetch, "SELECT pg_total_relation_size('storage_recordedrequest')")
    refusals = sum(it.requests for it in result.codes if it.status == 403)
    by_credential = sum(it.requests for it in result.credentials)
    await asgi.service.shutdown()
    return [
        f"{number:,} refused requests in {seconds:.0f} s ({number / seconds:,.0f}/s)",
        f"counted by code: {refusals:,}; by credential: {by_credential:,}",
        f"rows: {result.kept:,}, at most {most:,} while they came; the limit is {settings.REQUEST_LOG.rows:,}",
        f"{size[0][0] / 2**20:.1f} MiB with indexes",
    ]


def utc_now() -> Any:
    from datetime import UTC, datetime

    return datetime.now(UTC)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests.tools.bench.request_log", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="for each kind of request, default 10")
    parser.add_argument(
        "--refused", type=int, default=0, metavar="N", help="only send so many refused requests"
    )
    options = parser.parse_args(arguments)
    with scratch_folder() as folder, product(folder):
        import uvloop

        if options.refused:
            lines = uvloop.run(flood(options.refused))
        else:
            columns = [
                "µs of CPU per request",
                "without",
                "log, at once",
                "in the background",
                "percent",
                "difference",
            ]
            lines = report.table(columns, uvloop.run(measure(options)))
    sys.stdout.write("\n".join([*lines, "", servers.commit(), ""]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
