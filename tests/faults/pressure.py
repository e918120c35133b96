"""Press a server from all sides at once, and tell what it takes: processes, memory and descriptors.

python3 -m tests.faults.pressure

1,000 idle and 200 busy connections, 500 event streams, clients that hardly read, clients that hardly send, 200 change
sets of 4 MiB at once, and 100,000 requests to the console and its API; all of it twice. The command ends with status 1
if an answer is wrong, or if the server takes more after the second time than after the first.
"""

import argparse
import re
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psutil
import requests

from tests.faults.connection import Change, Connection, Request, write_batch
from tests.faults.memory import MEGABYTE, growth_of
from tests.live_server import LiveServer, start_server
from tests.tools.bench.console import sign_in

TABLE = "pressure"
FOLLOWED = "followed"  # by the streams
LARGEST = 4 * MEGABYTE  # bytes of a change set
PATIENCE = 120.0  # seconds
THREADS = 8  # client threads: the machine is the server's
ALLOWED = 64 * MEGABYTE  # growth of a worker until the end, most of it code and caches of its first requests
_EVENT = re.compile(rb"id: [^\n]+\n")


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources of a worker process."""

    memory: int  # bytes
    descriptors: int

    @classmethod
    def of(cls, server: LiveServer) -> "Usage":
        process = psutil.Process(server.pid)
        return cls(process.memory_info().rss, process.num_fds())

    def __str__(self) -> str:
        return f"{self.memory / MEGABYTE:,.0f} MiB, {self.descriptors:,} descriptors"


@dataclass(frozen=True, slots=True)
class Caller:
    """A user: a session of the console, and a token of the management API."""

    session: requests.Session
    token: str


def prepare(server: LiveServer) -> Caller:
    """Make the table and a user."""
    with Connection(server) as connection:
        connection.create_table(TABLE)
        connection.create_table(FOLLOWED)
        large = {"text": "x" * 30_000}
        for number in range(0, 200, 50):
            rows = [("big", f"{row:03}") for row in range(number, number + 50)]
            connection.change_set([Change("PUT", TABLE, row, large) for row in rows])
    name = f"u{uuid4().hex[:8]}"
    session = sign_in(server, server.data.parent, name)
    return Caller(session, server.add_token(name, "pressure", "read"))


# clients; each opens its connections and leaves them open until its block ends


@contextmanager
def idle(server: LiveServer, number: int) -> Iterator[list[socket.socket]]:
    """Open connections that have sent one request."""
    with ExitStack() as stack:
        opened = []
        for _ in range(number):
            connection = stack.enter_context(Connection(server))
            assert connection.request("GET", "Tables").status == 200
            opened.append(connection.open())
        yield opened


def busy(server: LiveServer, number: int, requests_of_each: int) -> float:
    """Have many connections read and write; return the longest time of an answer in seconds."""
    longest = [0.0]

    def run(share: int) -> None:
        with ExitStack() as stack:
            mine = [stack.enter_context(Connection(server, timeout=PATIENCE)) for _ in range(share)]
            for turn in range(requests_of_each):
                began = time.monotonic()
                for place, connection in enumerate(mine):
                    key = (f"busy{threading.get_ident()}", str(place))
                    path = f"{TABLE}(PartitionKey='{key[0]}',RowKey='{key[1]}')"
                    target = f"/{server.account}/{path}".encode()
                    headers = [(b"Accept", b"application/json"), (b"Content-Type", b"application/json")]
                    insert = (
                        Request(b"GET", target, headers)
                        if turn % 2
                        else Request(b"PUT", target, headers, b'{"n":1}')
                    )
                    connection.send_bytes(connection.written(insert))
                for connection in mine:
                    assert connection.read().status == (200 if turn % 2 else 204)
                longest[0] = max(longest[0], time.monotonic() - began)

    _each_thread(run, number)
    return longest[0]


@contextmanager
def streams(server: LiveServer, caller: Caller, number: int) -> Iterator[list[socket.socket]]:
    """Event streams of the change feed; each has sent its head and an event."""
    request = (
        f"GET /ui/api/v1/accounts/{server.account}/changes?table={FOLLOWED} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {caller.token}\r\nAccept: text/event-stream\r\n\r\n"
    ).encode()
    with ExitStack() as stack:
        opened = [stack.enter_context(_connect(server)) for _ in range(number)]
        # a few at a time: each needs the database once
        for few in (opened[start : start + 10] for start in range(0, number, 10)):
            for client in few:
                client.sendall(request)
            for client in few:
                received = _read_until(client, _EVENT)
                assert received.startswith(b"HTTP/1.1 200"), received
        yield opened


@contextmanager
def slow_readers(server: LiveServer, number: int) -> Iterator[list[socket.socket]]:
    """Clients that ask for pages of 4 MiB again and again and read nothing."""
    with ExitStack() as stack:
        opened = []
        for _ in range(number):
            client = stack.enter_context(_connect(server, receive_buffer=4096))
            connection = Connection(server)
            query = Request(
                b"GET", f"/{server.account}/{TABLE}()".encode(), [(b"Accept", b"application/json")]
            )
            client.sendall(connection.written(query) * 4)
            opened.append(client)
        yield opened


@contextmanager
def slow_writers(server: LiveServer, number: int, *, size: int = 60_000) -> Iterator[list[socket.socket]]:
    """Clients that have sent most of a body, and then wait."""
    head = (
        f"POST /{server.account}/{TABLE} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
        f"Content-Length: {size}\r\n\r\n"
    ).encode()
    with ExitStack() as stack:
        opened = []
        for _ in range(number):
            client = stack.enter_context(_connect(server))
            try:
                client.sendall(head + b" " * (size - 1))
            except ConnectionError:
                pass  # refused for others already
            opened.append(client)
        yield opened


def change_sets(server: LiveServer, number: int, *, tries: int = 100) -> Counter[int]:
    """Send change sets of 4 MiB from as many connections at once, again while the server is busy; count the answers."""
    answers: Counter[int] = Counter()

    def run(place: int) -> None:
        rows = [(f"large{place}", f"{row:03}") for row in range(100)]
        half = "x" * (LARGEST // 200 - 300)
        boundary, body = write_batch(
            server.account, [Change("PUT", TABLE, row, {"a": half, "b": half}) for row in rows]
        )
        headers = [(b"Content-Type", b"multipart/mixed; boundary=" + boundary)]
        request = Request(b"POST", f"/{server.account}/$batch".encode(), headers, body)
        with Connection(server, timeout=PATIENCE) as connection:
            for _ in range(tries):
                answer = connection.send(request)
                answers[answer.status] += 1
                if answer.status == 202:
                    assert answer.body.count(b"HTTP/1.1 204") == 100, answer.body[:500]
                    return
                # the second on a machine that is too slow for the database
                assert answer.code in {"ServerBusy", "OperationTimedOut"}, answer
                time.sleep(int(answer.headers.get("retry-after", 1)))
        raise AssertionError(f"refused {tries} times")

    with ThreadPoolExecutor(number) as pool:
        list(pool.map(run, range(number)))
    return answers


def console_requests(server: LiveServer, caller: Caller, number: int) -> Counter[int]:
    """Ask for pages of the console, with and without a session, and of its API; count the answers."""
    account = f"/ui/a/{server.account}"
    pages = [f"{account}/t/{TABLE}/?top=25", f"{account}/", f"{account}/activity/", "/ui/", "/ui/readyz"]
    bearer = {"Authorization": f"Bearer {caller.token}"}
    ask = [*((page, {}) for page in pages), ("/ui/api/v1/accounts", bearer)]
    answers: Counter[int] = Counter()
    lock = threading.Lock()

    def run(share: int) -> None:
        counted: Counter[int] = Counter()
        with requests.Session() as session:
            session.cookies.update(caller.session.cookies)
            for turn in range(share):
                path, headers = ask[turn % len(ask)]
                answer = session.get(f"{server.url}{path}", headers=headers, allow_redirects=False)
                counted[answer.status_code] += 1
        with lock:
            answers.update(counted)

    _each_thread(run, number)
    return answers


def _connect(server: LiveServer, *, receive_buffer: int = 0) -> socket.socket:
    client = socket.socket()
    if receive_buffer:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    client.settimeout(PATIENCE)
    client.connect(("127.0.0.1", server.port))
    return client


def _read_until(client: socket.socket, pattern: re.Pattern[bytes]) -> bytes:
    received = b""
    while not pattern.search(received):
        piece = client.recv(1 << 16)
        if not piece:
            break
        received += piece
    return received


def _each_thread(run: Callable[[int], None], number: int) -> None:
    """Share a number among threads."""
    shares = [len(range(place, number, THREADS)) for place in range(min(THREADS, number))]
    with ThreadPoolExecutor(len(shares)) as pool:
        list(pool.map(run, shares))


# all of it


@dataclass(frozen=True, slots=True)
class Load:
    """The number of connections of each kind; ``requests`` go to the console."""

    idle: int = 1000
    busy: int = 200
    streams: int = 500
    slow: int = 100
    change_sets: int = 200
    requests: int = 100_000


def press(server: LiveServer, load: Load, say: Callable[[str], None]) -> list[str]:
    """Put a server under load twice, and say what it takes; return what is wrong."""
    caller = prepare(server)
    # the first time fills pools, caches and what the allocator keeps
    first, problems = _round(server, caller, load, say, Usage(0, 0))
    allowed = Usage(first.memory + ALLOWED, first.descriptors + THREADS)
    last, more = _round(server, caller, load, say, allowed)
    if last.memory > allowed.memory:
        more.append(f"memory grew from {first} to {last}")
    if last.descriptors > allowed.descriptors:
        more.append(f"descriptors grew from {first} to {last}")
    return problems + more


def _round(
    server: LiveServer, caller: Caller, load: Load, say: Callable[[str], None], limit: Usage
) -> tuple[Usage, list[str]]:
    """Return what the server takes afterwards, and what is wrong."""
    with growth_of(server.pid) as growth:
        _press_connections(server, caller, load, say)
    say(f"at most, with all connections: {growth.peak / MEGABYTE:,.0f} MiB")
    with growth_of(server.pid) as growth:
        answers = change_sets(server, load.change_sets)
    factor = growth.most / (load.change_sets * LARGEST)
    say(
        f"change sets of 4 MiB: {dict(answers)}, at most {growth.peak / MEGABYTE:,.0f} MiB:"
        f" {factor:.1f} bytes more for each byte that was sent"
    )
    pages = console_requests(server, caller, load.requests)
    usage = settled(server, limit)
    say(f"after {pages.total():,} requests to the console: {usage}")
    return usage, [] if set(pages) == {200} else [f"the console answered {dict(pages)}"]


def _press_connections(server: LiveServer, caller: Caller, load: Load, say: Callable[[str], None]) -> None:
    with ExitStack() as stack:
        stack.enter_context(idle(server, load.idle))
        say(f"{load.idle:,} idle connections: {Usage.of(server)}")
        listening = stack.enter_context(streams(server, caller, load.streams))
        say(f"{load.streams:,} streams as well: {Usage.of(server)}")
        stack.enter_context(slow_readers(server, load.slow))
        stack.enter_context(slow_writers(server, load.slow))
        longest = busy(server, load.busy, 20)
        say(f"{load.busy:,} busy as well: {Usage.of(server)}, all answered within {longest:.1f} s")
        with Connection(server) as connection:
            assert connection.write("PUT", FOLLOWED, ("p", "r"), {"n": 1}).status == 204
        for client in listening:
            assert _read_until(client, re.compile(rb"data: "))


def settled(server: LiveServer, limit: Usage) -> Usage:
    """Return a server's usage as soon as it is within a limit, or no longer falls."""
    usage, since = Usage.of(server), time.monotonic()
    patience = PATIENCE if limit.memory else 5  # seconds; nothing is wanted of the first round
    while (usage.memory > limit.memory or usage.descriptors > limit.descriptors) and (
        time.monotonic() < since + patience
    ):
        time.sleep(0.2)
        result = Usage.of(server)
        if result.memory < usage.memory or result.descriptors < usage.descriptors:
            since = time.monotonic()
        usage = result
    return usage


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.faults.pressure",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    for name in Load.__dataclass_fields__:
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=int, default=getattr(Load(), name), metavar="N")
    parser.add_argument("--memory", default="512M", metavar="SIZE", help="the server's --request-memory")
    given = vars(parser.parse_args(arguments))
    memory = given.pop("memory")
    load = Load(**given)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        limits = {"TABLERO_REQUEST_MEMORY": memory, "TABLERO_STREAM_LIMIT": "1000"}
        with start_server(Path(folder) / "tablero", env=limits) as server:
            problems = press(server, load, lambda line: print(line, flush=True))
            problems += [line for line in server.output if "Traceback" in line]
    for problem in problems:
        print(f"PROBLEM: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
