"""The layout around every page: its sidebar, the account it belongs to, and the appearance."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest
from django.utils.functional import Promise, SimpleLazyObject
from django.utils.module_loading import import_string
from django.utils.translation import gettext_lazy as _

from console.site import account_settings, appearance, time_zones
from console.site.access import AccountContext, account_context, user_of
from console.site.addresses import path_of
from console.site.static_files import DATA_STYLESHEET, OTHER_STYLESHEETS
from storage.core import registry
from storage.core.subject import Hook, Place, Section
from storage.domain.access.roles import Capability, may
from storage.domain.values.kinds import AccountKind
from storage.people.members import visible_accounts


@dataclass(frozen=True, slots=True)
class NavigationItem:
    """Navigation link, shown to users who may open it; ``url`` is a URL name that takes the account."""

    url: str
    label: str | Promise
    icon: str
    capability: Capability = Capability.READ
    section: Section | None = None  # that has it as a tab
    is_for_admins: bool = False  # among the pages of the server
    fragment: str = ""  # the place of a setting on the page
    place: str | Promise = ""  # the title of a setting's page
    letter: str = ""  # that opens it, after G
    arguments: tuple[object, ...] = ()  # arguments of the URL, after the account
    only_storage: bool = False  # accounts of other kinds do not have it


@cache
def navigation(*places: Place) -> tuple[NavigationItem, ...]:
    """Return the navigation links by place, as declared by subjects."""
    return tuple(
        NavigationItem(
            page.url,
            _(page.label),
            page.icon,
            page.capability,
            page.section,
            page.is_for_admins,
            letter=page.letter,
            arguments=page.arguments,
            only_storage=page.only_storage,
        )
        for place in places
        for page in registry.pages(place)
        if not page.is_wanted or import_string(page.is_wanted)()
    )


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link to a page, in the sidebar or among the tabs of a section."""

    label: str | Promise
    icon: str
    address: str
    current: str  # the value of aria-current, ``page`` on its own page, ``true`` on one below it
    letter: str


@dataclass(frozen=True, slots=True)
class Sidebar:
    """The items of a sidebar; an account's list of tables has a link of its own."""

    items: list[PageLink]
    tables: PageLink | None
    tabs: list[PageLink]  # the pages of a section beside this one; none if it is alone
    hidden: list[PageLink]  # pages with a letter that are tabs of a section


PARENTS: Final = {
    "accounts:delete": "accounts:settings"
}  # pages whose address is not below that of their parent
POLICIES: Final = "policies:show"
_TABLES: Final = "tables:index"
_SETTINGS: Final = _("Settings")
_SERVICE: Final = _("Service")
_PROFILE: Final = _("Profile")
_SECURITY: Final = _("Security")
# found by search only, once something is typed
ACCOUNT_SETTINGS: Final = (
    *(
        NavigationItem("accounts:settings", label, "settings", Capability.OWN, fragment=place, place=_SETTINGS)
        for place, label in (
            *((name, section.title) for name, section in account_settings.SECTIONS.items()),
            ("description", _("Color")),
            ("deletion", _("Delete account")),
        )
        if place not in {"cluster", "consistency"}  # most servers have none
    ),
    *(
        NavigationItem("accounts:service", label, "sliders-horizontal", fragment=place, place=_SERVICE)
        for place, label in (
            ("cors-title", _("CORS rules")),
            ("measures-title", _("Logs and metrics")),
            ("tester-title", _("Test a preflight request")),
        )
    ),
    NavigationItem(
        "tables:index", _("Delete tables"), "trash-2", Capability.MANAGE_TABLES, fragment="tables", place=_("Tables")
    ),
    NavigationItem("sas:new", _("New SAS token"), "plus", Capability.MANAGE_ACCESS),
    NavigationItem(
        "accounts:members", _("Invite by link"), "mail-plus", Capability.GRANT, fragment="invite-title",
        place=_("Members"),
    ),
)  # fmt: skip
SERVER_SETTINGS: Final = (
    *(
        NavigationItem("people:profile", label, "settings", fragment=place, place=_PROFILE)
        for place, label in (
            ("id_language", _("Language")),
            ("id_time_zone", _("Time zone")),
            ("id_theme", _("Theme")),
            ("id_density", _("Table density")),
            ("id_edit_mode", _("Save cell changes")),
            ("id_shortcuts", _("Single-key shortcuts")),
            ("id_hides_presence", _("Hide what I have open")),
        )
        if place != "id_hides_presence" or registry.hooks(Hook.VISIBILITY_CHANGED)
    ),
    *(
        NavigationItem("people:security", label, "shield", fragment=place, place=_SECURITY)
        for place, label in (
            ("passkeys", _("Passkeys")),
            ("app", _("Authenticator app")),
            ("password", _("Password")),
        )
    ),
    NavigationItem(
        "people:users",
        _("Invite by link"),
        "mail-plus",
        fragment="invite-title",
        place=_("Users"),
        is_for_admins=True,
    ),
    NavigationItem("people:sessions", _("Sessions"), "settings", place=_PROFILE),
)

