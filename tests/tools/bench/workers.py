"""Workers and connections: `python3 -m tests.tools.bench.workers`, some minutes.

It measures requests per second and the CPU time of a request with one worker and with several, and the division of
connections between them. Then the memory of one worker with its PostgreSQL: alone, with a thousand idle clients, and
with two hundred busy ones.

CPU time is compared with --pin: each server has the first core for itself and its PostgreSQL, and the clients have the
others. Otherwise two workers share caches with more work than a single one, and each request seems to cost more.

The model is that nothing but CPU time limits a server: as many cores as the server has, or as it shares with the
clients without --pin, divided by the CPU time of a request with one worker, and that of its client if they share the
cores.
"""

import argparse
import os
import re
import resource
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from psycopg import Connection

from storage.server.data_folder import DataFolder
from tests.tools.bench import processes, rounds, servers
from tests.tools.bench.entities import Dataset
from tests.tools.bench.load import Measurement
from tests.tools.bench.rounds import Contender, progress
from tests.tools.bench.servers import Server, scratch_folder
from tests.tools.bench.workloads import WORKLOADS

MEGABYTE = 1 << 20
IDLE = 1000
BUSY = 200
CORES = 16
ON_PAPER = f"on paper: {CORES // 2} workers, {CORES} cores"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests.tools.bench.workers", description=__doc__)
    parser.add_argument("--size", type=int, default=10_000, help="entities in the table, default 10000")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run, default 2")
    parser.add_argument("--pairs", type=int, default=3, help="runs of each kind, default 3")
    parser.add_argument("--connections", type=int, default=32, help="for each worker, default 32")
    parser.add_argument("--workloads", default="get,insert,page,batch")
    parser.add_argument("--workers", default="1,2", metavar="N,N", help="workers of the servers, default 1,2")
    parser.add_argument("--pin", action="store_true", help="give a server one core, the clients the others")
    options = parser.parse_args(arguments)
    options.workers = [int(number) for number in options.workers.split(",")]
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    data = Dataset(options.size)
    if options.pin:
        os.sched_setaffinity(0, range(1, os.cpu_count() or 1))
    for lines in (cpu(options, data), () if options.pin else connections(options)):
        for line in lines:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
    return 0


def cpu(options: argparse.Namespace, data: Dataset) -> Iterator[str]:
    """Servers with one worker and with several, in turns."""
    numbers = options.workers
    cores = 1 if options.pin else os.cpu_count() or 1
    with scratch_folder() as folder, ExitStack() as stack:
        contenders = []
        for workers in numbers:
            server = stack.enter_context(started(folder, workers, pin=options.pin))
            contenders.append(rounds.enter(server, data))
        progress("loaded")
        title = ", ".join(map(str, numbers)) + " workers"
        model = f"model, {cores} core{'s'[: cores - 1]}"
        yield f"| request | requests/s, {title} | {model} | p50, ms | CPU, µs | of it PostgreSQL | {ON_PAPER} |"
        yield "|---|---|---|---|---|---|---|"
        for workload in WORKLOADS:
            if workload.name not in options.workloads.split(","):
                continue
            runs: list[list[Measurement]] = [[] for _ in numbers]
            shares: list[float] = []
            for contender in rounds.alternate(contenders, options.pairs):
                place = contenders.index(contender)
                before = postgres_seconds(contender.server), contender.server.cpu_seconds()
                measured = rounds.measure(
                    contender, workload, options.connections * numbers[place], options.seconds
                )
                after = postgres_seconds(contender.server), contender.server.cpu_seconds()
                shares.append((after[0] - before[0]) / max(0.01, after[1] - before[1]))
                runs[place].append(measured)
            yield row(workload.title, runs, median(shares), cores, shared=not options.pin)
        for contender in contenders:
            yield f"clients of each process of {contender.server.name}: {division(contender)}"


def row(title: str, runs: list[list[Measurement]], share: float, cores: int, *, shared: bool) -> str:
    rate, p50 = (
        [median(getattr(run, name) for run in several) for several in runs] for name in ("per_second", "p50")
    )
    used = [min(run.cpu for run in several) for several in runs]  # other processes only make it more
    client = median(run.client / run.per_second for run in runs[0]) * 1e6 if shared else 0.0
    model = cores * 1e6 / (used[0] + client)
    # half of the cores for the workers, which are busy first with reads, and half for PostgreSQL
    most = CORES / 2 * 1e6 / (used[-1] * max(share, 1 - share))
    return (
        f"| {title} | {listed(rate, ',.0f')} | {model:,.0f} | {listed(p50, '.1f')} | {listed(used, '.0f')}"
        f" | {share:.0%} | {most:,.0f}/s |"
    )


def listed(figures: list[float], form: str) -> str:
    return " / ".join(format(figure, form) for figure in figures)


