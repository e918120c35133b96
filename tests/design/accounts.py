"""Three tables made like people's, with their requests, for findings about designs that are known to be right.

`python3 -m tests.design.accounts URL ACCOUNT KEY ENTITIES REQUESTS` fills them in an account of a server, and sends the
requests; `manage.py design ACCOUNT` then shows the findings.
"""

import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.message import Message
from http.client import HTTPConnection
from itertools import groupby
from uuid import UUID

from tests.tools.bench.requests import BATCH, Client, entity_path, insert_batch

Entity = dict[str, object]
DAY = datetime(2026, 11, 30, tzinfo=UTC)
MOST_TICKS = 3_155_378_975_999_999_999
THREADS = 4


@dataclass(frozen=True, slots=True)
class Request:
    """Read of an entity by its keys, insert of an entity, or query."""

    key: tuple[str, str] | None = None
    entity: Entity | None = None
    query: str = ""
    top: int = 0


@dataclass(frozen=True, slots=True)
class Example:
    """Table with its entities, in the order of partitions, and its requests; ``expected`` are the true findings.

    A finding is its kind with the key, property, partition or query that it is about. Findings in ``large`` are
    true only if the table has 100,000 entities or more.
    """

    table: str
    entities: Callable[[random.Random, int], Iterator[Entity]]
    requests: Callable[[random.Random, Sequence[Entity]], Iterator[Request]]
    expected: frozenset[tuple[str, str]]
    large: frozenset[tuple[str, str]] = frozenset()


def _key(entity: Entity) -> tuple[str, str]:
    return str(entity["PartitionKey"]), str(entity["RowKey"])


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


# orders by customer: numbers without zeroes, and totals as JavaScript sends them


