"""Links to the design of a table in other pages: from a query of the grid, and from a logged one."""

from typing import Any

from django.template import Context

from console.site.addresses import address_of
from storage.domain.errors import StorageError
from storage.domain.filters.access_plan import AccessPath
from storage.models import Account
from storage.tables import tables


def find_query(context: Context) -> dict[str, Any]:
    """Return the address of the design for the query of a grid; empty if it is a good one."""
    account, table, state = context["account"], context["table"], context["state"]
    if not context["explanation"]["advice"]:
        return {"design_address": ""}
    return {"design_address": address_of("design:table", account.name, table.name, f=state.filter)}


def find_request(context: Context) -> dict[str, Any]:
    """Return the address of the design for a logged query; empty if it is a good one, or the table is gone."""
    account, recorded = context["account"], context["shown"].it
    is_good = recorded.access_path in (AccessPath.POINT, AccessPath.RANGE)
    if is_good or not isinstance(account, Account):
        return {"design_address": ""}
    try:
        table = tables.get(account, recorded.table_name)
    except StorageError:
        return {"design_address": ""}
    text = dict(recorded.options).get("$filter", "")
    return {"design_address": address_of("design:table", account.name, table.name, f=text)}
