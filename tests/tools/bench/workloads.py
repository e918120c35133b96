"""The workloads: what each sends, what a right answer is, and the goals: ratios to Azurite that it must reach.

All of them work in both layouts. A page of 1,000 lies in one large partition (PartitionKey eq, RowKey ge), or runs
over ten small ones from the beginning of one on (PartitionKey ge): that is how a client reads through a table of
either kind. A server may end such a page early with a continuation token; the report then says so. A range of 100 keys
is a part of the large partition, or a whole small one. A filter within a partition finds the ten entities of an owner
in the large one, and in a small one the owner's only entity there.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from tests.tools.bench.entities import PER_CITY, PER_OWNER, Dataset, Layout, row_key
from tests.tools.bench.load import Expected
from tests.tools.bench.requests import (
    BATCH,
    JSON,
    NONE,
    Client,
    entity_path,
    insert_batch,
    with_body,
    without_body,
)

BATCH_SIZE = 100
PAGE_SIZE = 1000
RANGE_SIZE = 100
CYCLE = 4000
"""Different requests of a workload that may repeat them."""
CONNECTIONS = (1, 8, 32)
NO_CONTENT = Expected(b"204")


class Ground(Enum):
    """The table a workload runs on; made for the run and dropped after it, it begins as large as the loaded one."""

    STANDING = "the loaded table, only read"
    SCRATCH = "a table made for the run"
    DOOMED = "a table made for the run, with at least as many entities as the run may delete"
    NO_TABLES = "names of tables that the run may make; they are deleted after it"
    TABLES = "as many tables made for the run as it may delete"


@dataclass(frozen=True, slots=True)
class Site:
    """The target of requests: a table of one server, or how the names of several begin, and its data."""

    client: Client
    table: str
    data: Dataset
    first: int = 0
    """The number of requests that earlier runs may have sent to the table; writes continue from there."""


@dataclass(frozen=True, slots=True)
class Goal:
    """The factor by which to beat Azurite at a number of connections, in the median over all tables."""

    least: dict[int, float]
    is_relaxed: bool = False
    """Whether the goal is for the server with relaxed durability, like Azurite's, instead of the durable one."""
    figure: str = "per_second"
    """Throughput, or the median response time `p50`."""


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    title: str
    ground: Ground
    build: Callable[[Site, int], list[bytes]]
    expected: Callable[[Dataset], Expected]
    most: int | None = None
    """Requests per second to provide for when none may repeat; None when they may."""
    goals: tuple[Goal, ...] = ()

    @property
    def is_write(self) -> bool:
        return self.ground is not Ground.STANDING


def no_content(data: Dataset) -> Expected:
    return NO_CONTENT


def entities(count: Callable[[Dataset], int]) -> Callable[[Dataset], Expected]:
    """Expect a page of so many entities: each opens one brace, and so does the page; no value has any."""
    return lambda data: Expected(b"200", b"{", count(data) + 1)


def picks(site: Site, count: int) -> list[int]:
    source = random.Random(count + site.first)
    return [source.randrange(site.data.size) for _ in range(count)]


def get(site: Site, count: int) -> list[bytes]:
    return [
        without_body(site.client.head("GET", entity_path(site.table, *site.data.key(number))))
        for number in picks(site, count)
    ]


def insert(site: Site, count: int) -> list[bytes]:
    head = site.client.head("POST", f"/{site.table}", content=JSON, extra="Prefer: return-no-content\r\n")
    return [
        with_body(head, site.data.body(number, *site.data.new_key(number)))
        for number in range(site.first, site.first + count)
    ]


def upsert(site: Site, count: int) -> list[bytes]:
    """Build upserts, half of them of existing entities."""
    keys = [
        site.data.key(number) if number % 2 else site.data.new_key(number + site.first * site.data.size)
        for number in picks(site, count)
    ]
    return [put(site, key, number, extra="") for number, key in enumerate(keys)]


def replace(site: Site, count: int) -> list[bytes]:
    return [
        put(site, site.data.key(number), number + 1, extra="If-Match: *\r\n") for number in picks(site, count)
    ]


def put(site: Site, key: tuple[str, str], number: int, extra: str) -> bytes:
    head = site.client.head("PUT", entity_path(site.table, *key), content=JSON, extra=extra)
    return with_body(head, site.data.body(number, *key))


