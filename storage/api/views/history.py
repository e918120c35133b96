"""The history of an entity."""

from rest_framework.request import Request
from rest_framework.response import Response

from storage.api.documentation import operation
from storage.api.negotiation import ProblemJSONRenderer
from storage.api.paging import Page
from storage.api.serializers import history as serializers
from storage.api.views.base import AccountScopedViewSet
from storage.domain.access.roles import Capability
from storage.domain.entities.entity import EntityKey
from storage.domain.values.names import LONGEST_KEY, check_entity_key
from storage.operations import versions


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
        "From the newest to the oldest, as far back as the account keeps changes; also of an entity that was deleted.",
        answer=serializers.VersionListSerializer,
        query=serializers.VersionParameters,
    )
    def index(self, request: Request, account: str, table: str) -> Response:
        wanted = self.read_query()
        key = EntityKey(wanted["pk"], wanted["rk"])
        check_entity_key(*key, limit=LONGEST_KEY)
        cursor = wanted["cursor"]
        first = int(cursor) if cursor.isdecimal() and len(cursor) < 19 else None
        page = versions.page(self.table(), key, first=first, top=wanted["limit"])
        return self.answer_page(Page(page.versions, None if page.next is None else str(page.next)))
