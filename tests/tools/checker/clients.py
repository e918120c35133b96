"""Clients of the Table service that record what they do and see."""

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count, cycle
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from tests.faults.connection import JSON, Answer, Change, Connection, Request, entity_path, write_batch
from tests.tools.checker.history import ABSENT, OTHERS, History, Key, Kind, Read, Seen, Write

PATIENCE = 90.0
PARTITION = "p"
WRITES = "writes"
SECONDARY = "secondary"
PAST = "past"
ROWS = 6  # each written alone
GROUP = 3  # rows that are always written together
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNAVAILABLE = {"ServerBusy", "OperationTimedOut"}
REFUSALS = {"EntityAlreadyExists", "ResourceNotFound", "UpdateConditionNotSatisfied"}
RECORDED = (ConnectionError, TimeoutError)
REHEARSED = "x-tablero-rehearsed"
EVERYTHING = "everything"
TURNS = ("get", "query", "past", "change set", "mixed change set", "conditional", *Kind)
WEIGHTS = (4, 3, 1, 2, 2, 5, 4, 1, 1, 2, 3, 2)


class Unavailable(Exception):
    """The server could not do it now; the message is its code."""


class Refused(Exception):
    """The refusal of an operation, which had no effect; the message is its code."""


class Endpoint(NamedTuple):
    """An account of a running server."""

    port: int
    account: str
    key: str


