"""Live changes of a table as server-sent events for its pages, with events of other subjects."""

import json
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.grid.tokens import encode_key
from console.people.sessions import user_of_session
from console.site.access import table_required, user_of
from storage.core import registry
from storage.core.subject import Hook
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.access.roles import Capability, may
from storage.domain.history.feed import ExpiredToken, InvalidToken
from storage.domain.history.recorded import RecordedChange
from storage.domain.values.etag import write_etag
from storage.history import feed
from storage.history.feed import NOW, Feed, NoHistory
from storage.models import Table
from storage.people.members import role_in
from storage.rest import streams
from storage.rest.streams import (
    FeedStream,
    TableStream,
    TooManyStreams,
)


@require_GET
@table_required(Capability.READ)
def stream(request: HttpRequest, table: Table) -> HttpResponse:
    """Stream changes after a token or from now on, with events of other subjects."""
    followings = (follow(request, table) for follow in registry.hooks(Hook.TABLE_EVENTS))
    others = [each for each in followings if each is not None]
    followed = Feed(table.account_id, (table.pk,))
    is_allowed = _permission(request, table, followed)
    try:
        changes = _follow(request, followed, is_allowed)
    except NoHistory:
        if not others:
            return HttpResponse(status=204)
        changes = None
    except (InvalidToken, ExpiredToken) as error:
        return HttpResponse(str(error), status=410, content_type="text/plain; charset=utf-8")
    try:
        return streams.respond(
            request, TableStream(changes, others, table.account_id, _reader(request), is_allowed)
        )
    except TooManyStreams:
        return HttpResponse(status=429, headers={"Retry-After": "30"})


def _follow(request: HttpRequest, followed: Feed, is_allowed: Callable[[], bool]) -> FeedStream:
    after = request.headers.get("Last-Event-ID") or request.GET.get("after")
    page, token = feed.read(followed, after or NOW)
    return FeedStream(followed, page, token, _write, _reader(request), is_allowed)


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
    """Return the actor's name for other readers; empty for keys and SAS tokens."""
    return actor.name if actor.kind in (ActorKind.USER, ActorKind.TOKEN) else ""


def _permission(request: HttpRequest, table: Table, followed: Feed) -> Callable[[], bool]:
    """Return a check that the session is still valid and its user may read the table."""
    session, account = request.session.session_key, table.account

    def is_allowed() -> bool:
        user = user_of_session(session)
        role = None if user is None else role_in(user, account)
        return role is not None and may(role, Capability.READ) and feed.exists(followed)

    return is_allowed
