"""Cost of traces for OpenTelemetry per request: `python3 -m tests.tools.bench.telemetry`.

Everything runs in one process, without a network but to the collector, which is another process. The CPU time is that
of the whole process, so it contains what the exporter does in the background; that is waited for after each round.
Rounds without traces, with a tenth and with all of the requests traced follow each other in turn.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from statistics import median
from typing import Any

from tests.tools.bench import report, servers
from tests.tools.bench.entities import Dataset
from tests.tools.bench.in_process import Link, check, loaded_table, product
from tests.tools.bench.rounds import progress
from tests.tools.bench.servers import ROOT, scratch_folder
from tests.tools.bench.workloads import WORKLOADS

NAMES = ("get", "insert", "page")
SHARES = {"get": 1.0, "insert": 1.0, "page": 0.1}  # traced shares of a round
RATES = (0.0, 0.1, 1.0)


@contextmanager
def collector() -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.collector"], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


class Switch:
    """Turns the traces of this process on and off; off is the service as it is without the variables."""

    def __init__(self) -> None:
        from console import asgi

        self._asgi = asgi
        self._links = {True: self._link(asgi.serve), False: self._link(asgi.service.serve)}

    def _link(self, serve: Any) -> Link:
        usual = self._asgi.applications
        self._asgi.applications = usual._replace(serve=serve)
        try:
            return Link()
        finally:
            self._asgi.applications = usual

    def turn(self, rate: float) -> Link:
        from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio

        service: Any = self._asgi.service
        tracer: Any = self._asgi.tracer
        service._tracer = service._service._tracer = tracer if rate > 0 else None
        tracer.telemetry._sampler = ParentBasedTraceIdRatio(rate)
        return self._links[rate > 0]


async def measure(options: argparse.Namespace) -> list[list[str]]:
    from console import asgi

    await asgi.service.startup()
    switch, rows = Switch(), []
    tracer: Any = asgi.tracer
    telemetry = tracer.telemetry
    assert telemetry._processor is not None
    for workload in WORKLOADS:
        if workload.name not in NAMES:
            continue
        progress(workload.name)
        number = max(1, int(options.requests * SHARES[workload.name]))
        site = await loaded_table(switch.turn(0.0), f"traces{workload.name}", Dataset(2_000))
        total = (options.rounds + 1) * len(RATES) * number
        requests = iter(workload.build(site, total))
        expected = workload.expected(site.data)
        figures: dict[float, list[float]] = {rate: [] for rate in RATES}
        for round_number in range(options.rounds + 1):
            for rate in RATES if round_number % 2 else RATES[::-1]:
                link = switch.turn(rate)
                began = time.process_time_ns()
                for request in islice(requests, number):
                    check(await link.send(request), expected)
                telemetry._processor.force_flush()
                if round_number:  # the first one warms up
                    figures[rate].append((time.process_time_ns() - began) / 1000 / number)
        off, tenth, every = (median(figures[rate]) for rate in RATES)
        rows.append(
            [workload.name, f"{off:.1f}", f"{tenth:.1f}", f"{tenth / off:.3f}", f"{every:.1f}"]
            + [f"{every / off:.3f}"]
        )
    began = time.process_time_ns()
    telemetry.flush()
    progress(f"sending the metrics once: {(time.process_time_ns() - began) / 1e6:.1f} ms of CPU")
    await asgi.service.shutdown()
    return rows


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests.tools.bench.telemetry", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="for each rate, default 20")
    parser.add_argument("--requests", type=int, default=500, help="in a round, default 500")
    options = parser.parse_args(arguments)
    with scratch_folder() as folder, collector() as endpoint:
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = endpoint
        with product(folder):
            import uvloop

            columns = ["µs of CPU per request", "off", "of a tenth", "ratio", "of all", "ratio"]
            lines = report.table(columns, uvloop.run(measure(options)))
    sys.stdout.write("\n".join([*lines, "", servers.commit(), ""]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
