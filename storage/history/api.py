"""Changes of an account as a feed, and versions of entities in the management API."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from django.http import Http404, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param

from storage.domain.access.roles import Capability
from storage.domain.entities.entity import EntityKey
from storage.domain.entities.moments import Moment
from storage.domain.errors import ResourceNotFound, StorageError, TableNotFound
from storage.domain.history.feed import (
    ExpiredToken,
    FeedPage,
    InvalidToken,
    write_change,
    write_cosmos_change,
)
from storage.domain.values import dialects
from storage.domain.values.names import check_entity_key
from storage.domain.values.numbers import read_number
from storage.history import feed, past, serializers, versions
from storage.history.feed import (
    NOW,
    Feed,
    NoHistory,
    Start,
)
from storage.models import Table
from storage.people import api_tokens
from storage.rest import problems, streams
from storage.rest.answers import page_of
from storage.rest.documentation import LAST_EVENT_ID, operation
from storage.rest.negotiation import ProblemJSONRenderer
from storage.rest.paging import Page
from storage.rest.problems import FieldError, Problem
from storage.rest.routing import ACCOUNT, TABLE, api_path
from storage.rest.streams import FeedStream
from storage.rest.views import AccountScopedViewSet
from storage.tables import tables

COSMOS_TYPE: Final = "application/vnd.tablero.cosmos-changes+json"


_IF_NONE_MATCH: Final = OpenApiParameter(
    "If-None-Match",
    str,
    OpenApiParameter.HEADER,
    description="In the shape of Cosmos DB: the `ETag` of the previous page, or `*` to start now. Replaces `after`.",
)


_A_IM: Final = OpenApiParameter(
    "A-IM",
    str,
    OpenApiParameter.HEADER,
    description="`Incremental feed`, as SDKs of Cosmos DB send it, asks for the shape of Cosmos DB.",
)


class ChangeViewSet(AccountScopedViewSet):
    tag = "Changes"
    capabilities = {"index": Capability.READ}

    @operation(
        "list_changes",
        "Read the change feed",
        "Returns changes of entities after a token, in the order of each entity, without gaps or duplicates, with the"
        " entity before and after each. With `Accept: text/event-stream` it goes on as server-sent events: the `data`"
        " of an event is a change, its `id` the token after it.",
        answer=serializers.ChangeListSerializer,
        query=serializers.ChangeParameters,
        headers=[LAST_EVENT_ID, _IF_NONE_MATCH, _A_IM],
        problems=[problems.CONFLICT, problems.EXPIRED_TOKEN],
        other_responses={
            (200, streams.MEDIA_TYPE): OpenApiTypes.STR,
            (200, COSMOS_TYPE): OpenApiTypes.OBJECT,
            304: OpenApiResponse(description="In the shape of Cosmos DB: nothing has changed."),
        },
    )
    def index(self, request: Request, account: str) -> HttpResponse:
        parameters = self.read_query()
        is_cosmos = (
            parameters["shape"] == "cosmos" or _accepts(request, COSMOS_TYPE) or "A-IM" in request.headers
        )
        is_stream = _accepts(request, streams.MEDIA_TYPE)
        after, parameter = _start(request, parameters, is_cosmos=is_cosmos, is_stream=is_stream)
        followed = Feed(self.account.pk, self._tables(parameters.get("table")))
        page, token = self._read(followed, after, parameters["top"], parameter)
        if is_stream:
            return self._stream(followed, page, token, is_cosmos=is_cosmos)
        if is_cosmos:
            return _answer_cosmos(page, token)
        return self._answer_page(page, token)

    def _tables(self, names: Iterable[str] | None) -> tuple[int, ...] | None:
        """Return the ids of tables by name."""
        if names is None:
            return None
        table_ids = []
        for name in names:
            try:
                table_ids.append(tables.get(self.account, name).pk)
            except StorageError:
                raise Problem(problems.NOT_FOUND, f"The table {name} does not exist.") from None
        return tuple(sorted(set(table_ids)))

    def _read(self, followed: Feed, after: str | Start, top: int, parameter: str) -> tuple[FeedPage, str]:
        try:
            return feed.read(followed, after, top)
        except InvalidToken as error:
            raise Problem(
                problems.INVALID, str(error), errors=[FieldError(str(error), parameter=parameter)]
            ) from None
        except ExpiredToken as error:
            raise Problem(problems.EXPIRED_TOKEN, str(error)) from None
        except NoHistory as error:
            raise Problem(problems.CONFLICT, str(error)) from None

    def _stream(self, followed: Feed, page: FeedPage, token: str, *, is_cosmos: bool) -> HttpResponse:
        api_token, account = self.token, self.account

        def is_allowed() -> bool:
            return api_tokens.may_still(api_token, account, Capability.READ) and feed.exists(followed)

        stream = FeedStream(
            followed,
            page,
            token,
            write_cosmos_change if is_cosmos else write_change,
            f"token {api_token.pk}",
            is_allowed,
        )
        return self.answer_stream(stream)

    def _answer_page(self, page: FeedPage, token: str) -> HttpResponse:
        address = remove_query_param(self.request.build_absolute_uri(), "from")
        following = replace_query_param(address, "after", token)
        content = b'{"items":[%b],"token":"%b","has_more":%b,"next":"%b"}' % (
            b",".join(map(write_change, page.changes)),
            token.encode(),
            b"true" if page.has_more else b"false",
            following.encode(),
        )
        return HttpResponse(content, content_type="application/json")


def _accepts(request: Request, media_type: str) -> bool:
    return bool(request.headers.get("Accept", "").startswith(media_type))


def _start(
    request: Request, parameters: dict[str, Any], *, is_cosmos: bool, is_stream: bool
) -> tuple[str | Start, str]:
    """Return the position from which to read, and the name of the header or parameter that set it."""
    known = request.headers.get("If-None-Match", "") if is_cosmos else ""
    if is_stream and request.headers.get("Last-Event-ID"):
        return request.headers["Last-Event-ID"], "Last-Event-ID"
    if known:
        return (NOW if known == "*" else known.removeprefix("W/").strip('"')), "If-None-Match"
    return parameters.get("after") or parameters.get("from", feed.OLDEST if is_cosmos else NOW), "after"


def _answer_cosmos(page: FeedPage, token: str) -> HttpResponse:
    headers = {"ETag": f'"{token}"'}
    if not page.changes:
        return HttpResponse(status=304, headers=headers)
    changes = b",".join(map(write_cosmos_change, page.changes))
    content = b'{"Documents":[%b],"_count":%d}' % (changes, len(page.changes))
    return HttpResponse(content, content_type=COSMOS_TYPE, headers=headers)


class EscapingRenderer(ProblemJSONRenderer):
    """Render JSON in ASCII: the text of an entity may contain lone surrogates, which UTF-8 cannot encode."""

    ensure_ascii = True


class HistoryViewSet(AccountScopedViewSet):
    renderer_classes = (EscapingRenderer,)
    tag = "History"
    capabilities = {"index": Capability.READ}

    @operation(
        "list_versions",
        "List the versions of an entity",
        "From the newest to the oldest, as far back as the account keeps changes; also of an entity that was deleted,"
        " and of a deleted table until it is dropped.",
        answer=page_of(serializers.VersionSerializer),
        query=serializers.VersionParameters,
    )
    def index(self, request: Request, account: str, table: str) -> Response:
        parameters = self.read_query()
        key = EntityKey(parameters["pk"], parameters["rk"])
        check_entity_key(*key, dialects.WIDEST)
        first = read_number(parameters["cursor"])
        page = versions.page(
            self._find_table(parameters.get("as_of")), key, first=first, top=parameters["limit"]
        )
        return self.answer_page(Page(page.entries, None if page.next is None else str(page.next)))

    def _find_table(self, as_of: Moment | None) -> Table:
        """Return the table that had this name at a time; by default the existing one, or else the last one deleted."""
        account, name = self.account, self.kwargs["table"]
        try:
            if as_of is not None:
                return past.find_table(account, name, as_of)
            with suppress(ResourceNotFound):
                return tables.get(account, name)
            return past.find_last(account, name)
        except TableNotFound:
            raise Http404 from None


urlpatterns = [
    api_path(f"{ACCOUNT}/changes", ChangeViewSet, "changes", get="index"),
    api_path(f"{TABLE}/history", HistoryViewSet, "history", get="index"),
]
