"""The history of an entity."""

from contextlib import suppress

from django.http import Http404
from rest_framework.request import Request
from rest_framework.response import Response

from storage.api.serializers import history as serializers
from storage.domain.access.roles import Capability
from storage.domain.entities.entity import EntityKey
from storage.domain.entities.moments import Moment
from storage.domain.errors import ResourceNotFound, TableNotFound
from storage.domain.values.names import LONGEST_KEY, check_entity_key
from storage.domain.values.numbers import read_number
from storage.history import past, versions
from storage.models import Table
from storage.rest.answers import page_of
from storage.rest.documentation import operation
from storage.rest.negotiation import ProblemJSONRenderer
from storage.rest.paging import Page
from storage.rest.views import AccountScopedViewSet
from storage.tables import tables


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
        wanted = self.read_query()
        key = EntityKey(wanted["pk"], wanted["rk"])
        check_entity_key(*key, limit=LONGEST_KEY)
        first = read_number(wanted["cursor"])
        page = versions.page(self._find_table(wanted.get("as_of")), key, first=first, top=wanted["limit"])
        return self.answer_page(Page(page.entries, None if page.next is None else str(page.next)))

    def _find_table(self, as_of: Moment | None) -> Table:
        """Return the table that had the name at a time; without one, that has it now or had it last."""
        account, name = self.account, self.kwargs["table"]
        try:
            if as_of is not None:
                return past.find_table(account, name, as_of)
            with suppress(ResourceNotFound):
                return tables.get(account, name)
            return past.find_last(account, name)
        except TableNotFound:
            raise Http404 from None
