"""Cost of a running job for other requests, and time of its takeover: `python3 -m tests.tools.bench.jobs`.

Clients read single entities of a table at an even pace, first alone, then while a job edits all entities of another
one. Then the worker processes are killed, one after another, in the middle of the job, which has to end with each
entity edited once.
"""

import argparse
import asyncio
import http.client
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableSasPermissions, TableServiceClient, generate_table_sas

from tests.live_server import ACCOUNT, KEY, start_server

SECOND_ENTITIES = 1000  # those that are read
CLIENTS = 4
PAUSE = 0.02  # seconds between the reads of a client
API = "/ui/api/v1"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entities", type=int, default=200_000, help="that the job edits")
    parser.add_argument("--seconds", type=float, default=15, help="of reads, alone and beside the job")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)  # PostgreSQL runs as another user
        data = Path(folder) / "data"
        with start_server(data, "--workers", str(options.workers)) as server:
            return measure(server, options)


def measure(server, options) -> int:
    rows = (f"p{n // 1000},{n % 1000:04},{n},{'x' * 200}" for n in range(options.entities))
    file = server.data / "rows.csv"
    file.write_text("PartitionKey,RowKey,Number,Text\n" + "\n".join(rows) + "\n")
    server.manage("import", "--create", f"{ACCOUNT}/edited", str(file))
    with TableServiceClient.from_connection_string(server.connection_string) as service:
        read = service.create_table("read")
        for start in range(0, SECOND_ENTITIES, 100):
            read.submit_transaction(
                [
                    ("upsert", {"PartitionKey": "p", "RowKey": f"{n}", "N": n})
                    for n in range(start, start + 100)
                ]
            )
    server.manage("user", "add", "ada", "--admin")
    api = Api(server, server.add_token("ada", "bench"))

    alone = asyncio.run(load(server, options.seconds))
    report("reads alone", alone)
    job = api("POST", f"accounts/{ACCOUNT}/tables/edited/bulk-edit", EDIT, Prefer="respond-async")["id"]
    began, before = time.monotonic(), 0
    beside = asyncio.run(load(server, options.seconds))
    result = api("GET", f"jobs/{job}")
    report("reads beside a job", beside)
    speed = (result["done"] - before) / (time.monotonic() - began)
    print(f"the job: {result['done']:,} entities, {speed:,.0f} a second, {result['status']}")
    ratio = quantile(beside, 0.99) / quantile(alone, 0.99)
    print(f"p99 beside the job / alone: {ratio:.2f}")
    gaps = kill_workers(server, api, job, options.workers)
    print("longest pause after kill -9 of a worker:", ", ".join(f"{gap:.1f} s" for gap in gaps))
    result = api.wait(job)
    print(f"the job: {result['status']}, {result['counts']}")
    is_exact = result["counts"].get("changed") == options.entities
    return 0 if is_exact and result["status"] == "done" else 1


EDIT = {"operations": [{"op": "set", "property": "Number", "expression": "Number + 1"}]}


class Api:
    def __init__(self, server, token):
        self.server, self.token = server, token

    def __call__(self, method, path, body=None, **headers):
        for _ in range(100):
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=10)
                headers = {
                    "Authorization": f"Bearer {self.token}",
                    "Content-Type": "application/json",
                    **headers,
                }
                connection.request(method, f"{API}/{path}", body and json.dumps(body), headers)
                answer = connection.getresponse()
                result = json.loads(answer.read())
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)  # the worker was killed
                continue
            if answer.status < 500:
                return result
            time.sleep(0.05)
        raise TimeoutError(path)

    def wait(self, job):
        while (found := self("GET", f"jobs/{job}"))["status"] in ("waiting", "running"):
            time.sleep(0.5)
        return found


def kill_workers(server, api, job, number):
    """Kill the worker processes one after another; return the longest pause of the job after each kill."""
    gaps = []
    for _ in range(number):
        children = [it for it in psutil.Process(server.pid).children() if it.status() != psutil.STATUS_ZOMBIE]
        workers = [it for it in children if any("worker" in part for part in it.cmdline())]
        if not workers:
            print("no worker process found among", [it.cmdline()[:4] for it in children], file=sys.stderr)
            return gaps
        os.kill(min(workers, key=lambda it: it.create_time()).pid, signal.SIGKILL)
        gaps.append(longest_pause(api, job, 6))
    return gaps


def longest_pause(api, job, seconds):
    until, last, known, longest = time.monotonic() + seconds, time.monotonic(), -1, 0.0
    while time.monotonic() < until:
        result = api("GET", f"jobs/{job}")
        if result["done"] != known:
            known, last = result["done"], time.monotonic()
        longest = max(longest, time.monotonic() - last)
        if result["status"] not in ("waiting", "running"):
            break
        time.sleep(0.1)
    return longest


async def load(server, seconds):
    """Return how long reads took, in milliseconds."""
    sas = generate_table_sas(
        AzureNamedKeyCredential(ACCOUNT, KEY),
        "read",
        permission=TableSasPermissions(read=True),
        expiry="2099-01-01",
    )
    took = []

    async def client(number):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        until, n = time.monotonic() + seconds, number
        while time.monotonic() < until:
            n = (n + 7) % SECOND_ENTITIES
            began = time.perf_counter()
            path = f"/{ACCOUNT}/read(PartitionKey='p',RowKey='{n}')?{sas}"
            headers = "Host: 127.0.0.1\r\nx-ms-version: 2019-02-02\r\nAccept: application/json\r\n\r\n"
            writer.write(f"GET {path} HTTP/1.1\r\n{headers}".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            assert b" 200 " in head.partition(b"\r\n")[0], head
            length = next(
                int(line.split(b":")[1])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length")
            )
            await reader.readexactly(length)
            took.append((time.perf_counter() - began) * 1000)
            await asyncio.sleep(PAUSE)
        writer.close()

    await asyncio.gather(*(client(number) for number in range(CLIENTS)))
    return took


def quantile(took, share):
    return statistics.quantiles(took, n=1000)[round(share * 1000) - 1]


def report(name, took):
    print(
        f"{name}: {len(took)} reads, p50 {quantile(took, 0.5):.1f} ms, p95 {quantile(took, 0.95):.1f} ms,"
        f" p99 {quantile(took, 0.99):.1f} ms",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
