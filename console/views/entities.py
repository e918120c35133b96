"""The entities of a table."""

from dataclasses import dataclass
from typing import Final

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from console import cells, cursor
from console.access import Capability, account_required
from console.cursor import Cursor
from console.views.accounts import endpoint
from storage.domain.errors import StorageError
from storage.domain.filters import parse
from storage.domain.query import EntityQuery, Page
from storage.models import Account, Table
from storage.operations import accounts, entities, tables

SIZES = (25, 50, 100, 200)
DEFAULT_SIZE = 50
SNIPPET: Final = """\
from azure.data.tables import TableClient

table = TableClient.from_connection_string(
    "%s", "%s"
)
table.create_entity({"PartitionKey": "se", "RowKey": "ada", "Name": "Ada Lovelace"})
"""


@dataclass(frozen=True, slots=True)
class State:
    """What the address says: the filter, the page size, and where each page so far started."""

    filter: str
    size: int
    starts: list[str]
    is_cut: bool  # whether starts of earlier pages no longer fit into the address

    @property
    def mark(self) -> list[str]:
        return [cursor.CUT] if self.is_cut else []

    @property
    def cursor(self) -> Cursor | None:
        return cursor.read(self.starts[-1]) if self.starts else None


@account_required(Capability.READ)
def show(request: HttpRequest, account: Account, table: str) -> HttpResponse:
    """A page of entities: a filter that cannot be answered is explained beside its field."""
    found = _table(account, table)
    if found.name != table:
        return redirect(_address(account, found, request.GET), permanent=True)
    state = _read_state(request)
    page, error = _query(found, state)
    context = {
        "table": tables.describe(found),
        "state": state,
        "sizes": SIZES,
        "error": error,
        "listing": tables.overview(account.pk),
        "snippet": SNIPPET % (accounts.connection_string(account, endpoint(request, account)), found.name),
        **_listing(account, found, state, page),
    }
    return render(request, "console/entities/show.html", context, status=422 if error else 200)


def _table(account: Account, name: str) -> Table:
    try:
        return tables.get(account.pk, name)
    except StorageError:
        raise Http404 from None


def _read_state(request: HttpRequest) -> State:
    size = request.GET.get("top", "")
    starts = [token for token in request.GET.getlist("after") if cursor.read(token)]
    return State(
        filter=request.GET.get("f", "").strip(),
        size=int(size) if size.isascii() and size.isdecimal() and int(size) in SIZES else DEFAULT_SIZE,
        starts=starts,
        is_cut=request.GET.get("after") is not None and request.GET.getlist("after")[0] == cursor.CUT,
    )


def _query(table: Table, state: State) -> tuple[Page, str]:
    """A page, or none and the service's own words why."""
    try:
        wanted = EntityQuery(
            filter=parse(state.filter) if state.filter else None,
            top=state.size,
            start=state.cursor.position if state.cursor else None,
        )
        return entities.page(table, wanted), ""
    except StorageError as error:
        return Page([], None), error.text


def _listing(account: Account, table: Table, state: State, page: Page) -> dict[str, object]:
    before = state.cursor.rows if state.cursor else 0
    after = before + len(page.entities)
    grid = cells.grid(_("Entities"), page.entities, before=before, is_last=page.next is None)
    following = cursor.write(Cursor(page.next, after)) if page.next else ""
    return {
        "grid": grid,
        # a filter matches fewer, and nobody knows how many
        "is_counted": not state.filter and page.next is not None,
        "first": before + 1,
        "last": after,
        "first_key": grid.rows[0][:2] if grid.rows else None,
        "last_key": grid.rows[-1][:2] if grid.rows else None,
        "start": _page_address(account, table, state, []) if state.starts else "",
        "previous": _page_address(account, table, state, [*state.mark, *state.starts[:-1]])
        if len(state.starts) > (1 if state.is_cut else 0)
        else "",
        "next": _page_address(
            account, table, state, cursor.shortened([*state.mark, *state.starts, following])
        )
        if following
        else "",
    }


def _page_address(account: Account, table: Table, state: State, starts: list[str]) -> str:
    query = QueryDict(mutable=True)
    if state.filter:
        query["f"] = state.filter
    if state.size != DEFAULT_SIZE:
        query["top"] = str(state.size)
    query.setlist("after", starts)
    return _address(account, table, query)


def _address(account: Account, table: Table, query: QueryDict) -> str:
    path = reverse("entities", args=(account.name, table.name))
    return f"{path}?{query.urlencode()}" if query else path
