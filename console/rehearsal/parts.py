"""Parts of other pages: the band above those of an account, and the rehearsal of a logged request."""

from typing import Any

from django.template import Context

from storage.domain.access.roles import Capability, may
from storage.models import Account
from storage.rehearsal import rehearsals


def find_running(context: Context) -> dict[str, Any]:
    """Return the running rehearsal of the account of a page, except on the page about it."""
    account = context.get("account")
    if not isinstance(account, Account) or not account.may_rehearse or account.protected:
        return {"running": None}
    match = getattr(context.get("request"), "resolver_match", None)
    is_shown = match is not None and match.view_name == "rehearsal:show"
    role = context.get("role")
    return {
        "running": None if is_shown else rehearsals.running(account),
        # also in a read-only account
        "may_stop": role is not None and may(role, Capability.MANAGE_TABLES),
    }


def find_rehearsal(context: Context) -> dict[str, Any]:
    """Return the rehearsal that affected a logged request; None if none did, or it is no longer kept."""
    recorded = context["shown"].it
    is_rehearsed = "rehearsed" in (recorded.fault or {})
    return {"rehearsal": rehearsals.running_at(recorded.account, recorded.at) if is_rehearsed else None}
