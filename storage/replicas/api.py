"""The replicas in the management API."""

from rest_framework.request import Request
from rest_framework.response import Response

from storage.domain.access.roles import Capability
from storage.models import ApiToken
from storage.replicas import replicas, serializers
from storage.rest import access
from storage.rest.answers import page_of
from storage.rest.documentation import operation
from storage.rest.paging import Page
from storage.rest.routing import api_path
from storage.rest.views import ApiViewSet


class ReplicaViewSet(ApiViewSet):
    tag = "Replicas"
    capabilities = {"index": Capability.READ}

    def resolve_target(self, token: ApiToken, capability: Capability) -> None:
        access.check_server(token)

    @operation(
        "list_replicas",
        "List the replicas",
        "Returns the replicas that this server reads from, in the order of `TABLERO_REPLICAS`, as it sees them now. For"
        " admins of the server.",
        answer=page_of(serializers.ReplicaSerializer),
    )
    def index(self, request: Request) -> Response:
        return self.answer_page(Page(replicas.states()))


urlpatterns = [
    api_path("replicas", ReplicaViewSet, "replicas", get="index"),
]
