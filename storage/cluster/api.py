"""The distribution of tables over the nodes of a cluster in the management API."""

from rest_framework.request import Request
from rest_framework.response import Response

from storage.cluster import distribution
from storage.domain.access.roles import Capability
from storage.rest import problems
from storage.rest.documentation import operation
from storage.rest.routing import TABLE, api_path
from storage.rest.views import AccountScopedViewSet
from storage.tables.serializers import TableSerializer


class DistributionViewSet(AccountScopedViewSet):
    tag = "Tables"
    capabilities = {"distribute": Capability.OWN, "undistribute": Capability.OWN}

    @operation(
        "distribute_table",
        "Distribute a table over the nodes of a cluster",
        "Moves the rows to the nodes of the Citus cluster whose coordinator the database is. Reads go on meanwhile;"
        " writes wait, and answer 503 if that takes long. For a very large table, use the command `distribute`.",
        answer=TableSerializer,
        problems=[problems.CONFLICT],
    )
    def distribute(self, request: Request, account: str, table: str) -> Response:
        found = self.table()
        distribution.distribute(found, by=self.by)
        return self.answer(found)

    @operation(
        "undistribute_table",
        "Bring a distributed table back to the coordinator",
        answer=TableSerializer,
        problems=[problems.CONFLICT],
    )
    def undistribute(self, request: Request, account: str, table: str) -> Response:
        found = self.table()
        distribution.undistribute(found, by=self.by)
        return self.answer(found)


urlpatterns = [
    api_path(f"{TABLE}/distribute", DistributionViewSet, "table-distribute", post="distribute"),
    api_path(f"{TABLE}/undistribute", DistributionViewSet, "table-undistribute", post="undistribute"),
]
