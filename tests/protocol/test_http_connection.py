"""HTTP on raw connections, with an application that echoes requests."""

import asyncio
from itertools import product
from xml.etree import ElementTree

import pytest
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.server import ServerState

from storage.domain.errors import OperationTimedOut
from storage.protocol import http_connection, http_request
from storage.protocol.request_memory import FACTOR, BodyBudget, memory

LAST = b"GET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"


async def echo(scope, receive, send):
    """Echo the request: at once on /early, else after the body; /quiet never answers."""
    body, whole = b"", scope["path"] == "/early"
    while not whole:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message["body"]
        whole = not message["more_body"]
    if scope["path"] == "/quiet":
        await asyncio.sleep(0.1)
    seen = f"{scope['method']} {scope['raw_path'].decode()} {scope['query_string'].decode()} {len(body)}".encode()
    headers = [(b"content-length", b"%d" % len(seen)), (b"x-headers", repr(scope["headers"]).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": seen})


async def serve_echo(head, body, write):
    """Serve the echo in the form of the Table service."""
    content = await body.read(head) if head.path != b"/early" else b""
    if head.path == b"/quiet":
        await asyncio.sleep(0.1)
    seen = b"%b %b %b %d" % (head.method.encode(), head.path, head.query, len(content))
    reusable = await body.drain()
    seen += bytes(int(head.query)) if head.path == b"/big" else b""
    headers = [(b"Content-Length", b"%d" % len(seen)), (b"X-Headers", repr(head.fields).encode())]
    write(200, headers, seen, reusable)


@pytest.fixture(params=["asgi", "service"])
def applications(request):
    return http_connection.Applications(serve_echo, echo, lambda head: request.param == "asgi")


@pytest.fixture
def config():
    return uvicorn.Config(echo, ws="none", lifespan="off", log_level="warning")


@pytest.fixture
def state():
    return ServerState()


class Clock:
    """The event loop of connections with a time of its own: what a busy machine takes does not count."""

    def __init__(self):
        self._now = 0.0
        self._timers = []

    def __getattr__(self, name):
        return getattr(asyncio.get_running_loop(), name)

    def time(self):
        return self._now

    def call_at(self, when, callback):
        self._timers.append(timer := asyncio.TimerHandle(when, callback, (), asyncio.get_running_loop()))
        return timer

    def advance(self, seconds):
        self._now += seconds
        timers, self._timers = self._timers, []
        for timer in timers:
            if timer.when() > self._now:
                self._timers.append(timer)
            elif not timer.cancelled():
                timer._run()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def port(request, config, applications, state):
    config.load()
    loop = asyncio.get_running_loop()
    clock = request.getfixturevalue("clock") if "clock" in request.fixturenames else None
    server = await loop.create_server(
        lambda: http_connection.HttpConnection(applications, config, state, {}, clock), "127.0.0.1", 0
    )
    yield server.sockets[0].getsockname()[1]
    server.close()
    await asyncio.gather(*state.tasks)


@pytest.fixture
def talk(port):
    async def talk(*pieces, pause=0.02, end=False, answer=None):
        """Everything that comes back until the server closes the connection, which it has to.

        ``answer`` is how the answer to the first piece ends, which is awaited before the next one.
        """
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        received = b""
        try:
            for piece in pieces:
                writer.write(piece)
                if answer is not None and piece is pieces[0]:
                    received = await reader.readuntil(answer)
                await asyncio.sleep(pause)
            if end:
                writer.write_eof()
            async with asyncio.timeout(60):
                while data := await reader.read(65536):
                    received += data
        except ConnectionError:
            pass
        finally:
            writer.transport.abort()
        return received

    return talk


def seen(received):
    """Return the requests as the application saw them."""
    heads = received.split(b"HTTP/1.1 200 OK\r\n")[1:]
    return [head.partition(b"\r\n\r\n")[2].decode() for head in heads]


def refusal(received):
    """Return the status and the error code of a refusal, which must be well-formed."""
    head, _, body = received.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert headers["server"] == "Windows-Azure-Table/1.0 Tablero"
    assert headers["connection"] == "close"
    assert headers["content-type"] == "application/xml"
    assert int(headers["content-length"]) == len(body)
    error = ElementTree.fromstring(body)
    assert error[0].text == headers["x-ms-error-code"]
    assert f"\nRequestId:{headers['x-ms-request-id']}\nTime:" in error[1].text
    return int(status.split()[1]), headers["x-ms-error-code"]


TARGETS = [
    (b"/acct/people", "/acct/people", ""),
    (b"//Tables", "//Tables", ""),
    (
        b"/t(PartitionKey='a%2Fb%27',RowKey=%27%20%C3%B4%27)?$filter=a%20eq%20'b'&x=+",
        "/t(PartitionKey='a%2Fb%27',RowKey=%27%20%C3%B4%27)",
        "$filter=a%20eq%20'b'&x=+",
    ),
    (b"/t?a?b=%3f", "/t", "a?b=%3f"),
    (b"/t?", "/t", ""),
    (b"http://h:1/acct/t%27?comp=acl", "/acct/t%27", "comp=acl"),
]


async def test_keeps_the_target_as_it_was_sent(talk):
    requests = [b"GET %b HTTP/1.1\r\nHost: h\r\n\r\n" % target for target, _, _ in TARGETS]
    results = [f"GET {path} {query} 0" for _, path, query in TARGETS]
    assert seen(await talk(*requests, LAST)) == [*results, "GET /last  0"]


async def test_keeps_headers_in_order_and_values_as_they_were_sent(talk):
    received = await talk(
        b"GET / HTTP/1.1\r\nHost: h\r\nX-A: b; C\r\nX-HTTP-Method: a\r\nx-http-method: b\r\n\r\n", LAST
    )
    headers = [(b"host", b"h"), (b"x-a", b"b; C"), (b"x-http-method", b"a"), (b"x-http-method", b"b")]
    assert b"x-headers: " + repr(headers).encode() in received


async def test_drops_blanks_around_the_value_of_a_header(talk):
    received = await talk(b"GET / HTTP/1.1\r\nHost: h \r\nX-A:\t b; C \t \r\nX-B: \t\r\n\r\n", LAST)
    assert b"x-headers: " + repr([(b"host", b"h"), (b"x-a", b"b; C"), (b"x-b", b"")]).encode() in received


async def test_asks_for_a_body_that_waits_for_it(talk):
    for path in (b"/t", b"/early"):
        head = b"POST %b HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n" % path
        received = await talk(head, b"abc", LAST)
        assert received.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
        assert [line[:4] for line in seen(received)] == ["POST", "GET "]


async def test_asks_for_the_body_of_a_pipelined_request_in_its_turn(talk):
    asked = b"HTTP/1.1 100 Continue\r\n\r\n"
    head = b"POST /t HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
    received = await talk(b"GET /quiet HTTP/1.1\r\nHost: h\r\n\r\n" + head, b"abc", LAST, answer=asked)
    assert seen(received.replace(asked, b"")) == ["GET /quiet  0", "POST /t  3", "GET /last  0"]
    assert received.index(b"GET /quiet") < received.index(asked)


async def test_ignores_an_offer_to_upgrade(talk):
    for offer in (b"h2c", b"websocket"):
        head = (
            b"POST /t HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: %b\r\n" % offer
        )
        pieces = [head + b"HTTP2-Settings: AA\r\nContent-Length: 3\r\n\r\n", b"abc", LAST]
        for sent in (pieces, [b"".join(pieces)]):
            assert seen(await talk(*sent)) == ["POST /t  3", "GET /last  0"]


async def test_stays_in_step_when_answered_before_the_body_came(talk):
    head = b"POST /early HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n"
    received = await talk(head, b"x" * 200_000, LAST)
    assert seen(received) == ["POST /early  0", "GET /last  0"]


async def test_answers_a_half_closed_client(talk):
    received = await talk(b"GET /quiet HTTP/1.1\r\nHost: h\r\n\r\n", end=True)
    assert seen(received) == ["GET /quiet  0"]


async def test_drops_a_client_half_closed_too_early(talk):
    assert await talk(b"PUT /t HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\na", end=True) == b""


REFUSED = [
    (b"FOO / HTTP/1.1\r\n\r\n", 400, "InvalidHttpVerb"),
    (b"CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n", 400, "InvalidHttpVerb"),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "InvalidHttpVerb"),
    (b"GET /\xc3\xa9 HTTP/1.1\r\nHost: h\r\n\r\n", 400, "RequestUrlFailedToParse"),
    (b"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", 400, "RequestUrlFailedToParse"),
    (b"GET http://h HTTP/1.1\r\nHost: h\r\n\r\n", 400, "RequestUrlFailedToParse"),
    (b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n", 400, "InvalidHeaderValue"),
    (
        b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        400,
        "InvalidHeaderValue",
    ),
    (b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcZZ", 400, "InvalidInput"),
    (b"GET / HTTP/1.1\r\nHost: h\r\nno header\r\n\r\n", 400, "InvalidHeaderValue"),
    (b"GET / HTTP/1.1\r\n\r\n", 400, "HostInformationNotPresent"),
    (b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400, "HostInformationNotPresent"),
    (b"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400, "HostInformationNotPresent"),
    (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400, "HostInformationNotPresent"),
    (b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % (b"a" * 262), 400, "HostInformationNotPresent"),
    (b"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505, "HttpVersionNotSupported"),
    (b"GET / HTTP/0.9\r\nHost: h\r\n\r\n", 505, "HttpVersionNotSupported"),
]


async def test_refuses_malformed_requests(talk):
    answers = await asyncio.gather(*(talk(sent) for sent, _, _ in REFUSED))
    refusals = [(sent, *refusal(answer)) for (sent, _, _), answer in zip(REFUSED, answers, strict=True)]
    assert refusals == REFUSED


async def test_refuses_malformed_requests_alike_on_a_kept_connection(talk):
    before, echoed = b"GET /before HTTP/1.1\r\nHost: h\r\n\r\n", b"GET /before  0"
    answers = await asyncio.gather(*(talk(before, sent, answer=echoed) for sent, _, _ in REFUSED))
    refusals = [
        (sent, *refusal(answer.partition(echoed)[2]))
        for (sent, _, _), answer in zip(REFUSED, answers, strict=True)
    ]
    assert refusals == REFUSED


async def test_accepts_a_host_and_a_port_and_an_old_client_without(talk):
    for host in (b"h:10002", b"my_host.local", b"[::1]:80", b"a" * 255 + b":65535"):
        received = await talk(b"GET /h HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n\r\n" % host)
        assert seen(received) == ["GET /h  0"]
    for host in (b"", b"Host: h\r\n"):
        assert seen(await talk(b"GET /old HTTP/1.0\r\n%b\r\n" % host)) == ["GET /old  0"]


async def test_refuses_what_follows_a_request_after_its_answer(talk):
    received = await talk(b"GET /quiet HTTP/1.1\r\nHost: h\r\n\r\n\0garbage")
    assert seen(received) == ["GET /quiet  0"]


LONG = b"x" * 40_000


TOO_LONG = [
    [b"GET /" + LONG + LONG + b" HTTP/1.1\r\nHost: h\r\n\r\n"],
    [b"GET / HTTP/1.1\r\nA: " + LONG + b"\r\nB: " + LONG + b"\r\n\r\n"],
    [b"GET / HTTP/1.1\r\nA: ", LONG, LONG, LONG],
    [b"GET / HTTP/1.1\r\n", *[b"a: b\r\n" * 4000] * 4],
    [b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: ", LONG, LONG, LONG],
]


async def test_refuses_a_head_that_is_too_long(talk):
    answers = await asyncio.gather(*(talk(*pieces) for pieces in TOO_LONG))
    assert [refusal(answer) for answer in answers] == [(400, "InvalidHeaderValue")] * len(TOO_LONG)


def head_of(size, *, filler=b"x", start=b"GET / HTTP/1.1\r\nHost: h\r\n", connection=b"close"):
    """Return a head of exactly this size."""
    start += b"Connection: %b\r\nA: b" % connection
    return start + filler * ((size - len(start) - 4) // len(filler)) + b"\r\n\r\n"


def in_pieces(data, size):
    return [data[start : start + size] for start in range(0, len(data), size)]


LIMIT = http_connection.MAX_HEAD
SHAPES = {
    "at once": lambda head: [head],
    "in small pieces": lambda head: in_pieces(head, 1399),
    "in pieces of the parser": lambda head: in_pieces(head, http_connection.PIECE),
    "with its end by drops": lambda head: [head[:-9], *in_pieces(head[-9:], 1)],
    "after blank lines": lambda head: [b"\r\n\r\n\r\n" + head],
    "after another": lambda head: [b"GET /first HTTP/1.1\r\nHost: h\r\n\r\n" + head],
    "after a body": lambda head: [
        b"PUT /first HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\n" + b"y" * 5000 + head
    ],
    "after half a body": lambda head: [
        b"PUT /first HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\n" + b"y" * 2000,
        b"y" * 3000 + head,
    ],
}


async def test_the_limit_of_a_head_is_exact(talk):
    """All bytes are counted that a client sends from the first of the request line to the blank line."""
    fillers = {"text": b"x", "headers": b"\r\nC: d", "blanks": b" "}
    wrong = []
    for (name, shape), filler, size in product(SHAPES.items(), fillers, (LIMIT, LIMIT + 1)):
        head = head_of(size, filler=fillers[filler])
        head = head[:-4] + b"z" * (size - len(head)) + b"\r\n\r\n"  # a filler may not fit
        assert len(head) == size
        received = await talk(*shape(head), pause=0.0)
        # data after a request may be refused by closing the connection
        is_answered = "GET /  0" in seen(received)
        wrong += [(name, filler, size)] if is_answered is not (size == LIMIT) else []
    assert wrong == []


async def test_the_limit_counts_the_whole_request_line(talk):
    line = b"GET /%b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    longest = LIMIT - len(line % b"")
    assert seen(await talk(line % (b"x" * longest))) == [f"GET /{'x' * longest}  0"]
    assert refusal(await talk(line % (b"x" * (longest + 1)))) == (400, "InvalidHeaderValue")


async def test_accepts_long_heads_and_bodies(talk):
    head = b"PUT /t HTTP/1.1\r\nHost: h\r\nA: %b\r\nContent-Length: 1000000\r\n\r\n" % (b"x" * 60_000)
    received = await talk(head, b"x" * 1_000_000, LAST)
    assert seen(received) == ["PUT /t  1000000", "GET /last  0"]


STALLING = [
    [],
    [b"\r\n"],
    [b"GET / HT"],
    [b"GET /", *[b"a"] * 6],
    [b"GET / HTTP/1.1\r\n", *[b"a: b\r\n"] * 6],
    [b"GET /first HTTP/1.1\r\nHost: h\r\n\r\n", b"GET / HT"],
    [b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab"],
    [b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"],
]


@pytest.mark.slow
async def test_closes_on_a_client_that_stalls(monkeypatch, config, talk):
    monkeypatch.setattr(http_connection, "MAX_STALL", 0.3)
    config.timeout_keep_alive = 0.3
    answers = await asyncio.gather(*(talk(*pieces, pause=0.1) for pieces in STALLING))
    assert list(map(seen, answers)) == [["GET /first  0"] if len(it) == 2 else [] for it in STALLING]


async def test_waits_for_a_body_that_comes_slowly(clock, port, state):
    reader, writer = await ask(port, b"PUT /t HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\n")
    await until(lambda: state.connections)
    [connection] = state.connections
    for _ in range(6):
        # the sent data has been seen
        await until(lambda: connection._deadline == clock.time() + http_connection.MAX_STALL)
        clock.advance(0.7 * http_connection.MAX_STALL)
        writer.write(b"x")
    writer.write(LAST)
    assert seen(await reader.read()) == ["PUT /t  6", "GET /last  0"]
    writer.transport.abort()


async def test_an_early_answer_leaves_no_connection_open(config, talk):
    config.timeout_keep_alive = 0.3
    head = b"PUT /early HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n"
    assert seen(await talk(head, b"abc", pause=0.1)) == ["PUT /early  0"]


async def test_answers_pipelined_requests_in_their_order(talk):
    requests = [b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\n" % number for number in range(1000)]
    received = await talk(b"".join(requests), LAST)
    assert seen(received) == [*(f"GET /{number}  0" for number in range(1000)), "GET /last  0"]


@pytest.mark.slow
@pytest.mark.parametrize("applications", ["service"], indirect=True)
@pytest.mark.parametrize("closing", [b"", b"Connection: close\r\n"], ids=["stays", "closes"])
async def test_drops_a_client_that_never_reads(monkeypatch, config, port, closing):
    monkeypatch.setattr(http_connection, "MAX_STALL", 0.2)
    config.timeout_keep_alive = 0.2
    _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
    # more than the buffers of both sides hold
    request = b"GET /big?30000000 HTTP/1.1\r\nHost: h\r\n%b\r\n" % closing
    writer.write(request)
    async with asyncio.timeout(60):
        while not writer.transport.is_closing():
            writer.write(b"x" * 100_000)
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("applications", ["service"], indirect=True)
async def test_lets_a_client_read_slowly(clock, port, state):
    reader, writer = await ask(port, b"GET /big?20000000 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    await until(lambda: any(it.flow.write_paused for it in state.connections))
    [connection] = state.connections
    received = 0
    while unsent := connection.transport.get_write_buffer_size():
        clock.advance(http_connection.MAX_STALL)
        while connection.transport.get_write_buffer_size() == unsent:
            received += len(await reader.read(1 << 20))
    assert received + await read_all(reader) > 20_000_000
    writer.transport.abort()


async def ask(port, request):
    """Connect a client that sends a request and reads nothing, so that only small buffers take of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
    writer.write(request)
    return reader, writer


async def read_all(reader):
    received = 0
    try:
        while data := await reader.read(1 << 20):
            received += len(data)
    except ConnectionError:
        pass
    return received


async def until(condition):
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("applications", ["service"], indirect=True)
async def test_closes_the_oldest_when_unread_answers_take_too_much_memory(monkeypatch, port):
    monkeypatch.setattr(memory.answers, "limit", 40_000_000)
    request = b"GET /big?30000000 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    first, first_writer = await ask(port, request)
    await until(lambda: memory.answers.used > 0)
    second, second_writer = await ask(port, request)

    assert await read_all(second) > 30_000_000
    assert await read_all(first) < 30_000_000
    assert memory.answers.used == 0
    first_writer.transport.abort()
    second_writer.transport.abort()


@pytest.mark.parametrize("applications", ["service"], indirect=True)
async def test_answers_nothing_more_until_its_answer_is_read(port, talk, state):
    """Requests that come one by one, each when the answer to the one before waits to be read."""
    big = b"GET /big?30000000 HTTP/1.1\r\nHost: h\r\n\r\n"
    reader, writer = await ask(port, big)
    await until(lambda: any(it.flow.write_paused for it in state.connections))
    [connection] = state.connections
    for _ in range(5):
        writer.write(big)
        await talk(LAST)  # the previous data has been seen
    assert connection.transport.get_write_buffer_size() < 31_000_000

    writer.write(LAST)
    assert await read_all(reader) > 6 * 30_000_000
    writer.transport.abort()


async def test_parses_no_more_requests_than_may_wait(port, state):
    request = b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\n"
    reader, writer = await ask(port, b"GET /quiet HTTP/1.1\r\nHost: h\r\n\r\n")
    await until(lambda: state.connections)
    [connection] = state.connections
    numbers = range(5000)
    writer.write(b"".join(request % number for number in numbers) + LAST)
    most = http_connection.PIPELINED + http_connection.PIECE // len(request)
    received = b""
    while data := await reader.read(1 << 16):
        received += data
        assert len(connection._exchanges) <= most
        assert len(connection._unparsed) < 200_000
    assert seen(received) == ["GET /quiet  0", *(f"GET /{number}  0" for number in numbers), "GET /last  0"]
    writer.transport.abort()


@pytest.mark.parametrize("applications", ["service"], indirect=True)
async def test_large_bodies_wait_for_each_other(monkeypatch, port, talk):
    monkeypatch.setattr(memory, "service", budget := BodyBudget(120_000 * FACTOR))
    head = b"PUT /t HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 90000\r\n\r\n"
    first, first_writer = await ask(port, head)  # before any of the body
    await until(lambda: budget.used == 90_000 * FACTOR)
    second, second_writer = await ask(port, head + b"x" * 90_000)

    # small ones do not wait, and the second one has been seen after them
    assert seen(await talk(LAST)) == ["GET /last  0"]
    assert budget.used == 90_000 * FACTOR

    first_writer.write(b"x" * 90_000)
    assert seen(await first.read()) == seen(await second.read()) == ["PUT /t  90000"]
    assert budget.used == 0
    first_writer.transport.abort()
    second_writer.transport.abort()


@pytest.mark.parametrize("applications", ["service"], indirect=True)
async def test_a_disconnected_client_releases_its_memory(monkeypatch, port, state):
    monkeypatch.setattr(memory, "service", budget := BodyBudget(120_000 * FACTOR))
    head = b"PUT /t HTTP/1.1\r\nHost: h\r\nContent-Length: 90000\r\n\r\n"
    _, reads = await ask(port, head + b"x" * 80_000)
    await until(lambda: budget.used == 90_000 * FACTOR)
    _, waits = await ask(port, head + b"x" * 80_000)
    await until(lambda: len(state.connections) == 2)

    waits.transport.abort()
    reads.transport.abort()

    await until(lambda: budget.used == 0)


@pytest.mark.parametrize("applications", ["service"], indirect=True)
@pytest.mark.parametrize("head", [b"PUT /t HTTP/1.1\r\nHost: h\r\nContent-Length: 60000\r\n\r\n", b"GET /"])
async def test_refuses_the_oldest_when_incomplete_requests_take_too_much_memory(
    monkeypatch, port, talk, head
):
    monkeypatch.setattr(memory.arriving, "limit", 50_000)
    first, first_writer = await ask(port, head + b"x" * 30_000)
    await until(lambda: memory.arriving.used >= 30_000)
    _, second_writer = await ask(port, head + b"x" * 30_000)

    assert refusal(await first.read()) == (503, "ServerBusy")
    assert seen(await talk(LAST)) == ["GET /last  0"]
    first_writer.transport.abort()
    second_writer.transport.abort()
    await until(lambda: memory.arriving.used == 0)


class Unread(asyncio.Transport):
    def pause_reading(self): ...

    def resume_reading(self): ...


async def test_a_slow_large_body_is_refused(monkeypatch):
    monkeypatch.setattr(http_request, "longest_arrival", lambda size: 0.0)
    body = http_request.RequestBody(FlowControl(Unread()))
    body.feed(b"x" * 80_000)
    headers = {b"content-length": b"90000"}

    with pytest.raises(OperationTimedOut):
        await body.read(http_request.RequestHead("PUT", b"/", b"", [], headers, "http", "", 0))
    body.release()


@pytest.mark.parametrize(
    ("client", "expected"),
    [("10.0.0.9", ("https", ("203.0.113.7", 0))), ("127.0.0.1", ("http", ("127.0.0.1", 1)))],
)
def test_only_a_trusted_proxy_is_believed(client, expected):
    fields = [(b"x-forwarded-proto", b"https"), (b"x-forwarded-for", b"203.0.113.7")]
    assert http_connection._forwarded(("10.0.0.0/8",), "http", (client, 1), fields) == expected


@pytest.mark.parametrize(
    ("schemes", "expected"),
    [
        ([b"https, https"], "https"),
        ([b"https", b"https"], "https"),
        ([b"https ,http"], "http"),
        ([b"http", b"https"], "http"),
        ([b"https,"], "http"),
    ],
)
def test_proxies_in_a_row_must_agree_on_the_scheme(schemes, expected):
    fields = [(b"x-forwarded-proto", scheme) for scheme in schemes]
    assert http_connection._forwarded(("10.0.0.9",), "http", ("10.0.0.9", 1), fields)[0] == expected
