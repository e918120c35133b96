"""The search page, and the palette, which shows results while the user types."""

from typing import Final

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from console.home import search
from console.home.search import ResultKind
from console.site.access import AccountContext, user_of
from console.site.addresses import read_text
from console.site.commands import commands as list_commands
from storage.accounts import accounts
from storage.domain.errors import StorageError
from storage.people.members import role_in
from storage.tables import tables

MOST: Final = 200  # tables on a page
LENGTH: Final = 300  # length of the text, which may hold both keys of an entity


@login_required
def index(request: HttpRequest) -> HttpResponse:
    """Show the results; an exact table name redirects to the table."""
    text = read_text(request.GET, "q", longest=LENGTH)
    hits = search.find(user_of(request), text, _current_account(request), top=MOST)
    only = search.find_exact(hits, text)
    if only is not None:
        return redirect(only.address)
    shown = [hit for hit in hits if hit.kind is not ResultKind.MORE]
    context = {
        "text": text,
        "groups": search.group_results(shown),
        "is_cut": len(shown) < len(hits),
        "most": MOST,
    }
    return render(request, "console/home/search/index.html", context)


@login_required
def palette(request: HttpRequest) -> HttpResponse:
    """Return the search results below the palette's field."""
    text = read_text(request.GET, "q", longest=LENGTH)
    current = _current_account(request)
    table = _current_table(request, current)
    hits = search.find(user_of(request), text, current, table=table, is_fuzzy=True)
    commands = list_commands() if "icons" in request.GET else ()
    context = {"text": text, "groups": search.group_results(hits), "commands": commands}
    return render(request, "console/home/search/_hits.html", context)


def _current_table(request: HttpRequest, current: AccountContext | None) -> str:
    """Return the current page's table name, or an empty string."""
    try:
        return "" if current is None else tables.get(current.account, read_text(request.GET, "table")).name
    except StorageError:
        return ""


def _current_account(request: HttpRequest) -> AccountContext | None:
    """Return the account of the page where the search started."""
    account = accounts.find(read_text(request.GET, "in"))
    role = None if account is None else role_in(user_of(request), account)
    return None if account is None or role is None else AccountContext(account, role)
