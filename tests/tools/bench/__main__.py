"""Command line of the benchmark, and the order in which things are measured."""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from tests.tools.bench import indexes, machine, plan, raw, report, rounds, sdk_loading, servers
from tests.tools.bench.entities import Dataset, Layout
from tests.tools.bench.processes import Use
from tests.tools.bench.report import BUSY, Cell, Results
from tests.tools.bench.rounds import Contender, progress
from tests.tools.bench.servers import OURS, PEER, RELAXED, Azurite, Server, UnavailableError, scratch_folder
from tests.tools.bench.workloads import CONNECTIONS, FIRST_RANGE, LATER_RANGE, WORKLOADS, Workload

LOAD = 1.0
"""The load before the start above which the machine is too busy for ratios of one connection."""
LONGEST_WARM_UP = 0.5
BEFORE = 3.0
"""Seconds for which the other programs are watched before the start."""


def main(arguments: list[str] | None = None) -> int:
    options = read(arguments)
    results = Results()
    workloads = [workload for workload in WORKLOADS if workload.name in options.workloads]
    try:
        with scratch_folder() as folder:
            results.conditions.update(conditions(options))
            progress(f"{plan.number_of_runs(options):,} runs; about {plan.seconds(options) / 60:.0f} minutes")
            began = time.monotonic()
            watch_others(results, options)
            peer = servers.find_azurite() if options.azurite else None
            for number, data in enumerate(plan.tables(options)):
                # servers of its own, so that no table has another one's remains behind it
                place = folder / str(number)
                place.mkdir(mode=0o711)
                with ExitStack() as stack:
                    entered = contenders(results, options, peer, data, place, stack)
                    compare(results, options, entered, place)
            if options.loading:
                load_by_sdk(results, options, peer, folder / "sdk")
            if results.others() > BUSY and not options.endpoint:
                results.disturbances.append(
                    f"other programs used {results.others():.2f} cores during the runs"
                )
            results.conditions["other programs"] = f"used {results.others():.2f} cores during the runs"
            results.conditions["duration"] = f"{(time.monotonic() - began) / 60:.0f} minutes"
    except (UnavailableError, rounds.WrongAnswerError) as error:
        progress(str(error))
        return 1
    if options.json:
        options.json.write_text(json.dumps(results.as_json(), indent=1))
    sys.stdout.write(report.write(results, workloads, options.connections))
    return 1 if results.errors() else 0


