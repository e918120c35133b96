"""Cost of copies between services: `python3 -m tests.tools.bench.copies`, three minutes.

A table of entities of 1 KB is copied from Azurite, or with `--from tablero` from another server, to a server with
durable defaults. For comparison, the source alone is read by the Python SDK and by the client of copies, and the
target alone is written in batches on several connections. Another copy is interrupted in its middle, where the command
and the whole server with its PostgreSQL are killed, and finished by a server that is started on the same data. Then it
is copied back.

`--small --size 1000000` has so many entities of two short properties in ten tables, which are written to Azurite's own
file before it starts: a million could not be sent to it, nor copied back, in reasonable time. They are copied from the
file too.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from tests.tools.bench import azurite_files, processes, rounds, servers
from tests.tools.bench.azurite_files import SmallDataset
from tests.tools.bench.entities import Dataset
from tests.tools.bench.rounds import WrongAnswerError, progress
from tests.tools.bench.servers import ACCOUNT, ROOT, Server, scratch_folder


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests.tools.bench.copies", description=__doc__)
    parser.add_argument("--size", type=int, default=100_000, help="entities, default 100000")
    parser.add_argument("--from", dest="source", choices=("azurite", "tablero"), default="azurite")
    parser.add_argument("--small", action="store_true", help="small entities, written to Azurite's file")
    options = parser.parse_args(arguments)
    if options.small and options.source != "azurite":
        parser.error("--small is for Azurite")
    sys.stdout.write("| | entities/s | CPU in µs an entity | seconds |\n|---|---|---|---|\n")
    with scratch_folder() as folder:
        if options.small:
            report_small(folder, SmallDataset(options.size // len(azurite_files.TABLES)))
        else:
            report(folder, options.source, Dataset(options.size))
    return 0


def report(folder: Path, name: str, data: Dataset) -> None:
    """Copy one table from a server and back."""
    target_folder = subfolder(folder, "target")
    with source_of(folder, name) as source:
        table = rounds.create(source)
        rounds.load(source, table, data)
        progress("loaded")
        tables = [table]
        measure_source(source, tables, data, "the Python SDK lists", list_by_sdk)
        measure_source(source, tables, data, "pages, one connection", list_pages)
        with servers.tablero(target_folder) as target:
            measure_target(target, data)
            one_way = (text(source), ACCOUNT, tables, "copied")
            copy(source, target, target_folder, data, "copied and compared", *one_way)
            again = "copied again at once: the last five minutes are read again"
            copy(source, target, target_folder, data, again, *one_way)
            kill(source, target, target_folder, tables, data)
        with finishing(source, target_folder, tables, data) as target:
            check(target, [f"copied{table}"], data)
            back = (ACCOUNT, text(source), [f"copied{table}"], "back")
            copy(source, target, target_folder, data, "copied back", *back)
            check(source, [f"backcopied{table}"], data)


def report_small(folder: Path, data: SmallDataset) -> None:
    """Copy the tables of a file that was written for Azurite, through Azurite and without it."""
    target_folder, program, tables = subfolder(folder, "target"), servers.find_azurite(), azurite_files.TABLES
    path = azurite_files.make(folder, program, data)
    progress(f"wrote {path.stat().st_size:,} bytes")
    with servers.azurite(folder, program) as source:
        with servers.tablero(target_folder) as target:
            kill(source, target, target_folder, tables, data)
        with finishing(source, target_folder, tables, data) as target:
            offline = (str(path), ACCOUNT, tables, "file")
            copy(source, target, target_folder, data, "copied from the file and compared", *offline)
            check(target, [f"file{table}" for table in tables], data)
            measure_target(target, data)
        measure_source(source, tables, data, "the Python SDK lists", list_by_sdk)


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


def measure_source(
    source: Server, tables: Sequence[str], data: Dataset, name: str, read: Callable[[Server, str], int]
) -> None:
    size = data.size * len(tables)
    began, cpu = time.perf_counter(), time.process_time() + source.cpu_seconds()
    if sum(read(source, table) for table in tables) != size:
        raise WrongAnswerError(f"{name}: not {size:,} entities")
    cpu = time.process_time() + source.cpu_seconds() - cpu
    write_row(f"{source.name} alone: {name}", size, time.perf_counter() - began, cpu)


def measure_target(target: Server, data: Dataset) -> None:
    alone = rounds.create(target)
    began, cpu = time.perf_counter(), target.cpu_seconds()
    rounds.load(target, alone, data)
    seconds, cpu = time.perf_counter() - began, target.cpu_seconds() - cpu
    write_row("the target alone: batches", data.size, seconds, cpu)
    rounds.drop(target, alone)


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


def check(server: Server, tables: Sequence[str], data: Dataset) -> None:
    """Raise WrongAnswerError unless each table has exactly these entities."""
    for table in tables:
        number = 0
        for entity in chain.from_iterable(pages(server, table)):
            keys = data.key(number)
            expected = json.loads(data.body(number, *keys))
            if (entity["PartitionKey"], entity["RowKey"]) != keys or properties(entity) != properties(
                expected
            ):
                raise WrongAnswerError(f"{server.name}: {table} has {entity} instead of {keys}")
            number += 1
        if number != data.size:
            raise WrongAnswerError(f"{server.name}: {table} has {number:,} entities, not {data.size:,}")
    progress(f"{', '.join(tables)}: each has its {data.size:,} entities")


def properties(members: Mapping[str, Any]) -> Mapping[str, EdmValue]:
    return read_properties(members, AccountKind.STORAGE)


def begin(
    folder: Path, source: str, target: str, tables: Sequence[str], prefix: str
) -> subprocess.Popen[str]:
    """Start a copy of tables, whose names get a prefix at the target."""
    line = ["manage.py", "copy", source, target, "--no-properties", "--data", str(folder / "tablero")]
    for table in tables:
        line += ["--table", table, "--rename", f"{table}={prefix}{table}"]
    return subprocess.Popen(
        [sys.executable, *line],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def copy(
    one: Server,
    other: Server,
    folder: Path,
    data: Dataset,
    name: str,
    source: str,
    target: str,
    tables: Sequence[str],
    prefix: str,
) -> None:
    """Run the command; the CPU of both servers and its own counts."""
    began, cpu = time.perf_counter(), one.cpu_seconds() + other.cpu_seconds() + sum(os.times()[2:4])
    process = begin(folder, source, target, tables, prefix)
    said, _ = process.communicate()
    seconds = time.perf_counter() - began
    cpu = one.cpu_seconds() + other.cpu_seconds() + sum(os.times()[2:4]) - cpu
    if process.returncode or said.count(f"{data.size:,} verified: equal") != len(tables):
        raise WrongAnswerError(said)
    write_row(name, data.size * len(tables), seconds, cpu)


def kill(source: Server, target: Server, folder: Path, tables: Sequence[str], data: Dataset) -> None:
    """Kill a copy and the whole server once about half of the entities are copied."""
    began, cpu = time.perf_counter(), target.cpu_seconds() + source.cpu_seconds()
    process = begin(folder, text(source), ACCOUNT, tables, "killed")
    client = TableClient(read_endpoint(text(target)), allow_all, time.sleep)
    table, number = tables[len(tables) // 2], 0 if len(tables) > 1 else data.size // 2
    middle = "PartitionKey eq '{}' and RowKey eq '{}'".format(*data.key(number))
    while process.poll() is None and not has_entity(client, f"killed{table}", middle):
        time.sleep(0.05)
    if process.returncode is not None:
        raise WrongAnswerError(process.communicate()[0])
    client.close()
    seconds, cpu = time.perf_counter() - began, target.cpu_seconds() + source.cpu_seconds() - cpu
    os.killpg(process.pid, signal.SIGKILL)
    assert target.pid is not None
    processes.signal_tree(target.pid, signal.SIGKILL)
    process.communicate()
    done = find_interrupted(folder)[1]
    write_row(f"copied until it was killed: {done:,}", done, seconds, cpu)


def has_entity(client: TableClient, table: str, filter_: str) -> bool:
    try:
        return bool(client.page(table, filter_=filter_).entities)
    except RemoteRefused:  # the table is not made yet
        return False


def find_interrupted(folder: Path) -> tuple[str, int]:
    """Return the last copy, and how many entities it has written."""
    listed = manage(folder, "job", "list")
    job = str(max(map(int, re.findall(r"^(\d+)  account.copy-in", listed, re.MULTILINE))))
    [written] = re.findall("inserted: ([0-9,]+)", manage(folder, "job", "show", job))
    return job, int(written.replace(",", ""))


@contextmanager
def finishing(source: Server, folder: Path, tables: Sequence[str], data: Dataset) -> Iterator[Server]:
    """Start the server again and wait until it has finished the job that was killed; yield it."""
    size = data.size * len(tables)
    job, written = find_interrupted(folder)
    with servers.tablero(folder) as target:
        began, cpu = time.perf_counter(), target.cpu_seconds() + source.cpu_seconds()
        said = manage(folder, "job", "wait", job)
        if f"inserted: {size:,}" not in said:  # each once
            raise WrongAnswerError(said)
        seconds, cpu = time.perf_counter() - began, target.cpu_seconds() + source.cpu_seconds() - cpu
        write_row(f"finished after that: the other {size - written:,}", size - written, seconds, cpu)
        check(target, [f"killed{table}" for table in tables], data)
        yield target


def manage(folder: Path, *arguments: str) -> str:
    line = [sys.executable, "manage.py", *arguments, "--data", str(folder / "tablero")]
    return subprocess.run(line, cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
