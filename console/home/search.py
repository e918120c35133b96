"""What a name leads to: accounts, tables, people, pages of the console; only what its reader may see."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.grid import bookmarks
from console.models import User
from console.queries.saved import search_queries
from console.site import layout
from console.site.access import AccountContext
from storage.domain.access.roles import Capability, Role, may
from storage.models import Account, Table
from storage.operations import search
from storage.operations.members import visible_accounts

TOP: Final = 8  # tables, so that what else is found is seen too


class Kind(Enum):
    """The groups in which hits are shown, in this order."""

    RECENT = _("Recent tables")
    TABLE = _("Tables")
    ACCOUNT = _("Accounts")
    QUERY = _("Saved queries")
    POLICY = _("Stored access policies")
    TOKEN = _("SAS tokens")
    PAGE = _("Pages")
    USER = _("Users")
    MORE = _("More")


@dataclass(frozen=True, slots=True)
class Hit:
    """``account`` is where it is, if in one."""

    kind: Kind
    text: str | Promise
    address: str
    icon: str
    account: Account | None = None
    detail: str = ""
    is_data: bool = False  # a name that somebody gave, not a word of ours


@dataclass(frozen=True, slots=True)
class Group:
    title: str | Promise
    hits: list[Hit]


def find(user: User, text: str, current: AccountContext | None, *, top: int = TOP) -> list[Hit]:
    """Without a text what was opened last, and where one may go from here. ``current``: the account one is in."""
    accounts = visible_accounts(user)
    if not text:
        return [*_recent(user, accounts), *_pages(user, current)]
    # no language's own casing for names; words of ours are compared as they are read
    tables = list(_tables(accounts, text, top))
    return [
        *tables,
        *(hit for account, _role in accounts for hit in _account(account, text)),
        *_queries(user, accounts, text),
        *_policies(accounts, text),
        *_tokens(accounts, text),
        *(hit for hit in _pages(user, current) if text.casefold() in str(hit.text).casefold()),
        *_users(user, text),
        *(_more(text) if len(tables) == top else ()),
    ]


def groups(hits: list[Hit]) -> list[Group]:
    return [Group(kind.value, list(found)) for kind, found in groupby(hits, key=lambda hit: hit.kind)]


def exact(hits: list[Hit], text: str) -> Hit | None:
    """The only table of exactly this name, in any letter case."""
    found = [hit for hit in hits if hit.kind is Kind.TABLE and str(hit.text).lower() == text.lower()]
    return found[0] if len(found) == 1 else None


def _recent(user: User, accounts: list[tuple[Account, Role]]) -> Iterator[Hit]:
    for table in bookmarks.recent_tables(user, [account.pk for account, _role in accounts]):
        yield _table(table, Kind.RECENT)


def _tables(accounts: list[tuple[Account, Role]], text: str, top: int) -> Iterator[Hit]:
    for table in search.tables([account for account, _role in accounts], text, top=top):
        yield _table(table, Kind.TABLE)


def _table(table: Table, kind: Kind) -> Hit:
    address = reverse("entities:index", args=(table.account.name, table.name))
    return Hit(kind, table.name, address, "table-2", account=table.account, is_data=True)


def _account(account: Account, text: str) -> Iterator[Hit]:
    if text.lower() in account.name or text.casefold() in account.label.casefold():
        address = reverse("tables:index", args=(account.name,))
        yield Hit(Kind.ACCOUNT, account.name, address, "database", account, account.label, is_data=True)


def _queries(user: User, accounts: list[tuple[Account, Role]], text: str) -> Iterator[Hit]:
    by_number = {account.pk: account for account, _role in accounts}
    for query in search_queries(user, by_number.keys(), text, top=TOP):
        account = by_number[query.account_id]
        address = reverse("queries:run", args=(account.name, query.table_name, query.slug))
        yield Hit(Kind.QUERY, query.name, address, "bookmark", account, query.table_name, is_data=True)


def _policies(accounts: list[tuple[Account, Role]], text: str) -> Iterator[Hit]:
    for policy in search.policies([account for account, _role in accounts], text, top=TOP):
        table = policy.table
        address = reverse("policies:show", args=(table.account.name, table.name))
        yield Hit(Kind.POLICY, policy.identifier, address, "shield", table.account, table.name, is_data=True)


def _tokens(accounts: list[tuple[Account, Role]], text: str) -> Iterator[Hit]:
    managed = [account for account, role in accounts if may(role, Capability.MANAGE_ACCESS)]
    for token in search.tokens(managed, text, top=TOP):
        address = reverse("sas:show", args=(token.account.name, token.fingerprint))
        yield Hit(Kind.TOKEN, token.label, address, "ticket", token.account, token.table_name, is_data=True)


def _users(user: User, text: str) -> Iterator[Hit]:
    if user.is_admin:
        for name, pk in User.objects.filter(username__contains=text.lower()).values_list("username", "pk")[
            :8
        ]:
            yield Hit(Kind.USER, name, reverse("people:user", args=(pk,)), "user", is_data=True)


def _more(text: str) -> Iterator[Hit]:
    address = f"{reverse('home:search')}?{urlencode({'q': text})}"
    yield Hit(Kind.MORE, _("Show all matching tables"), address, "search")


def _pages(user: User, current: AccountContext | None) -> Iterator[Hit]:
    if current is not None:
        for item in (*layout.ACCOUNT_SIDEBAR, *layout.ACTIONS):
            if may(current.role, item.capability):
                address = reverse(item.url, args=(current.account.name,))
                yield Hit(Kind.PAGE, item.label, address, item.icon, account=current.account)
    for item in (*layout.SERVER_SIDEBAR, *layout.SERVER_ACTIONS):
        if user.is_admin or not item.is_for_admins:
            yield Hit(Kind.PAGE, item.label, reverse(item.url), item.icon)
