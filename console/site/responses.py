"""Responses: pages, the parts of pages that htmx swaps, and redirects."""

import posixpath
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template import loader

REFRESH: Final = "X-Tablero-Refresh"
PART: Final = "components/part.html"


def render(
    request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """Render a template; halves of surrogate pairs, which a page cannot contain, become escapes such as \\ud83d."""
    text = loader.render_to_string(template, context, request)
    return HttpResponse(text.encode(errors="backslashreplace"), status=status)


def render_page(
    request: HttpRequest, page: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """Render a page, or only its block ``part`` and toasts for htmx.

    The template extends ``page_layout``, by default the layout that it has as a page.
    """
    if not wants_part(request):
        return render(request, page, context, status=status)
    return render(request, page, context | {"page_layout": PART} | _toasts_of(request), status=status)


def render_part(
    request: HttpRequest, page: str, part: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """Render a page, or only one of its part templates and toasts for htmx.

    The part is in the folder of the page, unless its name has a folder too. If only that page has it, use
    ``render_page``.
    """
    if not wants_part(request):
        return render(request, page, context, status=status)
    template = part if "/" in part else f"{posixpath.dirname(page)}/{part}"
    # one template: the context of the layout is made once
    return render(request, PART, context | {"part_template": template} | _toasts_of(request), status=status)


def _toasts_of(request: HttpRequest) -> dict[str, bool]:
    """Return whether a page shows the pending toasts, as template context.

    A page that reloads itself shows none: they may be for another one, which is on its way.
    """
    return {"has_toasts": request.headers.get(REFRESH) != "true"}


def is_script(request: HttpRequest) -> bool:
    """Return whether htmx or another script sent the request, so that the page stays open."""
    return request.headers.get("HX-Request") == "true" or request.headers.get("X-Requested-With") == "fetch"


def wants_part(request: HttpRequest) -> bool:
    """Return whether htmx swaps in a part, not a full page for history or a boosted link."""
    return request.headers.get("HX-Request") == "true" and request.headers.get("HX-Request-Type") != "full"


def wants_json(request: HttpRequest) -> bool:
    """Return whether an upload script sent the request, which expects JSON."""
    return request.headers.get("Accept") == "application/json"


def see_other(address: str) -> HttpResponse:
    """Redirect after a form; within a drawer, to a part."""
    response = HttpResponseRedirect(address)
    response.status_code = 303
    return response
