"""What the history costs: `python3 -m tests.bench.history`, some minutes.

Two accounts on one server, one of which records its changes, take turns with the same writes. Then it is measured what
a recorded change takes on disk, before and after its segment was packed.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from statistics import median

from tests.bench import rounds, servers
from tests.bench.__main__ import scratch_folder
from tests.bench.entities import Dataset
from tests.bench.load import Measurement
from tests.bench.rounds import Contender, progress
from tests.bench.servers import DEVELOPMENT_KEY, ROOT, Server
from tests.bench.workloads import WORKLOADS, Workload

WRITES = ("insert", "upsert", "replace", "merge", "delete", "batch")
LIMITS = {"batch": 1.2}
SINGLE, P99 = 1.15, 1.25


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests.bench.history", description=__doc__)
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
    return 0


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
