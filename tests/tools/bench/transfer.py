"""Cost of imports and exports: `python3 -m tests.tools.bench.transfer`, two minutes.

A table of entities of 1 KB is exported by the command, and each file imported into a table of its own. For comparison,
the Python SDK sends change sets of a hundred; and gets are timed while an import runs. The server has durable
defaults. The time of a command is that of its whole process.
"""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableClient

from tests.tools.bench import rounds, servers
from tests.tools.bench.entities import Dataset
from tests.tools.bench.load import Measurement
from tests.tools.bench.rounds import progress
from tests.tools.bench.servers import ROOT, Server, scratch_folder
from tests.tools.bench.workloads import BATCH_SIZE, WORKLOADS

ACCOUNT = "devstoreaccount1"
FORMATS = ("csv", "typed.csv", "json.gz", "ndjson", "parquet")
GET = next(it for it in WORKLOADS if it.name == "get")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests.tools.bench.transfer", description=__doc__)
    parser.add_argument("--size", type=int, default=50_000, help="entities of the table, default 50000")
    options = parser.parse_args(arguments)
    with scratch_folder() as folder, servers.tablero(folder) as server:
        report(server, folder / "tablero", folder, options.size)
    return 0


def report(
    server: Server, data: Path, folder: Path, size: int, seconds: float = 3, formats: Sequence[str] = FORMATS
) -> None:
    """Print the tables; ``data``: the data folder of the server, ``folder`` takes the files."""
    contender = rounds.enter(server, Dataset(size))
    table = contender.site.table
    progress("loaded")
    sys.stdout.write("| | entities/s | CPU in µs an entity | memory in MiB |\n|---|---|---|---|\n")
    sdk(server, table, min(size, 5_000))
    made = []
    for format_ in formats:
        if format_ == "parquet" and find_spec("pyarrow") is None:
            continue
        file = folder / f"entities.{format_}"
        command(
            server, f"export, {format_}", size, "export", f"{ACCOUNT}/{table}", str(file), "--data", str(data)
        )
        made.append(f"from{format_.replace('.', '')}")
        target = f"{ACCOUNT}/{made[-1]}"
        options = ("--create", "--rejects", str(folder / "rejects"), "--data", str(data))
        command(server, f"import, {format_}", size, "import", target, str(file), *options)
    quiet = rounds.measure(contender, GET, 1, seconds)
    busy = during_import(contender, folder / "entities.ndjson", data, seconds)
    sys.stdout.write("\n| a get | p50 in ms | p99 in ms |\n|---|---|---|\n")
    for name, measured in (("alone", quiet), ("during an import", busy)):
        sys.stdout.write(f"| {name} | {measured.p50:.2f} | {measured.p99:.2f} |\n")
    for name in (table, "during", *made):
        rounds.drop(server, name)


def write_row(name: str, number: int, seconds: float, cpu: float, memory: str = "") -> None:
    sys.stdout.write(f"| {name} | {number / seconds:,.0f} | {cpu / number * 1e6:.0f} | {memory} |\n")
    sys.stdout.flush()


def sdk(server: Server, source: str, number: int) -> None:
    """Insert entities by the Python SDK, one client and one thread; both sides' CPU counts."""
    credential = AzureNamedKeyCredential(ACCOUNT, server.key)
    with (
        TableClient(server.endpoint, source, credential=credential) as read,
        TableClient(server.endpoint, "fromsdk", credential=credential) as client,
    ):
        client.create_table()
        entities = read.list_entities(results_per_page=1000)
        batches = [list(it) for it in batched(entities, number)]
        began, cpu = time.perf_counter(), time.process_time() + server.cpu_seconds()
        for several in batches:
            client.submit_transaction([("create", entity) for entity in several])
        cpu = time.process_time() + server.cpu_seconds() - cpu
        write_row("change sets of the Python SDK", number, time.perf_counter() - began, cpu)
        client.delete_table()


def batched(entities: Iterator[object], number: int) -> Iterator[list[object]]:
    several: list[object] = []
    for _, entity in zip(range(number), entities, strict=False):
        several.append(entity)
        if len(several) == BATCH_SIZE:
            yield several
            several = []


def command(server: Server, name: str, number: int, *arguments: str) -> None:
    """Run a command, whose own CPU counts too."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began, cpu = time.perf_counter(), server.cpu_seconds()
    done = subprocess.run([sys.executable, "manage.py", *arguments], cwd=ROOT, capture_output=True, text=True)
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode or f"{number:,} entities" not in done.stdout:
        raise rounds.WrongAnswerError(done.stdout + done.stderr)
    cpu = server.cpu_seconds() - cpu + after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    write_row(name, number, seconds, cpu, f"{after.ru_maxrss / 1024:.0f}")  # the most of all so far


def during_import(contender: rounds.Contender, file: Path, data: Path, seconds: float) -> Measurement:
    line = [
        sys.executable,
        "manage.py",
        "import",
        f"{ACCOUNT}/during",
        str(file),
        "--create",
        "--data",
        str(data),
    ]
    line += ["--rejects", str(file.with_suffix(".rejects"))]
    with subprocess.Popen(line, cwd=ROOT, stdout=subprocess.DEVNULL) as running:
        time.sleep(min(2.0, seconds))  # for its start
        measured = rounds.measure(contender, GET, 1, seconds)
        running.wait()
    return measured


if __name__ == "__main__":
    sys.exit(main())
