"""The band above the pages of an account in which failures are rehearsed."""

from typing import Any

from django.template import Context

from storage.models import Account
from storage.rehearsal import rehearsals


def find_running(context: Context) -> dict[str, Any]:
    """Return the running rehearsal of the account of a page, except on the page about it."""
    account = context.get("account")
    if not isinstance(account, Account) or not account.may_rehearse or account.protected:
        return {"running": None}
    match = getattr(context.get("request"), "resolver_match", None)
    is_shown = match is not None and match.view_name == "rehearsal:show"
    return {"running": None if is_shown else rehearsals.running(account)}
