"""Saved queries: their visibility, content, and differences from the grid's state."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest, QueryDict
from django.urls import reverse
from django.utils.functional import Promise

from console.grid import differences
from console.grid.bookmarks import AccountIds
from console.grid.state import GridState, read_state
from console.models import SavedQuery, SavedQueryVersion, User
from console.site.access import RoleNeeded, role_of, user_of
from storage.domain.access.roles import Capability, Role, may
from storage.editing.filters import parameters
from storage.editing.filters.parameters import UnfilledParameter
from storage.home.search import has_text
from storage.models import Account, Table
from storage.rest.lookups import or_404
from storage.tables import tables

GRID_FIELDS: Final = ("f", "s", "cols", "sort", "top", "view")  # fields of a grid's address, kept as content


@dataclass(frozen=True, slots=True)
class Definition:
    """Definition of a query; ``content`` maps address fields of a grid to values."""

    name: str
    description: str = ""
    content: Mapping[str, str] = field(default_factory=dict)
    is_shared: bool = False


def visible_queries(user: User, account_ids: AccountIds, *, deleted: bool = False) -> QuerySet[SavedQuery]:
    """Select the queries visible to a user; private ones only to their owner."""
    found = SavedQuery.objects.filter(Q(is_shared=True) | Q(owner=user), account__in=account_ids)
    return found.filter(deleted_at__isnull=not deleted).select_related("owner")


def with_earlier_versions(queries: QuerySet[SavedQuery]) -> QuerySet[SavedQuery]:
    """Annotate queries with ``has_versions``, which is true if 1.0 kept earlier versions."""
    kept = SavedQueryVersion.objects.filter(query=OuterRef("pk"), number__gt=1)
    return queries.annotate(has_versions=Exists(kept))


def for_table(user: User, table: Table) -> list[SavedQuery]:
    found = visible_queries(user, [table.account_id]).filter(table_name=table.folded_name)
    return sorted(found, key=lambda query: (query.name.casefold(), query.pk))


def find_query(user: User, account_id: int, table_name: str, slug: str) -> SavedQuery | None:
    """Return a saved query, even if its table no longer exists."""
    if "\0" in slug + table_name:
        return None
    return visible_queries(user, [account_id]).filter(table_name=table_name.lower(), slug=slug).first()


def find_deleted(user: User, table: Table, slug: str) -> SavedQuery | None:
    """Return the last deleted query of this address."""
    deleted = visible_queries(user, [table.account_id], deleted=True)
    found = deleted.filter(table_name=table.folded_name, slug=slug.replace("\0", ""))
    return found.order_by("-deleted_at").first()


def search_queries(user: User, account_ids: AccountIds, text: str, *, top: int) -> list[SavedQuery]:
    """Search queries of existing tables by part of their name, in any letter case."""
    listed = tables.named(OuterRef("account"), OuterRef("table_name")).existing()
    found = visible_queries(user, account_ids).filter(has_text("name", text), Exists(listed))
    return list(found.order_by("name", "pk")[:top])


def can_change(user: User, role: Role, query: SavedQuery) -> bool:
    return may(role, Capability.WRITE) if query.is_shared else query.owner_id == user.pk


def may_share_as(user: User, query: SavedQuery, *, is_shared: bool) -> bool:
    """Return whether the user may change the sharing, as only owners can make a query private."""
    return is_shared or not query.is_shared or query.owner_id == user.pk


def list_versions(user: User, query: SavedQuery) -> list[SavedQueryVersion]:
    """Return versions kept by 1.0, latest first; only shared ones for other users than the owner."""
    found = query.versions.order_by("-number")
    return list(found if query.owner_id == user.pk else found.filter(content__is_shared=True))


def revision(query: SavedQuery) -> str:
    """Return the revision of a query for optimistic concurrency; it differs after every change."""
    return query.updated_at.isoformat()


def list_parameters(query: SavedQuery) -> tuple[str, ...]:
    return parameters.list_parameters(query.content.get("f", ""))


# access by a request


def get_query(request: HttpRequest, account: Account, table_name: str, slug: str) -> SavedQuery:
    """Return a saved query that the user may see; raises Http404."""
    return or_404(find_query(user_of(request), account.pk, table_name, slug))


def get_changeable(request: HttpRequest, account: Account, table_name: str, slug: str) -> SavedQuery:
    """Return a saved query that the user may change; raises Http404 or RoleNeeded."""
    query = get_query(request, account, table_name, slug)
    if not can_change(user_of(request), role_of(request), query):
        raise RoleNeeded(Capability.WRITE, account)
    return query


# on a grid


@dataclass(frozen=True, slots=True)
class AppliedQuery:
    """Saved query applied to a grid."""

    query: SavedQuery
    revision: str
    changed: list[str | Promise]  # names of the parts that differ
    content: Mapping[str, str]  # the content that an update would save
    is_filled: bool  # whether the filter was changed while it contains values in place of parameters
    can_change: bool
    run_address: str  # to run it again, with other values or as it was saved

    @property
    def parameters(self) -> tuple[str, ...]:
        return list_parameters(self.query)


def grid_content(state: GridState) -> dict[str, str]:
    """Return the content of a saved query for a grid."""
    return {name: value for name, value in state.fields if name in GRID_FIELDS}


def fill_state(query: SavedQuery, values: Mapping[str, str]) -> GridState:
    """Return the grid state of a query with parameters filled; raises UnfilledParameter."""
    fields = QueryDict(mutable=True)
    fields.update({name: value for name, value in query.content.items() if name in GRID_FIELDS})
    fields["f"] = parameters.fill_parameters(fields.get("f", ""), values)
    used = tuple((name, values[name]) for name in list_parameters(query))
    return replace(read_state(fields), saved=query.slug, values=used)


def get_applied(user: User, role: Role, table: Table, state: GridState) -> AppliedQuery | None:
    """Return the saved query named in the grid's address; None if it does not exist."""
    query = find_query(user, table.account.pk, table.folded_name, state.saved) if state.saved else None
    if query is None:
        return None
    text = _unfill(query, state)
    content = grid_content(state) | ({"f": text} if text else {})
    changed = _changed_fields(query.content, content)
    return AppliedQuery(
        query,
        revision(query),
        [differences.setting_name(f"query.{name}") for name in changed],
        content,
        is_filled="f" in changed and bool(list_parameters(query)),
        can_change=can_change(user, role, query),
        run_address=_run_address(query, table, state),
    )


def _unfill(query: SavedQuery, state: GridState) -> str:
    """Return the saved filter if the grid's filter equals it with its parameters filled in, else the grid's filter."""
    saved: str = query.content.get("f", "")
    try:
        filled = parameters.fill_parameters(saved, dict(state.values)).strip()
    except UnfilledParameter:
        return state.filter
    return saved if filled == state.filter else state.filter


def _changed_fields(saved: Mapping[str, str], shown: Mapping[str, str]) -> list[str]:
    # a query without columns is shown with the columns of its reader
    return [
        name
        for name in GRID_FIELDS
        if saved.get(name, "") != shown.get(name, "") and (name != "cols" or name in saved)
    ]


def _run_address(query: SavedQuery, table: Table, state: GridState) -> str:
    fields = {"ask": "1", **{f"v-{name}": value for name, value in state.values}}
    return reverse(
        "queries:run",
        args=(table.account.name, table.name, query.slug),
        query=fields if list_parameters(query) else None,
    )
