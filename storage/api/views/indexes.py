"""Property indexes of a table."""

from django.http import Http404
from rest_framework.request import Request
from rest_framework.response import Response

from storage.api.serializers import indexes as serializers
from storage.domain.access.roles import Capability
from storage.models import Table
from storage.rest import problems
from storage.rest.answers import page_of
from storage.rest.documentation import operation
from storage.rest.paging import Page
from storage.rest.views import AccountScopedViewSet
from storage.tables import indexes
from storage.tables.indexes import IndexDetails, IndexExists, IndexMissing
from storage.tables.subject import TableVerb


class IndexViewSet(AccountScopedViewSet):
    tag = "Indexes"
    capabilities = {
        "index": Capability.READ,
        "create": Capability.MANAGE_TABLES,
        "retrieve": Capability.READ,
        "destroy": Capability.MANAGE_TABLES,
    }

    @operation(
        "list_indexes", "List the property indexes of a table", answer=page_of(serializers.IndexSerializer)
    )
    def index(self, request: Request, account: str, table: str) -> Response:
        return self.answer_page(Page(indexes.describe(self.table())))

    @operation(
        "create_index",
        "Index a property",
        "Queries with a range of the property no longer read the whole table, nor does sorting by it. The index is made"
        " in the background; read it until its state is `ready`. If the property has an index, the answer is 200, and"
        " one that the server has added is kept: it no longer drops it.",
        body=serializers.NewIndexSerializer,
        answer=serializers.IndexSerializer,
        is_creation=True,
        problems=[problems.CONFLICT],
        example={"property": "Score"},
    )
    def create(self, request: Request, account: str, table: str) -> Response:
        found, name = self.table(), self.read_body()["property"]
        try:
            done = indexes.add(found, name, by=self.by)
        except IndexExists:
            return self.answer_created(_find(found, name), is_new=False)
        return self.answer_created(_find(found, name), is_new=done.verb == TableVerb.INDEX_ADD)

    @operation("get_index", "Get the index of a property", answer=serializers.IndexSerializer)
    def retrieve(self, request: Request, account: str, table: str, property: str) -> Response:  # noqa: A002
        return self.answer(_find(self.table(), property))

    @operation(
        "delete_index",
        "Drop the index of a property",
        "Queries no longer use it; its space is freed in the background. The server does not add it again by itself.",
    )
    def destroy(self, request: Request, account: str, table: str, property: str) -> Response:  # noqa: A002
        try:
            indexes.drop(self.table(), property, by=self.by)
        except IndexMissing:
            raise Http404 from None
        return Response(status=204)


def _find(table: Table, name: str) -> IndexDetails:
    found = next((details for details in indexes.describe(table) if details.index.name == name), None)
    if found is None:
        raise Http404
    return found
