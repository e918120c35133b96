"""Events about other users at a table, for the stream of its pages."""

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from uuid import UUID

from django.http import HttpRequest

from console.presence import board
from console.site.access import user_of
from storage.domain.access.presence import PresentTab
from storage.models import Table
from storage.presence.presence import LONGEST_ENTITY, Tab


def follow_people(request: HttpRequest, table: Table) -> Callable[[], AsyncGenerator[bytes, None]] | None:
    """Return a generator function of the other users at the table; None for a tab without an id."""
    tab = read_tab(request.GET.get("tab", ""))
    if tab is None:
        return None
    user_id = user_of(request).pk
    return partial(_follow, Tab(tab, user_id, table.pk, read_entity(request.GET.get("entity", ""))))


async def _follow(tab: Tab) -> AsyncGenerator[bytes, None]:
    known = b""
    async with aclosing(board.board.follow(tab)) as following:
        async for people in following:
            written = _write_people(people, tab.user_id)
            if written != known:
                known = written
                yield b"event: presence\ndata: %b\n\n" % written


def read_tab(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def read_entity(text: str) -> str:
    """Parse the token of a key; an invalid one counts as none."""
    return text if len(text) <= LONGEST_ENTITY and text.isascii() and text.isprintable() else ""


def _write_people(tabs: Sequence[PresentTab], own: int) -> bytes:
    """Serialize the other users at the table and their entities, each once."""
    people: dict[str, dict[str, None]] = {}
    for it in tabs:
        if it.user_id != own:
            people.setdefault(it.username, {}).update({it.entity: None} if it.entity else {})
    return json.dumps([{"name": name, "entities": [*entities]} for name, entities in people.items()]).encode()
