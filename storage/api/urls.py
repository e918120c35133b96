"""Addresses of the management API; the console says under which of its own they stand."""

from typing import Any

from django.urls import URLPattern, path

from storage.api import schema
from storage.api.views import accounts, sas, service, tables

ACCOUNT = "accounts/<str:account>"
TABLE = f"{ACCOUNT}/tables/<str:table>"
TOKEN = f"{ACCOUNT}/sas/<str:fingerprint>"


def _path(route: str, views: Any, tag: str, name: str, **actions: str) -> URLPattern:
    """``actions`` by method."""
    found: URLPattern = path(route, views.as_view(actions, tag=tag), name=f"api-{name}")
    return found


urlpatterns = [
    path("schema", schema.show, name="api-schema"),
    _path("token", service.TokenViews, "Token", "token", get="retrieve"),
    _path("accounts", accounts.AccountsViews, "Accounts", "accounts", get="index", post="create"),
    _path(
        ACCOUNT,
        accounts.OneAccountViews,
        "Accounts",
        "account",
        get="retrieve",
        patch="partial_update",
        delete="destroy",
    ),
    _path(f"{ACCOUNT}/freeze", accounts.OneAccountViews, "Accounts", "freeze", post="freeze"),
    _path(f"{ACCOUNT}/thaw", accounts.OneAccountViews, "Accounts", "thaw", post="thaw"),
    _path(f"{ACCOUNT}/connection-string", accounts.KeysViews, "Keys", "connection-string", get="connection"),
    _path(f"{ACCOUNT}/keys", accounts.KeysViews, "Keys", "keys", get="index"),
    _path(f"{ACCOUNT}/keys/<str:key>/rotate", accounts.KeysViews, "Keys", "key-rotate", post="rotate"),
    _path(f"{ACCOUNT}/tables", tables.TablesViews, "Tables", "tables", get="index", post="create"),
    _path(
        TABLE,
        tables.TablesViews,
        "Tables",
        "table",
        get="retrieve",
        patch="partial_update",
        delete="destroy",
    ),
    _path(f"{TABLE}/restore", tables.TablesViews, "Tables", "table-restore", post="restore"),
    _path(f"{TABLE}/policies", tables.PoliciesViews, "Policies", "policies", get="retrieve", put="update"),
    _path(f"{ACCOUNT}/sas", sas.SasViews, "Shared access signatures", "sas-list", get="index", post="create"),
    _path(TOKEN, sas.SasViews, "Shared access signatures", "sas", get="retrieve"),
    _path(f"{TOKEN}/block", sas.SasViews, "Shared access signatures", "sas-block", post="block"),
    _path(f"{TOKEN}/unblock", sas.SasViews, "Shared access signatures", "sas-unblock", post="unblock"),
    _path(
        f"{ACCOUNT}/service-properties",
        service.ServicePropertiesViews,
        "Service properties",
        "service-properties",
        get="retrieve",
        put="update",
    ),
    _path(f"{ACCOUNT}/members", service.MembersViews, "Members", "members", get="index"),
    _path(
        f"{ACCOUNT}/members/<str:user>",
        service.MembersViews,
        "Members",
        "member",
        put="update",
        delete="destroy",
    ),
    _path(f"{ACCOUNT}/activity", service.ActivityViews, "Activity", "activity", get="index"),
]
