"""Server-sent events of a change feed: a view decides who reads what, and the event loop does the rest.

A view under ASGI has a thread and a database connection until its response has ended: too much for a stream that lasts
for hours. So a view only says in the request's scope what to stream. Its response, without a body, is the head of the
stream; what follows is written here.
https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, MutableMapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest, HttpResponse

from storage.domain.errors import ServerBusy
from storage.domain.service.feed import ExpiredToken, FeedChange, FeedPage
from storage.operations import feed as operations
from storage.operations.feed import Feed, NoHistory
from storage.operations.live_feed import LiveFeed
from storage.operations.threads import in_thread

MEDIA_TYPE: Final = "text/event-stream"
RETRY: Final = 1000  # milliseconds after which a client connects again
HEARTBEAT: Final = 15.0  # seconds
READER_LIMIT: Final = 20  # streams of one reader and process
STREAM_LIMIT: Final = 1000  # of a process
_STATE: Final = "feed"  # in the scope's state

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Stream:
    """What a view wants to be streamed: its first page has been read, which tells whether the token is valid.

    ``write`` writes the data of an event, which must be one line. ``reader`` is whose streams are counted;
    ``is_allowed`` is asked now and then, in a thread.
    """

    feed: Feed
    page: FeedPage
    token: str
    write: Callable[[FeedChange], bytes]
    reader: str
    is_allowed: Callable[[], bool]


class TooManyStreams(Exception):
    """The reader, or the process, has as many streams as it may."""


_streams: Counter[str] = Counter()


def respond(request: HttpRequest, stream: Stream) -> HttpResponse:
    """Return the head of a stream; raises TooManyStreams."""
    if _streams[stream.reader] >= READER_LIMIT or _streams.total() >= STREAM_LIMIT:
        raise TooManyStreams
    request.scope["state"][_STATE] = stream  # type: ignore[attr-defined]
    # proxies must not wait for more
    return HttpResponse(
        content_type=MEDIA_TYPE, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )


async def run(application: Application, live: LiveFeed, scope: Scope, receive: Receive, send: Send) -> None:
    """Have an application answer a request, and write the stream that it asks for."""

    async def send_head(message: MutableMapping[str, Any]) -> None:
        if _STATE not in scope["state"]:
            await send(message)
        elif message["type"] == "http.response.start":
            headers = [
                (name, value) for name, value in message["headers"] if name.lower() != b"content-length"
            ]
            await send({**message, "headers": headers})

    await application(scope, receive, send_head)
    stream: Stream | None = scope["state"].get(_STATE)
    if stream is not None and scope["method"] == "GET":
        await _write(stream, live, scope["state"]["ending"], receive, send)
    elif stream is not None:
        await send({"type": "http.response.body"})


async def _write(stream: Stream, live: LiveFeed, ending: asyncio.Event, receive: Receive, send: Send) -> None:
    """Write events until the client goes, the server ends, or the reader is not allowed any more."""

    async def send_text(text: bytes) -> None:
        await send({"type": "http.response.body", "body": text, "more_body": True})

    events = _events(stream, live)
    ends = [asyncio.ensure_future(ending.wait()), asyncio.ensure_future(_wait_for_disconnect(receive))]
    with _counted(stream.reader):
        async with aclosing(events):
            await send_text(b"retry: %d\n\n" % RETRY)
            following = asyncio.ensure_future(anext(events))
            try:
                while True:
                    done, _ = await asyncio.wait(
                        [following, *ends], timeout=HEARTBEAT, return_when=asyncio.FIRST_COMPLETED
                    )
                    if not done.isdisjoint(ends):
                        break
                    if not done:
                        if not await _is_allowed(stream):
                            break
                        await send_text(b":\n\n")
                        continue
                    await send_text(following.result())
                    following = asyncio.ensure_future(anext(events))
            except (ExpiredToken, NoHistory):
                pass  # the client learns it when it connects again
            finally:
                for task in (following, *ends):
                    task.cancel()
                await asyncio.gather(following, *ends, return_exceptions=True)
    await send({"type": "http.response.body"})


async def _events(stream: Stream, live: LiveFeed) -> AsyncGenerator[bytes, None]:
    yield _write_page(stream, stream.page, stream.token)
    async with aclosing(live.follow(stream.feed, stream.token, has_more=stream.page.has_more)) as pages:
        async for page, token in pages:
            yield _write_page(stream, page, token)


def _write_page(stream: Stream, page: FeedPage, token: str) -> bytes:
    """Write an event for each change; without any, only the token, which a client then sends when it connects again."""
    if not page.changes:
        return b"id: %b\n\n" % token.encode()
    tokens: Sequence[str] = operations.tokens(stream.feed, page, token)
    return b"".join(
        b"id: %b\ndata: %b\n\n" % (each.encode(), stream.write(change))
        for each, change in zip(tokens, page.changes, strict=True)
    )


@contextmanager
def _counted(reader: str) -> Iterator[None]:
    _streams[reader] += 1
    try:
        yield
    finally:
        _streams[reader] -= 1
        if not _streams[reader]:
            del _streams[reader]


async def _is_allowed(stream: Stream) -> bool:
    try:
        return await in_thread(stream.is_allowed)
    except ServerBusy:
        return True  # the database does not answer, so there is nothing to read either


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
