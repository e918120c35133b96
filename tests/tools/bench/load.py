"""The load generator: requests made beforehand, one epoll loop, every answer checked."""

import gc
import select
import socket
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter_ns

SECOND = 1_000_000_000
PATIENCE = 60
"""Seconds without any answer after which a run is given up."""
HEAD_END = b"\r\n\r\n"
LAST_CHUNK = b"\r\n0\r\n\r\n"
CONTINUED = b"\r\nx-ms-continuation-"


@dataclass(frozen=True, slots=True)
class Expected:
    """A correct answer: its status, and the number of occurrences of a text in its body."""

    status: bytes
    text: bytes = b""
    times: int = 0


@dataclass(frozen=True, slots=True)
class Measurement:
    """The outcome of one run; times in milliseconds, `cpu` in microseconds of the server per request.

    `client` and `others` are cores that the load generator and all other programs kept busy."""

    per_second: float
    p50: float
    p99: float
    answers: int
    cpu: float = 0.0
    client: float = 0.0
    others: float = 0.0
    partial: int = 0
    """Answers that stopped early with a continuation token, as the protocol allows."""
    errors: dict[str, int] = field(default_factory=dict)


class Connection:
    """One keep-alive connection and the answer it is receiving."""

    __slots__ = ("buffer", "filled", "sent_at", "socket", "total", "unsent")

    def __init__(self, address: tuple[str, int], *, blocking: bool) -> None:
        self.socket = socket.create_connection(address, timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(blocking)
        self.buffer = bytearray(1 << 16)
        self.filled = 0
        self.total = 0
        self.unsent = memoryview(b"")
        self.sent_at = 0

    def receive(self) -> int:
        """Read once; the number of bytes read, 0 when the peer closed."""
        if self.filled == len(self.buffer):
            self.buffer.extend(bytes(len(self.buffer)))
        count = self.socket.recv_into(memoryview(self.buffer)[self.filled :])
        self.filled += count
        return count

    def complete(self) -> bool:
        if not self.total:
            self.total = answer_length(self.buffer, self.filled)
        if self.total == CHUNKED:
            return self.buffer[self.filled - 7 : self.filled] == LAST_CHUNK
        return 0 < self.total <= self.filled


CHUNKED = -1


def answer_length(buffer: bytearray, filled: int) -> int:
    """Bytes of the whole answer: 0 while its head is incomplete, CHUNKED when only its end will tell."""
    end = buffer.find(HEAD_END, 0, filled) + 4
    if end < 4:
        return 0
    if buffer[9:12] == b"204":
        return end
    head = bytes(buffer[:end]).lower()
    at = head.find(b"\r\ncontent-length:")
    if at >= 0:
        return end + int(head[at + 17 : head.index(b"\r\n", at + 17)])
    if b"\r\ntransfer-encoding: chunked" in head:
        return CHUNKED
    raise ValueError(f"an answer without a length: {head!r}")


def occurrences(answer: bytearray, end: int, text: bytes) -> int:
    """Return how often a text occurs in the body of an answer, with chunk framing removed."""
    body = answer.index(HEAD_END) + 4
    if b"\r\ntransfer-encoding: chunked" not in bytes(answer[:body]).lower():
        return answer.count(text, body, end)
    chunks = list(chunk_bounds(answer, body))
    if len(text) == 1:
        return sum(answer.count(text, start, stop) for start, stop in chunks)
    return b"".join(answer[start:stop] for start, stop in chunks).count(text)


def chunk_bounds(answer: bytearray, at: int) -> Iterator[tuple[int, int]]:
    while True:
        start = answer.index(b"\r\n", at) + 2
        stop = start + int(answer[at : start - 2].partition(b";")[0], 16)
        if start == stop:
            return
        yield start, stop
        at = stop + 2


class Run:
    """One timed run: each connection sends its next request as soon as its answer is complete."""

    def __init__(
        self, requests: Iterator[bytes], expected: Expected, *, seconds: float, warm_up: float
    ) -> None:
        self.requests = requests
        self.expected = expected
        self.seconds = seconds
        self.warm_up = warm_up
        self.latencies = array("q")
        self.errors: Counter[str] = Counter()
        self.partial = 0
        self.minimum = 0
        self.cold = 0
        self.counted = 0
        self.began = self.ended = 0

    def measure(self, address: tuple[str, int], connections: int) -> Measurement:
        links = [Connection(address, blocking=connections == 1) for _ in range(connections)]
        self.minimum = 3 * connections
        gc.collect()
        gc.disable()
        try:
            self._drive(links)
        finally:
            gc.enable()
            for link in links:
                link.socket.close()
        return self._summary()

    def _drive(self, links: list[Connection]) -> None:
        start = perf_counter_ns()
        self.warm_at = start + int(self.warm_up * SECOND)
        self.deadline = self.warm_at + int(self.seconds * SECOND)
        # slow answers get more time, or a median would rest on one or two of them
        self.latest = self.warm_at + int(5 * self.seconds * SECOND)
        self.began = self.ended = self.warm_at
        if len(links) == 1:
            self._drive_one(links[0])
        else:
            self._drive_many(links)

    def _drive_one(self, link: Connection) -> None:
        """Blocking, because readiness would be one more system call in every latency."""
        timeout = PATIENCE.to_bytes(8, "little") + bytes(8)
        link.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeout)
        request = next(self.requests, None)
        while request is not None:
            link.sent_at = perf_counter_ns()
            link.socket.sendall(request)
            try:
                while link.receive() and not link.complete():
                    pass
            except BlockingIOError:
                self.errors[f"no answer in {PATIENCE} s"] += 1
                return
            if not link.complete():
                self.errors["connection closed by the server"] += 1
                return
            request = self._next(link)

    def _drive_many(self, links: list[Connection]) -> None:
        poll = select.epoll()
        by_number = {link.socket.fileno(): link for link in links}
        for number in by_number:
            poll.register(number, select.EPOLLIN)
        busy = sum(self._send(poll, link, next(self.requests, None)) for link in links)
        while busy:
            events = poll.poll(PATIENCE)
            if not events:
                self.errors[f"no answer in {PATIENCE} s"] += busy
                break
            for number, event in events:
                link = by_number[number]
                if event & select.EPOLLOUT:
                    self._flush(poll, link)
                if event & ~select.EPOLLOUT and not self._advance(poll, link):
                    busy -= 1
        poll.close()

    def _send(self, poll: select.epoll, link: Connection, request: bytes | None) -> bool:
        if request is None:
            return False
        link.sent_at = perf_counter_ns()
        sent = link.socket.send(request)
        if sent < len(request):
            link.unsent = memoryview(request)[sent:]
            poll.modify(link.socket, select.EPOLLIN | select.EPOLLOUT)
        return True

    def _flush(self, poll: select.epoll, link: Connection) -> None:
        link.unsent = link.unsent[link.socket.send(link.unsent) :]
        if not link.unsent:
            poll.modify(link.socket, select.EPOLLIN)

    def _advance(self, poll: select.epoll, link: Connection) -> bool:
        """Take in what has come; whether the connection is still at work."""
        try:
            open_still = link.receive() > 0
        except OSError:
            open_still = False
        if not open_still:
            self.errors["connection closed by the server"] += 1
            poll.unregister(link.socket)
            return False
        if not link.complete():
            return True
        return self._send(poll, link, self._next(link))

    def _next(self, link: Connection) -> bytes | None:
        """Note the answer that is complete; the request to send next, None when the time is over."""
        now = perf_counter_ns()
        self.latencies.append(now - link.sent_at)
        self._check(link)
        link.filled = link.total = 0
        if now < self.warm_at:
            self.cold = len(self.latencies)
            self.began = now
        if now > self.deadline and (len(self.latencies) - self.cold >= self.minimum or now > self.latest):
            return None
        self.ended = now
        self.counted = len(self.latencies)
        request = next(self.requests, None)
        if request is None:
            if now < self.warm_at:
                self.errors["no request was left after the warm-up"] += 1
            self.deadline = self.latest = 0
            self.minimum = 0
        return request

    def _check(self, link: Connection) -> None:
        expected = self.expected
        answer = link.buffer
        if answer[9:12] != expected.status:
            self.errors[
                f"{answer[9:12].decode()} instead of {expected.status.decode()}: {excerpt(link)}"
            ] += 1
        elif expected.text:
            times = occurrences(answer, link.filled, expected.text)
            if times != expected.times:
                if CONTINUED in bytes(answer[:4096]).lower() and times < expected.times:
                    self.partial += 1
                else:
                    self.errors[f"{times} instead of {expected.times} times {expected.text.decode()}"] += 1

    def _summary(self) -> Measurement:
        latencies = sorted(self.latencies[self.cold :]) or [0]
        return Measurement(
            per_second=(self.counted - self.cold) * SECOND / max(1, self.ended - self.began),
            p50=rank(latencies, 0.50),
            p99=rank(latencies, 0.99),
            answers=len(self.latencies),
            partial=self.partial,
            errors=dict(self.errors),
        )


def rank(ordered: list[int], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] / 1e6


def excerpt(link: Connection) -> str:
    body = bytes(link.buffer[: link.filled]).partition(HEAD_END)[2]
    return body[:160].decode(errors="replace").replace("\n", " ")
