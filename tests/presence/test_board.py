"""Streams of a table say who else has it open, and no one is there any more without access to it."""

import asyncio
import json
import uuid
from functools import partial

import pytest
from django.conf import settings
from django.db import InternalError

from console.presence import board as running
from console.presence.board import PresenceBoard
from storage.accounts import account_settings
from storage.domain.access.actor import SERVER
from storage.models import Presence
from storage.people import members
from storage.presence import presence
from storage.presence.presence import Tab
from storage.runtime.catalog import Catalog
from storage.runtime.stream_access import AccessChanges
from storage.runtime.threads import in_thread
from tests.rest.test_streams import PATIENCE, following, victor  # noqa: F401

pytestmark = pytest.mark.django_db(transaction=True)
START = b"event: presence\ndata: "


def people_in(text):
    return json.loads(text.removeprefix(START)) if text.startswith(START) else None


async def until_people(reader, wanted):
    while [text for text in map(people_in, reader.texts) if text is not None][-1:] != [wanted]:
        await reader.next()


@pytest.fixture
async def changes():
    """Announcements to this process, as a server gets them."""
    result = AccessChanges()
    catalog = Catalog(settings.LANES_CONNINFO, result)
    await catalog.open()
    yield result
    await catalog.close()


async def test_people_come_and_go_and_a_removed_member_disappears(victor, cast, account, table, changes):  # noqa: F811
    tab = uuid.uuid4()
    path, headers = victor.console
    query = f"tab={tab}&entity=first".encode()
    async with following(path, headers, changes, query, START) as reader:
        await until_people(reader, [])
        other = Tab(uuid.uuid4(), cast["eve"].pk, table.pk, "second")
        await in_thread(presence.beat, "another", [other], [other])
        await until_people(reader, [{"name": "eve", "entities": ["second"]}])
        assert await in_thread(presence.move, cast["eve"], other.tab, table.pk, "")
        await until_people(reader, [{"name": "eve", "entities": []}])
        await in_thread(presence.leave, "another", [other])
        await until_people(reader, [])
        seen = await in_thread(presence.beat, "another", [other], [])
        assert [it.username for it in seen] == ["eve", "victor"]
        await in_thread(members.remove, account, victor.user, by=SERVER)
        await reader.end()
        seen = await in_thread(presence.beat, "another", [other], [])
        assert [it.username for it in seen] == ["eve"]
        await running.close()  # waits until others are told
        assert not await in_thread(Presence.objects.filter(user=victor.user).exists)


async def test_an_account_without_history_has_presence_only(victor, cast, account, table, changes):  # noqa: F811
    await in_thread(partial(account_settings.change, account, history_days=0, by=SERVER))
    path, headers = victor.console
    async with following(path, headers, changes, f"tab={uuid.uuid4()}".encode(), START) as reader:
        assert not any(text.startswith(b"id:") for text in reader.texts)


async def test_a_process_asks_once_for_all_its_streams(cast, table, monkeypatch):
    asked = []
    beat = presence.beat

    def count(process, tabs, new=()):
        asked.append(len(tabs))
        return beat(process, tabs, new)

    monkeypatch.setattr(presence, "beat", count)
    board = PresenceBoard()
    followed = [board.follow(Tab(uuid.uuid4(), user.pk, table.pk)) for user in cast.values()]
    async with asyncio.timeout(PATIENCE):
        result = await asyncio.gather(*(anext(it) for it in followed))
    assert asked == [len(cast)]
    assert {it.username for it in result[0]} == cast.keys() - {"sam"}
    for each in followed:
        await each.aclose()
    await board.close()
    assert not await in_thread(Presence.objects.exists)


async def test_people_are_told_of_when_the_server_knows_the_tab(cast, table):
    """The browser then sends its present state, which would have been lost before."""
    board = PresenceBoard()
    first = board.follow(Tab(uuid.uuid4(), cast["victor"].pk, table.pk))
    tab = Tab(uuid.uuid4(), cast["eve"].pk, table.pk, "before")
    second = board.follow(tab)
    async with asyncio.timeout(PATIENCE):
        await anext(first)
        await anext(second)
    assert await in_thread(presence.move, cast["eve"], tab.tab, table.pk, "meanwhile")
    board.announce(table.pk)
    await until(first, [("eve", "meanwhile"), ("victor", "")])
    for each in (first, second):
        await each.aclose()
    await board.close()


async def test_a_lost_database_at_the_end_of_a_stream_is_survived(cast, table, monkeypatch, caplog):
    board = PresenceBoard()
    followed = [board.follow(Tab(uuid.uuid4(), cast[name].pk, table.pk)) for name in ("eve", "victor")]
    async with asyncio.timeout(PATIENCE):
        for each in followed:
            await anext(each)

    def fail(process, tabs):
        raise InternalError("the connection is lost")

    with monkeypatch.context() as patch:
        patch.setattr(presence, "leave", fail)
        await followed[1].aclose()
        await until(followed[0], [("eve", "")])
    await followed[0].aclose()
    await board.close()
    assert "Presence could not be ended" in caplog.text


async def until(followed, wanted):
    async with asyncio.timeout(PATIENCE):
        while [(it.username, it.entity) for it in await anext(followed)] != wanted:
            pass


async def test_a_reconnecting_tab_is_listed_once(cast, table):
    board = PresenceBoard()
    tab, user = uuid.uuid4(), cast["eve"].pk
    old, new, same = (board.follow(Tab(tab, user, table.pk, it)) for it in ("first", "second", "second"))
    other = board.follow(Tab(uuid.uuid4(), cast["victor"].pk, table.pk))
    await until(old, [("eve", "first")])
    await until(new, [("eve", "second")])
    await anext(same)
    await old.aclose()
    await new.aclose()
    await until(other, [("eve", "second"), ("victor", "")])
    for each in (same, other):
        await each.aclose()
    await board.close()
    assert not await in_thread(Presence.objects.exists)
