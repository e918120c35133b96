"""Clients of the Table service that record what they do and see."""

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from random import Random
from typing import Any, NamedTuple
from urllib.parse import unquote

from tests.faults.connection import (
    JSON,
    Answer,
    Change,
    Connection,
    Request,
    entity_path,
    write_batch,
)
from tests.replication.history import ABSENT, History, Key, Read, Seen, Write
from tests.replication.postgres import Node

PATIENCE = 90.0
PARTITION = "p"
WRITES = "writes"
SECONDARY = "secondary"
ROWS = 6  # each written alone
GROUP = 3  # rows that are always written together
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNAVAILABLE = {"ServerBusy", "OperationTimedOut"}
RECORDED = (ConnectionError, TimeoutError)


class Unavailable(Exception):
    """The server could not do it now; the message is its code."""


class Endpoint(NamedTuple):
    """An account of a running server."""

    port: int
    account: str
    key: str


class Client:
    """One connection, used by one thread; a session of its own unless it is given another's token.

    ``level`` is asked for in each request; empty asks for none. ``secondary`` uses the address of the secondary.
    ``kind`` is what its reads are called in the history, by default the level.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        table: str,
        name: str = "",
        *,
        level: str = "",
        secondary: bool = False,
        kind: str = "",
    ) -> None:
        self.name = name
        self.level = level
        self.kind = kind or level
        self.token = ""
        self._table = table
        self._account = endpoint.account
        self._secondary = secondary
        self._connection = Connection(endpoint, timeout=PATIENCE)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def create_table(self, name: str = "") -> None:
        self.send("POST", "Tables", b'{"TableName":"%b"}' % (name or self._table).encode())

    def get(self, key: Key) -> Seen:
        try:
            answer = self.send("GET", entity_path(self._table, key))
        except NotThere:
            return ABSENT
        return Seen(read_etag(answer.headers["etag"]), answer.json()["n"])

    def page(self, partition: str = PARTITION) -> dict[Key, Seen]:
        """All entities of a partition; they fit into a page."""
        answer = self.send("GET", f"{self._table}()?$filter=PartitionKey%20eq%20'{partition}'")
        assert "x-ms-continuation-nextpartitionkey" not in answer.headers
        return {
            (entity["PartitionKey"], entity["RowKey"]): Seen(read_time(entity["Timestamp"]), entity["n"])
            for entity in answer.json()["value"]
        }

    def upsert(self, key: Key, value: int, *, merge: bool = False) -> int:
        """Return the version of the entity."""
        method = "MERGE" if merge else "PUT"
        answer = self.send(method, entity_path(self._table, key), b'{"n":%d}' % value)
        return read_etag(answer.headers["etag"])

    def change_set(self, keys: Sequence[Key], value: int) -> list[int]:
        """Write the value to all keys at once; return their versions."""
        changes = [Change("PUT", self._table, key, {"n": value}) for key in keys]
        boundary, body = write_batch(self._account, changes)
        answer = self.send("POST", "$batch", body, content=b"multipart/mixed; boundary=" + boundary)
        if not re.search(rb"^HTTP/1\.1 204", answer.body, re.MULTILINE):
            raise Unavailable(re.search(rb'"code":"(\w+)"', answer.body)[1].decode())
        return [read_etag(it.decode()) for it in re.findall(rb"(?mi)^ETag: (.*?)\r?$", answer.body)]

    def send(
        self, method: str, path: str, body: bytes | None = None, *, content: bytes = b"application/json"
    ) -> Answer:
        """Raises Unavailable, and ConnectionError or TimeoutError."""
        host = f"{self._account}-secondary" if self._secondary else self._account
        fields = {"Accept": JSON["Accept"]}
        if body is not None:
            fields["Content-Type"] = content.decode()
        if self.level:
            fields["x-ms-consistency-level"] = self.level
        if self.token:
            fields["x-ms-session-token"] = self.token
        headers = [(name.encode(), value.encode()) for name, value in fields.items()]
        target = f"/{host}/{path}".encode()
        try:
            answer = self._connection.send(Request(method.encode(), target, headers, body))
        except RECORDED:
            self._connection.close()
            raise
        if answer.code in UNAVAILABLE:
            raise Unavailable(answer.code)
        if answer.status == 404 and answer.code == "ResourceNotFound":
            raise NotThere
        assert answer.status < 300, answer
        self.token = answer.headers.get("x-ms-session-token", self.token)
        return answer


class NotThere(Exception):
    """There is no such entity."""


def read_etag(etag: str) -> int:
    """The Timestamp in an ETag, in ticks."""
    return read_time(re.search("datetime'(.*)'", unquote(etag))[1])


def read_time(text: str) -> int:
    """A time such as 2026-11-23T06:00:00.1234567Z in ticks since 1970; zeros at its end may be missing."""
    seconds, _, fraction = text.removesuffix("Z").partition(".")
    return int((datetime.fromisoformat(f"{seconds}Z") - EPOCH).total_seconds()) * 10**7 + int(
        fraction.ljust(7, "0")
    )


class Recorder:
    """Performs operations and writes them into a history."""

    def __init__(self) -> None:
        self.history = History()
        self.answered: Counter[str] = Counter()  # of each kind
        self._values = count(1)

    def write(self, client: Client, key: Key, *, merge: bool = False) -> None:
        value = next(self._values)
        write = Write(client.name, key, value, time.monotonic())
        self._record(write, lambda: [client.upsert(key, value, merge=merge)])

    def write_all(self, client: Client, keys: Sequence[Key]) -> None:
        value = next(self._values)
        began = time.monotonic()
        writes = [Write(client.name, key, value, began, change_set=value) for key in keys]
        self._record(writes, lambda: client.change_set(keys, value))

    def _record(self, given: Write | list[Write], operation: Callable[[], list[int]]) -> None:
        writes = given if isinstance(given, list) else [given]
        try:
            versions = operation()
        except (Unavailable, *RECORDED) as error:
            self._refused(error)
            self.history.writes += writes
            raise
        ended = time.monotonic()
        for write, version in zip(writes, versions, strict=True):
            acknowledged = Write(
                write.session, write.key, write.value, write.began, ended, version, write.change_set
            )
            self.history.writes.append(acknowledged)
        self.answered[WRITES] += 1

    def get(self, client: Client, key: Key) -> Read:
        return self._read(client, lambda: {key: client.get(key)})

    def page(self, client: Client, keys: Sequence[Key]) -> Read:
        """All of a partition, of which these are the keys that there may be."""
        return self._read(client, lambda: {**dict.fromkeys(keys, ABSENT), **client.page(keys[0][0])})

    def _read(self, client: Client, operation: Callable[[], dict[Key, Seen]]) -> Read:
        began = time.monotonic()
        try:
            seen = operation()
        except (Unavailable, *RECORDED) as error:
            self._refused(error)
            raise
        read = Read(client.name, client.kind, began, time.monotonic(), seen)
        self.history.reads.append(read)
        self.answered[client.kind] += 1
        return read

    def _refused(self, error: Exception) -> None:
        self.history.refused.append(str(error) if isinstance(error, Unavailable) else type(error).__name__)


class Load:
    """Clients in threads, writers and readers of several kinds, all on the same few keys."""

    def __init__(self, endpoint: Endpoint, table: str) -> None:
        self.recorder = Recorder()
        self.failures: list[BaseException] = []
        self.alone = [(PARTITION, f"r{number}") for number in range(ROWS)]
        self.together = [("group", f"r{number}") for number in range(GROUP)]
        self._endpoint = endpoint
        self._table = table
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._kinds: set[str] = set()

    @property
    def history(self) -> History:
        return self.recorder.history

    @property
    def keys(self) -> list[Key]:
        return [*self.alone, *self.together]

    def client(self, name: str, **options: Any) -> Client:
        return Client(self._endpoint, self._table, name, **options)

    def add(self, client: Client, turn: Callable[[Client, Random], None]) -> None:
        """A client that takes one turn after the other."""
        thread = threading.Thread(target=self._run, args=(client, turn), name=client.name)
        self._threads.append(thread)
        self._kinds.add(client.kind or WRITES)

    def add_writers(self, number: int = 2) -> None:
        for name in range(number):
            self.add(self.client(f"writer {name}"), self.write)

    def add_readers(self, level: str, number: int = 1) -> None:
        for name in range(number):
            self.add(self.client(f"{level} {name}", level=level), self.read)

    def add_sessions(self, number: int = 1) -> None:
        """Sessions that read and write."""
        for name in range(number):
            self.add(self.client(f"Session {name}", level="Session"), self.read_and_write)

    def add_readers_of_the_secondary(self) -> None:
        self.add(self.client(SECONDARY, secondary=True, kind=SECONDARY), self.read)

    # turns

    def write(self, client: Client, dice: Random) -> None:
        if dice.random() < 0.25:
            self.recorder.write_all(client, self.together)
        else:
            self.recorder.write(client, dice.choice(self.alone), merge=dice.random() < 0.5)

    def read(self, client: Client, dice: Random) -> None:
        match dice.randrange(4):
            case 0:
                self.recorder.page(client, self.alone)
            case 1:
                self.recorder.page(client, self.together)
            case _:
                self.recorder.get(client, dice.choice(self.keys))

    def read_and_write(self, client: Client, dice: Random) -> None:
        if dice.random() < 0.3:
            self.write(client, dice)
        else:
            self.read(client, dice)

    # the run

    @contextmanager
    def running(self) -> Iterator["Load"]:
        with self.client("first") as client:
            client.create_table()
        for thread in self._threads:
            thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join(PATIENCE)
        if self.failures:
            raise self.failures[0]
        assert not any(thread.is_alive() for thread in self._threads), "a client hangs"

    def wait_for(self, is_reached: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not is_reached():
            assert not self.failures, self.failures
            assert time.monotonic() < deadline, f"not {what} in {PATIENCE} s; {self.history.refused[-5:]}"
            time.sleep(0.01)

    def wait_for_answers(self, number: int) -> None:
        """Until there are so many more writes, and reads of each kind."""
        answered = self.recorder.answered
        wanted = {kind: answered[kind] + number for kind in self._kinds}
        self.wait_for(
            lambda: all(answered[kind] >= enough for kind, enough in wanted.items()),
            f"{number} answers of each kind",
        )

    def wait_for_reads(self, node: Node) -> None:
        """Until a node has answered some of the reads from now on."""
        before = node.reads()
        self.wait_for(lambda: node.reads() > before + 20, f"read from {node.name}")

    def final(self) -> dict[Key, Seen]:
        """What the primary has at the end."""
        with self.client("last") as client:
            return {key: client.get(key) for key in self.keys}

    def _run(self, client: Client, turn: Callable[[Client, Random], None]) -> None:
        dice = Random(client.name)
        try:
            with client:
                while not self._stop.is_set():
                    try:
                        turn(client, dice)
                    except (Unavailable, *RECORDED):
                        time.sleep(0.02)  # and once more
        except BaseException as error:
            self.failures.append(error)
