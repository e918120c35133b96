"""A saved query in a grid: the address it leads to, and what differs there from what was saved."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from django.http import QueryDict
from django.urls import reverse
from django.utils.functional import Promise

from console.grid import differences
from console.grid.state import GridState, read_state
from console.models import SavedQuery, User
from console.queries import saved as saved_queries
from storage.domain.access.roles import Role
from storage.editing.filters.parameters import UnfilledParameter, fill_parameters, list_parameters
from storage.models import Account, Table

KEPT: Final = ("f", "s", "cols", "sort", "top", "view")  # of an address


def content_of(state: GridState) -> dict[str, str]:
    """What a query keeps of a grid."""
    return {name: value for name, value in state.fields if name in KEPT}


def parameters(query: SavedQuery) -> tuple[str, ...]:
    """What is asked for when it is run."""
    return list_parameters(query.content.get("f", ""))


def state_of(query: SavedQuery, values: Mapping[str, str]) -> GridState:
    """The grid as it was saved; raises Unfilled."""
    asked = QueryDict(mutable=True)
    asked.update({name: value for name, value in query.content.items() if name in KEPT})
    asked["f"] = fill_parameters(asked.get("f", ""), values)
    used = tuple((name, values[name]) for name in parameters(query))
    return replace(read_state(asked), saved=query.slug, values=used)


@dataclass(frozen=True, slots=True)
class Applied:
    """``changed``: what differs by now, in words. ``content`` is what saving the grid as this query would keep.

    ``is_filled``: the filter was changed, and holds values where the saved one asks for them.
    """

    query: SavedQuery
    version: int
    changed: list[str | Promise]
    content: Mapping[str, str]
    is_filled: bool
    may_change: bool
    again: str  # where it is run anew, with other values or as it was saved

    @property
    def parameters(self) -> tuple[str, ...]:
        return parameters(self.query)


def applied(user: User, role: Role, account: Account, table: Table, state: GridState) -> Applied | None:
    """None when the address names no query, or one that is not there."""
    query = saved_queries.find(user, table, state.saved) if state.saved else None
    if query is None:
        return None
    text = _text(query, state)
    content = content_of(state) | ({"f": text} if text else {})
    names = _changed(query.content, content)
    return Applied(
        query,
        saved_queries.newest(query),
        [differences.name_of(f"query.{name}") for name in names],
        content,
        is_filled="f" in names and bool(parameters(query)),
        may_change=saved_queries.may_change(user, role, query),
        again=_again(query, account, table, state),
    )


def _text(query: SavedQuery, state: GridState) -> str:
    """The filter with its places, where it was only filled."""
    saved: str = query.content.get("f", "")
    try:
        return saved if fill_parameters(saved, dict(state.values)).strip() == state.filter else state.filter
    except UnfilledParameter:
        return state.filter


def _changed(saved: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    # a query that says nothing of columns is shown with those of whoever looks
    return [
        name
        for name in KEPT
        if saved.get(name, "") != now.get(name, "") and (name != "cols" or name in saved)
    ]


def _again(query: SavedQuery, account: Account, table: Table, state: GridState) -> str:
    address = reverse("queries:run", args=(account.name, table.name, query.slug))
    if not parameters(query):
        return address
    asked = QueryDict(mutable=True)
    asked.update({"ask": "1", **{f"v-{name}": value for name, value in state.values}})
    return f"{address}?{asked.urlencode()}"
