"""Streams of changes end when their reader loses access, whether an announcement arrives or not."""

import asyncio
from contextlib import asynccontextmanager, suppress
from itertools import count
from types import SimpleNamespace

import pytest
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.test import Client
from django.utils import timezone

from console.models import User
from console.people import sessions, users
from storage.accounts import removal
from storage.core.quotas import STREAMS
from storage.domain.access.actor import SERVER
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.history import feed
from storage.history.feed import Feed
from storage.models import ApiToken, Membership
from storage.people import api_tokens, members
from storage.relations import history
from storage.rest import streams
from storage.rest.streams import FeedStream, TooManyStreams
from storage.runtime.catalog import Catalog
from storage.runtime.live_feed import LiveFeed
from storage.runtime.stream_access import LIMIT, AccessChanges
from storage.runtime.threads import in_thread
from storage.sql import django as sql
from storage.sql import entities
from storage.sql.lanes import Lanes
from storage.sql.relations import relation_name

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE = 60  # seconds, for events that happen at once


class Reader:
    """A client of a stream: ``texts`` are what it was sent."""

    def __init__(self):
        self.texts = []
        self.arrived = asyncio.Event()
        self.gone = asyncio.Event()
        self._is_asked = False
        self.task = None

    async def receive(self):
        if self._is_asked:
            await self.gone.wait()
            return {"type": "http.disconnect"}
        self._is_asked = True
        return {"type": "http.request", "body": b""}

    async def send(self, message):
        if message["type"] == "http.response.start":
            assert message["status"] == 200
        elif message.get("body"):
            self.texts.append(message["body"])
            self.arrived.set()

    async def next(self):
        self.arrived.clear()
        async with asyncio.timeout(PATIENCE):
            await self.arrived.wait()

    async def end(self):
        async with asyncio.timeout(PATIENCE):
            await self.task


@asynccontextmanager
async def following(path, headers, changes, query=b"", begins=b"id:"):
    """Follow a stream whose beginning has arrived."""
    lanes = Lanes(settings.LANES_CONNINFO)
    await lanes.open()
    live, reader = LiveFeed(lanes), Reader()
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": query,
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "state": {"ending": asyncio.Event()},
    }
    run = streams.run(get_asgi_application(), live, changes, scope, reader.receive, reader.send)
    reader.task = asyncio.create_task(run)
    try:
        while not any(text.startswith(begins) for text in reader.texts):
            await reader.next()
        yield reader
    finally:
        reader.gone.set()
        with suppress(asyncio.CancelledError):
            await reader.end()
        await live.close()
        lanes.close()


@pytest.fixture
def victor(cast, issue, table):
    """Victor's token and his browser."""
    secret, token = issue("victor", "read")
    client = Client()
    client.force_login(cast["victor"])
    client.get("/ui/")  # his session is listed from its first request on
    cookie = f"{settings.SESSION_COOKIE_NAME}={client.session.session_key}"
    return SimpleNamespace(
        user=cast["victor"],
        token=token,
        client=client,
        api=("/ui/api/v1/accounts/acme/changes", {"Authorization": f"Bearer {secret}"}),
        console=("/ui/a/acme/t/people/live/", {"Cookie": cookie}),
    )


def write(account, table, row_key):
    change = Insert(Entity(EntityKey("p", row_key), {}))
    sql.run(entities.change(relation_name(table.pk), change, history.recorder(account, SERVER)))


def accept(address):
    path, headers = address
    return path, {**headers, "Accept": "text/event-stream"}


def delete_user(victor, account):
    users.remove(User.objects.get(pk=victor.user.pk), by=SERVER)


REVOCATIONS = {
    "token revoked": ("api", lambda victor, account: api_tokens.revoke(victor.token, by=SERVER)),
    "member removed": ("api", lambda victor, account: members.remove(account, victor.user, by=SERVER)),
    "user deleted": ("api", delete_user),
    "account deleted": ("api", lambda victor, account: removal.remove("acme", with_tables=True)),
    "user disabled": (
        "console",
        lambda victor, account: users.set_active(victor.user, is_active=False, by=SERVER),
    ),
    "signed out": ("console", lambda victor, account: victor.client.post("/ui/logout/")),
    "session ended": ("console", lambda victor, account: sessions.end_all(victor.user)),
    "password changed": (
        "console",
        lambda victor, account: users.set_password(victor.user, "correct horse", by=SERVER),
    ),
}


@pytest.mark.parametrize("how", REVOCATIONS)
async def test_a_revocation_is_announced_and_ends_a_stream(victor, account, how):
    door, revoke = REVOCATIONS[how]
    changes = AccessChanges(clock=lambda: 0.0)  # by the clock nothing is ever due
    catalog = Catalog(settings.LANES_CONNINFO, changes)
    await catalog.open()
    try:
        async with following(*accept(getattr(victor, door)), changes) as reader:
            await in_thread(revoke, victor, account)
            await reader.end()
    finally:
        await catalog.close()


@pytest.mark.parametrize("door", ["api", "console"])
async def test_without_an_announcement_no_page_is_sent_after_the_limit(victor, account, table, door):
    now = [0.0]
    changes = AccessChanges(clock=lambda: now[0])
    async with following(*accept(getattr(victor, door)), changes) as reader:
        await in_thread(write, account, table, "before")
        while not any(b"data:" in text for text in reader.texts):
            await reader.next()
        reader.texts.clear()
        await in_thread(Membership.objects.filter(user=victor.user).delete)
        now[0] = LIMIT
        await in_thread(write, account, table, "after")
        await reader.end()
        assert not any(b"data:" in text for text in reader.texts)


@pytest.mark.parametrize("door", ["api", "console"])
async def test_a_stream_without_changes_ends_by_the_clock(victor, door):
    changes = AccessChanges(clock=count(step=LIMIT).__next__)  # each look is due
    async with following(*accept(getattr(victor, door)), changes) as reader:
        if door == "api":
            await in_thread(ApiToken.objects.update, expires_at=timezone.now())
        else:
            await in_thread(User.objects.filter(pk=victor.user.pk).update, password="changed")
        await reader.end()


async def test_streams_count_before_they_begin(account):
    """Views may answer for as many streams as a token may have before the first stream begins."""
    followed = Feed(account.pk)
    page, token = await in_thread(feed.read, followed, feed.NOW)
    stream = FeedStream(followed, page, token, lambda change: b"", "token 0", lambda: True)
    begin = asyncio.Event()

    async def answer(scope, receive, send):
        streams.respond(SimpleNamespace(scope=scope), stream)
        await begin.wait()

    def run(scope):
        reader = Reader()
        return streams.run(answer, None, AccessChanges(), scope, reader.receive, reader.send)

    def scope():
        return {"method": "HEAD", "state": {}}

    async with asyncio.TaskGroup() as group:
        first = scope()
        for it in (first, *(scope() for _ in range(STREAMS.default - 1))):
            group.create_task(run(it))
        await asyncio.sleep(0)
        with pytest.raises(TooManyStreams):
            await run(scope())
        begin.set()
    await run(scope())  # they have given their places back
    with pytest.raises(TooManyStreams):
        await answer(first, None, None)  # a view that ends after its client has gone
