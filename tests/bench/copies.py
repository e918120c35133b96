"""What copies between services cost: `python3 -m tests.bench.copies`, three minutes.

A table of entities of 1 KB is copied from Azurite, or with `--from tablero` from another server, to a server with
durable defaults, beside what the source alone gives to the Python SDK and to the client of copies, and what the target
alone takes in batches on several connections. Another copy is interrupted in its middle, where the command and the
whole server with its PostgreSQL are killed, and finished by a server that is started on the same data. Then it is
copied back.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableClient as SdkClient

from storage.remote.addresses import allow_all
from storage.remote.client import RemoteRefused, TableClient
from storage.remote.endpoints import read_endpoint
from tests.bench import processes, rounds, servers
from tests.bench.entities import Dataset
from tests.bench.rounds import WrongAnswerError, progress
from tests.bench.servers import ROOT, Server, scratch_folder

ACCOUNT = "devstoreaccount1"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests.bench.copies", description=__doc__)
    parser.add_argument("--size", type=int, default=100_000, help="entities of the table, default 100000")
    parser.add_argument("--from", dest="source", choices=("azurite", "tablero"), default="azurite")
    options = parser.parse_args(arguments)
    with scratch_folder() as folder, source_of(folder, options.source) as source:
        report(source, subfolder(folder, "target"), options.size)
    return 0


@contextmanager
def source_of(folder: Path, name: str) -> Iterator[Server]:
    if name == "azurite":
        with servers.azurite(folder, servers.find_azurite()) as server:
            yield server
    else:
        with servers.tablero(subfolder(folder, "source")) as server:
            yield server


def subfolder(folder: Path, name: str) -> Path:
    made = folder / name
    made.mkdir()
    made.chmod(0o711)
    return made


def report(source: Server, folder: Path, size: int) -> None:
    """Print the table; ``folder`` is for the server that is copied to."""
    data = Dataset(size)
    sys.stdout.write("| | entities/s | CPU in µs an entity | seconds |\n|---|---|---|---|\n")
    table = rounds.create(source)
    rounds.load(source, table, data)
    progress("loaded")
    for name, read in (("the Python SDK lists", list_by_sdk), ("pages, one connection", list_pages)):
        began, cpu = time.perf_counter(), time.process_time() + source.cpu_seconds()
        if read(source, table) != size:
            raise WrongAnswerError(f"{name}: not {size:,} entities")
        cpu = time.process_time() + source.cpu_seconds() - cpu
        write_row(f"{source.name} alone: {name}", size, time.perf_counter() - began, cpu)
    with servers.tablero(folder) as target:
        alone = rounds.create(target)
        began, cpu = time.perf_counter(), target.cpu_seconds()
        rounds.load(target, alone, data)
        write_row("the target alone: batches", size, time.perf_counter() - began, target.cpu_seconds() - cpu)
        rounds.drop(target, alone)
        there = (text(source), ACCOUNT, table, f"{table}=copied")
        copy(source, target, folder, size, "copied and compared", *there)
        copy(
            source, target, folder, size, "copied again at once: the last five minutes are read again", *there
        )
        kill(source, target, folder, table, data)
    with servers.tablero(folder) as target:
        began, cpu = time.perf_counter(), target.cpu_seconds() + source.cpu_seconds()
        rest = finish(folder, size)
        cpu = target.cpu_seconds() + source.cpu_seconds() - cpu
        write_row(f"killed in the middle: the other {rest:,}", rest, time.perf_counter() - began, cpu)
        if list_pages(target, "killed") != size:
            raise WrongAnswerError("entities were lost or doubled")
        back = (ACCOUNT, text(source), "copied", f"copied={table}back")
        copy(source, target, folder, size, "copied back", *back)
        if list_pages(source, f"{table}back") != size:
            raise WrongAnswerError("entities were lost on the way back")


def write_row(name: str, number: int, seconds: float, cpu: float) -> None:
    sys.stdout.write(f"| {name} | {number / seconds:,.0f} | {cpu / number * 1e6:.0f} | {seconds:.1f} |\n")
    sys.stdout.flush()


def text(server: Server) -> str:
    return f"AccountName={ACCOUNT};AccountKey={server.key};TableEndpoint={server.endpoint}"


def list_by_sdk(server: Server, table: str) -> int:
    credential = AzureNamedKeyCredential(ACCOUNT, server.key)
    with SdkClient(server.endpoint, table, credential=credential) as client:
        return sum(1 for _ in client.list_entities(results_per_page=1000))


def list_pages(server: Server, table: str) -> int:
    client = TableClient(read_endpoint(text(server)), allow_all, time.sleep)
    page = client.page(table)
    number = len(page.entities)
    while page.next is not None:
        page = client.page(table, page.next)
        number += len(page.entities)
    client.close()
    return number


def begin(folder: Path, source: str, target: str, table: str, rename: str) -> subprocess.Popen[str]:
    line = ["manage.py", "copy", source, target, "--table", table, "--rename", rename, "--no-properties"]
    return subprocess.Popen(
        [sys.executable, *line, "--data", str(folder / "tablero")],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def copy(one: Server, other: Server, folder: Path, size: int, name: str, *arguments: str) -> float:
    """Run the command; the CPU of both servers and its own counts."""
    began, cpu = time.perf_counter(), one.cpu_seconds() + other.cpu_seconds() + sum(os.times()[2:4])
    process = begin(folder, *arguments)
    said, _ = process.communicate()
    seconds = time.perf_counter() - began
    cpu = one.cpu_seconds() + other.cpu_seconds() + sum(os.times()[2:4]) - cpu
    if process.returncode or f"{size:,} verified: equal" not in said:
        raise WrongAnswerError(said)
    write_row(name, size, seconds, cpu)
    return seconds


def kill(source: Server, target: Server, folder: Path, table: str, data: Dataset) -> None:
    """Kill a copy and the whole server once half of the entities are copied."""
    process = begin(folder, text(source), ACCOUNT, table, f"{table}=killed")
    client = TableClient(read_endpoint(text(target)), allow_all, time.sleep)
    middle = "PartitionKey eq '{}' and RowKey eq '{}'".format(*data.key(data.size // 2))
    while process.poll() is None and not has_entity(client, middle):
        time.sleep(0.05)
    if process.returncode is not None:
        raise WrongAnswerError(process.communicate()[0])
    client.close()
    os.killpg(process.pid, signal.SIGKILL)
    assert target.pid is not None
    processes.signal_tree(target.pid, signal.SIGKILL)
    process.communicate()


def has_entity(client: TableClient, filter_: str) -> bool:
    try:
        return bool(client.page("killed", filter_=filter_).entities)
    except RemoteRefused:  # the table is not made yet
        return False


def finish(folder: Path, size: int) -> int:
    """Wait until the server has finished the job that was killed; return how many entities were left."""
    listed = manage(folder, "job", "list")
    number = str(max(map(int, re.findall(r"^(\d+)  account.copy-in", listed, re.MULTILINE))))
    before, said = (manage(folder, "job", verb, number) for verb in ("show", "wait"))
    if f"inserted: {size:,}" not in said:
        raise WrongAnswerError(said)
    [copied] = re.findall("inserted: ([0-9,]+)", before)
    return size - int(copied.replace(",", ""))


def manage(folder: Path, *arguments: str) -> str:
    line = [sys.executable, "manage.py", *arguments, "--data", str(folder / "tablero")]
    return subprocess.run(line, cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
