"""Responses: pages, the parts of pages that htmx swaps, and redirects."""

import posixpath
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render

REFRESH: Final = "X-Tablero-Refresh"


def render_part(
    request: HttpRequest, page: str, part: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """Answer with the page, or, if htmx asks, with the part alone and the toasts for it.

    A restored history entry and a boosted link get the whole page although htmx asks. The part is in the folder of the
    page, unless its name has a folder too. A page that reloads itself gets no toasts: they may be for another
    one, which is on its way.
    """
    if not wants_part(request):
        return render(request, page, context, status=status)
    is_refresh = request.headers.get(REFRESH) == "true"
    template = part if "/" in part else f"{posixpath.dirname(page)}/{part}"
    # one template: the context of the layout is made once
    both = context | {"part_template": template, "has_toasts": not is_refresh}
    return render(request, "components/part.html", both, status=status)


def is_script(request: HttpRequest) -> bool:
    """Whether htmx or another script of a page asks; the page stays, whatever the answer is."""
    return request.headers.get("HX-Request") == "true" or request.headers.get("X-Requested-With") == "fetch"


def wants_part(request: HttpRequest) -> bool:
    """Whether htmx will swap the answer into a page."""
    return request.headers.get("HX-Request") == "true" and request.headers.get("HX-Request-Type") != "full"


def wants_json(request: HttpRequest) -> bool:
    """Whether a script asks that sends a file in pieces."""
    return request.headers.get("Accept") == "application/json"


def see_other(address: str) -> HttpResponse:
    """Redirect after a form: to another page, or within a drawer to another part."""
    response = HttpResponseRedirect(address)
    response.status_code = 303
    return response