def division(contender: Contender) -> str:
    """Return how many of some new connections each process has accepted."""
    address = contender.site.client.address
    request = next(it for it in WORKLOADS if it.name == "get").build(contender.site, 1)[0]
    with clients(address, 64, request):
        counted: Counter[int] = Counter()
        for pid in processes.tree(contender.server.pid or 0):
            number = established(pid, address[1])
            if number:
                counted[pid] = number
    return ", ".join(str(number) for number in counted.values())


def established(pid: int, port: int) -> int:
    """Return the number of connections to a port that a process has accepted."""
    lines = processes.read(Path(f"/proc/{pid}/net/tcp")).splitlines()[1:]
    fields = [line.split() for line in lines]
    inodes = {field[9] for field in fields if field[1].endswith(f":{port:04X}") and field[3] == "01"}
    return len(inodes & set(sockets(pid)))


def sockets(pid: int) -> Iterator[str]:
    for descriptor in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            result = re.fullmatch(r"socket:\[(\d+)\]", str(descriptor.readlink()))
        except OSError:
            continue
        if result:
            yield result[1]


def connections(options: argparse.Namespace) -> Iterator[str]:
    """Memory and times with many clients, on a server of its own."""
    get = next(it for it in WORKLOADS if it.name == "get")
    with scratch_folder() as folder, started(folder, 1) as server:
        contender = rounds.enter(
            server, Dataset(1000)
        )  # few: what loading needs would hide what clients need
        yield "| clients | open | memory of the worker | with PostgreSQL | connections to PostgreSQL | p50 / p99, ms |"
        yield "|---|---|---|---|---|---|"
        yield state("none", server, folder)
        request = get.build(contender.site, 1)[0]
        with clients(contender.site.client.address, IDLE, request):
            yield state(f"{IDLE:,} idle", server, folder)
            few = rounds.measure(contender, get, 8, options.seconds)
            yield state(f"{IDLE:,} idle, 8 busy", server, folder, few)
            many = rounds.measure(contender, get, BUSY, options.seconds)
            yield state(f"{IDLE:,} idle, {BUSY} busy", server, folder, many)
        few = rounds.measure(contender, get, 8, options.seconds)
        yield state("8 busy", server, folder, few)


def state(title: str, server: Server, folder: Path, measured: Measurement | None = None) -> str:
    worker, whole = memory(server.pid or 0)
    conninfo = f"host={DataFolder(folder / '1').socket_folder} user=tablero dbname=tablero"
    with Connection.connect(conninfo) as database:
        text = "SELECT count(*) - 1 FROM pg_stat_activity WHERE backend_type = 'client backend'"
        number = database.execute(text).fetchone()
    assert number is not None
    times = "" if measured is None else f"{measured.p50:.1f} / {measured.p99:.1f}"
    if measured is not None and measured.errors:
        times += f", {sum(measured.errors.values())} wrong answers"
    clients = established(server.pid or 0, server.client().address[1])
    return f"| {title} | {clients:,} | {worker} MiB | {whole} MiB | {number[0]} | {times} |"


def memory(root: int) -> tuple[int, int]:
    """MiB of the process and of it with all below it; what processes share is divided between them."""
    results = []
    for pid in processes.tree(root):
        size = re.search(r"^Pss: +(\d+) kB", processes.read(Path(f"/proc/{pid}/smaps_rollup")), re.MULTILINE)
        results.append(int(size[1]) * 1024 if size else 0)
    return results[0] // MEGABYTE, sum(results) // MEGABYTE


@contextmanager
def clients(address: tuple[str, int], number: int, request: bytes) -> Iterator[None]:
    """Keep connections open that have sent a request each."""
    opened = []
    try:
        for _ in range(number):
            opened.append(socket.create_connection(address, timeout=30))
            opened[-1].sendall(request)
            if not opened[-1].recv(1 << 16).startswith(b"HTTP/1.1 200"):
                raise rounds.WrongAnswerError("an idle client got a wrong answer")
        yield
    finally:
        for each in opened:
            each.close()


@contextmanager
def started(folder: Path, workers: int, *, pin: bool = False) -> Iterator[Server]:
    log = folder / f"{workers}.log"
    options = ["--data", str(folder / str(workers)), "--workers", str(workers), "--listen", "127.0.0.1:0"]
    command = [*(["taskset", "-c", "0"] if pin else []), sys.executable, "manage.py", "serve", *options]
    with servers.running(command, log, servers.ROOT) as process:
        endpoint = servers.wait_for_endpoint(process, log)
        yield Server(f"{workers} worker{'s'[: workers - 1]}", servers.commit(), endpoint, process.pid)


def postgres_seconds(server: Server) -> float:
    return sum(
        processes.cpu_seconds(pid)
        for pid in processes.tree(server.pid or 0)
        if processes.read(Path(f"/proc/{pid}/comm")).strip() == "postgres" and parent_name(pid) != "postgres"
    )


def parent_name(pid: int) -> str:
    stat = processes.read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return processes.read(Path(f"/proc/{stat[1]}/comm")).strip() if stat else ""


if __name__ == "__main__":
    sys.exit(main())
