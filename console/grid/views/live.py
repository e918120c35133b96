"""The changes of a table as they happen, and who else has it open, for the pages that show it."""

import json
from collections.abc import Callable, Sequence
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET, require_POST

from console.grid.tokens import encode_key
from console.people.sessions import user_of_session
from console.site.access import table_required, user_of
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.access.presence import PresentTab
from storage.domain.access.roles import Capability, may
from storage.domain.history.feed import ExpiredToken, InvalidToken
from storage.domain.history.recorded import RecordedChange
from storage.domain.values.etag import write_etag
from storage.history import feed
from storage.history.feed import NOW, Feed, NoHistory
from storage.models import Table
from storage.people import presence
from storage.people.members import role_in
from storage.people.presence import LONGEST_ENTITY, Tab
from storage.rest import streams
from storage.rest.streams import (
    FeedStream,
    Stream,
    TableStream,
    TooManyStreams,
)


@require_GET
@table_required(Capability.READ)
def stream(request: HttpRequest, table: Table) -> HttpResponse:
    """Stream the changes after a token, or from now on, and to a tab that names itself, who else has the table open.

    204 tells a browser not to ask again.
    """
    tab = _read_tab(request.GET.get("tab", ""))
    followed = Feed(table.account_id, (table.pk,))
    is_allowed = _permission(request, table, followed)
    try:
        changes = _follow(request, followed, is_allowed)
    except NoHistory:
        if tab is None:
            return HttpResponse(status=204)
        changes = None
    except (InvalidToken, ExpiredToken) as error:
        return HttpResponse(str(error), status=410, content_type="text/plain; charset=utf-8")
    try:
        return streams.respond(request, _with_people(request, table, tab, changes, is_allowed))
    except TooManyStreams:
        return HttpResponse(status=429, headers={"Retry-After": "30"})


@require_POST
@table_required(Capability.READ)
def move(request: HttpRequest, table: Table) -> HttpResponse:
    """Note which entity a tab shows now; one that has no stream is not noted."""
    tab, entity = _read_tab(request.POST.get("tab", "")), _read_entity(request.POST.get("entity", ""))
    if tab is not None:
        presence.move(user_of(request), tab, table.pk, entity)
    return HttpResponse(status=204)


def _read_tab(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _read_entity(text: str) -> str:
    """Read the token of a key; one that is too long names none."""
    return text if len(text) <= LONGEST_ENTITY and text.isascii() and text.isprintable() else ""


def _follow(request: HttpRequest, followed: Feed, is_allowed: Callable[[], bool]) -> FeedStream:
    after = request.headers.get("Last-Event-ID") or request.GET.get("after")
    page, token = feed.read(followed, after or NOW)
    return FeedStream(followed, page, token, _write, _reader(request), is_allowed)


def _with_people(
    request: HttpRequest,
    table: Table,
    tab: UUID | None,
    changes: FeedStream | None,
    is_allowed: Callable[[], bool],
) -> Stream:
    if tab is None:
        assert changes is not None
        return changes
    user = user_of(request)
    shown = Tab(tab, user.pk, table.pk, _read_entity(request.GET.get("entity", "")))

    def write(people: Sequence[PresentTab]) -> bytes:
        return _write_people(people, user.pk)

    return TableStream(shown, changes, write, table.account_id, _reader(request), is_allowed)


def _reader(request: HttpRequest) -> str:
    return f"user {user_of(request).pk}"


def _write(change: RecordedChange) -> bytes:
    event = {
        "key": encode_key(change.key),
        "op": change.op,
        "etag": write_etag(change.ticks),
        "by": _name(change.actor),
        "at": f"{change.at:%Y-%m-%dT%H:%M:%SZ}",
    }
    return json.dumps(event).encode()


def _name(actor: Actor) -> str:
    """Name who made a change, as far as every reader of the table may know: of tokens and keys, only the kind."""
    return actor.name if actor.kind in (ActorKind.USER, ActorKind.TOKEN) else ""


def _write_people(tabs: Sequence[PresentTab], own: int) -> bytes:
    """Write who else shows the table, and which entities, each once."""
    people: dict[str, dict[str, None]] = {}
    for it in tabs:
        if it.user_id != own:
            people.setdefault(it.username, {}).update({it.entity: None} if it.entity else {})
    return json.dumps([{"name": name, "entities": [*entities]} for name, entities in people.items()]).encode()


def _permission(request: HttpRequest, table: Table, followed: Feed) -> Callable[[], bool]:
    """Return what tells whether the session goes on and its user may still read the table."""
    session, account = request.session.session_key, table.account

    def is_allowed() -> bool:
        user = user_of_session(session)
        role = None if user is None else role_in(user, account)
        return role is not None and may(role, Capability.READ) and feed.exists(followed)

    return is_allowed
