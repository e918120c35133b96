"""What the frame around every page needs: the appearance, whose account this is, and where its links lead."""

from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.site import appearance
from console.site.access import Place, place_of, user_of
from storage.domain.access.roles import Capability, may
from storage.models import Account
from storage.operations.members import visible_accounts


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the rail: the name of its URL, which takes the account; who may not open it does not see it."""

    url: str
    label: str | Promise
    icon: str
    capability: Capability = Capability.READ
    is_for_admins: bool = False  # of the server's own rail


RAIL: Final = (
    Entry("tables:index", _("Tables"), "table-2"),
    Entry("queries:index", _("Queries"), "bookmark"),
    Entry("sas:index", _("Policies & SAS"), "ticket", Capability.MANAGE_ACCESS),
    Entry("activity:index", _("Activity"), "history"),
    Entry("accounts:service", _("Service"), "sliders-horizontal"),
    Entry("accounts:keys", _("Keys"), "key-round", Capability.MANAGE_ACCESS),
    Entry("accounts:members", _("Members"), "users"),
    Entry("accounts:settings", _("Settings"), "settings", Capability.OWN),
)
SERVER_RAIL: Final = (
    Entry("home:index", _("Home"), "house"),
    Entry("sas:inspector", _("Inspector"), "scroll-text"),
    Entry("people:users", _("Users"), "users", is_for_admins=True),
    Entry("activity:server_index", _("Activity"), "history", is_for_admins=True),
    Entry("help:index", _("Help"), "book-open"),
    Entry("help:about", _("About"), "info"),
)

# found by search, without a line of their own
ACTIONS: Final = (Entry("tables:new", _("New table"), "plus", Capability.MANAGE_TABLES),)
SERVER_ACTIONS: Final = (
    Entry("accounts:new", _("New account"), "plus", is_for_admins=True),
    Entry("people:profile", _("Profile"), "user"),
    Entry("people:api_tokens", _("API tokens"), "plug"),
    Entry("help:api", _("Management API"), "code"),
    Entry("help:shortcuts", _("Keyboard shortcuts"), "keyboard"),
    Entry("help:limits", _("Limits of the service"), "book-open"),
)

_WRITES: Final = frozenset({Capability.WRITE, Capability.MANAGE_TABLES})


def context(request: HttpRequest) -> dict[str, Any]:
    found: dict[str, Any] = {
        "appearance": appearance.read(request),
        "languages": settings.LANGUAGES,
        "has_data_styles": _is_of_table(request),
        "server_entries": [entry for entry in SERVER_RAIL if not entry.is_for_admins or _is_admin(request)],
    }
    place = place_of(request)
    if place is not None:
        found |= _of_account(request, place)
    return found


def _is_of_table(request: HttpRequest) -> bool:
    match = request.resolver_match
    return match is not None and "table" in match.kwargs


def _is_admin(request: HttpRequest) -> bool:
    # none yet where a request fails before anybody asked who it is
    return getattr(getattr(request, "user", None), "is_admin", False)


def _of_account(request: HttpRequest, place: Place) -> dict[str, Any]:
    return {
        "account": place.account,
        "role": place.role,
        "may": _may(place),
        "accounts": _others(request),
        "rail_entries": [entry for entry in RAIL if may(place.role, entry.capability)],
    }


def _may(place: Place) -> dict[str, bool]:
    """What pages offer; an account that is read-only refuses writes of everybody."""
    refused = _WRITES if place.account.read_only else frozenset()
    return {
        capability.name.lower(): may(place.role, capability) and capability not in refused
        for capability in Capability
    }


def _others(request: HttpRequest) -> list[Account]:
    return [account for account, _role in visible_accounts(user_of(request))]
