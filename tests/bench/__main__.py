"""Command line of the benchmark, and the order in which things are measured."""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from tests.bench import ceiling, processes, raw, report, rounds, servers
from tests.bench.load import Expected
from tests.bench.report import OURS, Results
from tests.bench.rounds import Contender, Plan, progress
from tests.bench.servers import Server, UnavailableError
from tests.bench.workloads import WORKLOADS, Ground, Workload

PACE = {"Azurite": 0.4}
"""A slower server needs fewer requests made and fewer entities loaded beforehand."""
GROWTH_CONNECTIONS = 8
QUICK = {"seconds": 1.0, "pairs": 1, "size": 10_000, "connections": [1, 8], "growth": list[int]()}


def main(arguments: list[str] | None = None) -> int:
    options = read(arguments)
    results = Results()
    workloads = [workload for workload in WORKLOADS if workload.name in options.workloads]
    try:
        with scratch_folder() as folder:
            results.conditions = conditions(options)
            results.ceiling = measure_ceiling(options)
            with others(results):
                with ExitStack() as stack:
                    compare(results, options, workloads, contenders(results, options, folder, stack), folder)
                grow(results, options, workloads, folder)
    except (UnavailableError, rounds.WrongAnswerError) as error:
        progress(str(error))
        return 1
    if options.json:
        options.json.write_text(json.dumps(results.as_json(), indent=1))
    sys.stdout.write(report.write(results, workloads, options.connections))
    return 1 if results.errors() else 0


def read(arguments: list[str] | None) -> argparse.Namespace:
    names = [workload.name for workload in WORKLOADS]
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.bench",
        description="Compare the product with Azurite and raw PostgreSQL; everything takes about an hour.",
    )
    parser.add_argument(
        "--workloads", type=words, default=names, metavar="NAMES", help=f"of {','.join(names)}"
    )
    parser.add_argument(
        "--connections", type=numbers, default=[1, 8, 32], metavar="N,N", help="default 1,8,32"
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="of each run, default 3")
    parser.add_argument(
        "--pairs", type=int, default=3, help="runs of each kind per server, alternating, default 3"
    )
    parser.add_argument("--size", type=int, default=100_000, help="entities in the table, default 100000")
    parser.add_argument(
        "--settle", action="store_true", help="before each run wait until the servers are idle"
    )
    parser.add_argument("--azurite", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--pgbench", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument(
        "--growth",
        type=numbers,
        default=[10_000, 100_000, 1_000_000],
        metavar="SIZES",
        help="table sizes for cost growth, default 10000,100000,1000000; an empty text leaves it out",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="unless said otherwise: one pair of runs of 1 s on 10,000 entities, no growth",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all measurements there")
    parser.add_argument(
        "--endpoint", help="of a server that runs already, with the development key: measure that"
    )
    if parser.parse_args(arguments).quick:
        parser.set_defaults(**QUICK)
    options = parser.parse_args(arguments)
    unknown = set(options.workloads) - set(names)
    if unknown:
        parser.error(f"unknown workloads: {', '.join(sorted(unknown))}")
    return options


def words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def numbers(text: str) -> list[int]:
    return [int(word.replace("_", "")) for word in words(text)]


@contextmanager
def scratch_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tablero-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        # under root PostgreSQL runs as another user, who must get in
        folder.chmod(0o711)
        yield folder


def conditions(options: argparse.Namespace) -> dict[str, str]:
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        "?",
    )
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": f"{os.cpu_count()} cores ({model}), {platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "entities": f"{options.size:,} in the table, ten properties of mixed type, about 1 KB",
        "runs": f"medians of {options.pairs} alternating runs of {options.seconds:g} s"
        + (", each begun when the servers were idle" if options.settle else ""),
        "durability": f"{OURS} acknowledges a write when it is on disk; Azurite saves up to 5 s later",
    }


@contextmanager
def others(results: Results) -> Iterator[None]:
    """Tell how busy strangers kept the machine meanwhile: the more, the less the figures say."""

    def used() -> float:
        return processes.busy_seconds() - processes.cpu_seconds(os.getpid())

    began, before = time.monotonic(), used()
    yield
    share = max(0.0, used() - before) / (time.monotonic() - began) / (os.cpu_count() or 1)
    results.conditions["other processes"] = f"used {share:.0%} of the cores meanwhile"


