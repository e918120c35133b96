"""What it costs to count every request, and to accept a shared access signature instead of a key.

`python3 -m tests.bench.access` runs the product beside itself without the counting, in alternation. Throughput on a
busy machine varies by more than the cost, so the CPU time per request is compared too.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median

from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import generate_table_sas

from tests.bench import processes, report, rounds, servers
from tests.bench.__main__ import scratch_folder
from tests.bench.requests import Client
from tests.bench.rounds import Contender, Plan, progress
from tests.bench.workloads import WORKLOADS, Site, Workload

COMPARED = ("get", "insert")
CONNECTIONS = 8
BASE = "as it is, with a key"


class TokenClient(Client):
    """Sends a shared access signature for one table instead of signing."""

    def __init__(self, endpoint: str, key: str, table: str) -> None:
        super().__init__(endpoint, key)
        self._token = generate_table_sas(
            AzureNamedKeyCredential(self._account, key),
            table,
            permission="raud",
            expiry=datetime.now(UTC) + timedelta(hours=6),
        )

    def head(self, verb: str, path: str, **others: str) -> str:
        signed = super().head(verb, path, **others)
        line, *headers = signed.split("\r\n")
        method, target, version = line.split(" ")
        target += ("&" if "?" in target else "?") + self._token
        kept = [header for header in headers if not header.startswith("Authorization:")]
        return "\r\n".join([f"{method} {target} {version}", *kept])


@dataclass(frozen=True, slots=True)
class Way:
    """One way of serving the same requests."""

    title: str
    contender: Contender
    client: Callable[[Site], Client]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests.bench.access", description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run, default 2")
    parser.add_argument("--rounds", type=int, default=12, help="runs of each way, alternating, default 12")
    parser.add_argument("--size", type=int, default=10_000, help="entities in the table, default 10000")
    options = parser.parse_args(arguments)
    found: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    with scratch_folder() as folder, ExitStack() as stack:
        # each in a server of its own, so that all have the same work behind them
        ways = []
        for title, counted, client in WAYS:
            place = folder / str(len(ways))
            place.mkdir(mode=0o711)
            server = stack.enter_context(servers.tablero(place, counted=counted))
            ways.append(Way(title, rounds.enter(server, options.size, 1.0), client))
        plan = Plan(options.seconds, settle=False)
        for workload in (workload for workload in WORKLOADS if workload.name in COMPARED):
            for number in range(options.rounds):
                # in turns, so that none goes twice in a row and pays for what its own last run left to be done
                turn = number % len(ways)
                for way in ways[turn:] + ways[:turn]:
                    found[workload.name, way.title].append(measure(way, workload, plan))
            progress(workload.name)
    sys.stdout.write(write(found))
    return 0


def token_client(site: Site) -> Client:
    client = site.client
    return TokenClient(client.endpoint, servers.DEVELOPMENT_KEY, site.table)


WAYS = (
    (BASE, True, lambda site: site.client),
    ("without counting", False, lambda site: site.client),
    ("with a shared access signature", True, token_client),
)


def measure(way: Way, workload: Workload, plan: Plan) -> tuple[float, float]:
    """Requests per second, and microseconds of CPU time of the server's processes per request."""
    pid = way.contender.server.pid
    assert pid is not None
    with rounds.on_ground(way.contender, workload, plan) as site:
        site = Site(way.client(site), site.table, site.data)
        before = processes.cpu_seconds(pid)
        measured = rounds.run(way.contender, workload, site, CONNECTIONS, plan)
        used = processes.cpu_seconds(pid) - before
    if measured.errors:
        raise rounds.WrongAnswerError(f"{workload.name} {way.title}: {measured.errors}")
    return measured.per_second, used / measured.answers * 1e6


def write(found: dict[tuple[str, str], list[tuple[float, float]]]) -> str:
    rows = []
    for (workload, title), runs in found.items():
        base = found[workload, BASE]
        faster, cheaper = (
            [run[kind] / other[kind] for run, other in zip(runs, base, strict=True)] for kind in (0, 1)
        )
        rows.append(
            [
                f"{workload}, {title}",
                report.amount(median(run[0] for run in runs)),
                f"{median(faster):.3f}",
                f"{median(run[1] for run in runs):.1f}",
                f"{median(cheaper):.3f}",
            ]
        )
    heading = [f"at {CONNECTIONS} connections", "requests/s", "ratio", "CPU us/request", "ratio"]
    return "\n".join(report.table(heading, sorted(rows))) + "\n"


if __name__ == "__main__":
    sys.exit(main())
