"""The search: entities by key, accounts, tables, queries, policies, SAS tokens, pages and users the user may see."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import Final

from django.db.models import Q, QuerySet, prefetch_related_objects
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.grid import bookmarks
from console.models import User
from console.queries.saved import search_queries
from console.site import layout
from console.site.access import AccountContext
from console.site.layout import NavigationItem
from storage.domain.access.roles import Capability, may
from storage.domain.entities.entity import EntityKey
from storage.models import Account, Table
from storage.operations.access import search
from storage.operations.access.members import visible_accounts
from storage.operations.entities import entities

TOP: Final = 8  # tables, so that other results stay visible
_OTHERS: Final = 5  # accounts to change to
_ACCOUNTS: Final = 20  # that match a text
_KEY: Final = re.compile(
    r"(?P<table>\w+)\s+(?:'(?P<quoted_pk>(?:[^']|'')*)'|(?P<pk>[^'\s]\S*))"
    r"\s+(?:'(?P<quoted_rk>(?:[^']|'')*)'|(?P<rk>[^'].*))"
).fullmatch


class ResultKind(Enum):
    """The groups of results, in the order in which they are shown: label, icon, and whether users give the names."""

    RECENT = _("Recent tables"), "table-2", True
    ENTITY = _("Entities"), "braces", True
    TABLE = _("Tables"), "table-2", True
    ACCOUNT = _("Accounts"), "database", True
    QUERY = _("Saved queries"), "bookmark", True
    POLICY = _("Stored access policies"), "shield", True
    TOKEN = _("SAS tokens"), "ticket", True
    PAGE = _("Pages"), "", False
    SETTING = _("Settings"), "", False
    USER = _("Users"), "user", True
    MORE = _("More"), "search", False

    def __init__(self, label: Promise, icon: str, is_data: bool) -> None:
        self.label = label
        self.icon = icon
        self.is_data = is_data


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A page that matches; ``account`` is the one it belongs to, if any."""

    kind: ResultKind
    text: str | Promise
    address: str
    account: Account | None = None
    detail: str = ""
    own_icon: str = ""  # in place of that of the kind

    @property
    def icon(self) -> str:
        return self.own_icon or self.kind.icon

    @property
    def is_data(self) -> bool:
        return self.kind.is_data


def find(
    user: User, text: str, current: AccountContext | None, *, table: str = "", top: int = TOP
) -> list[SearchResult]:
    """Search; without a text, return recent tables, accounts and pages.

    ``current`` and ``table``: the account and the table of the page, if any.
    """
    accounts = visible_accounts(user)
    recent = bookmarks.recent_tables(user, accounts.order_by().values("pk"))
    if not text:
        others = accounts if current is None else accounts.exclude(pk=current.account.pk)
        return [
            *(_table(table, ResultKind.RECENT) for table in recent),
            *(_account(account) for account in others[:_OTHERS]),
            *_pages(user, current, table),
        ]
    # names compare by ASCII case, texts of the console without case and marks
    tables = search.tables(accounts, text, first=recent, top=top)
    return [
        *_entities(accounts, text),
        *(_table(table, ResultKind.TABLE) for table in tables),
        *(_account(account) for account in _named(accounts, text)),
        *_queries(user, accounts, text),
        *_policies(accounts, text),
        *_tokens(user, text),
        *(hit for hit in _pages(user, current, table) if _contains(hit, text)),
        *(hit for hit in _settings(user, current) if _contains(hit, text)),
        *_users(user, text),
        *(_more(text) if len(tables) == top else ()),
    ]


def group_results(hits: list[SearchResult]) -> list[tuple[Promise, list[SearchResult]]]:
    return [(kind.label, list(found)) for kind, found in groupby(hits, key=lambda hit: hit.kind)]


def find_exact(hits: list[SearchResult], text: str) -> SearchResult | None:
    """Return the only table with exactly this name, in any letter case."""
    found = [hit for hit in hits if hit.kind is ResultKind.TABLE and str(hit.text).lower() == text.lower()]
    return found[0] if len(found) == 1 else None


def _of_account(
    kind: ResultKind, text: str, url: str, account: Account, *arguments: str, detail: str = "", **query: str
) -> SearchResult:
    address = reverse(url, args=(account.name, *arguments), query=query)
    return SearchResult(kind, text, address, account, detail)


def _table(table: Table, kind: ResultKind) -> SearchResult:
    return _of_account(kind, table.name, "entities:index", table.account, table.name)