class Client:
    """One connection, used by one thread; a session of its own unless it is given another's token.

    ``level`` is asked for in each request; empty asks for none. ``secondary`` uses the address of the secondary.
    ``kind`` is what its reads are called in the history, by default the level. ``others`` are used one after the other
    when the first does not answer, or not now.
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
        others: Sequence[Endpoint] = (),
    ) -> None:
        self.name = name
        self.level = level
        self.kind = kind or level
        self.token = ""
        self._table = table
        self._account = endpoint.account
        self._secondary = secondary
        self._connections = cycle(Connection(it, timeout=PATIENCE) for it in (endpoint, *others))
        self._connection = next(self._connections)

    def move(self) -> None:
        """Use the next endpoint, if there is another one."""
        self._connection, former = next(self._connections), self._connection
        if self._connection is not former:
            former.close()

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
        except Refused:
            return ABSENT
        return read_entity(answer.json())

    def page(self, partition: str = PARTITION, moment: int | None = None) -> dict[Key, Seen]:
        """Return all entities of a partition, now or at a moment; they fit into a page."""
        past = {} if moment is None else {"x-tablero-as-of": write_time(moment)}
        answer = self.send("GET", f"{self._table}()?$filter=PartitionKey%20eq%20'{partition}'", **past)
        assert "x-ms-continuation-nextpartitionkey" not in answer.headers
        return {(it["PartitionKey"], it["RowKey"]): read_entity(it) for it in answer.json()["value"]}

    def upsert(self, key: Key, value: int, *, merge: bool = False) -> int:
        """Return the version of the entity."""
        kind = Kind.UPSERT_MERGE if merge else Kind.UPSERT
        return self.write(Write(self.name, key, value, 0, kind=kind)) or 0

    def write(self, write: Write) -> int | None:
        """Return the version of the entity; None after a deletion."""
        change = self._change(write)
        path = self._table if write.kind is Kind.INSERT else entity_path(self._table, write.key)
        fields = {"Prefer": "return-no-content"} if write.kind is Kind.INSERT else {}
        if change.if_match:
            fields["If-Match"] = change.if_match
        body = None if change.properties is None else json.dumps(change.content).encode()
        answer = self.send(change.method, path, body, **fields)
        return None if write.kind is Kind.DELETE else read_etag(answer.headers["etag"])

    def _change(self, write: Write) -> Change:
        condition = ""
        if write.kind.is_conditional:
            condition = write_etag(write.if_match) if write.if_match else "*"
        properties = {"n": write.value, **({write.other: write.value} if write.other else {})}
        content = None if write.kind is Kind.DELETE else properties
        return Change(write.kind.method, self._table, write.key, content, condition)

    def change_set(self, writes: Sequence[Write]) -> list[int]:
        """Do all writes at once, none of them a deletion; return their versions."""
        boundary, body = write_batch(self._account, [self._change(write) for write in writes])
        answer = self.send("POST", "$batch", body, content="multipart/mixed; boundary=" + boundary.decode())
        if not re.search(rb"^HTTP/1\.1 204", answer.body, re.MULTILINE):
            code = re.search(rb'"code":"(\w+)"', answer.body)[1].decode()
            assert code in UNAVAILABLE | REFUSALS, answer
            raise (Unavailable if code in UNAVAILABLE else Refused)(code)
        return [read_etag(it.decode()) for it in re.findall(rb"(?mi)^ETag: (.*?)\r?$", answer.body)]

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        content: str = "application/json",
        **given: str,
    ) -> Answer:
        """Send a request; raises Unavailable, Refused, and ConnectionError or TimeoutError."""
        host = f"{self._account}-secondary" if self._secondary else self._account
        fields = {"Accept": JSON["Accept"], **given}
        if body is not None:
            fields["Content-Type"] = content
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
        if answer.code in UNAVAILABLE or (answer.status == 500 and REHEARSED in answer.headers):
            raise Unavailable(answer.code)
        if answer.code in REFUSALS:
            raise Refused(answer.code)
        assert answer.status < 300, answer
        self.token = answer.headers.get("x-ms-session-token", self.token)
        return answer


def read_entity(entity: Mapping[str, Any]) -> Seen:
    others = frozenset((name, entity[name]) for name in OTHERS if name in entity)
    return Seen(read_time(entity["Timestamp"]), entity["n"], others)


def read_etag(etag: str) -> int:
    """Return the Timestamp in an ETag, in ticks."""
    return read_time(re.search("datetime'(.*)'", unquote(etag))[1])


def read_time(text: str) -> int:
    """Return a time such as 2026-11-23T06:00:00.1234567Z in ticks since 1970; zeros at its end may be missing."""
    seconds, _, fraction = text.removesuffix("Z").partition(".")
    return int((datetime.fromisoformat(f"{seconds}Z") - EPOCH).total_seconds()) * 10**7 + int(
        fraction.ljust(7, "0")
    )


def write_time(ticks: int) -> str:
    seconds, fraction = divmod(ticks, 10**7)
    return f"{EPOCH + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}.{fraction:07d}Z"


def write_etag(ticks: int) -> str:
    return f"W/\"datetime'{quote(write_time(ticks))}'\""


class Recorder:
    """Performs operations and writes them into a history."""

    def __init__(self) -> None:
        self.history = History()
        self.answered: Counter[str] = Counter()  # answers of each kind
        self._values = count(1)

    def write(
        self, client: Client, key: Key, kind: Kind = Kind.UPSERT, *, if_match: int = 0, other: str = ""
    ) -> None:
        value = next(self._values)
        write = Write(
            client.name, key, value, time.monotonic(), kind=kind, if_match=if_match, other=other
        )  # fmt: skip
        self._record([write], lambda: [client.write(write)])

    def write_all(self, client: Client, keys: Mapping[Key, Kind] | Sequence[Key]) -> None:
        """Write in one change set: upserts, or the given kind for each key."""
        kinds = keys if isinstance(keys, Mapping) else dict.fromkeys(keys, Kind.UPSERT)
        value = next(self._values)
        began = time.monotonic()
        writes = [
            Write(client.name, key, value, began, change_set=value, kind=kind) for key, kind in kinds.items()
        ]
        self._record(writes, lambda: client.change_set(writes))

    def _record(self, writes: Sequence[Write], operation: Callable[[], Sequence[int | None]]) -> None:
        try:
            versions = operation()
        except ConnectionRefusedError as error:
            self._refused(error)  # not even sent
            raise
        except (Unavailable, *RECORDED) as error:
            self._refused(error)
            self.history.writes += writes
            raise
        except Refused as refused:
            # in a change set it is unknown which of the writes was refused
            if len(writes) == 1:
                without_effect = replace(writes[0], ended=time.monotonic(), refused=str(refused))
                self.history.without_effect.append(without_effect)
            self.answered[WRITES] += 1
            return
        ended = time.monotonic()
        self.history.writes += [
            replace(write, ended=ended, version=version)
            for write, version in zip(writes, versions, strict=True)
        ]
        self.answered[WRITES] += 1

    def get(self, client: Client, key: Key) -> Read:
        return self._read(client, lambda: {key: client.get(key)})

    def page(self, client: Client, keys: Sequence[Key]) -> Read:
        """Read a whole partition, whose only possible keys are these."""
        return self._read(client, lambda: {**dict.fromkeys(keys, ABSENT), **client.page(keys[0][0])})

    def past(self, client: Client, keys: Sequence[Key], moment: int) -> None:
        """Read a partition as of a moment."""
        began = time.monotonic()
        seen = {**dict.fromkeys(keys, ABSENT), **client.page(keys[0][0], moment)}
        self.history.past.append(Read(client.name, PAST, began, time.monotonic(), seen, moment))
        self.answered[PAST] += 1

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

    def __init__(
        self, endpoint: Endpoint, table: str, seed: int = 0, *, others: Sequence[Endpoint] = ()
    ) -> None:
        self.recorder = Recorder()
        self.failures: list[BaseException] = []
        self.alone = [(PARTITION, f"r{number}") for number in range(ROWS)]
        self.together = [("group", f"r{number}") for number in range(GROUP)]
        self._endpoint = endpoint
        self._others = others
        self.table = table
        self._seed = seed
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._kinds: set[str] = set()
        self._has_sessions = False
        self.past_since: int | None = 0  # the Timestamp from which on moments can be read; None: none can

    @property
    def history(self) -> History:
        return self.recorder.history

    @property
    def keys(self) -> list[Key]:
        return [*self.alone, *self.together]

    def client(self, name: str, endpoint: Endpoint | None = None, **options: Any) -> Client:
        return Client(endpoint or self._endpoint, self.table, name, others=self._others, **options)

    def add(self, client: Client, turn: Callable[[Client, Random], None]) -> None:
        """Start a client that takes one turn after the other."""
        thread = threading.Thread(target=self._run, args=(client, turn), name=client.name)
        self._threads.append(thread)
        self._kinds.add(client.kind or WRITES)

    def add_writers(self, number: int = 2) -> None:
        for name in range(number):
            self.add(self.client(f"writer {name}"), self.write)

    def add_readers(self, level: str, number: int = 1, endpoint: Endpoint | None = None) -> None:
        for name in range(number):
            self.add(self.client(f"{level} {name}", endpoint, level=level), self.read)

    def add_sessions(self, number: int = 1) -> None:
        """Sessions that read and write."""
        self._has_sessions = True
        for name in range(number):
            self.add(self.client(f"Session {name}", level="Session"), self.read_and_write)

    def add_readers_of_the_secondary(self, endpoint: Endpoint | None = None) -> None:
        self.add(self.client(SECONDARY, endpoint, secondary=True, kind=SECONDARY), self.read)

    def add_clients(self, number: int, endpoints: Sequence[Endpoint]) -> None:
        """Clients, spread over servers, that do all there is to do to entities."""
        self._kinds.add(WRITES)
        for name in range(number):
            endpoint = endpoints[name % len(endpoints)]
            self.add(self.client(f"client {name}", endpoint, kind=EVERYTHING), self.anything)

    # turns

    def anything(self, client: Client, dice: Random) -> None:
        key = dice.choice(self.alone)
        [turn] = dice.choices(TURNS, WEIGHTS)
        if turn == "past" and self.past_since is None:
            turn = "get"
        match turn:
            case "get":
                self.recorder.get(client, dice.choice(self.keys))
            case "query":
                self.recorder.page(client, dice.choice((self.alone, self.together)))
            case "past":
                latest = (it.version for it in self.history.writes[-200:])
                if versions := [it for it in latest if it and it >= (self.past_since or 0)]:
                    self.recorder.past(
                        client, dice.choice((self.alone, self.together)), dice.choice(versions)
                    )
            case "change set":
                self.recorder.write_all(client, self.together)
            case "mixed change set":
                kinds = (Kind.INSERT, Kind.REPLACE, Kind.MERGE, Kind.UPSERT, Kind.UPSERT_MERGE, Kind.UPSERT)
                self.recorder.write_all(client, {it: dice.choice(kinds) for it in dice.sample(self.alone, 2)})
            case "conditional":
                [seen] = self.recorder.get(client, key).seen.values()
                kind = dice.choice((Kind.REPLACE, Kind.MERGE, Kind.DELETE))
                self.recorder.write(client, key, kind, if_match=seen.version, other=self._other(kind, dice))
            case kind:
                self.recorder.write(client, key, kind, other=self._other(kind, dice))

    def _other(self, kind: Kind, dice: Random) -> str:
        return dice.choice(OTHERS) if kind.merges else ""

    def write(self, client: Client, dice: Random) -> None:
        if dice.random() < 0.25:
            self.recorder.write_all(client, self.together)
        else:
            kind = dice.choice((Kind.UPSERT, Kind.UPSERT_MERGE))
            self.recorder.write(client, dice.choice(self.alone), kind)

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
            self.stop()
        if self.failures:
            raise self.failures[0]
        assert not any(thread.is_alive() for thread in self._threads), "a client hangs"

    def stop(self) -> None:
        """End the clients when they have been answered."""
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE)

    def wait_for(self, is_reached: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds.

        Pauses grow, because some conditions take as long as an operation of the clients.
        """
        deadline = time.monotonic() + PATIENCE
        pause = 0.01
        while not is_reached():
            assert not self.failures, self.failures
            assert time.monotonic() < deadline, f"not {what} in {PATIENCE} s; {self.history.refused[-5:]}"
            time.sleep(pause)
            pause = min(1.5 * pause, 0.25)

    def wait_for_answers(self, number: int, *, writes: int = 0) -> None:
        """Until there are so many more writes, perhaps some more of these, and reads of each kind."""
        answered = self.recorder.answered
        required = {kind: answered[kind] + number + (writes if kind == WRITES else 0) for kind in self._kinds}
        self.wait_for(
            lambda: all(answered[kind] >= enough for kind, enough in required.items()),
            f"{number} answers of each kind",
        )

    def final(self, endpoint: Endpoint | None = None) -> dict[Key, Seen]:
        """Return the final state of the primary, which may have moved to another port."""
        with self.client("last", endpoint) as client:
            if self._has_sessions:
                client.upsert(
                    ("last", ""), 0
                )  # without the token of a write, a replica that is behind may answer
            return {key: client.get(key) for key in self.keys}

    def _run(self, client: Client, turn: Callable[[Client, Random], None]) -> None:
        dice = Random(f"{self._seed} {client.name}")
        try:
            with client:
                while not self._stop.is_set():
                    try:
                        turn(client, dice)
                    except (Unavailable, *RECORDED):
                        client.move()
                        time.sleep(0.02)  # and once more
        except BaseException as error:
            self.failures.append(error)
