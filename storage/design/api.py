"""Designs of tables in the management API."""

from rest_framework.request import Request
from rest_framework.response import Response

from storage.design import design, serializers
from storage.design.dumps import dump_account, dump_design
from storage.domain.access.roles import Capability
from storage.rest.documentation import operation
from storage.rest.routing import ACCOUNT, TABLE, api_path
from storage.rest.views import AccountScopedViewSet


class DesignViewSet(AccountScopedViewSet):
    tag = "Table design"
    capabilities = {"retrieve": Capability.READ, "retrieve_table": Capability.READ}

    @operation(
        "get_account_design",
        "Get the problems of the tables of an account",
        "Examines the largest tables, at most 20, for about two seconds.",
        answer=serializers.AccountDesignSerializer,
    )
    def retrieve(self, request: Request, account: str) -> Response:
        return self.answer(dump_account(design.describe_account(self.account)))

    @operation(
        "get_table_design",
        "Get the design of a table",
        "Returns findings about its partitions, keys, kinds of entities and queries, with the bulk edits that mend"
        " them."
        " Large tables are examined by a random sample.",
        answer=serializers.DesignSerializer,
    )
    def retrieve_table(self, request: Request, account: str, table: str) -> Response:
        return self.answer(dump_design(design.describe(self.table())))


urlpatterns = [
    api_path(f"{ACCOUNT}/design", DesignViewSet, "account-design", get="retrieve"),
    api_path(f"{TABLE}/design", DesignViewSet, "table-design", get="retrieve_table"),
]
