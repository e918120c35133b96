"""The state of backups in the management API."""

from rest_framework.request import Request
from rest_framework.response import Response

from storage.backups import backups
from storage.backups.backups import BackupState
from storage.domain.access.roles import Capability
from storage.models import ApiToken
from storage.rest import access
from storage.rest.documentation import operation
from storage.rest.routing import api_path
from storage.rest.views import ApiViewSet


class BackupViewSet(ApiViewSet):
    tag = "Backups"
    capabilities = {"retrieve": Capability.READ}

    def resolve_target(self, token: ApiToken, capability: Capability) -> None:
        access.check_server(token)

    @operation(
        "get_backup",
        "Get the state of backups",
        "Returns the last good backup of this server, the last failure, and whether backups are overdue. For admins of"
        " the server.",
        answer=BackupState,
    )
    def retrieve(self, request: Request) -> Response:
        return self.answer(backups.state())


urlpatterns = [
    api_path("backup", BackupViewSet, "backup", get="retrieve"),
]
