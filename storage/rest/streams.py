"""Server-sent events of change feeds, jobs and the request log; views authorize the streams.

A view under ASGI has a thread and a database connection until its response has ended: too much for a stream
that lasts for hours. So a view only stores the stream in the request's scope. Its empty response is the head
of the stream; the events are written here, on the event loop.
https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, Final, Protocol, TypeVar

from django.http import HttpRequest, HttpResponse

from storage.accounts import quotas
from storage.core.quotas import ACCOUNT_STREAMS, STREAMS
from storage.domain.errors import ServerBusy
from storage.domain.history.feed import ExpiredToken, FeedPage
from storage.domain.history.recorded import RecordedChange
from storage.history import feed as operations
from storage.history.feed import Feed, NoHistory
from storage.jobs import jobs
from storage.models import Job, RecordedRequest
from storage.requests import requests
from storage.requests.requests import RequestFilter
from storage.runtime.live_feed import LiveFeed
from storage.runtime.stream_access import AccessChanges, StreamAccess
from storage.runtime.threads import in_access_thread

T = TypeVar("T")
MEDIA_TYPE: Final = "text/event-stream"
RETRY: Final = 1000  # milliseconds after which a client connects again
_PAUSE: Final = 1.0  # seconds after the database did not answer
_MOST: Final = 1000  # of a process
_JOB_INTERVAL: Final = 0.5  # seconds between looks at a job
_LOG_INTERVAL: Final = 1.0  # seconds between looks at the request log
_STATE: Final = "feed"  # in the scope's state

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Stream(Protocol):
    """Stream that a view returns: its events, and its reader.

    Streams are counted by ``reader``, and by ``account_id`` if they belong to an account; ``is_allowed``
    returns, in a thread, whether the reader still has access.
    """

    @property
    def reader(self) -> str: ...

    @property
    def account_id(self) -> int | None: ...

    @property
    def is_allowed(self) -> Callable[[], bool]: ...

    def events(self, live: LiveFeed) -> AsyncGenerator[bytes, None]:
        """Yield events until the stream ends; raises ExpiredToken or NoHistory."""


@dataclass(frozen=True, slots=True)
class FeedStream:
    """Stream of changes after a first page, which was read already to validate the token."""

    feed: Feed
    page: FeedPage
    token: str
    write: Callable[[RecordedChange], bytes]
    reader: str
    is_allowed: Callable[[], bool]

    @property
    def account_id(self) -> int:
        return self.feed.account_id

    async def events(self, live: LiveFeed) -> AsyncGenerator[bytes, None]:
        yield self._write_page(self.page, self.token)
        async with aclosing(live.follow(self.feed, self.token, self.page)) as pages:
            async for page, token in pages:
                yield self._write_page(page, token)

    def _write_page(self, page: FeedPage, token: str) -> bytes:
        """Write an event for each change, or only the current token, with which a client reconnects."""
        if not page.changes:
            return b"id: %b\n\n" % token.encode()
        tokens: Sequence[str] = operations.tokens(self.feed, page, token)
        return b"".join(
            b"id: %b\ndata: %b\n\n" % (each.encode(), self.write(change))
            for each, change in zip(tokens, page.changes, strict=True)
        )


async def _look_patiently(look: Callable[[], T]) -> T:
    """Read from the database, retrying for as long as it is not available."""
    while True:
        try:
            return await in_access_thread(look)
        except ServerBusy:
            await asyncio.sleep(_PAUSE)


@dataclass(frozen=True, slots=True)
class JobStream:
    """Stream of a job's progress, which ends with the job.

    ``write`` serializes the job on one line, in a thread.
    """

    job: int
    account_id: int | None
    write: Callable[[Job], bytes]
    reader: str
    is_allowed: Callable[[], bool]

    async def events(self, live: LiveFeed) -> AsyncGenerator[bytes, None]:
        known, has_ended = "", False
        while not has_ended:
            event, known, has_ended = await _look_patiently(partial(self._look, known))
            if event:
                yield event
            if not has_ended:
                await asyncio.sleep(_JOB_INTERVAL)

    def _look(self, known: str) -> tuple[bytes, str, bool]:
        """Return an event if the job has changed since the version ``known``, its version, and whether it has ended."""
        job = jobs.get(self.job)
        if job is None:
            return b"", known, True
        version = jobs.version(job)
        event = b"" if version == known else b"id: %b\ndata: %b\n\n" % (version.encode(), self.write(job))
        return event, version, job.ended_at is not None


@dataclass(frozen=True, slots=True)
class RequestStream:
    """Stream of request log entries after an id."""

    wanted: RequestFilter
    after: int
    account_id: int
    write: Callable[[RecordedRequest], bytes]
    reader: str
    is_allowed: Callable[[], bool]

    async def events(self, live: LiveFeed) -> AsyncGenerator[bytes, None]:
        after = self.after
        while True:
            event, after = await _look_patiently(partial(self._look, after))
            if event:
                yield event
            else:
                await asyncio.sleep(_LOG_INTERVAL)

    def _look(self, after: int) -> tuple[bytes, int]:
        """Return new events, and the id of the last one."""
        found = requests.following(self.wanted, after)
        events = b"".join(b"id: %d\ndata: %b\n\n" % (it.pk, self.write(it)) for it in found)
        return events, found[-1].pk if found else after


@dataclass(frozen=True, slots=True)
class TableStream:
    """Stream of a table's changes, if it has a feed, merged with ``others``."""

    changes: FeedStream | None
    others: Sequence[Callable[[], AsyncGenerator[bytes, None]]]
    account_id: int
    reader: str
    is_allowed: Callable[[], bool]

    async def events(self, live: LiveFeed) -> AsyncGenerator[bytes, None]:
        parts = [] if self.changes is None else [self.changes.events(live)]
        async with aclosing(_merge([*parts, *(begin() for begin in self.others)])) as events:
            async for event in events:
                yield event


