"""Times of requests on a distributed table and on a local one, in turns on one server: docs/cluster.md.

TEST_CITUS=postgres://... python3 -m tests.tools.bench.cluster

TEST_CITUS names the coordinator of a cluster: see tests/cluster/real.
"""

import argparse
import os
import statistics
import sys

from tests.cluster.real.site import URL, Cluster, serving
from tests.tools.bench.entities import Dataset, Layout
from tests.tools.bench.load import Expected
from tests.tools.bench.requests import BATCH, entity_path, with_body
from tests.tools.bench.rounds import Contender, enter, measure
from tests.tools.bench.servers import Server, scratch_folder
from tests.tools.bench.workloads import BATCH_SIZE, WORKLOADS, Ground, Site, Workload

NAMES = ("get", "insert", "upsert", "merge", "delete", "batch", "batch-upsert", "page", "range")
KEY = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


def batch_upsert(site: Site, count: int) -> list[bytes]:
    """Build change sets of upserts in a small partition; every second entity exists."""
    return [upserts(site, number) for number in range(count)]


def upserts(site: Site, number: int) -> bytes:
    data = site.data
    first = number * 7 % (data.size // BATCH_SIZE) * BATCH_SIZE
    part = (
        "--changeset_7f3c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        "PUT {url} HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{body}\r\n"
    )
    parts = []
    for place in range(first, first + BATCH_SIZE):
        key = data.key(place) if place % 2 else (data.key(place)[0], f"{data.key(place)[1]}u{number}")
        url = site.client.endpoint + entity_path(site.table, *key)
        parts.append(part.format(url=url, body=data.body(place, *key)))
    text = (
        "--batch_7f3c\r\nContent-Type: multipart/mixed; boundary=changeset_7f3c\r\n\r\n"
        f"{''.join(parts)}--changeset_7f3c--\r\n--batch_7f3c--\r\n"
    )
    return with_body(site.client.head("POST", "/$batch", content=BATCH), text)


BATCH_UPSERT = Workload(
    "batch-upsert",
    f"batch of {BATCH_SIZE} upserts",
    Ground.SCRATCH,
    batch_upsert,
    lambda data: Expected(b"202", b"HTTP/1.1 204", BATCH_SIZE),
    700,
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests.tools.bench.cluster", description=__doc__)
    parser.add_argument("--workloads", default=",".join(NAMES))
    parser.add_argument("--connections", default="1,8")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=int, default=10_000, help="entities of a table")
    options = parser.parse_args()
    cluster = Cluster(os.environ[URL])
    with (
        scratch_folder() as folder,
        cluster.database() as database,
        serving(cluster, database, folder / "data") as live,
    ):
        sides = []
        for name, distributes in (("local", "off"), ("spread", "on")):
            live.change_accounts("add", name, "--key1", KEY)
            live.change_accounts("distributes", name, distributes)
            server = Server(name, "", f"{live.url}/{name}", live.pid, KEY)
            sides.append(enter(server, Dataset(options.size, Layout.MANY)))
        for node in cluster.nodes:
            node.execute("VACUUM ANALYZE", database)
        known = {it.name: it for it in (*WORKLOADS, BATCH_UPSERT)}
        for name in options.workloads.split(","):
            for connections in map(int, options.connections.split(",")):
                report(known[name], connections, sides, options)
    return 0


def report(workload: Workload, connections: int, sides: list[Contender], options: argparse.Namespace) -> None:
    rows = [
        [measure(it, workload, connections, options.seconds) for it in sides] for _ in range(options.rounds)
    ]
    errors = [it.errors for row in rows for it in row if it.errors]
    local, spread = (statistics.median(row[side].p50 for row in rows) for side in (0, 1))
    ratio = statistics.median(row[1].p50 / row[0].p50 for row in rows)
    cpu = statistics.median(row[1].cpu / row[0].cpu for row in rows)
    print(
        f"{workload.title:34} c{connections}  local {local:8.2f} ms  distributed {spread:8.2f} ms"
        f"  ratio {ratio:5.2f}  of the server's CPU {cpu:5.2f}  {errors or ''}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