def merge(site: Site, count: int) -> list[bytes]:
    requests = []
    for number in picks(site, count):
        path = entity_path(site.table, *site.data.key(number))
        head = site.client.head("PATCH", path, content=JSON, extra="If-Match: *\r\n")
        requests.append(with_body(head, f'{{"Level":{number % 10},"Owner":"{site.data.owner(number + 1)}"}}'))
    return requests


def delete(site: Site, count: int) -> list[bytes]:
    numbers = list(range(site.first, min(site.first + count, site.data.size)))
    random.Random(count).shuffle(numbers)
    return [
        without_body(
            site.client.head(
                "DELETE", entity_path(site.table, *site.data.key(number)), extra="If-Match: *\r\n"
            )
        )
        for number in numbers
    ]


def batch(site: Site, count: int) -> list[bytes]:
    return [
        batch_request(site, [site.data.body(n, *batch_key(site.data, n)) for n in range(at, at + BATCH_SIZE)])
        for at in range(site.first * BATCH_SIZE, (site.first + count) * BATCH_SIZE, BATCH_SIZE)
    ]


def batch_key(data: Dataset, number: int) -> tuple[str, str]:
    """Return the key of a batch's entity: a new partition for each batch, or the end of the large partition."""
    small = data.layout is Layout.MANY
    return f"q{number // BATCH_SIZE:06}" if small else data.key(0)[0], row_key(data.size + number)


def batch_request(site: Site, entities: list[str]) -> bytes:
    head = site.client.head("POST", "/$batch", content=BATCH)
    return with_body(head, insert_batch(site.client.endpoint, site.table, entities))


def loading(site: Site, numbers: range) -> list[bytes]:
    """Batches that insert the entities of these numbers, which begin and end with a whole batch."""
    requests = []
    for start in range(numbers.start, numbers.stop, BATCH_SIZE):
        batch_of = range(start, start + BATCH_SIZE)
        requests.append(batch_request(site, [site.data.body(n, *site.data.key(n)) for n in batch_of]))
    return requests


def create_table(site: Site, count: int) -> list[bytes]:
    head = site.client.head("POST", "/Tables", content=JSON, extra="Prefer: return-no-content\r\n")
    return [with_body(head, f'{{"TableName":"{site.table}n{number}"}}') for number in range(count)]


def delete_table(site: Site, count: int) -> list[bytes]:
    paths = [f"/Tables('{site.table}n{number}')" for number in range(count)]
    return [without_body(site.client.head("DELETE", path)) for path in paths]


def query(options: Callable[[Dataset, int], str], accept: str = "") -> Callable[[Site, int], list[bytes]]:
    """Return a builder of requests for entities, with query options made from a random number."""

    def build(site: Site, count: int) -> list[bytes]:
        more = {"accept": accept} if accept else {}
        return [
            without_body(
                site.client.head("GET", f"/{site.table}()", options=options(site.data, number), **more)
            )
            for number in picks(site, count)
        ]

    return build


def stretch(data: Dataset, number: int, length: int) -> tuple[str, int]:
    """Return a filter for a partition from a row key on, and the first of so many consecutive numbers within it."""
    first = number // data.per_partition * data.per_partition
    start = first + number % (data.per_partition - length + 1)
    return f"PartitionKey eq '{data.key(start)[0]}' and RowKey ge '{row_key(start)}'", start


def page(data: Dataset, number: int) -> str:
    if data.layout is Layout.ONE:
        start, _ = stretch(data, number, PAGE_SIZE)
    else:
        start = f"PartitionKey ge '{data.key(number % (data.size - PAGE_SIZE + 1))[0]}'"
    return f"$filter={start}&$top={PAGE_SIZE}"


def select(data: Dataset, number: int) -> str:
    return f"{page(data, number)}&$select=Owner,Score"


def key_range(data: Dataset, number: int) -> str:
    text, start = stretch(data, number, RANGE_SIZE)
    return f"$filter={text} and RowKey lt '{row_key(start + RANGE_SIZE)}'"


def by_partition(data: Dataset, number: int) -> str:
    return f"$filter=PartitionKey eq '{data.key(number)[0]}' and Owner eq '{data.owner(number)}'"


def by_string(data: Dataset, number: int) -> str:
    return f"$filter=Owner eq '{data.owner(number)}'"


