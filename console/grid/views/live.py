"""The changes of a table as they happen, for the grid that shows it: which entities, not their values."""

import json
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.grid.tokens import encode_key
from console.people.sessions import user_of_session
from console.site.access import table_required, user_of
from storage.api import streams
from storage.api.streams import FeedStream, TooManyStreams
from storage.domain.access.roles import Capability, may
from storage.domain.service.feed import ExpiredToken, InvalidToken
from storage.domain.service.recorded import RecordedChange
from storage.domain.values.etag import write_etag
from storage.models import Table
from storage.operations.access.members import role_in
from storage.operations.changes import feed
from storage.operations.changes.feed import NOW, Feed, NoHistory


@require_GET
@table_required(Capability.READ)
def stream(request: HttpRequest, table: Table) -> HttpResponse:
    """Stream the changes after a token, or from now on; 204 tells a browser not to ask again."""
    after = request.headers.get("Last-Event-ID") or request.GET.get("after")
    followed = Feed(table.account_id, (table.pk,))
    try:
        page, token = feed.read(followed, after or NOW)
        wanted = FeedStream(
            followed,
            page,
            token,
            _write,
            f"user {user_of(request).pk}",
            _permission(request, table, followed),
        )
        return streams.respond(request, wanted)
    except NoHistory:
        return HttpResponse(status=204)
    except (InvalidToken, ExpiredToken) as error:
        return HttpResponse(str(error), status=410, content_type="text/plain; charset=utf-8")
    except TooManyStreams:
        return HttpResponse(status=429, headers={"Retry-After": "30"})


def _write(change: RecordedChange) -> bytes:
    found = {"key": encode_key(change.key), "op": change.op, "etag": write_etag(change.ticks)}
    return json.dumps(found).encode()


def _permission(request: HttpRequest, table: Table, followed: Feed) -> Callable[[], bool]:
    """Return what tells whether the session goes on and its user may still read the table."""
    session, account = request.session.session_key, table.account

    def is_allowed() -> bool:
        user = user_of_session(session)
        role = None if user is None else role_in(user, account)
        return role is not None and may(role, Capability.READ) and feed.exists(followed)

    return is_allowed
