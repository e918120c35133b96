"""CPU time of operations, compared with the stored reference: `python3 -m tests.tools.bench.stages --check`.

Each operation is measured against a fixed piece of work, `calibration`, which alternates with it request by request,
so that the speed of the machine and the effects of other programs on its caches cancel out. Waiting is left out: for
an operation and the calibration the event loop's calls of the operating system for events do not count. The ratio of
the two, the median of many short slices, is compared with `reference.json`.

The effects that remain on a busy machine move all operations alike. So an operation is slower if it needs a tenth more
than the reference and than the median of all operations, or if that median itself has risen by more than a tenth; and
this must hold in each of three measurements in processes of their own.

Ratios depend on the version and build of Python and on the processor. Without a reference for these no verdict is
given.
"""

import asyncio
import ctypes
import gc
import json
import os
import selectors
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import thread_time_ns

from psycopg import AsyncConnection

from tests.tools.bench import calibration, machine, servers
from tests.tools.bench.entities import Dataset
from tests.tools.bench.in_process import Link, loaded_table, product
from tests.tools.bench.in_process import check as check_answer
from tests.tools.bench.load import Expected
from tests.tools.bench.processes import Use
from tests.tools.bench.report import BUSY, table
from tests.tools.bench.servers import ROOT, scratch_folder
from tests.tools.bench.workloads import WORKLOADS, Workload

REFERENCE = Path(__file__).with_name("reference.json")
OPERATIONS = ("get", "insert", "upsert", "replace", "merge", "delete", "batch", "page", "select")
SLICE = 8  # requests, and calibrations beside them
LONG = {"batch": 1, "page": 3, "select": 3}
"""One request of these is as much work as eight others; so many calibrations beside it wait, for caches as cold."""
ROUNDS = 25
SIZE = 2_000
LIMIT = 1.1
ATTEMPTS = 3
PROCESSES = 7
"""Measurements of which a reference is the median; they differ by how their memory happens to lie."""

Ratios = dict[str, float]
"""CPU time of a slice of an operation by that of the calibrations beside it."""


def check() -> int:
    """Print the change of each operation since the reference; 1 if one got slower."""
    known = stored().get(key())
    attempts: list[Ratios] = []
    while len(attempts) < ATTEMPTS:
        attempts.append(measure_apart())
        if known is None or not slower(attempts[-1], known["ratios"]):
            break
    sys.stdout.write("\n".join([*table_of(attempts, known["ratios"] if known else {}), ""]))
    if known is None:
        sys.stdout.write(f"Nothing was judged: {REFERENCE.name} has no entry for {key()}.\n")
        return 0
    result = set.intersection(*({*slower(ratios, known["ratios"])} for ratios in attempts))
    for name in sorted(result):
        sys.stdout.write(f"slower by more than {LIMIT - 1:.0%}: {name}, since {known['commit']}\n")
    if not result:
        sys.stdout.write("Nothing got slower.\n")
    return 1 if result else 0


def save() -> int:
    """Renew the entry of this Python and processor."""
    before = Use.now()
    attempts = [measure_apart() for _ in range(PROCESSES)]
    others = Use.now().others_since(before)
    ratios = {name: round(median(each[name] for each in attempts), 4) for name in OPERATIONS}
    entries = {**stored(), key(): {"commit": servers.commit(), "ratios": ratios}}
    REFERENCE.write_text(json.dumps(entries, indent=1, sort_keys=True) + "\n")
    sys.stdout.write(
        "\n".join([*table_of(attempts, ratios), f"{REFERENCE.name} has the medians for {key()}.", ""])
    )
    if others > BUSY:
        sys.stdout.write(f"Other programs used {others:.2f} cores: do it again on a quiet machine.\n")
    return 0


def slower(ratios: Ratios, known: Ratios) -> list[str]:
    """Return the operations that need a tenth more; "all operations" if their median does."""
    changes = {name: ratios[name] / before for name, before in known.items()}
    common = median(changes.values())
    if common > LIMIT:
        return ["all operations"]
    return [name for name, change in changes.items() if change > LIMIT * max(1.0, common)]