async def _merge(several: Sequence[AsyncGenerator[bytes, None]]) -> AsyncGenerator[bytes, None]:
    """Merge asynchronous generators in order of arrival, until one raises or all have ended."""
    waiting = {asyncio.ensure_future(anext(it)): it for it in several}
    try:
        while waiting:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                generator = waiting.pop(task)
                try:
                    event = task.result()
                except StopAsyncIteration:
                    continue
                waiting[asyncio.ensure_future(anext(generator))] = generator
                yield event
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        for generator in several:
            await generator.aclose()


class TooManyStreams(Exception):
    """The reader, account or process has too many streams."""


# streams whose views have answered, of each reader, account, and the process
_streams: Counter[str] = Counter()
_counting: Final = Lock()  # views run in threads


def respond(request: HttpRequest, stream: Stream) -> HttpResponse:
    """Return the response head of a stream and count the stream; raises TooManyStreams."""
    _admit(request.scope["state"], stream)  # type: ignore[attr-defined]
    # proxies must not wait for more
    return HttpResponse(
        content_type=MEDIA_TYPE, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )


def _limits(stream: Stream) -> dict[str, int]:
    limits = {stream.reader: quotas.limit(STREAMS), "process": _MOST}
    if stream.account_id is not None:
        limits[f"account {stream.account_id}"] = quotas.limit(ACCOUNT_STREAMS)
    return limits


def _admit(state: MutableMapping[str, Any], stream: Stream) -> None:
    limits = _limits(stream)
    with _counting:
        is_over = _STATE in state  # the client has gone meanwhile, so that its place would not be given back
        if is_over or any(_streams[name] >= most for name, most in limits.items()):
            raise TooManyStreams
        _streams.update(limits.keys())
        state[_STATE] = stream


def _discharge(state: MutableMapping[str, Any]) -> None:
    with _counting:
        stream: Stream | None = state.get(_STATE)
        state[_STATE] = None
        if stream is not None:
            _streams.subtract(_limits(stream).keys())
            for name in [name for name, number in _streams.items() if not number]:
                del _streams[name]


async def run(
    application: Application,
    live: LiveFeed,
    changes: AccessChanges,
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    """Serve a request with an application, and write the stream that its view requested."""
    state = scope["state"]

    async def send_head(message: MutableMapping[str, Any]) -> None:
        if _STATE not in state:
            await send(message)
        elif message["type"] == "http.response.start":
            headers = [
                (name, value) for name, value in message["headers"] if name.lower() != b"content-length"
            ]
            await send({**message, "headers": headers})

    try:
        await application(scope, receive, send_head)
        stream: Stream | None = state.get(_STATE)
        if stream is not None and scope["method"] == "GET":
            access = StreamAccess(stream.is_allowed, changes)
            await _write(stream, live, access, state["ending"], receive, send)
        elif stream is not None:
            await send({"type": "http.response.body"})
    finally:
        _discharge(state)


async def _write(
    stream: Stream,
    live: LiveFeed,
    access: StreamAccess,
    ending: asyncio.Event,
    receive: Receive,
    send: Send,
) -> None:
    """Write events until the client disconnects, the server shuts down, or access is lost."""

    async def send_text(text: bytes) -> None:
        await send({"type": "http.response.body", "body": text, "more_body": True})

    ends = [asyncio.ensure_future(ending.wait()), asyncio.ensure_future(_wait_for_disconnect(receive))]
    async with aclosing(stream.events(live)) as events:
        await send_text(b"retry: %d\n\n" % RETRY)
        following = asyncio.ensure_future(anext(events))
        try:
            while await _wait(following, access, ends):
                is_allowed = await access.check()
                if is_allowed is None:
                    await asyncio.wait(ends, timeout=_PAUSE, return_when=asyncio.FIRST_COMPLETED)
                elif not is_allowed:
                    break
                elif following.done():
                    await send_text(following.result())
                    following = asyncio.ensure_future(anext(events))
                else:
                    await send_text(b":\n\n")
        except (ExpiredToken, NoHistory, StopAsyncIteration):
            pass  # the client learns it when it connects again
        finally:
            for task in (following, *ends):
                task.cancel()
            await asyncio.gather(following, *ends, return_exceptions=True)
    await send({"type": "http.response.body"})


async def _wait(
    following: asyncio.Future[bytes], access: StreamAccess, ends: Sequence[asyncio.Future[Any]]
) -> bool:
    """Wait for an event, an access check or an end; return whether the stream continues."""
    due = asyncio.ensure_future(access.wait_until_due())
    waiting: list[asyncio.Future[Any]] = [following, due, *ends]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        due.cancel()
    return not any(end.done() for end in ends)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