SWITCHER_LIMIT: Final = 50  # accounts; the home page and the search have the others
_WRITES: Final = frozenset({Capability.WRITE, Capability.MANAGE_TABLES})


def context(request: HttpRequest) -> dict[str, Any]:
    values: dict[str, Any] = {
        "appearance": appearance.read(request),
        "languages": settings.LANGUAGES,
        "offered_zone": time_zones.offered_zone(request),
        "page_zone": time_zones.page_zone(),
        "follows_browser_zone": time_zones.follows_browser(request),
        "stylesheets": _stylesheets(request),
    }
    current = account_context(request)
    if current is not None:
        return values | _account_values(request, current)
    # a request that fails early has no user yet
    is_admin = getattr(getattr(request, "user", None), "is_admin", False)
    shown = [item for item in navigation(Place.SERVER) if is_admin or not item.is_for_admins]
    return values | {"sidebar": SimpleLazyObject(lambda: _sidebar(request, shown))}


def _stylesheets(request: HttpRequest) -> list[str]:
    """Return the style sheets of a page beyond the common ones: its subject's, and that of data pages."""
    match = request.resolver_match
    _, _, path = match.func.__module__.partition("console.") if match else ("", "", "")
    room = path.partition(".")[0]
    has_data = _shows_table(request) or room == "requests"
    return sorted({OTHER_STYLESHEETS.get(room, ""), DATA_STYLESHEET if has_data else ""} - {""})


def _shows_table(request: HttpRequest) -> bool:
    match = request.resolver_match
    return match is not None and "table" in match.kwargs


def _account_values(request: HttpRequest, current: AccountContext) -> dict[str, Any]:
    """Return the template context for pages of an account."""
    switcher = SimpleLazyObject(lambda: list(visible_accounts(user_of(request))[: SWITCHER_LIMIT + 1]))
    return {
        "account": current.account,
        "role": current.role,
        "may": allowed(current),
        "accounts": SimpleLazyObject(lambda: switcher[:SWITCHER_LIMIT]),
        "has_more_accounts": SimpleLazyObject(lambda: len(switcher) > SWITCHER_LIMIT),
        "sidebar": SimpleLazyObject(lambda: _account_sidebar(request, current)),
    }


def may_open(current: AccountContext, item: NavigationItem) -> bool:
    """Return whether the user may open a page, and it exists for this account kind."""
    is_of_kind = not item.only_storage or current.account.kind == AccountKind.STORAGE
    return is_of_kind and may(current.role, item.capability)


def _account_sidebar(request: HttpRequest, current: AccountContext) -> Sidebar:
    items = [item for item in navigation(Place.ACCOUNT) if may_open(current, item)]
    return _sidebar(request, items, current.account.name)


def _sidebar(request: HttpRequest, pages: Sequence[NavigationItem], *arguments: str) -> Sidebar:
    """Build a sidebar, in which the pages of a section share an item that opens the first of them."""
    links = dict(zip(pages, _links(request, pages, *arguments), strict=True))
    items: list[PageLink] = []
    tabs: list[PageLink] = []
    for section, members in groupby((it for it in pages if it.url != _TABLES), lambda it: it.section):
        together = [links[it] for it in members]
        if section is None or len(together) == 1:
            items += together
            continue
        label, icon = section.value
        marks = {link.current for link in together}
        items.append(PageLink(_(label), icon, together[0].address, "true" if marks - {""} else "", letter=""))
        if "page" in marks:
            tabs = together
    shown = {item.address for item in items if item.letter}
    return Sidebar(
        items,
        next((link for it, link in links.items() if it.url == _TABLES), None),
        tabs,
        [
            link
            for it, link in links.items()
            if link.letter and it.url != _TABLES and link.address not in shown
        ],
    )


def _links(request: HttpRequest, items: Sequence[NavigationItem], *arguments: str) -> list[PageLink]:
    """Build the links, marking the current page or its closest parent; for pages of a table, the table."""
    addresses = [path_of(item.url, *arguments) for item in items]
    above = [
        address
        for item, address in zip(items, addresses, strict=True)
        if request.path.startswith(address) and not _shows_table(request) and item.url != "home:index"
    ]
    match = request.resolver_match
    parent = PARENTS.get(match.view_name) if match else None
    # a page of an account that is not shown has the sidebar of the server, without that parent
    parents = [address for item, address in zip(items, addresses, strict=True) if item.url == parent]
    closest = max(parents or above, key=len, default="")
    return [
        PageLink(item.label, item.icon, address, _current(request, address, closest), item.letter)
        for item, address in zip(items, addresses, strict=True)
    ]


def _current(request: HttpRequest, address: str, closest: str) -> str:
    if address == request.path:
        return "page"
    return "true" if address == closest else ""


def allowed(current: AccountContext, *, read_only: bool = False) -> dict[str, bool]:
    """Return the permitted actions for templates; none that write to a read-only account or the past."""
    refused = _WRITES if read_only or current.account.read_only else frozenset()
    return {
        capability.name.lower(): may(current.role, capability) and capability not in refused
        for capability in Capability
    }