def key() -> str:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"Python {version} {'with' if machine.has_pgo() else 'without'} PGO on {machine.processor()}"


def stored() -> dict[str, dict]:
    return json.loads(REFERENCE.read_text()) if REFERENCE.exists() else {}


def table_of(attempts: list[Ratios], known: Ratios) -> list[str]:
    rows = [
        [name, *(f"{value:.3f}" for value in (known.get(name), *(each[name] for each in attempts)) if value)]
        for name in OPERATIONS
    ]
    numbers = [f"measurement {number + 1}" for number in range(len(attempts))]
    return table(["CPU time by the calibration", *(["reference"] if known else []), *numbers], rows)


def measure_apart() -> Ratios:
    """Measure in a separate process, with a fixed seed of hashes."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.tools.bench.reference"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


class UncountedWaits(selectors.DefaultSelector):
    """Knows the CPU time of waiting for events: falling asleep and waking up depends on what else runs."""

    def __init__(self) -> None:
        super().__init__()
        self.spent = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        began = thread_time_ns()
        try:
            return super().select(timeout)
        finally:
            self.spent += thread_time_ns() - began


@dataclass(slots=True)
class Subject:
    """An operation, its requests still to be sent, and the ratio of each slice so far."""

    workload: Workload
    requests: list[bytes]
    expected: Expected
    ratios: list[float] = field(default_factory=list)

    @property
    def count(self) -> int:
        return 1 if self.workload.name in LONG else SLICE

    @property
    def waits(self) -> int:
        return LONG.get(self.workload.name, 1)

    def next_requests(self, count: int) -> list[bytes]:
        taken = self.requests[:count]
        del self.requests[:count]
        return taken


async def measure(selector: UncountedWaits, socket_folder: Path) -> Ratios:
    from console import asgi

    await asgi.service.startup()
    link = Link()
    subjects = [
        await prepare(link, workload)
        for name in OPERATIONS
        for workload in WORKLOADS
        if workload.name == name
    ]
    # as the server does when it has started
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    where = {"host": str(socket_folder), "user": "tablero", "dbname": "tablero"}
    async with await AsyncConnection.connect(**where, autocommit=True) as connection:
        for _ in range(ROUNDS):
            for subject in subjects:
                await measure_slice(link, connection, selector, subject)
    await asgi.service.shutdown()
    return {subject.workload.name: median(subject.ratios) for subject in subjects}


async def prepare(link: Link, workload: Workload) -> Subject:
    """Make and load a table of its own, with all statements prepared."""
    site = await loaded_table(link, f"reference{workload.name}", Dataset(SIZE))
    subject = Subject(workload, [], workload.expected(site.data))
    subject.requests = workload.build(site, (subject.count + 1) * ROUNDS + 10)
    await link.send_all(subject.next_requests(10), subject.expected)
    return subject


async def measure_slice(
    link: Link, connection: AsyncConnection, selector: UncountedWaits, subject: Subject
) -> None:
    """Alternate requests and calibrations, after one of each that brings their code into the caches."""
    first, *requests = subject.next_requests(subject.count + 1)
    check_answer(await link.send(first), subject.expected)
    await calibration.work(connection)
    spent, calibrated = 0, 0
    for request in requests:
        began = thread_time_ns() - selector.spent
        await link.send(request)
        answered = thread_time_ns() - selector.spent
        for number in range(SLICE // subject.count):
            await calibration.work(connection if number < subject.waits else None)
        spent += answered - began
        calibrated += thread_time_ns() - selector.spent - answered
    subject.ratios.append(spent / calibrated)


def keep_small_pages() -> None:
    """Do without transparent huge pages on Linux: chance grants them, and pages of entities need a quarter less."""
    disable = 41  # PR_SET_THP_DISABLE
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(disable, 1, 0, 0, 0)


def main() -> int:
    keep_small_pages()
    selector = UncountedWaits()
    with (
        scratch_folder() as folder,
        product(folder) as socket_folder,
        asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner,
    ):
        ratios = runner.run(measure(selector, socket_folder))
    sys.stdout.write(json.dumps(ratios))
    return 0


if __name__ == "__main__":
    sys.exit(main())
