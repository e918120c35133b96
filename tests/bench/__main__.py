"""Command line of the benchmark, and the order in which things are measured."""

import argparse
import json
import os
import platform
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

from tests.bench import processes, raw, report, rounds, servers
from tests.bench.entities import Dataset, Layout
from tests.bench.report import OURS, Cell, Results
from tests.bench.rounds import Contender, progress
from tests.bench.servers import Azurite, Server, UnavailableError
from tests.bench.workloads import CONNECTIONS, WORKLOADS, Workload

QUICK = {"sizes": [5_000], "layouts": [Layout.ONE], "seconds": 0.6, "pairs": 1}
LONGEST_WARM_UP = 0.5


def main(arguments: list[str] | None = None) -> int:
    options = read(arguments)
    results = Results()
    workloads = [workload for workload in WORKLOADS if workload.name in options.workloads]
    try:
        with scratch_folder() as folder, busy_others(results):
            results.conditions.update(conditions(options))
            peer = servers.find_azurite() if options.azurite else None
            for number, data in enumerate(tables(options)):
                # servers of its own, so that no table has another one's remains behind it
                place = folder / str(number)
                place.mkdir(mode=0o711)
                with ExitStack() as stack:
                    entered = contenders(results, options, peer, data, place, stack)
                    compare(results, options, workloads, entered, place)
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
        description="Compare the product with the newest Azurite and with raw PostgreSQL; takes about two hours.",
    )
    parser.add_argument(
        "--workloads", type=words, default=names, metavar="NAMES", help=f"of {','.join(names)}"
    )
    parser.add_argument(
        "--sizes",
        type=numbers,
        default=[1_000, 10_000, 100_000],
        metavar="N,N",
        help="entities in a table, default 1000,10000,100000",
    )
    parser.add_argument(
        "--layouts",
        type=layouts,
        default=list(Layout),
        metavar="NAMES",
        help="one (partition), many (of a hundred entities); default one,many",
    )
    parser.add_argument(
        "--connections", type=numbers, default=list(CONNECTIONS), metavar="N,N", help="default 1,8,32"
    )
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run, default 2")
    parser.add_argument(
        "--pairs", type=int, default=3, help="runs of each kind per server, alternating, default 3"
    )
    parser.add_argument("--azurite", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--pgbench", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="five minutes: unless said otherwise, one pair of runs of 0.6 s on 5,000 entities in one partition",
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


def layouts(text: str) -> list[Layout]:
    return [Layout(word) for word in words(text)]


def tables(options: argparse.Namespace) -> list[Dataset]:
    return [Dataset(size, layout) for size, layout in product(options.sizes, options.layouts)]


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
        "Python": f"{platform.python_version()}, {python_build()}",
        "entities": "ten properties of mixed type, about 1 KB",
        "tables": "writes run on tables that begin with as many entities as the table they are reported under,"
        " deletions on tables that have at least as many as the run may delete",
        "runs": f"medians of {options.pairs} alternating runs of {options.seconds:g} s,"
        " the other server stopped meanwhile",
        "durability": f"{OURS} acknowledges a write when it is on disk; Azurite saves up to 5 s later",
    }


def python_build() -> str:
    """Whether this Python was compiled with profile-guided and link-time optimization, worth a quarter of its speed."""
    arguments = sysconfig.get_config_var("CONFIG_ARGS") or ""
    found = {"--enable-optimizations": "PGO", "--with-lto": "LTO"}
    return ", ".join(
        f"{'with' if option in arguments else 'without'} {name}" for option, name in found.items()
    )


@contextmanager
def busy_others(results: Results) -> Iterator[None]:
    """Tell how busy other programs kept the machine meanwhile: the more, the less the figures say."""

    def used() -> float:
        return processes.busy_seconds() - processes.cpu_seconds(os.getpid())

    began, before = time.monotonic(), used()
    yield
    share = max(0.0, used() - before) / (time.monotonic() - began) / (os.cpu_count() or 1)
    results.conditions["other processes"] = f"used {share:.0%} of the cores meanwhile"


def contenders(
    results: Results,
    options: argparse.Namespace,
    peer: Azurite | None,
    data: Dataset,
    folder: Path,
    stack: ExitStack,
) -> list[Contender]:
    """Start the servers and load them, one after the other."""
    running = [ours(options, folder, stack)]
    if peer:
        running.append(stack.enter_context(servers.azurite(folder, peer)))
    entered = []
    for server in running:
        progress(f"loading {report.described(data)} into {server.name}")
        contender = rounds.enter(server, data)
        results.conditions[server.name] = server.version
        results.loading[data, server.name] = contender.loaded_per_second
        entered.append(contender)
    return entered


def ours(options: argparse.Namespace, folder: Path, stack: ExitStack) -> Server:
    if options.endpoint:
        return Server(OURS, "as found running", options.endpoint, None)
    return stack.enter_context(servers.tablero(folder))


def compare(
    results: Results,
    options: argparse.Namespace,
    workloads: list[Workload],
    entered: list[Contender],
    folder: Path,
) -> None:
    data = entered[0].site.data
    limit = None
    if options.pgbench and not options.endpoint:
        limit = raw.prepare(folder / OURS.lower(), data)
    for workload in workloads:
        for contender in rounds.alternate(entered, 1):
            # compilers and caches first
            rounds.measure(
                contender,
                workload,
                min(8, max(options.connections)),
                min(LONGEST_WARM_UP, options.seconds),
            )
        for connections in options.connections:
            cell = Cell(workload.name, data, connections)
            measure(results, cell, workload, entered, options)
            if limit:
                measure_raw(results, cell, limit, entered[1:], options.seconds)
    if limit:
        limit.close()


def measure(
    results: Results, cell: Cell, workload: Workload, entered: list[Contender], options: argparse.Namespace
) -> None:
    for contender in rounds.alternate(entered, options.pairs):
        measured = rounds.measure(contender, workload, cell.connections, options.seconds)
        results.runs[cell, contender.server.name].append(measured)
        problem = f", {sum(measured.errors.values())} wrong answers" if measured.errors else ""
        progress(
            f"{workload.name} at {cell.connections}: {contender.server.name} {measured.per_second:,.0f}/s,"
            f" p50 {measured.p50:.2f} ms, p99 {measured.p99:.2f} ms, CPU {measured.cpu:,.0f} µs{problem}"
        )


def measure_raw(results: Results, cell: Cell, limit: raw.Raw, idle: list[Contender], seconds: float) -> None:
    with ExitStack() as stack:
        for contender in idle:
            stack.enter_context(contender.server.stopped())
        per_second = limit.per_second(cell.workload, cell.connections, seconds)
    if per_second is not None:
        results.raw[cell].append(per_second)
        progress(f"{cell.workload} at {cell.connections}: pgbench {per_second:,.0f}/s")


if __name__ == "__main__":
    sys.exit(main())
