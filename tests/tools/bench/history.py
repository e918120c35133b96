"""Cost of the history: `python3 -m tests.tools.bench.history`, some minutes.

Two accounts on one server, with and without a record of changes, take turns with the same writes. Then the size of a
recorded change on disk is measured, before and after its segment was packed, and the waits of writers while segments
end, are packed and are dropped several times a second.
"""

import argparse
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from psycopg import Connection

from storage.server.data_folder import DataFolder
from tests.tools.bench import rounds, servers
from tests.tools.bench.entities import Dataset
from tests.tools.bench.load import Measurement, Run
from tests.tools.bench.rounds import Contender, progress
from tests.tools.bench.servers import DEVELOPMENT_KEY, ROOT, Server, scratch_folder
from tests.tools.bench.workloads import WORKLOADS, Site, Workload

WRITES = ("insert", "upsert", "replace", "merge", "delete", "batch")
LIMITS = {"batch": 1.2}
SINGLE, P99 = 1.15, 1.25


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests.tools.bench.history", description=__doc__)
    parser.add_argument("--size", type=int, default=10_000, help="entities in a table, default 10000")
    parser.add_argument("--seconds", type=float, default=1.5, help="of each run, default 1.5")
    parser.add_argument("--pairs", type=int, default=5, help="runs of each kind, default 5")
    parser.add_argument("--connections", type=int, default=8, help="default 8")
    parser.add_argument("--workloads", default=",".join(WRITES))
    options = parser.parse_args(arguments)
    with scratch_folder() as folder, servers.tablero(folder) as server:
        turned_off = without_history(server, folder)
        data = Dataset(options.size)
        contenders = [rounds.enter(it, data) for it in (server, turned_off)]
        progress("loaded")
        sys.stdout.write(
            "| write | CPU | p99 | throughput | CPU in µs, recorded and not |\n|---|---|---|---|---|\n"
        )
        for workload in WORKLOADS:
            if workload.name in options.workloads.split(","):
                sys.stdout.write(compare(contenders, workload, options) + "\n")
                sys.stdout.flush()
        for line in (*disk(server, folder), *stalls(contenders[0], folder)):
            sys.stdout.write(line + "\n")
    return 0


TIDY = """
import sys, django
from datetime import UTC, datetime, timedelta
django.setup()
from storage.history import retention
retention._WORTH_PACKING = 0
for line in sys.stdin:
    retention.tidy(datetime.now(UTC) + timedelta(days=float(line)))
    print("done", flush=True)
"""


@contextmanager
def tidying(folder: Path) -> Iterator[Callable[[float], None]]:
    """Yield what tidies the histories as if it were some days later."""
    environ = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "console.settings",
        "TABLERO_DATA": str(folder / "tablero"),
    }
    command = [sys.executable, "-c", TIDY]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, env=environ, **pipes) as process:  # type: ignore[call-overload]

        def tidy(days: float) -> None:
            process.stdin.write(f"{days}\n")
            process.stdin.flush()
            process.stdout.readline()

        yield tidy
        process.stdin.close()


def disk(server: Server, folder: Path) -> Iterator[str]:
    """Replace the entities of a table, none or four times more, in a segment of their own."""
    data = Dataset(2000)
    conninfo = f"host={DataFolder(folder / 'tablero').socket_folder} user=tablero dbname=tablero"
    with tidying(folder) as tidy, Connection.connect(conninfo, autocommit=True) as database:
        for day, versions in ((1, 1), (2, 5)):
            table = rounds.create(server)
            site = Site(server.client(), table, data)
            rounds.load(server, table, data)
            tidy(day)
            replace = next(it for it in WORKLOADS if it.name == "replace")
            for _ in range(versions):
                rounds.send(server, replace.build(site, data.size), replace.expected(data), 8)
            name = database.execute(PRESENT).fetchone()[0]
            changes = database.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            sizes = [database.execute(SIZE, {"name": name}).fetchone()[0] / changes]
            tidy(day + 0.5)
            tidy(day + 0.5)
            sizes.append(database.execute(SIZE, {"name": name}).fetchone()[0] / changes)
            said = f"{sizes[0]:.0f} bytes, packed {sizes[1]:.0f}"
            yield f"disk per change, {changes} changes of {data.size} entities: {said}"


PRESENT = """
SELECT 'history_' || account_id || '_' || min(number) FROM storage_historysegment
WHERE ended_at IS NULL AND account_id = (SELECT id FROM storage_account WHERE name = 'devstoreaccount1')
GROUP BY account_id
"""
SIZE = """
SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
WHERE relkind = 'r' AND relname IN (%(name)s::text, %(name)s || '_rows', %(name)s || '_images')
"""


def stalls(contender: Contender, folder: Path) -> Iterator[str]:
    upsert = next(it for it in WORKLOADS if it.name == "upsert")
    longest = []
    for is_tidied in (False, True, False, True):
        count = rounds.amount(contender, upsert, 8, 6)
        with ExitStack() as stack:
            site = stack.enter_context(rounds.Grounds(upsert).site(contender, count))
            timed = Run(iter(upsert.build(site, count)), upsert.expected(site.data), seconds=6, warm_up=0.3)
            over = threading.Event()
            tidier = threading.Thread(target=keep_tidying, args=(folder, over))
            if is_tidied:
                tidier.start()
            timed.measure(site.client.address, 8)
            over.set()
            if is_tidied:
                tidier.join()
        longest.append(sorted(timed.latencies)[-3:])
    said = "; ".join(", ".join(f"{it / 1e6:.0f}" for it in three) for three in longest)
    yield f"the three longest waits of a write in ms, without and with tidying, twice: {said}"


def keep_tidying(folder: Path, over: threading.Event) -> None:
    with tidying(folder) as tidy:
        days = 10.0
        while not over.is_set():
            tidy(days)
            days += 1


def without_history(server: Server, folder: Path) -> Server:
    for arguments in (["add", "unrecorded", "--key1", DEVELOPMENT_KEY], ["history", "unrecorded", "0"]):
        command = [sys.executable, "manage.py", "account", "--data", str(folder / "tablero"), *arguments]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    endpoint = server.endpoint.rpartition("/")[0] + "/unrecorded"
    return Server("unrecorded", server.version, endpoint, server.pid)


def compare(contenders: list[Contender], workload: Workload, options: argparse.Namespace) -> str:
    runs: list[list[Measurement]] = [[], []]
    for number in range(options.pairs):
        for which in (0, 1) if number % 2 else (1, 0):
            runs[which].append(
                rounds.measure(contenders[which], workload, options.connections, options.seconds)
            )
    recorded, plain = runs

    def ratio(name: str) -> float:
        pairs = zip(recorded, plain, strict=True)
        return median(getattr(one, name) / getattr(other, name) for one, other in pairs)

    cpu = [median(run.cpu for run in several) for several in runs]
    limit = LIMITS.get(workload.name, SINGLE)
    return (
        f"| {workload.title} | {ratio('cpu'):.2f} (≤ {limit}) | {ratio('p99'):.2f} (≤ {P99}) "
        f"| {ratio('per_second'):.2f} | {cpu[0]:.0f} {cpu[1]:.0f} |"
    )


if __name__ == "__main__":
    sys.exit(main())