def _entities(accounts: QuerySet[Account], text: str) -> Iterator[SearchResult]:
    """Find the entities of a key: the name of a table, then both keys, in quotation marks if need be."""
    match = _KEY(text)
    if match is None:
        return
    pk, rk = (
        match[name] if match[name] is not None else match[f"quoted_{name}"].replace("''", "'")
        for name in ("pk", "rk")
    )
    for table in search.tables(accounts, match["table"], top=TOP):
        if table.folded_name == match["table"].lower() and entities.get(table, EntityKey(pk, rk)) is not None:
            name, text = table.name, f"{pk}, {rk}"
            yield _of_account(
                ResultKind.ENTITY, text, "entities:show", table.account, name, detail=name, pk=pk, rk=rk
            )


def _named(accounts: QuerySet[Account], text: str) -> Iterable[Account]:
    """Return the first accounts whose name or label has the text."""
    folded = _fold(text)
    labels = accounts.exclude(label="").values_list("pk", "label")
    labelled = [pk for pk, label in labels if folded in _fold(label)]
    return accounts.filter(Q(name__contains=text.lower()) | Q(pk__in=labelled))[:_ACCOUNTS]


def _account(account: Account) -> SearchResult:
    return _of_account(ResultKind.ACCOUNT, account.name, "tables:index", account, detail=account.label)


def _queries(user: User, accounts: QuerySet[Account], text: str) -> Iterator[SearchResult]:
    found = search_queries(user, accounts.order_by().values("pk"), text, top=TOP)
    prefetch_related_objects(found, "account")
    for query in found:
        name = query.table_name
        yield _of_account(
            ResultKind.QUERY, query.name, "queries:run", query.account, name, query.slug, detail=name
        )


def _policies(accounts: QuerySet[Account], text: str) -> Iterator[SearchResult]:
    for policy in search.policies(accounts, text, top=TOP):
        name, account = policy.table.name, policy.table.account
        yield _of_account(ResultKind.POLICY, policy.identifier, "policies:show", account, name, detail=name)


def _tokens(user: User, text: str) -> Iterator[SearchResult]:
    managed = visible_accounts(user, Capability.MANAGE_ACCESS)
    for token in search.tokens(managed, text, top=TOP):
        name = token.table_name
        yield _of_account(
            ResultKind.TOKEN, token.label, "sas:show", token.account, token.fingerprint, detail=name
        )


def _users(user: User, text: str) -> Iterator[SearchResult]:
    named = User.objects.filter(username__contains=text.lower())[:8] if user.is_admin else ()
    for found in named:
        yield SearchResult(ResultKind.USER, found.username, reverse("people:user", args=(found.pk,)))


def _more(text: str) -> Iterator[SearchResult]:
    address = reverse("home:search", query={"q": text})
    yield SearchResult(ResultKind.MORE, _("Show all matching tables"), address)


def _contains(hit: SearchResult, text: str) -> bool:
    return _fold(text) in _fold(str(hit.text))


def _fold(text: str) -> str:
    """Drop case and marks, so that the four letters i of Turkish are one, and "gecmis" finds "Geçmiş"."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter)).replace("ı", "i")


def _pages(user: User, current: AccountContext | None, table: str) -> Iterator[SearchResult]:
    if table and current is not None:
        for item in layout.TABLE_ACTIONS:
            if may(current.role, item.capability):
                yield _link(ResultKind.PAGE, item, current.account, table)
    of_account = (*layout.ACCOUNT_SIDEBAR, *layout.ACTIONS)
    of_server = (*layout.SERVER_SIDEBAR, *layout.SERVER_ACTIONS)
    yield from _links(ResultKind.PAGE, user, current, of_account, of_server)


def _settings(user: User, current: AccountContext | None) -> Iterator[SearchResult]:
    return _links(ResultKind.SETTING, user, current, layout.ACCOUNT_SETTINGS, layout.SERVER_SETTINGS)


def _links(
    kind: ResultKind,
    user: User,
    current: AccountContext | None,
    of_account: Iterable[NavigationItem],
    of_server: Iterable[NavigationItem],
) -> Iterator[SearchResult]:
    if current is not None:
        for item in of_account:
            if may(current.role, item.capability):
                yield _link(kind, item, current.account)
    for item in of_server:
        if user.is_admin or not item.is_for_admins:
            yield _link(kind, item)


def _link(
    kind: ResultKind, item: NavigationItem, account: Account | None = None, table: str = ""
) -> SearchResult:
    names = [account.name if account else "", table]
    address = reverse(item.url, args=[*filter(None, names)], fragment=item.fragment or None)
    return SearchResult(kind, item.label, address, account, table or str(item.place), item.icon)
