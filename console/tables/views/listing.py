"""The list of an account's tables, with their sizes and the recently deleted ones."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from console.site.access import account_required, find_table, role_of
from console.site.responses import render_page, wants_part
from console.snippets import connections
from console.tables.list_query import TableListQuery, read_list_query
from console.tables.tags import draw_cell
from storage.domain.access.roles import Capability, may
from storage.domain.errors import StorageError
from storage.domain.filters.query import EntityQuery
from storage.entities import entities
from storage.models import Account, Table
from storage.tables import table_list, tables
from storage.tables.list_columns import COLUMNS, SORTABLE, Size, TableRow, columns_of
from storage.tables.table_list import Listing

SNIPPET: Final = """\
from azure.data.tables import TableServiceClient

service = TableServiceClient.from_connection_string(
    "%s"
)
service.create_table("people")
"""


@account_required(Capability.READ)
@require_GET
def index(request: HttpRequest, account: Account) -> HttpResponse:
    """Show a page of tables, which loads their sizes itself."""
    query = read_list_query(request.GET)
    context = {**_list_context(request, account, query), "is_part": wants_part(request)}
    response = render_page(request, "console/tables/index.html", context)
    response["HX-Replace-Url"] = query.address(account)
    return response


def _list_context(request: HttpRequest, account: Account, query: TableListQuery) -> dict[str, Any]:
    listing = _find_page(account, query)
    sizes = listing.sizes or (table_list.sizes(listing.tables) if "sizes" in request.GET else {})
    context: dict[str, Any] = {
        "listing": listing,
        "rows": table_list.read_rows(listing.tables, sizes),
        "columns": columns_of(account.kind),
        "query": query,
        "orders": {
            name: query.address(account, after="", sort=query.sorted_by(column))
            for name, column in SORTABLE.items()
        },
        "sort_options": [
            (query.sort if column is query.column else query.first_sort(column), column)
            for column in SORTABLE.values()
        ],
        "is_filtered": bool(query.containing or query.tag),
        "first": query.address(account, after=""),
        "next": query.address(account, after=listing.next) if listing.next else "",
        "without_tag": query.address(account, tag="", after=""),
        "sizes_url": query.address(account, "tables:sizes"),
        "tags": table_list.tags(account),
        # for browsers without JavaScript
        "with_sizes": query.address(account, sizes="1"),
        "has_sizes": bool(sizes),
    }
    if not context["is_filtered"] and not query.after:
        context |= _account_context(request, account, listing)
    return context


def _find_page(account: Account, query: TableListQuery) -> Listing[Table]:
    return table_list.page(
        account,
        containing=query.containing,
        tag=query.tag,
        start=query.after,
        column=query.column,
        descending=query.is_descending,
    )


def _account_context(request: HttpRequest, account: Account, listing: Listing[Table]) -> dict[str, Any]:
    """Return the context below the first page: deleted tables, or a getting-started snippet."""
    may_restore = may(role_of(request), Capability.MANAGE_TABLES)
    context: dict[str, Any] = {"deleted": _deleted_tables(account) if may_restore else []}
    if not listing.total:
        context["snippet"] = SNIPPET % connections.masked_connection_string(
            account, connections.endpoint(request, account)
        )
    return context


def _deleted_tables(account: Account) -> list[dict[str, Any]]:
    now = timezone.now()
    return [
        {"table": table, "days_left": -((now - table.kept_until) // timedelta(days=1))}  # rounded up
        for table in tables.deleted(account)
        if table.kept_until is not None
    ]


@account_required(Capability.READ)
@require_GET
def sizes(request: HttpRequest, account: Account) -> HttpResponse:
    """Render sizes of a page of tables; with ``exactly``, count one table's entities."""
    if "exactly" in request.GET:
        exact = find_table(account, request.GET["exactly"])
        row = TableRow(exact, _count_exactly(exact))
        return HttpResponse(draw_cell(COLUMNS["entities"], row, account, is_tried=True))
    listing = _find_page(account, read_list_query(request.GET))
    sizes = table_list.sizes(listing.tables)
    rows = [TableRow(table, sizes[table.name]) for table in listing.tables]
    context = {"rows": rows, "columns": [column for column in COLUMNS.values() if column.is_measured]}
    return render(request, "console/tables/_sizes.html", context)


def _count_exactly(table: Table) -> Size:
    size = table_list.sizes([table])[table.name]
    try:
        return replace(size, entities=entities.count(table, EntityQuery()), is_exact=True)
    except StorageError:  # counting takes too long
        return size