def _orders(chance: random.Random, number: int) -> Iterator[Entity]:
    customers = max(number // 40, 1)
    sizes = [1 / (20 + rank) for rank in range(customers)]
    owners = sorted(chance.choices(range(customers), sizes, k=number))
    for order, owner in enumerate(owners):
        total = chance.randrange(1_000, 50_000) / 100 if order % 5 else chance.randrange(10, 500)
        yield {
            "PartitionKey": f"cust-{owner}",
            "RowKey": f"ord-{order * 7919 % (10 * number) + 1}",
            "Email": f"person{owner}@example.org",
            "Status": chance.choice(["open", "paid", "shipped", "returned"]),
            "Total": total,
            "Created": _time(DAY - timedelta(minutes=chance.randrange(300 * 24 * 60))),
            "Created@odata.type": "Edm.DateTime",
        }


def _ask_for_orders(chance: random.Random, entities: Sequence[Entity]) -> Iterator[Request]:
    number = 0
    while True:
        entity, number = chance.choice(entities), number + 1
        partition = f"PartitionKey eq '{entity['PartitionKey']}'"
        day = DAY - timedelta(days=chance.randrange(300))
        match chance.choices(range(7), [50, 20, 10, 6, 4, 2, 8])[0]:
            case 0:
                yield Request(key=_key(entity))
            case 1:
                yield Request(query=partition)
            case 2:
                yield Request(query=f"{partition} and Status eq 'open'")
            case 3:
                yield Request(query=f"Email eq '{entity['Email']}'")
            case 4:
                yield Request(query=f"RowKey eq '{entity['RowKey']}'")
            case 5:
                until = _time(day + timedelta(days=1))
                yield Request(query=f"Created ge datetime'{_time(day)}' and Created lt datetime'{until}'")
            case _:
                yield Request(entity={**entity, "RowKey": f"ord-{10 * len(entities) + number}"})


# telemetry by day: the newest first, and all writes to the partition of today


def _inverted(moment: datetime) -> str:
    since = moment - datetime(1, 1, 1, tzinfo=UTC)
    return f"{MOST_TICKS - (since.days * 86_400 + since.seconds) * 10**7 - since.microseconds * 10:019}"


def _reading(chance: random.Random, moment: datetime) -> Entity:
    device = f"dev-{chance.randrange(200):03}"
    return {
        "PartitionKey": f"{moment:%Y-%m-%d}",
        "RowKey": f"{_inverted(moment)}_{device}",
        "Device": device,
        "Celsius": chance.randrange(1_000, 3_000) / 100 + 0.005,
        "Time": _time(moment),
        "Time@odata.type": "Edm.DateTime",
    }


def _readings(chance: random.Random, number: int) -> Iterator[Entity]:
    for day in range(100):
        seconds = 86_400 / (number / 100)
        for step in range(number // 100):
            yield _reading(chance, DAY - timedelta(days=99 - day) + timedelta(seconds=step * seconds))


def _ask_for_readings(chance: random.Random, entities: Sequence[Entity]) -> Iterator[Request]:
    number = 0
    while True:
        number += 1
        device = f"dev-{chance.randrange(200):03}"
        day = f"{DAY - timedelta(days=chance.randrange(100)):%Y-%m-%d}"
        match chance.choices(range(4), [70, 20, 6, 4])[0]:
            case 0:
                yield Request(entity=_reading(chance, DAY + timedelta(days=0.9, milliseconds=10 * number)))
            case 1:
                since = _inverted(DAY + timedelta(hours=21))
                yield Request(query=f"PartitionKey eq '{DAY:%Y-%m-%d}' and RowKey lt '{since}'", top=50)
            case 2:
                yield Request(query=f"PartitionKey eq '{day}' and Device eq '{device}'")
            case _:
                since = _time(DAY - timedelta(hours=2))
                yield Request(query=f"Device eq '{device}' and Time ge datetime'{since}'")


# people in one partition

_DEPARTMENTS = [f"{name}-{place}" for name in ("sales", "it", "hr", "legal") for place in "abcde"]


def _people(chance: random.Random, number: int) -> Iterator[Entity]:
    for person in range(number):
        yield {
            "PartitionKey": "user",
            "RowKey": str(UUID(int=chance.getrandbits(128), version=4)),
            "Name": f"Person {person}",
            "Email": f"person{person}@example.org",
            "Department": chance.choice(_DEPARTMENTS),
            "Active": chance.random() < 0.9,
        }


def _ask_for_people(chance: random.Random, entities: Sequence[Entity]) -> Iterator[Request]:
    number = 0
    while True:
        entity, number = chance.choice(entities), number + 1
        match chance.choices(range(6), [60, 15, 10, 4, 6, 5])[0]:
            case 0:
                yield Request(key=_key(entity))
            case 1:
                yield Request(query=f"PartitionKey eq 'user' and Email eq '{entity['Email']}'")
            case 2:
                yield Request(query=f"Email eq '{entity['Email']}'")
            case 3:
                yield Request(query=f"PartitionKey eq 'user' and Department eq '{entity['Department']}'")
            case 4:
                yield Request(query="PartitionKey eq 'user'", top=100)
            case _:
                row = str(UUID(int=chance.getrandbits(128), version=4))
                yield Request(entity={**entity, "RowKey": row, "Email": f"new{number}@example.org"})


EXAMPLES = (
    Example(
        "orders",
        _orders,
        _ask_for_orders,
        frozenset(
            {
                ("unpadded-numbers", "PartitionKey"),
                ("unpadded-numbers", "RowKey"),
                ("mixed-numbers", "Total"),
                ("costly-query", "RowKey eq …"),
                ("costly-query", "Created ge … and Created lt …"),
            }
        ),
        frozenset({("costly-query", "Email eq …")}),
    ),
    Example(
        "readings",
        _readings,
        _ask_for_readings,
        frozenset(
            {
                ("inverted-ticks", "RowKey"),
                ("hot-partition", "2026-11-30"),
                ("costly-query", "Device eq … and Time ge …"),
            }
        ),
        frozenset({("costly-query", "PartitionKey eq … and Device eq …")}),
    ),
    Example(
        "people",
        _people,
        _ask_for_people,
        frozenset(
            {
                ("one-partition", "Department"),
                ("costly-query", "PartitionKey eq … and Email eq …"),
                ("costly-query", "Email eq …"),
            }
        ),
    ),
)


class Sender:
    """Sends requests of an example to an account, over a connection of its own."""

    def __init__(self, url: str, account: str, key: str, table: str) -> None:
        self.client = Client(f"{url}/{account}", key)
        self.table = table
        self._connection = HTTPConnection(*self.client.address, timeout=60)

    def close(self) -> None:
        self._connection.close()

    def create(self) -> None:
        self._send("POST", "/Tables", json.dumps({"TableName": self.table}))

    def insert(self, entities: Sequence[Entity]) -> None:
        """Insert up to 100 entities of one partition."""
        body = insert_batch(self.client.endpoint, self.table, [json.dumps(it) for it in entities])
        self._send("POST", "/$batch", body, BATCH)

    def send(self, request: Request) -> None:
        """Send a request; of a query, all pages unless it has ``top``."""
        if request.key is not None:
            self._send("GET", entity_path(self.table, *request.key))
        elif request.entity is not None:
            self._send("POST", f"/{self.table}", json.dumps(request.entity))
        else:
            options = f"$filter={request.query}" + (f"&$top={request.top}" if request.top else "")
            more = ""
            while True:
                answer = self._send("GET", f"/{self.table}()", options=options + more)
                partition, row = (
                    answer.get(f"x-ms-continuation-Next{name}Key") for name in ("Partition", "Row")
                )
                if request.top or partition is None:
                    break
                more = f"&NextPartitionKey={partition}&NextRowKey={row}"

    def _send(
        self, verb: str, path: str, body: str = "", content: str = "application/json", *, options: str = ""
    ) -> Message:
        line, *headers = self.client.head(
            verb, path, options=options, content=content if body else ""
        ).splitlines()
        self._connection.request(
            verb, line.split(" ")[1], body.encode() or None, dict(it.split(": ", 1) for it in headers)
        )
        response = self._connection.getresponse()
        text = response.read()
        assert response.status < 300, (response.status, text[:500])
        return response.headers


def fill(example: Example, url: str, account: str, key: str, number: int) -> list[Entity]:
    """Create the table of an example with its entities, and return them."""
    entities = list(example.entities(random.Random(7), number))
    with closing(Sender(url, account, key, example.table)) as sender:
        sender.create()
    several = [
        partition[start : start + 100]
        for partition in (list(own) for _, own in groupby(entities, lambda it: it["PartitionKey"]))
        for start in range(0, len(partition), 100)
    ]
    _in_threads(example, url, account, key, several, Sender.insert)
    return entities


def ask(example: Example, url: str, account: str, key: str, entities: Sequence[Entity], number: int) -> None:
    """Send the first requests of an example."""
    requests = example.requests(random.Random(8), entities)
    _in_threads(example, url, account, key, [next(requests) for _ in range(number)], Sender.send)


def _in_threads(
    example: Example, url: str, account: str, key: str, given: Sequence[object], send: Callable[..., None]
) -> None:
    def work(first: int) -> None:
        with closing(Sender(url, account, key, example.table)) as sender:
            for one in given[first::THREADS]:
                send(sender, one)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))


def main() -> None:
    url, account, key, entities, requests = sys.argv[1:]
    for example in EXAMPLES:
        began = time.monotonic()
        made = fill(example, url, account, key, int(entities))
        filled = time.monotonic()
        ask(example, url, account, key, made, int(requests))
        ended = time.monotonic()
        print(
            f"{example.table}: filled in {filled - began:.0f} s, asked in {ended - filled:.0f} s", flush=True
        )


if __name__ == "__main__":
    main()
