"""The search: entities by key, accounts, tables, queries, policies, SAS tokens, pages and users the user may see."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import Final

from django.db.models import Q, QuerySet, prefetch_related_objects
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.grid import bookmarks
from console.help import contents
from console.models import User
from console.queries.saved import search_queries
from console.site import layout
from console.site.access import AccountContext
from console.site.layout import NavigationItem
from storage.core.subject import Place
from storage.domain.access.roles import Capability
from storage.domain.entities.entity import EntityKey
from storage.entities import entities
from storage.home import search
from storage.models import Account, Table
from storage.people.members import role_in, visible_accounts
from storage.requests import requests

TOP: Final = 8  # tables, so that other results stay visible
_OTHERS: Final = 5  # accounts to change to
_ACCOUNTS: Final = 20  # that match a text
_WORDS: Final = 4  # words of a text
_PAGES: Final = 12  # pages of other tables and accounts
_DOCUMENTS: Final = 8  # and sections of them
_SIMILAR_LENGTH: Final = 4  # letters of a word at least
_LOOKED_AT: Final = 200  # accounts whose pages can be found
_KEY: Final = re.compile(
    r"(?P<table>\w+)\s+(?:'(?P<quoted_pk>(?:[^']|'')*)'|(?P<pk>[^'\s]\S*))"
    r"\s+(?:'(?P<quoted_rk>(?:[^']|'')*)'|(?P<rk>[^'].*))"
).fullmatch


class ResultKind(Enum):
    """Group of search results, in display order, with label, icon, and whether users choose the names."""

    RECENT = _("Recent tables"), "table-2", True
    REQUEST = _("Requests"), "scroll-text", True
    ENTITY = _("Entities"), "braces", True
    TABLE = _("Tables"), "table-2", True
    ACCOUNT = _("Accounts"), "database", True
    QUERY = _("Saved queries"), "bookmark", True
    POLICY = _("Stored access policies"), "shield", True
    TOKEN = _("SAS tokens"), "ticket", True
    PAGE = _("Pages"), "", False
    SETTING = _("Settings"), "", False
    HELP = _("Help"), "book-open", False
    USER = _("Users"), "user", True
    MORE = _("More"), "search", False

    def __init__(self, label: Promise, icon: str, is_data: bool) -> None:
        self.label = label
        self.icon = icon
        self.is_data = is_data


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Search result, with the ``account`` that it belongs to, if any."""

    kind: ResultKind
    text: str | Promise
    address: str
    account: Account | None = None
    detail: str = ""
    own_icon: str = ""  # replaces the icon of the kind
    name: str = ""  # the name of a page, without its account and table

    @property
    def icon(self) -> str:
        return self.own_icon or self.kind.icon

    @property
    def is_data(self) -> bool:
        return self.kind.is_data


def find(
    user: User,
    text: str,
    current: AccountContext | None,
    *,
    table: str = "",
    top: int = TOP,
    is_fuzzy: bool = False,
) -> list[SearchResult]:
    """Search everything that the user may see; an empty text lists recent tables, accounts and pages."""
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
    words = text.split()[:_WORDS]
    matching = search.tables(accounts, *words, first=recent, top=top, is_fuzzy=is_fuzzy)
    # no name has a space: then they are places of pages
    tables = matching if len(words) == 1 else []
    alike = _named_alike(user, accounts, current, table, words, matching)
    pages = [hit for hit in alike if hit.kind is ResultKind.PAGE]
    is_page = any(_is_named(hit, text) for hit in pages)
    is_table = any(search.fold(table.name) == search.fold(text) for table in tables)
    first = sorted(pages, key=lambda hit: not _is_named(hit, text)) if is_page and not is_table else []
    return [
        *first,
        *_requests(accounts, text),
        *_entities(accounts, text),
        *(_table(table, ResultKind.TABLE) for table in tables),
        *(_account(account) for account in _named(accounts, text)),
        *_queries(user, accounts, text),
        *_policies(accounts, text),
        *_tokens(user, text),
        *(hit for hit in alike if hit not in first),
        *_users(user, text),
        *(_more(text) if len(tables) == top else ()),
    ]


def _named_alike(
    user: User,
    accounts: QuerySet[Account],
    current: AccountContext | None,
    table: str,
    words: list[str],
    tables: list[Table],
) -> list[SearchResult]:
    """Return pages, settings and documents whose names match the words, or are similar."""
    places = [
        *_pages(user, current, table),
        *(_pages_elsewhere(user, accounts, words, tables) if len(words) > 1 else ()),
        *_settings(user, current),
        *_documents(),
    ]
    distinct = list({hit.address: hit for hit in reversed(places)}.values())[::-1]
    matching = [hit for hit in distinct if _matches(hit, words, _contains)]
    matching = matching or [hit for hit in distinct if _matches(hit, words, _is_similar)]
    most = {ResultKind.PAGE: _PAGES, ResultKind.SETTING: None, ResultKind.HELP: _DOCUMENTS}
    return [hit for kind, count in most.items() for hit in [it for it in matching if it.kind is kind][:count]]


def _pages_elsewhere(
    user: User, accounts: QuerySet[Account], words: list[str], tables: list[Table]
) -> Iterator[SearchResult]:
    """Yield pages of tables and accounts named by a word, as in "schema people", or of the first accounts."""
    contexts = {account.pk: _context_of(user, account) for account in {it.account for it in tables}}
    for table in tables:
        yield from _of_table(user, contexts[table.account_id], table.name)
    folded = [search.fold(word) for word in words]
    looked_at = list(accounts[:_LOOKED_AT])
    named = [it for it in looked_at if any(word in _text_of(it) for word in folded)]
    for account in (named or looked_at)[:_OTHERS]:
        context = _context_of(user, account)
        yield from _of_account_pages(user, context)
        yield from _allowed(ResultKind.SETTING, user, context, layout.ACCOUNT_SETTINGS)


