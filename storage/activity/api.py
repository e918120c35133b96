"""The activity log in the management API."""

from rest_framework.request import Request
from rest_framework.response import Response

from storage.activity import activity, serializers
from storage.activity.activity import ActivityFilter
from storage.core import registry
from storage.domain.access.roles import Capability
from storage.models import ApiToken
from storage.rest import access
from storage.rest.answers import page_of
from storage.rest.documentation import operation
from storage.rest.paging import Page
from storage.rest.routing import ACCOUNT, api_path
from storage.rest.views import AccountScopedViewSet, ApiViewSet


class ActivityViewSet(AccountScopedViewSet):
    tag = "Activity"
    capabilities = {"index": Capability.READ}

    @operation(
        "list_activity",
        "List the activity in an account",
        "Returns what users, scripts, commands and the server did, newest first.",
        answer=page_of(serializers.ActivitySerializer),
        query=serializers.ActivityParameters,
    )
    def index(self, request: Request, account: str) -> Response:
        return _answer_activity(self, [self.account.pk])


class ServerActivityViewSet(ApiViewSet):
    tag = "Activity"
    capabilities = {"index": Capability.OWN}

    def resolve_target(self, token: ApiToken, capability: Capability) -> None:
        access.check_server(token)

    @operation(
        "list_server_activity",
        "List the activity on the server",
        "Returns the activity in all accounts, and that which concerns none, such as sign-ins and users. For admins of"
        " the server.",
        answer=page_of(serializers.ActivitySerializer),
        query=serializers.ActivityParameters,
    )
    def index(self, request: Request) -> Response:
        return _answer_activity(self, None)


def _answer_activity(view: ApiViewSet, account_ids: list[int] | None) -> Response:
    parameters = view.read_query()
    page = activity.page(
        ActivityFilter(
            account_ids=account_ids,
            actor=parameters["user"],
            verbs=[registry.verbs()[parameters["verb"]]] if parameters["verb"] else (),
            table=parameters["table"],
            since=parameters["since"],
            until=parameters["until"],
        ),
        before=view.read_number_cursor(parameters["cursor"]),
        top=parameters["limit"],
    )
    return view.answer_page(Page(page.activities, None if page.older is None else str(page.older)))


urlpatterns = [
    api_path("activity", ServerActivityViewSet, "server-activity", get="index"),
    api_path(f"{ACCOUNT}/activity", ActivityViewSet, "activity", get="index"),
]
