"""Frame of a table's pages: neighbouring tables, saved queries, star and tabs."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from django.http import Http404, HttpRequest
from django.utils.functional import Promise
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from console.grid import bookmarks
from console.models import Bookmark, SavedQuery
from console.queries import saved
from console.site import layout
from console.site.access import account_context, table_of, user_of
from console.site.addresses import path_of
from console.site.tags import grouped
from storage.access import policies
from storage.core import registry
from storage.core.subject import Place
from storage.domain.values.kinds import AccountKind
from storage.models import Account, Table
from storage.tables import table_list
from storage.tables.table_list import Listing, Overview

_ENTITIES: Final = "entities:index"
_TAB_NAMES: Final = frozenset(page.url for page in registry.pages(Place.TABLE))
# the tab of pages below a tab of another subject
_TABS_OF_SUBJECTS: Final = {"policies": layout.POLICIES, "tables": "tables:settings"}


_LINK: Final = '<li data-filter-text="{0}"><a href="{1}"{2}><span>{0}</span><em>{3}</em></a></li>'
_CURRENT: Final = SafeString(' aria-current="page"')


class Tab(NamedTuple):
    """A tab of the pages of a table."""

    label: str | Promise
    address: str
    current: str  # the value of aria-current, ``page`` on the tab's own page, ``true`` on one below it
    number: int = 0  # the number of things in it, if that is worth a number


@dataclass(frozen=True)
class AccountTables:
    """List of an account's tables in the sidebar, computed lazily as partial responses need none."""

    account: Account
    current: Table | None = None  # is counted first

    @cached_property
    def listing(self) -> Listing[Overview]:
        return table_list.overview(self.account, about=self.current)

    @property
    def links(self) -> SafeString:
        """Return the list items of the tables, up to a hundred."""
        return format_html_join("\n", _LINK, map(self._link, self.listing.tables))

    def _link(self, shown: Overview) -> tuple[str, str, str, str]:
        address = path_of(_ENTITIES, self.account.name, shown.name)
        number = grouped(shown.entities)
        mark = _CURRENT if self.current and shown.name == self.current.name else ""
        return shown.name, address, mark, number if shown.is_exact else f"~{number}"


@dataclass(frozen=True)
class TableFrame:
    """Frame of a table's pages: heading, tabs and links, computed lazily as partial responses need none."""

    request: HttpRequest
    account: Account
    url_name: str  # the URL name of the page

    @property
    def table(self) -> Table:
        return table_of(self.request)

    @cached_property
    def tables(self) -> AccountTables:
        try:
            return AccountTables(self.account, self.table)
        except Http404:  # the page that says so has the others beside it
            return AccountTables(self.account)

    @cached_property
    def overview(self) -> Overview:
        """Return the overview of the table."""
        listed = (it for it in self.tables.listing.tables if it.name == self.table.name)
        return next(listed, None) or table_list.describe(self.table)

    @property
    def _policy_count(self) -> int:
        counted = self.overview.policies
        return len(policies.stored(self.table)) if counted is None else counted

    @cached_property
    def queries(self) -> list[SavedQuery]:
        return saved.for_table(user_of(self.request), self.table)

    @cached_property
    def bookmark(self) -> Bookmark:
        return bookmarks.find(user_of(self.request), self.table)

    @cached_property
    def tabs(self) -> list[Tab]:
        is_own = self.url_name in _TAB_NAMES
        subject = self.url_name.partition(":")[0]
        current = self.url_name if is_own else _TABS_OF_SUBJECTS.get(subject, _ENTITIES)
        mark = "page" if is_own else "true"
        return [
            Tab(
                tab.label,
                path_of(tab.url, self.account.name, self.table.name),
                mark if tab.url == current else "",
                self._policy_count if tab.url == layout.POLICIES else 0,
            )
            for tab in layout.navigation(Place.TABLE)
            if not tab.only_storage or self.account.kind == AccountKind.STORAGE
        ]


def frame_of(request: HttpRequest) -> TableFrame | None:
    """Return the frame of a table's page, shared by view and templates; None on other pages."""
    current, match = account_context(request), request.resolver_match
    if current is None or match is None or "table" not in match.kwargs:
        return None
    frame: TableFrame = getattr(request, "table_frame", None) or TableFrame(
        request, current.account, match.view_name
    )
    request.table_frame = frame  # type: ignore[attr-defined]
    return frame


def context(request: HttpRequest) -> dict[str, Any]:
    """Add the frame to the template context of table pages, and the table list to account pages."""
    current, frame = account_context(request), frame_of(request)
    if frame is not None:
        return {"frame": frame, "sidebar_tables": frame.tables}
    return {} if current is None else {"sidebar_tables": AccountTables(current.account)}
