"""API paths that the console adds to storage.rest.urls."""

from console.api import people, queries
from storage.rest.routing import ACCOUNT, TABLE, api_path

QUERY = f"{TABLE}/queries/<str:query>"
urlpatterns = [
    api_path("users", people.UserViewSet, "users", get="index"),
    api_path("users/<str:user>", people.UserViewSet, "user", get="retrieve", patch="partial_update"),
    api_path("users/<str:user>/sign-out", people.UserViewSet, "user-sign-out", post="sign_out"),
    api_path("users/<str:user>/reset-factors", people.UserViewSet, "user-factors", post="reset_factors"),
    api_path("users/<str:user>/tokens", people.UserTokenViewSet, "user-tokens", get="index"),
    api_path("users/<str:user>/tokens/<int:token>", people.UserTokenViewSet, "user-token", delete="destroy"),
    api_path("invitations", people.ServerInvitationViewSet, "server-invitations", get="index", post="create"),
    api_path(
        "invitations/<int:invitation>", people.ServerInvitationViewSet, "server-invitation", delete="destroy"
    ),
    api_path(f"{ACCOUNT}/invitations", people.InvitationViewSet, "invitations", get="index", post="create"),
    api_path(
        f"{ACCOUNT}/invitations/<int:invitation>", people.InvitationViewSet, "invitation", delete="destroy"
    ),
    api_path(f"{TABLE}/queries", queries.QueryViewSet, "queries", get="index", post="create"),
    api_path(QUERY, queries.QueryViewSet, "query", get="retrieve", patch="partial_update", delete="destroy"),
]