def _context_of(user: User, account: Account) -> AccountContext:
    role = role_in(user, account)
    assert role is not None
    return AccountContext(account, role)


def _text_of(account: Account) -> str:
    return search.fold(f"{account.name} {account.label}")


def group_results(hits: list[SearchResult]) -> list[tuple[Promise, list[SearchResult]]]:
    return [(kind.label, list(found)) for kind, found in groupby(hits, key=lambda hit: hit.kind)]


def find_exact(hits: list[SearchResult], text: str) -> SearchResult | None:
    """Return the only table with exactly this name, in any letter case; None otherwise."""
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
    """Find entities by a table name and both keys, optionally quoted."""
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


def _requests(accounts: QuerySet[Account], text: str) -> Iterator[SearchResult]:
    """Find requests by an id in the text, such as an exception's message."""
    for recorded in requests.find_by_text(accounts, text, top=TOP):
        name = f"{recorded.status or ''} {recorded.error or recorded.operation}".strip()
        yield _of_account(
            ResultKind.REQUEST,
            name,
            "requests:show",
            recorded.account,
            str(recorded.request_id),
            detail=recorded.table_name,
        )


def _named(accounts: QuerySet[Account], text: str) -> Iterable[Account]:
    """Return the first accounts whose name or label contains the text."""
    folded = search.fold(text)
    labels = accounts.exclude(label="").values_list("pk", "label")
    labelled = [pk for pk, label in labels if folded in search.fold(label)]
    return accounts.filter(Q(name__contains=folded) | Q(pk__in=labelled))[:_ACCOUNTS]


def _account(account: Account) -> SearchResult:
    return _of_account(ResultKind.ACCOUNT, account.name, "tables:index", account, detail=account.label)


def _queries(user: User, accounts: QuerySet[Account], text: str) -> Iterator[SearchResult]:
    queries = search_queries(user, accounts.order_by().values("pk"), text, top=TOP)
    prefetch_related_objects(queries, "account")
    for query in queries:
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


def _matches(hit: SearchResult, words: list[str], has: Callable[[str, str], bool]) -> bool:
    """Return whether the page's name has a word, and name, table and account together all words."""
    name = search.fold(str(hit.text))
    of_account = _text_of(hit.account) if hit.account else ""
    text = f"{name} {search.fold(hit.detail)} {of_account}"
    folded = [search.fold(word) for word in words]
    return any(has(name, word) for word in folded) and all(has(text, word) for word in folded)


def _is_named(hit: SearchResult, text: str) -> bool:
    """Return whether the text is a page's name, or its last words, such as "settings" of "Account settings"."""
    return f" {search.fold(str(hit.text))}".endswith(f" {search.fold(text)}")


def _contains(text: str, word: str) -> bool:
    return word in text


def _is_similar(text: str, word: str) -> bool:
    """Return whether a word of the text is a fuzzy match, such as "setings" for "settings"."""
    return len(word) >= _SIMILAR_LENGTH and any(
        one[0] == word[0] and all(letter in rest for rest in [iter(one)] for letter in word)
        for one in text.split()
    )


def _pages(user: User, current: AccountContext | None, table: str) -> Iterator[SearchResult]:
    if current is not None:
        if table:
            yield from _of_table(user, current, table)
        yield from _of_account_pages(user, current)
    yield from _of_server(ResultKind.PAGE, user, layout.navigation(Place.SERVER, Place.SERVER_SEARCH))


def _of_table(user: User, current: AccountContext, table: str) -> Iterator[SearchResult]:
    return _allowed(ResultKind.PAGE, user, current, layout.navigation(Place.TABLE, Place.TABLE_SEARCH), table)


def _of_account_pages(user: User, current: AccountContext) -> Iterator[SearchResult]:
    return _allowed(ResultKind.PAGE, user, current, layout.navigation(Place.ACCOUNT, Place.ACCOUNT_SEARCH))


def _settings(user: User, current: AccountContext | None) -> Iterator[SearchResult]:
    if current is not None:
        yield from _allowed(ResultKind.SETTING, user, current, layout.ACCOUNT_SETTINGS)
    yield from _of_server(ResultKind.SETTING, user, layout.SERVER_SETTINGS)


def _documents() -> Iterator[SearchResult]:
    for place in contents.places():
        name = f"help:{place.name}{'#' * bool(place.anchor)}{place.anchor}"
        yield SearchResult(ResultKind.HELP, place.title, place.address, detail=place.within, name=name)


def _allowed(
    kind: ResultKind, user: User, current: AccountContext, items: Iterable[NavigationItem], table: str = ""
) -> Iterator[SearchResult]:
    for item in items:
        if layout.may_open(current, item) and (user.is_admin or not item.is_for_admins):
            yield _link(kind, item, current.account, table)


def _of_server(kind: ResultKind, user: User, items: Iterable[NavigationItem]) -> Iterator[SearchResult]:
    return (_link(kind, item) for item in items if user.is_admin or not item.is_for_admins)


def _link(
    kind: ResultKind, item: NavigationItem, account: Account | None = None, table: str = ""
) -> SearchResult:
    names = [account.name if account else "", table]
    arguments = [*filter(None, names), *item.arguments]
    address = reverse(item.url, args=arguments, fragment=item.fragment or None)
    name = " ".join(filter(None, (item.url, item.fragment, *map(str, item.arguments))))
    return SearchResult(kind, item.label, address, account, table or str(item.place), item.icon, name)