def read(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.tools.bench",
        description="Compare the product with the newest Azurite and raw PostgreSQL. Says first how long it takes.",
    )
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument(
        "--quick",
        action="store_const",
        const=plan.QUICK,
        dest="form",
        help="five minutes: everything on one table of 10,000 entities in one partition, once",
    )
    forms.add_argument(
        "--standard",
        action="store_const",
        const=plan.STANDARD,
        dest="form",
        help="twenty-five minutes: the operations and tables of the documentation, once",
    )
    parser.set_defaults(form=plan.FULL)
    parser.add_argument("--workloads", type=words, metavar="NAMES", help=f"of {','.join(plan.ALL)}")
    parser.add_argument(
        "--sizes", type=numbers, metavar="N,N", help="entities in a table, default 1000,10000,100000"
    )
    parser.add_argument(
        "--layouts",
        type=layouts,
        metavar="NAMES",
        help="one (partition), many (of a hundred entities); default one,many",
    )
    parser.add_argument(
        "--connections", type=numbers, default=list(CONNECTIONS), metavar="N,N", help="default 1,8,32"
    )
    parser.add_argument("--seconds", type=float, help="of each run, default 2")
    parser.add_argument("--pairs", type=int, help="runs of each kind per server, alternating, default 3")
    parser.add_argument("--azurite", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--pgbench", action=argparse.BooleanOptionalAction)
    parser.add_argument(
        "--loading",
        type=int,
        metavar="N",
        help="entities to load by the Python SDK, default 100000; 0 for none",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all measurements there")
    parser.add_argument(
        "--endpoint", help="of a server that runs already, with the development key: measure that"
    )
    parser.set_defaults(**parser.parse_args(arguments).form)
    options = parser.parse_args(arguments)
    unknown = set(options.workloads) - set(plan.ALL)
    if unknown:
        parser.error(f"unknown workloads: {', '.join(sorted(unknown))}")
    if options.loading % 1000:
        parser.error("--loading must be a multiple of 1,000")
    return options


def words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def numbers(text: str) -> list[int]:
    return [int(word.replace("_", "")) for word in words(text)]


def layouts(text: str) -> list[Layout]:
    return [Layout(word) for word in words(text)]


def conditions(options: argparse.Namespace) -> dict[str, str]:
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": machine.described(),
        "Python": machine.python_build(),
        "entities": "ten properties of mixed type, about 1 KB",
        "tables": "writes run on tables that begin with as many entities as the table they are reported under,"
        " deletions on tables that have at least as many as the run may delete;"
        f" from {rounds.REUSED_FROM:,} entities on the runs of an operation continue on one table",
        "ranges": "the first time: adaptive indexes are off; a minute later: on, as they are by default, and the index"
        " is there. Nothing else is measured on a table after that",
        "runs": f"medians of {options.pairs} alternating runs of {options.seconds:g} s,"
        " the other servers stopped meanwhile",
        "durability": f"{OURS} acknowledges a write when it is on disk; Azurite saves up to 5 s later,"
        " and what is called equal durability up to 0.6 s later (--durability relaxed)",
    }


def watch_others(results: Results, options: argparse.Namespace) -> None:
    """Find out before the start whether the machine is quiet enough for ratios of one connection."""
    if options.endpoint:
        return  # the server is one of the other programs
    before = Use.now()
    time.sleep(BEFORE)
    now = Use.now()
    load, others = os.getloadavg()[0], now.others_since(before)
    results.conditions["before the start"] = (
        f"load {load:.2f}, {others:.2f} cores used by other programs, of it {now.stolen_since(before):.2f} stolen"
        " by the hypervisor"
    )
    if load > LOAD:
        results.disturbances.append(f"the load was {load:.2f} before the start")
    if others > BUSY:
        results.disturbances.append(f"other programs used {others:.2f} cores before the start")
    for text in results.disturbances:
        progress(f"The report will have no ratios of one connection: {text}.")


def contenders(
    results: Results,
    options: argparse.Namespace,
    peer: Azurite | None,
    data: Dataset,
    folder: Path,
    stack: ExitStack,
) -> list[Contender]:
    """Start the servers and load them, one after the other."""
    entered = []
    for server in start(options, peer, folder, stack):
        if server.name == RELAXED:
            entered.append(rounds.enter_for_writes(server, data))
            continue
        progress(f"loading {report.described(data)} into {server.name}")
        contender = rounds.enter(server, data)
        results.conditions[server.name] = server.version
        results.loading[data, server.name] = contender.loaded_per_second
        entered.append(contender)
    return entered


def start(
    options: argparse.Namespace, peer: Azurite | None, folder: Path, stack: ExitStack
) -> Iterator[Server]:
    for name in plan.servers(options):
        if name == OURS and options.endpoint:
            yield Server(OURS, "as found running", options.endpoint, None)
        elif name == PEER and peer:
            yield stack.enter_context(servers.azurite(folder, peer))
        else:
            yield stack.enter_context(servers.tablero(folder, is_relaxed=name == RELAXED))


def compare(results: Results, options: argparse.Namespace, entered: list[Contender], folder: Path) -> None:
    data = entered[0].site.data
    limit = None
    if options.pgbench and not options.endpoint:
        limit = raw.prepare(folder / OURS.lower(), entered[0].site)
    for turn in plan.turns(options, data):
        workload = turn.workload
        contenders = [contender for contender in entered if contender.server.name in turn.servers]
        with ExitStack() as stack:
            if workload.name == FIRST_RANGE and not options.endpoint:
                indexes.switch_adaptive_indexes(folder, "off")
                stack.callback(indexes.switch_adaptive_indexes, folder, "on")
            for contender in rounds.alternate(contenders, 1):
                at_once = min(8, max(options.connections))
                rounds.warm_up(contender, workload, at_once, min(LONGEST_WARM_UP, options.seconds))
            if workload.name == LATER_RANGE and not has_index(contenders[0], folder):
                continue
            grounds = stack.enter_context(rounds.Grounds(workload))
            for connections in options.connections:
                cell = Cell(workload.name, data, connections)
                measure(results, cell, workload, contenders, grounds, options)
                if limit:
                    measure_raw(results, cell, limit, entered[1:], options.seconds)
    if limit:
        limit.close()


def has_index(ours: Contender, folder: Path) -> bool:
    """Wait for the index that the server makes of a property after it was scanned."""
    try:
        waited = indexes.wait_for_index(folder, ours.site.table, "Score", limit=90)
    except UnavailableError as error:
        progress(f"no range a minute later: {error}")
        return False
    progress(f"the range has an index {waited:.1f} s later")
    return True


def measure(
    results: Results,
    cell: Cell,
    workload: Workload,
    entered: list[Contender],
    grounds: rounds.Grounds,
    options: argparse.Namespace,
) -> None:
    for contender in rounds.alternate(entered, options.pairs):
        measured = rounds.measure(contender, workload, cell.connections, options.seconds, grounds)
        results.runs[cell, contender.server.name].append(measured)
        problem = f", {sum(measured.errors.values())} wrong answers" if measured.errors else ""
        progress(
            f"{workload.name} at {cell.connections}: {contender.server.name} {measured.per_second:,.0f}/s,"
            f" p50 {measured.p50:.2f} ms, p99 {measured.p99:.2f} ms, CPU {measured.cpu:,.0f} µs,"
            f" others {measured.others:.2f} cores{problem}"
        )


def measure_raw(results: Results, cell: Cell, limit: raw.Raw, idle: list[Contender], seconds: float) -> None:
    with ExitStack() as stack:
        for contender in idle:
            stack.enter_context(contender.server.stopped())
        per_second = limit.per_second(cell.workload, cell.connections, seconds)
    if per_second is not None:
        results.raw[cell].append(per_second)
        progress(f"{cell.workload} at {cell.connections}: pgbench {per_second:,.0f}/s")


def load_by_sdk(results: Results, options: argparse.Namespace, peer: Azurite | None, folder: Path) -> None:
    """Load a table by one and by several clients into each of the servers, which are new ones."""
    folder.mkdir(mode=0o711)
    data = Dataset(options.loading, Layout.MANY)
    with ExitStack() as stack:
        entered = [rounds.enter_for_writes(it, data) for it in start(options, peer, folder, stack)]
        for clients in plan.CLIENTS:
            for contender in rounds.alternate(entered, 1):
                loaded = sdk_loading.load(contender.server, options.loading, clients)
                results.sdk[options.loading, contender.server.name, clients] = loaded
                progress(
                    f"loading by {clients} clients of the SDK: {contender.server.name} {loaded.per_second:,.0f}"
                    f" entities/s, CPU of the clients {loaded.cores:.2f} cores"
                )


if __name__ == "__main__":
    sys.exit(main())
