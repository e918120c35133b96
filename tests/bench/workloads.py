"""The workloads: what each sends, what a right answer is, and the ratio to Azurite it must reach."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from tests.bench.entities import PER_CITY, PER_OWNER, Dataset, row_key
from tests.bench.load import Expected
from tests.bench.requests import (
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
NO_CONTENT = Expected(b"204")


class Ground(Enum):
    """The table a workload runs on."""

    STANDING = "the loaded table, only read"
    SCRATCH = "a table of its own with a few thousand entities, made for the run and dropped after it"
    DOOMED = "a table of its own with as many entities as the run may delete"


@dataclass(frozen=True, slots=True)
class Site:
    """Where requests go: a table of one server and what is in it."""

    client: Client
    table: str
    data: Dataset


@dataclass(frozen=True, slots=True)
class Target:
    """Least throughput relative to Azurite at 1, 8 and 32 connections, and how many times lower the p99."""

    ratios: dict[int, float]
    p99: float | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    title: str
    ground: Ground
    build: Callable[[Site, int], list[bytes]]
    expected: Callable[[Dataset], Expected]
    most: int | None = None
    """Requests per second to provide for when none may repeat; None when they may."""
    target: Target | None = None
    busiest: int = 32
    """Connections beyond this say nothing new."""


def at(one: float, eight: float, many: float, p99: float | None = None) -> Target:
    return Target({1: one, 8: eight, 32: many}, p99)


def no_content(data: Dataset) -> Expected:
    return NO_CONTENT


def entities(count: Callable[[Dataset], int]) -> Callable[[Dataset], Expected]:
    """A page of so many entities: each opens one brace, and so does the page; no value has any."""
    return lambda data: Expected(b"200", b"{", count(data) + 1)


def picks(site: Site, count: int) -> list[int]:
    source = random.Random(count)
    return [source.randrange(site.data.size) for _ in range(count)]


def new_key(number: int) -> tuple[str, str]:
    """A key that no loaded entity has, anywhere in the order of the keys."""
    return "p0", f"{row_key(number * 7919 % 10**8)}n"


def get(site: Site, count: int) -> list[bytes]:
    return [
        without_body(site.client.head("GET", entity_path(site.table, *site.data.key(number))))
        for number in picks(site, count)
    ]


def insert(site: Site, count: int) -> list[bytes]:
    head = site.client.head("POST", f"/{site.table}", content=JSON, extra="Prefer: return-no-content\r\n")
    return [with_body(head, site.data.body(number, *new_key(number))) for number in range(count)]


def upsert(site: Site, count: int) -> list[bytes]:
    """Every other entity exists already."""
    keys = [site.data.key(number) if number % 2 else new_key(number) for number in picks(site, count)]
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
    numbers = list(range(min(count, site.data.size)))
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
        batch_request(site, [site.data.body(n, "q", row_key(n)) for n in range(at, at + BATCH_SIZE)])
        for at in range(0, count * BATCH_SIZE, BATCH_SIZE)
    ]


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


def query(options: Callable[[Dataset, int], str], accept: str = "") -> Callable[[Site, int], list[bytes]]:
    """Requests for entities by the query options made from a number at random."""

    def build(site: Site, count: int) -> list[bytes]:
        more = {"accept": accept} if accept else {}
        return [
            without_body(
                site.client.head("GET", f"/{site.table}()", options=options(site.data, number), **more)
            )
            for number in picks(site, count)
        ]

    return build


def page_of(data: Dataset) -> int:
    return min(PAGE_SIZE, data.per_partition)


def stretch(data: Dataset, number: int, length: int) -> tuple[str, int]:
    """A partition and the first of so many consecutive numbers within it."""
    first = number // data.per_partition * data.per_partition
    start = first + number % (data.per_partition - length + 1)
    return f"PartitionKey eq '{data.key(start)[0]}' and RowKey ge '{row_key(start)}'", start


def page(data: Dataset, number: int) -> str:
    return f"$filter={stretch(data, number, page_of(data))[0]}&$top={page_of(data)}"


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

WORKLOADS = [
    Workload(
        "get", "get", Ground.STANDING, get, lambda data: Expected(b"200", b"{", 1), target=at(1.4, 2.7, 2.7)
    ),
    Workload("insert", "insert", Ground.SCRATCH, insert, no_content, FASTEST, at(0.9, 1.8, 2, 3)),
    Workload("upsert", "upsert", Ground.SCRATCH, upsert, no_content, FASTEST, at(1.2, 2.5, 3, 3)),
    Workload("replace", "replace", Ground.SCRATCH, replace, no_content, target=at(1.2, 2.5, 3, 3)),
    Workload("merge", "merge", Ground.SCRATCH, merge, no_content, target=at(0.9, 1.8, 2, 3)),
    Workload("delete", "delete", Ground.DOOMED, delete, no_content, FASTEST, at(0.9, 2.2, 2.3, 3)),
    Workload(
        "batch",
        f"batch of {BATCH_SIZE} inserts",
        Ground.SCRATCH,
        batch,
        lambda data: Expected(b"202", b"HTTP/1.1 204", BATCH_SIZE),
        700,
        at(1.2, 1.8, 1.8, 3),
    ),
    Workload(
        "page",
        "page of 1,000, nometadata",
        Ground.STANDING,
        query(page, NONE),
        entities(page_of),
        target=at(5, 6, 6),
    ),
    Workload(
        "page-minimal",
        "page of 1,000, minimalmetadata",
        Ground.STANDING,
        query(page),
        entities(page_of),
        target=at(5, 6, 6),
    ),
    Workload(
        "select",
        "$select of 2, 1,000 rows",
        Ground.STANDING,
        query(select),
        entities(page_of),
        target=at(4, 6, 7),
    ),
    Workload(
        "range",
        "RowKey range of 100",
        Ground.STANDING,
        query(key_range),
        entities(lambda data: RANGE_SIZE),
        target=at(5, 6, 6),
    ),
    Workload(
        "filter-partition",
        "equality filter in a partition",
        Ground.STANDING,
        query(by_partition),
        entities(lambda data: PER_OWNER // 2),
        target=at(5, 10, 10),
    ),
    Workload(
        "filter-three",
        "equality filter, 3 conditions",
        Ground.STANDING,
        query(by_three),
        entities(lambda data: PER_CITY // 20),
        target=at(5, 10, 10),
    ),
    Workload(
        "filter-string",
        "equality filter, string",
        Ground.STANDING,
        query(by_string),
        entities(lambda data: PER_OWNER),
        target=at(5, 10, 10),
    ),
    Workload(
        "filter-number",
        "numeric range, no index",
        Ground.STANDING,
        query(by_number),
        entities(lambda data: PER_OWNER),
    ),
]
