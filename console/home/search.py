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
    """The groups of results, in the order in which they are shown."""

    RECENT = _("Recent tables")
    ENTITY = _("Entities")
    TABLE = _("Tables")
    ACCOUNT = _("Accounts")
    QUERY = _("Saved queries")
    POLICY = _("Stored access policies")
    TOKEN = _("SAS tokens")
    PAGE = _("Pages")
    SETTING = _("Settings")
    USER = _("Users")
    MORE = _("More")


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A page that matches; ``account`` is the one it belongs to, if any."""

    kind: ResultKind
    text: str | Promise
    address: str
    icon: str
    account: Account | None = None
    detail: str = ""
    is_data: bool = False  # a name given by users, not a text of the console


def find(user: User, text: str, current: AccountContext | None, *, top: int = TOP) -> list[SearchResult]:
    """Search; without a text, return recent tables, accounts and pages.

    ``current``: the account of the page, if any.
    """
    accounts = visible_accounts(user)
    recent = bookmarks.recent_tables(user, accounts.order_by().values("pk"))
    if not text:
        others = accounts if current is None else accounts.exclude(pk=current.account.pk)
        return [
            *(_table(table, ResultKind.RECENT) for table in recent),
            *(_account(account) for account in others[:_OTHERS]),
            *_pages(user, current),
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
        *(hit for hit in _pages(user, current) if _contains(hit, text)),
        *(hit for hit in _settings(user, current) if _contains(hit, text)),
        *_users(user, text),
        *(_more(text) if len(tables) == top else ()),
    ]


def group_results(hits: list[SearchResult]) -> list[tuple[Promise, list[SearchResult]]]:
    return [(kind.value, list(found)) for kind, found in groupby(hits, key=lambda hit: hit.kind)]


def find_exact(hits: list[SearchResult], text: str) -> SearchResult | None:
    """Return the only table with exactly this name, in any letter case."""
    found = [hit for hit in hits if hit.kind is ResultKind.TABLE and str(hit.text).lower() == text.lower()]
    return found[0] if len(found) == 1 else None


def _table(table: Table, kind: ResultKind) -> SearchResult:
    address = reverse("entities:index", args=(table.account.name, table.name))
    return SearchResult(kind, table.name, address, "table-2", account=table.account, is_data=True)


def _entities(accounts: QuerySet[Account], text: str) -> Iterator[SearchResult]:
    """Find the entities of a key: the name of a table, then both keys, in quotation marks if need be."""
    match = _KEY(text)
    if match is None:
        return
    partition_key, row_key = (
        match[name] if match[name] is not None else match[f"quoted_{name}"].replace("''", "'")
        for name in ("pk", "rk")
    )
    key = EntityKey(partition_key, row_key)
    for table in search.tables(accounts, match["table"], top=TOP):
        if table.folded_name == match["table"].lower() and entities.get(table, key) is not None:
            query = {"pk": partition_key, "rk": row_key}
            address = reverse("entities:show", args=(table.account.name, table.name), query=query)
            yield SearchResult(
                ResultKind.ENTITY,
                f"{partition_key}, {row_key}",
                address,
                "braces",
                table.account,
                table.name,
                True,
            )


def _named(accounts: QuerySet[Account], text: str) -> Iterable[Account]:
    """Return the first accounts whose name or label has the text."""
    folded = _fold(text)
    labels = accounts.exclude(label="").values_list("pk", "label")
    labelled = [pk for pk, label in labels if folded in _fold(label)]
    return accounts.filter(Q(name__contains=text.lower()) | Q(pk__in=labelled))[:_ACCOUNTS]


def _account(account: Account) -> SearchResult:
    address = reverse("tables:index", args=(account.name,))
    return SearchResult(
        ResultKind.ACCOUNT, account.name, address, "database", account, account.label, is_data=True
    )


def _queries(user: User, accounts: QuerySet[Account], text: str) -> Iterator[SearchResult]:
    found = search_queries(user, accounts.order_by().values("pk"), text, top=TOP)
    prefetch_related_objects(found, "account")
    for query in found:
        account = query.account
        address = reverse("queries:run", args=(account.name, query.table_name, query.slug))
        yield SearchResult(
            ResultKind.QUERY, query.name, address, "bookmark", account, query.table_name, is_data=True
        )


def _policies(accounts: QuerySet[Account], text: str) -> Iterator[SearchResult]:
    for policy in search.policies(accounts, text, top=TOP):
        table = policy.table
        address = reverse("policies:show", args=(table.account.name, table.name))
        yield SearchResult(
            ResultKind.POLICY, policy.identifier, address, "shield", table.account, table.name, is_data=True
        )


def _tokens(user: User, text: str) -> Iterator[SearchResult]:
    managed = visible_accounts(user, Capability.MANAGE_ACCESS)
    for token in search.tokens(managed, text, top=TOP):
        address = reverse("sas:show", args=(token.account.name, token.fingerprint))
        yield SearchResult(
            ResultKind.TOKEN, token.label, address, "ticket", token.account, token.table_name, is_data=True
        )


def _users(user: User, text: str) -> Iterator[SearchResult]:
    if user.is_admin:
        for name, pk in User.objects.filter(username__contains=text.lower()).values_list("username", "pk")[
            :8
        ]:
            yield SearchResult(
                ResultKind.USER, name, reverse("people:user", args=(pk,)), "user", is_data=True
            )


def _more(text: str) -> Iterator[SearchResult]:
    address = reverse("home:search", query={"q": text})
    yield SearchResult(ResultKind.MORE, _("Show all matching tables"), address, "search")


def _contains(hit: SearchResult, text: str) -> bool:
    return _fold(text) in _fold(str(hit.text))


def _fold(text: str) -> str:
    """Drop case and marks, so that the four letters i of Turkish are one, and "gecmis" finds "Geçmiş"."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter)).replace("ı", "i")


def _pages(user: User, current: AccountContext | None) -> Iterator[SearchResult]:
    of_account = (*layout.ACCOUNT_SIDEBAR, *layout.ACTIONS)
    of_server = (*layout.SERVER_SIDEBAR, *layout.SERVER_ACTIONS)
    return _links(ResultKind.PAGE, user, current, of_account, of_server)


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


def _link(kind: ResultKind, item: NavigationItem, account: Account | None = None) -> SearchResult:
    address = reverse(item.url, args=(account.name,) if account else (), fragment=item.fragment or None)
    return SearchResult(kind, item.label, address, item.icon, account, str(item.place))
