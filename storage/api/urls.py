"""Paths of the management API, which the console includes under /ui/api/v1/."""

from typing import Any

from django.urls import URLPattern, path

from storage.api import documentation
from storage.api.views import accounts, sas, service, tables

ACCOUNT = "accounts/<str:account>"
TABLE = f"{ACCOUNT}/tables/<str:table>"
TOKEN = f"{ACCOUNT}/sas/<str:fingerprint>"


def _path(route: str, view_set: Any, tag: str, name: str, **actions: str) -> URLPattern:
    """Route the methods of a path to the ``actions`` of a view set."""
    found: URLPattern = path(route, view_set.as_view(actions, tag=tag), name=f"api-{name}")
    return found


urlpatterns = [
    path("schema", documentation.show, name="api-schema"),
    _path("token", service.TokenViewSet, "Token", "token", get="retrieve"),
    _path("accounts", accounts.AccountListViewSet, "Accounts", "accounts", get="index", post="create"),
    _path(
        ACCOUNT,
        accounts.AccountViewSet,
        "Accounts",
        "account",
        get="retrieve",
        patch="partial_update",
        delete="destroy",
    ),
    _path(f"{ACCOUNT}/freeze", accounts.AccountViewSet, "Accounts", "freeze", post="freeze"),
    _path(f"{ACCOUNT}/thaw", accounts.AccountViewSet, "Accounts", "thaw", post="thaw"),
    _path(f"{ACCOUNT}/connection-string", accounts.KeyViewSet, "Keys", "connection-string", get="connection"),
    _path(f"{ACCOUNT}/keys", accounts.KeyViewSet, "Keys", "keys", get="index"),
    _path(f"{ACCOUNT}/keys/<str:key>/rotate", accounts.KeyViewSet, "Keys", "key-rotate", post="rotate"),
    _path(f"{ACCOUNT}/tables", tables.TableViewSet, "Tables", "tables", get="index", post="create"),
    _path(
        TABLE,
        tables.TableViewSet,
        "Tables",
        "table",
        get="retrieve",
        patch="partial_update",
        delete="destroy",
    ),
    _path(f"{TABLE}/restore", tables.TableViewSet, "Tables", "table-restore", post="restore"),
    _path(f"{TABLE}/policies", tables.PolicyViewSet, "Policies", "policies", get="retrieve", put="update"),
    _path(
        f"{ACCOUNT}/sas", sas.SasViewSet, "Shared access signatures", "sas-list", get="index", post="create"
    ),
    _path(TOKEN, sas.SasViewSet, "Shared access signatures", "sas", get="retrieve"),
    _path(f"{TOKEN}/block", sas.SasViewSet, "Shared access signatures", "sas-block", post="block"),
    _path(f"{TOKEN}/unblock", sas.SasViewSet, "Shared access signatures", "sas-unblock", post="unblock"),
    _path(
        f"{ACCOUNT}/service-properties",
        service.ServicePropertiesViewSet,
        "Service properties",
        "service-properties",
        get="retrieve",
        put="update",
    ),
    _path(f"{ACCOUNT}/members", service.MemberViewSet, "Members", "members", get="index"),
    _path(
        f"{ACCOUNT}/members/<str:user>",
        service.MemberViewSet,
        "Members",
        "member",
        put="update",
        delete="destroy",
    ),
    _path(f"{ACCOUNT}/activity", service.ActivityViewSet, "Activity", "activity", get="index"),
]
