"""The way from a link with a token in its fragment to the page that the token opens."""

from collections.abc import Callable
from urllib.parse import quote

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from console.people import link_tokens


def open_link(request: HttpRequest, is_valid: Callable[[str], bool]) -> HttpResponse | None:
    """Return the response on the way to the page, or None at its end.

    Browsers send no fragment, so that no log of a proxy has the token. A script posts it, or a person pastes the
    link; its hash is kept in the session. ``is_valid`` takes that hash.
    """
    if "token" in request.GET:  # a link of 1.0
        return redirect(f"{request.path}#token={quote(request.GET['token'])}")
    if "token" in request.POST:
        token_hash = link_tokens.hash_of(request.POST["token"].rpartition("token=")[2].strip())
        if not is_valid(token_hash):
            return render(request, "console/people/link.html", {"is_refused": True}, status=404)
        request.session[request.path] = token_hash
        return redirect(request.path)
    if is_valid(opened_by(request)):
        return None
    return render(request, "console/people/link.html")


def opened_by(request: HttpRequest) -> str:
    """Return the hash of the token that has opened the page; empty without one."""
    return str(request.session.get(request.path, ""))
