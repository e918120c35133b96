"""What copies between services cost: `python3 -m tests.bench.copies`, three minutes.

A table of entities of 1 KB is copied from Azurite, or with `--from tablero` from another server, to a server with
durable defaults, beside what the source alone gives to the Python SDK and to the client of copies, and what the target
alone takes in batches on several connections. Another copy is interrupted in its middle, where the command and the
whole server with its PostgreSQL are killed, and finished by a server that is started on the same data. Then it is
copied back.

`--small --size 1000000` does the same with entities of two short properties, which are written to Azurite's own file
before it starts: a million could not be sent to it, nor copied back, in reasonable time. They are copied from the file
too.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableClient as SdkClient

from storage.domain.entities.members import read_properties
from storage.domain.values.edm import EdmValue
from storage.domain.values.kinds import AccountKind
from storage.remote.addresses import allow_all
from storage.remote.client import RemoteRefused, TableClient
from storage.remote.endpoints import read_endpoint
from tests.bench import azurite_files, processes, rounds, servers
from tests.bench.azurite_files import SmallDataset
from tests.bench.entities import Dataset
from tests.bench.rounds import WrongAnswerError, progress
from tests.bench.servers import ACCOUNT, ROOT, Server, scratch_folder


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests.bench.copies", description=__doc__)
    parser.add_argument("--size", type=int, default=100_000, help="entities of the table, default 100000")
    parser.add_argument("--from", dest="source", choices=("azurite", "tablero"), default="azurite")
    parser.add_argument("--small", action="store_true", help="small entities, written to Azurite's file")
    options = parser.parse_args(arguments)
    if options.small and options.source != "azurite":
        parser.error("--small is for Azurite")
    data = SmallDataset(options.size) if options.small else Dataset(options.size)
    with scratch_folder() as folder, source_of(folder, options.source, data) as (source, table):
        report(source, table, subfolder(folder, "target"), data)
        if options.small:
            path = folder / servers.AZURITE_FOLDER
            with servers.tablero(folder / "target") as target:
                there = (str(path), ACCOUNT, table, f"{table}=file")
                copy(
                    source, target, folder / "target", data.size, "copied from the file and compared", *there
                )
                check(target, "file", data)
    return 0


@contextmanager
def source_of(folder: Path, name: str, data: Dataset) -> Iterator[tuple[Server, str]]:
    """Yield a server and its table with these entities."""
    with ExitStack() as stack:
        if name == "tablero":
            server = stack.enter_context(servers.tablero(subfolder(folder, "source")))
        else:
            program = servers.find_azurite()
            if isinstance(data, SmallDataset):
                azurite_files.make(folder, program, data)
            server = stack.enter_context(servers.azurite(folder, program))
        if isinstance(data, SmallDataset):
            table = azurite_files.TABLE
        else:
            table = rounds.create(server)
            rounds.load(server, table, data)
        progress("loaded")
        yield server, table


def subfolder(folder: Path, name: str) -> Path:
    made = folder / name
    made.mkdir()
    made.chmod(0o711)
    return made


def report(source: Server, table: str, folder: Path, data: Dataset) -> None:
    """Print the table; ``folder`` is for the server that is copied to."""
    size = data.size
    sys.stdout.write("| | entities/s | CPU in µs an entity | seconds |\n|---|---|---|---|\n")
    readers = {"the Python SDK lists": list_by_sdk}
    if not isinstance(data, SmallDataset):
        readers["pages, one connection"] = list_pages
    for name, read in readers.items():
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
        if not isinstance(data, SmallDataset):
            again = "copied again at once: the last five minutes are read again"
            copy(source, target, folder, size, again, *there)
        kill(source, target, folder, table, data)
    job, rest = find_interrupted(folder, size)
    with servers.tablero(folder) as target:
        began, cpu = time.perf_counter(), target.cpu_seconds() + source.cpu_seconds()
        finish(folder, job, size)
        cpu = target.cpu_seconds() + source.cpu_seconds() - cpu
        write_row(f"killed in the middle: the other {rest:,}", rest, time.perf_counter() - began, cpu)
        for name in ("copied", "killed"):
            check(target, name, data)
        if isinstance(data, SmallDataset):
            return
        back = (ACCOUNT, text(source), "copied", f"copied={table}back")
        copy(source, target, folder, size, "copied back", *back)
        check(source, f"{table}back", data)


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
    return sum(map(len, pages(server, table)))


def pages(server: Server, table: str) -> Iterator[Sequence[Mapping[str, Any]]]:
    client = TableClient(read_endpoint(text(server)), allow_all, time.sleep)
    page = client.page(table)
    yield page.entities
    while page.next is not None:
        page = client.page(table, page.next)
        yield page.entities
    client.close()


def check(server: Server, table: str, data: Dataset) -> None:
    """Raise WrongAnswerError unless a table has exactly these entities."""
    number = 0
    for found in chain.from_iterable(pages(server, table)):
        keys = data.key(number)
        expected = json.loads(data.body(number, *keys))
        if (found["PartitionKey"], found["RowKey"]) != keys or properties(found) != properties(expected):
            raise WrongAnswerError(f"{server.name}: {table} has {found} instead of {keys}")
        number += 1
    if number != data.size:
        raise WrongAnswerError(f"{server.name}: {table} has {number:,} entities instead of {data.size:,}")
    progress(f"{table}: {number:,} entities are as they were")


def properties(members: Mapping[str, Any]) -> Mapping[str, EdmValue]:
    return read_properties(members, AccountKind.STORAGE)


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


def find_interrupted(folder: Path, size: int) -> tuple[str, int]:
    """Return the job that was killed, and how many entities it has left."""
    listed = manage(folder, "job", "list")
    job = str(max(map(int, re.findall(r"^(\d+)  account.copy-in", listed, re.MULTILINE))))
    [copied] = re.findall("inserted: ([0-9,]+)", manage(folder, "job", "show", job))
    return job, size - int(copied.replace(",", ""))


def finish(folder: Path, job: str, size: int) -> None:
    """Wait until the server has finished a job that was killed."""
    said = manage(folder, "job", "wait", job)
    if f"inserted: {size:,}" not in said:  # each once
        raise WrongAnswerError(said)


def manage(folder: Path, *arguments: str) -> str:
    line = [sys.executable, "manage.py", *arguments, "--data", str(folder / "tablero")]
    return subprocess.run(line, cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