def measure_ceiling(options: argparse.Namespace) -> dict[str, dict[int, float]]:
    progress("the load generator itself")
    request = b"GET / HTTP/1.1\r\n\r\n" + b"x" * 1400
    kinds = {
        "small answers": (ceiling.SMALL, Expected(b"204")),
        "pages of 1.3 MB": (ceiling.PAGE, Expected(b"200", b"{", 1000)),
    }
    return {
        kind: {
            number: ceiling.measure(answer, request, expected, number, min(1.0, options.seconds)).per_second
            for number in options.connections
        }
        for kind, (answer, expected) in kinds.items()
    }


def contenders(
    results: Results, options: argparse.Namespace, folder: Path, stack: ExitStack
) -> list[Contender]:
    """Start the servers and load them, one after the other."""
    running = [ours(options, folder, stack)]
    if options.azurite:
        running.append(stack.enter_context(servers.azurite(folder)))
    entered = []
    for server in running:
        progress(f"loading {options.size:,} entities into {server.name}")
        contender = rounds.enter(server, options.size, PACE.get(server.name, 1.0))
        results.conditions[server.name] = server.version
        results.loading[server.name] = contender.loaded_per_second
        results.memory[server.name] = contender.memory
        entered.append(contender)
    return entered


def ours(options: argparse.Namespace, folder: Path, stack: ExitStack) -> Server:
    if options.endpoint:
        return Server(OURS, "as found running", options.endpoint, None, late_work=1)
    return stack.enter_context(servers.tablero(folder))


def compare(
    results: Results,
    options: argparse.Namespace,
    workloads: list[Workload],
    entered: list[Contender],
    folder: Path,
) -> None:
    plan = Plan(options.seconds, options.settle)
    limit = None
    if options.pgbench and not options.endpoint:
        limit = raw.prepare(folder / OURS.lower(), entered[0].site.data)
    for workload in workloads:
        for contender in entered:
            # compilers and caches first
            rounds.measure(
                contender, workload, min(8, max(options.connections)), Plan(min(1.0, plan.seconds), False)
            )
        for connections in options.connections:
            cell(results, options, workload, connections, entered, plan)
            if limit:
                measure_raw(results, limit, workload, connections, options)
    for contender in entered:
        contender.memory["after all runs"] = contender.server.memory()
    if limit:
        limit.close()


def cell(
    results: Results,
    options: argparse.Namespace,
    workload: Workload,
    connections: int,
    entered: list[Contender],
    plan: Plan,
) -> None:
    for contender in rounds.alternate(entered, options.pairs):
        if plan.settle:
            for other in entered:
                other.server.settle()
        measured = rounds.measure(contender, workload, connections, plan)
        results.runs[workload.name, connections, contender.server.name].append(measured)
        problem = f", {sum(measured.errors.values())} wrong answers" if measured.errors else ""
        progress(
            f"{workload.name} at {connections}: {contender.server.name} {measured.per_second:,.0f}/s,"
            f" p99 {measured.p99:.1f} ms{problem}"
        )


def measure_raw(
    results: Results, limit: raw.Raw, workload: Workload, connections: int, options: argparse.Namespace
) -> None:
    for _ in range(options.pairs):
        per_second = limit.per_second(workload.name, connections, options.seconds)
        if per_second is not None:
            results.raw[workload.name, connections].append(per_second)
            progress(f"{workload.name} at {connections}: pgbench {per_second:,.0f}/s")


def grow(results: Results, options: argparse.Namespace, workloads: list[Workload], folder: Path) -> None:
    """Tables of growing size on the product alone, each in a server of its own."""
    # reads first, since writes change what they find
    growing = [workload for workload in workloads if workload.ground is Ground.STANDING]
    growing += [workload for workload in workloads if workload.ground is Ground.SCRATCH]
    for size in options.growth:
        with ExitStack() as stack:
            place = folder / f"growth-{size}"
            place.mkdir(mode=0o711)
            server = ours(options, place, stack)
            progress(f"loading {size:,} entities")
            contender = rounds.enter(server, size, 1.0)
            results.growth_loading[size] = contender.loaded_per_second
            rounds.rest(contender)
            for workload in growing:
                measured = rounds.measure_in_place(contender, workload, GROWTH_CONNECTIONS, options.seconds)
                results.growth[workload.name, size] = measured
                progress(f"{workload.name} at {size:,} entities: {measured.per_second:,.0f}/s")
            results.growth_memory[size] = server.memory()


if __name__ == "__main__":
    sys.exit(main())
