"""Cost of size: `python3 -m tests.tools.bench.size`, half an hour with a new data folder.

Two servers take turns with the same requests: one with a table of 100,000 entities and hardly anything else, one with
10,000,000 entities in that table, 20,000 tables and 10,000 accounts. The ratio of each pair of runs cancels what other
programs do to both; the report has the medians.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count, cycle
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from urllib.parse import quote

import requests

from storage.server.data_folder import DataFolder
from tests.seeds import SHARED, seeded
from tests.tools.bench import console, processes, raw, report, rounds, servers
from tests.tools.bench.filling import ACCOUNT, PER_OWNER, PER_PARTITION, TABLE, Entities
from tests.tools.bench.load import Expected, Run
from tests.tools.bench.requests import JSON, Client, entity_path, with_body, without_body
from tests.tools.bench.rounds import progress
from tests.tools.bench.servers import ROOT, Server, scratch_folder

PAGE = 100
GOAL = 1.3
REQUESTS = 2000
"""Different requests of a run that may repeat them."""
fresh = count(int(time.time() * 1000) % 10**10)
"""Numbers that no entity and no table has, also in a folder that is used again."""


@dataclass(frozen=True, slots=True)
class Scale:
    name: str
    entities: int
    tables: int
    accounts: int

    @property
    def title(self) -> str:
        return f"{self.entities:,} entities, {self.tables:,} tables, {self.accounts:,} accounts"


@dataclass(frozen=True, slots=True)
class Side:
    """A running server of some scale."""

    scale: Scale
    folder: Path
    server: Server
    session: requests.Session
    started: float
    """Seconds until the server was ready."""

    @property
    def entities(self) -> Entities:
        return Entities(self.scale.entities)


@dataclass(frozen=True, slots=True)
class Work:
    """Requests to the Table service and the expected answers."""

    title: str
    build: Callable[[Client, Entities, int], list[bytes]]
    expected: Expected
    connections: int = 1
    most: int = 0  # how many requests there are if none may repeat


@dataclass(frozen=True, slots=True)
class Pair:
    """Results of the small and the large side in one turn each: milliseconds, and CPU in microseconds."""

    times: tuple[float, float]
    cpu: tuple[float, float]


Measure = Callable[[Side], tuple[float, float]]


def numbers(entities: Entities, how_many: int) -> list[int]:
    source = Random(how_many)
    return [source.randrange(entities.size) for _ in range(how_many)]


def get(client: Client, entities: Entities, how_many: int) -> list[bytes]:
    return [
        without_body(client.head("GET", entity_path(TABLE, *entities.key(number))))
        for number in numbers(entities, how_many)
    ]


def insert(client: Client, entities: Entities, how_many: int, *, hot: bool = False) -> list[bytes]:
    """Entities anywhere in the order of keys; or all in one partition, each after the one before."""
    head = client.head("POST", f"/{TABLE}", content=JSON, extra="Prefer: return-no-content\r\n")
    made = []
    for number in numbers(entities, how_many):
        new = next(fresh)
        partition, row = ("q", f"r{new:012}") if hot else entities.key(number)
        made.append(with_body(head, entities.new(new, partition, f"{row}n{new}")))
    return made


def insert_hot(client: Client, entities: Entities, how_many: int) -> list[bytes]:
    return insert(client, entities, how_many, hot=True)


def query(options: Callable[[Entities, int], str]) -> Callable[[Client, Entities, int], list[bytes]]:
    def build(client: Client, entities: Entities, how_many: int) -> list[bytes]:
        return [
            without_body(client.head("GET", f"/{TABLE}()", options=options(entities, number)))
            for number in numbers(entities, how_many)
        ]

    return build


def page(entities: Entities, number: int) -> str:
    first = min(number, entities.size - PAGE) // PER_PARTITION * PER_PARTITION
    partition, row = entities.key(first + number % (PER_PARTITION - PAGE))
    return f"$filter=PartitionKey eq '{partition}' and RowKey ge '{row}'&$top={PAGE}"


def equality(entities: Entities, number: int) -> str:
    return f"$filter=Owner eq '{entities.owner(number)}'"


def indexed_range(entities: Entities, number: int) -> str:
    least = number % (entities.size - PER_OWNER)
    return f"$filter=Score ge {least}.0 and Score lt {least + PER_OWNER}.0"


def create_tables(client: Client, entities: Entities, how_many: int) -> list[bytes]:
    head = client.head("POST", "/Tables", content=JSON, extra="Prefer: return-no-content\r\n")
    return [with_body(head, f'{{"TableName":"new{next(fresh)}"}}') for _ in range(how_many)]


def list_tables(client: Client, entities: Entities, how_many: int) -> list[bytes]:
    return [without_body(client.head("GET", "/Tables", options="$top=5"))] * how_many


def find_tables(client: Client, entities: Entities, how_many: int) -> list[bytes]:
    wanted = f"$filter=TableName ge '{TABLE}' and TableName lt '{TABLE}~'"
    return [without_body(client.head("GET", "/Tables", options=wanted))] * how_many


ONE = Expected(b"200", b"{", 1)
NO_CONTENT = Expected(b"204")
INSERTS_PER_SECOND = 8_000
TABLES_PER_SECOND = 200
WORK = (
    Work("get", get, ONE),
    Work("get, 8 connections", get, ONE, 8),
    Work("insert", insert, NO_CONTENT, 1, INSERTS_PER_SECOND),
    Work("insert, 8 connections", insert, NO_CONTENT, 8, INSERTS_PER_SECOND),
    Work("insert into one partition, 8 connections", insert_hot, NO_CONTENT, 8, INSERTS_PER_SECOND),
    Work(f"page of {PAGE}", query(page), Expected(b"200", b"{", PAGE + 1)),
    Work("equality filter", query(equality), Expected(b"200", b"{", PER_OWNER + 1)),
    Work("range of an indexed property", query(indexed_range), Expected(b"200", b"{", PER_OWNER + 1)),
    Work("create a table", create_tables, NO_CONTENT, 1, TABLES_PER_SECOND),
    Work("list five tables", list_tables, Expected(b"200", b'"TableName"', 5)),
    Work("find a table by a range of names", find_tables, Expected(b"200", b'"TableName"', 1)),
)


def pages(entities: Entities) -> Iterator[tuple[str, str]]:
    account = f"/ui/a/{ACCOUNT}/"
    table = f"{account}t/{TABLE}/"
    number = entities.size // 3
    partition, row = entities.key(number)
    point = quote(f"PartitionKey eq '{partition}' and RowKey eq '{row}'")
    yield "home", "/ui/"
    yield "overview of an account", f"{account}overview/"
    yield "tables", account
    yield "sizes of a page of tables", f"{account}tables/sizes/"
    yield "tables, those with a text", f"{account}?q={TABLE}"
    yield "tables by entities", f"{account}?sort=-entities"
    yield "palette", f"/ui/palette/?q={TABLE}&in={ACCOUNT}"
    yield "grid, the first page", table
    yield "grid, a point", f"{table}?f={point}"
    owner = quote(f"Owner eq '{entities.owner(number)}'")
    scores = quote(f"Score ge {number}.0 and Score lt {number + PER_OWNER}.0")
    yield "grid, an equality", f"{table}?f={owner}"
    yield "grid, a range of an indexed property", f"{table}?f={scores}"
    yield "entity", f"{table}entity/?pk={partition}&rk={row}"
    yield "schema", f"{table}schema/"
    yield "settings of a table", f"{table}settings/"
    yield "activity", f"{account}activity/"


def main(arguments: list[str] | None = None) -> int:
    options = read(arguments)
    small = Scale("small", min(100_000, options.entities), 10, 3)
    large = Scale("large", options.entities, options.tables, options.accounts)
    with ExitStack() as stack:
        folder = options.data or stack.enter_context(scratch_folder())
        for scale in (small, large):
            fill(folder / scale.name, scale)
        sides = [enter(folder / scale.name, scale, stack) for scale in (small, large)]
        check_filling(sides[0])
        for side in sides:
            warm_up(side)
        heading = ["", small.title, large.title, "ratio", "CPU"]
        lines = report.table(heading, list(rows(sides, options)))
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def read(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m tests.tools.bench.size", description=__doc__)
    parser.add_argument("--entities", type=int, default=10_000_000)
    parser.add_argument("--tables", type=int, default=20_000)
    parser.add_argument("--accounts", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=0.8, help="of each run, default 0.8")
    parser.add_argument("--pairs", type=int, default=5, help="runs of each kind per side, default 5")
    parser.add_argument(
        "--idle", type=float, default=30, help="seconds that an idle server is watched, default 30"
    )
    parser.add_argument("--only", default="", help="a part of the titles of what is measured")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="a folder to keep, used again if it is filled"
    )
    return parser.parse_args(arguments)


def fill(folder: Path, scale: Scale) -> None:
    if (folder / "filled").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o711, parents=True)
    progress(f"filling the {scale.name} side")
    if SHARED in os.environ:  # a run of the tests
        seeded(folder / "tablero")
    command = [sys.executable, "-m", "tests.tools.bench.filling", str(folder / "tablero")]
    subprocess.run(
        [*command, str(scale.entities), str(scale.tables), str(scale.accounts)], cwd=ROOT, check=True
    )
    (folder / "filled").touch()


def enter(folder: Path, scale: Scale, stack: ExitStack) -> Side:
    began = perf_counter()
    server = stack.enter_context(servers.tablero(folder))
    started = perf_counter() - began
    return Side(scale, folder, server, console.sign_in(server, folder, f"bench{next(fresh)}"), started)


def check_filling(side: Side) -> None:
    """Send an entity as it is: what the service stores must be what the filling has stored."""
    entities, number = side.entities, side.scale.entities // 2
    key = entities.key(number)
    client = side.server.client()
    head = client.head("PUT", entity_path(TABLE, *key), content=JSON, extra="If-Match: *\r\n")
    with raw.connect(DataFolder(side.folder / "tablero")) as database:
        text = f"SELECT props::text, anns, vals FROM {raw.relation_of(database, TABLE)} WHERE pk = %s AND rk = %s"
        before = database.execute(text, key).fetchone()  # type: ignore[arg-type]
        rounds.send(side.server, [with_body(head, entities.body(number))], NO_CONTENT)
        after = database.execute(text, key).fetchone()  # type: ignore[arg-type]
    if before is None or before != after:
        raise rounds.WrongAnswerError(f"filled with {before} instead of {after}")


FILES = """
SELECT pg_relation_filepath(oid) || CASE WHEN number > 0 THEN '.' || number ELSE '' END
FROM pg_class, generate_series(0, (pg_relation_size(oid) - 1) / (1 << 30)) AS number
WHERE oid = %(name)s::regclass OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = %(name)s::regclass)
"""
PIECE = 1 << 27


def warm_up(side: Side) -> None:
    """Have the files of the large table in the memory of the machine, as those of a table in use are."""
    with raw.connect(DataFolder(side.folder / "tablero")) as database:
        for (path,) in database.execute(FILES, {"name": raw.relation_of(database, TABLE)}).fetchall():
            for start in range(0, 1 << 30, PIECE):
                database.execute(
                    "SELECT octet_length(pg_read_binary_file(%s, %s, %s, true))", (path, start, PIECE)
                )


def rows(sides: Sequence[Side], options: argparse.Namespace) -> Iterator[list[str]]:
    if options.only in "start":
        times = [side.started for side in sides]
        yield ["start", *(f"{seconds:.1f} s" for seconds in times), f"{times[1] / times[0]:.2f}", ""]
    for work in WORK:
        if options.only in work.title:
            yield row(work.title, several(sides, options.pairs, partial(run, work=work, options=options)))
    for title, _ in pages(sides[0].entities):
        if options.only in title:
            for side in sides:
                visit(side, title, 2)  # the first ones find nothing ready
            yield row(title, several(sides, options.pairs, partial(visit, title=title, times=5)))
    if options.only in "an insertion into each of many tables":
        yield row(
            "an insertion into each of many tables, 8 connections", several(sides, options.pairs, spread)
        )
    if options.only in "idle":
        yield from idle(sides, options.idle)


def several(sides: Sequence[Side], pairs: int, measure: Measure) -> list[Pair]:
    return [turns(sides, number, measure) for number in range(pairs)]


def turns(sides: Sequence[Side], number: int, measure: Measure) -> Pair:
    """Measure both sides, in turn first; the other is stopped meanwhile."""
    results: dict[str, tuple[float, float]] = {}
    for side in sides if number % 2 == 0 else reversed(sides):
        with ExitStack() as stack:
            for other in sides:
                if other is not side:
                    stack.enter_context(other.server.stopped())
            results[side.scale.name] = measure(side)
    small, large = (results[side.scale.name] for side in sides)
    return Pair((small[0], large[0]), (small[1], large[1]))


def run(side: Side, work: Work, options: argparse.Namespace) -> tuple[float, float]:
    """Return the median response time and the CPU of a request."""
    how_many = int(work.most * 2 * options.seconds) or REQUESTS
    made = work.build(side.server.client(), side.entities, how_many)
    feed = iter(made) if work.most else cycle(made)
    timed = Run(feed, work.expected, seconds=options.seconds, warm_up=min(0.3, options.seconds))
    used = side.server.cpu_seconds()
    measured = timed.measure(side.server.client().address, work.connections)
    if measured.errors:
        raise rounds.WrongAnswerError(f"{work.title}, {side.scale.name}: {measured.errors}")
    return measured.p50, (side.server.cpu_seconds() - used) / max(1, measured.answers) * 1e6


def spread(side: Side) -> tuple[float, float]:
    """Insert an entity into each table of an account, or into a thousand of them."""
    scale = side.scale
    client, chosen = side.server.client(), Random(next(fresh))
    names = [f"table{number:05}" for number in range(scale.accounts, scale.tables)]
    made = []
    for name in chosen.choices(names, k=1000):
        head = client.head("POST", f"/{name}", content=JSON, extra="Prefer: return-no-content\r\n")
        made.append(with_body(head, side.entities.new(next(fresh), "p", f"r{next(fresh)}")))
    used = side.server.cpu_seconds()
    measured = Run(iter(made), NO_CONTENT, seconds=1e6, warm_up=0).measure(client.address, 8)
    if measured.errors:
        raise rounds.WrongAnswerError(f"{scale.name}: {measured.errors}")
    return measured.p50, (side.server.cpu_seconds() - used) / len(made) * 1e6


def visit(side: Side, title: str, times: int) -> tuple[float, float]:
    address = dict(pages(side.entities))[title]
    url = f"{side.session.base}{address}"  # type: ignore[attr-defined]
    taken, used = [], side.server.cpu_seconds()
    for _ in range(times):
        began = perf_counter()
        answer = side.session.get(url)
        taken.append((perf_counter() - began) * 1000)
        if answer.status_code != 200:
            raise rounds.WrongAnswerError(f"{title}, {side.scale.name}: {answer.status_code}")
    return median(taken), (side.server.cpu_seconds() - used) / times * 1e6


def row(title: str, pairs: Sequence[Pair]) -> list[str]:
    times, cpu = (median(ratio(getattr(pair, name)) for pair in pairs) for name in ("times", "cpu"))
    progress(f"{title}: {times:.2f}, CPU {cpu:.2f}")
    small, large = (median(pair.times[at] for pair in pairs) for at in (0, 1))
    mark = " *" if times > GOAL and cpu > GOAL else ""
    return [title, f"{small:.2f} ms", f"{large:.2f} ms", f"{times:.2f}{mark}", f"{cpu:.2f}"]


def ratio(of_both: tuple[float, float]) -> float:
    return of_both[1] / of_both[0] if of_both[0] else 1.0


def idle(sides: Sequence[Side], seconds: float) -> Iterator[list[str]]:
    """Yield the CPU of idle servers, and the memory of all their processes."""
    before = [side.server.cpu_seconds() for side in sides]
    time.sleep(seconds)
    used = [(side.server.cpu_seconds() - at) / seconds for side, at in zip(sides, before, strict=True)]
    yield ["CPU of an idle server", *(f"{share:.1%}" for share in used), "", ""]
    memory = [processes.memory(side.server.pid) / 2**20 for side in sides if side.server.pid]
    yield ["memory of its processes", *(f"{size:,.0f} MiB" for size in memory), "", ""]


if __name__ == "__main__":
    sys.exit(main())