def by_three(data: Dataset, number: int) -> str:
    active = "true" if number % 2 else "false"
    return f"$filter=City eq '{data.city(number)}' and Active eq {active} and Level eq {number % 10}"


def by_number(data: Dataset, number: int) -> str:
    least = number % (data.size - PER_OWNER)
    return f"$filter=Score ge {least}.0 and Score lt {least + PER_OWNER}.0"


FASTEST = 16_000
"""Single requests per second that no server here exceeds."""
SINGLE_WRITES = (
    Goal({1: 0.8, 8: 1.8}),
    Goal({1: 1.1, 8: 1.5}, is_relaxed=True),
    Goal({1: 1.0, 8: 1.0}, is_relaxed=True, figure="p50"),
)
FASTEST_OF_TABLES = 10_000
"""Tables that no server here makes or deletes in a second."""
TABLES = (Goal({1: 0.8, 8: 1}), Goal({1: 1, 8: 1}, is_relaxed=True, figure="p50"))
PAGES = (Goal({1: 4, 8: 4}),)


def reading(
    name: str,
    title: str,
    build: Callable[[Site, int], list[bytes]],
    count: Callable[[Dataset], int],
    goals: tuple[Goal, ...] = (),
) -> Workload:
    return Workload(name, title, Ground.STANDING, build, entities(count), goals=goals)


FIRST_RANGE, LATER_RANGE = "filter-number", "filter-number-later"
"""The same range while the property has no index, and with the index that the server then makes by itself."""

WORKLOADS = [
    Workload(
        "get",
        "get",
        Ground.STANDING,
        get,
        lambda data: Expected(b"200", b"{", 1),
        goals=(Goal({1: 1.4, 8: 2.8}),),
    ),
    Workload("insert", "insert", Ground.SCRATCH, insert, no_content, FASTEST, SINGLE_WRITES),
    Workload("upsert", "upsert", Ground.SCRATCH, upsert, no_content, FASTEST, SINGLE_WRITES),
    Workload("replace", "replace", Ground.SCRATCH, replace, no_content, goals=SINGLE_WRITES),
    Workload("merge", "merge", Ground.SCRATCH, merge, no_content, goals=SINGLE_WRITES),
    Workload("delete", "delete", Ground.DOOMED, delete, no_content, FASTEST, SINGLE_WRITES),
    Workload(
        "batch",
        f"batch of {BATCH_SIZE} inserts",
        Ground.SCRATCH,
        batch,
        lambda data: Expected(b"202", b"HTTP/1.1 204", BATCH_SIZE),
        700,
        (Goal({1: 1.5, 8: 1.5, 32: 1.5}),),
    ),
    reading("page", "page of 1,000, nometadata", query(page, NONE), lambda data: PAGE_SIZE, PAGES),
    reading("page-minimal", "page of 1,000, minimalmetadata", query(page), lambda data: PAGE_SIZE, PAGES),
    reading(
        "select", "$select of 2, 1,000 rows", query(select), lambda data: PAGE_SIZE, (Goal({1: 2.5, 8: 2.5}),)
    ),
    reading("range", "RowKey range of 100", query(key_range), lambda data: RANGE_SIZE),
    reading(
        "filter-partition",
        "equality filter in a partition",
        query(by_partition),
        lambda data: data.per_owner_in_partition,
    ),
    reading("filter-three", "equality filter, 3 conditions", query(by_three), lambda data: PER_CITY // 20),
    reading("filter-string", "equality filter, string", query(by_string), lambda data: PER_OWNER),
    reading(
        FIRST_RANGE,
        "numeric range, first time",
        query(by_number),
        lambda data: PER_OWNER,
        (Goal({1: 1.0, 8: 1.0}),),
    ),
    reading(
        LATER_RANGE,
        "numeric range, a minute later",
        query(by_number),
        lambda data: PER_OWNER,
        (Goal({1: 5, 8: 5}),),
    ),
    # last, as a server that has deleted thousands of tables is busy for a second
    Workload(
        "create-table", "create table", Ground.NO_TABLES, create_table, no_content, FASTEST_OF_TABLES, TABLES
    ),
    Workload(
        "delete-table", "delete table", Ground.TABLES, delete_table, no_content, FASTEST_OF_TABLES, TABLES
    ),
]
