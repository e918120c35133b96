"""How pages, the parts of pages that htmx swaps, and forms are drawn."""

from typing import Any

from django.forms.renderers import TemplatesSetting
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string


class Renderer(TemplatesSetting):
    form_template_name = "components/form.html"
    field_template_name = "components/field.html"


def render_part(
    request: HttpRequest, *, page: str, part: str, context: dict[str, Any], status: int = 200
) -> HttpResponse:
    """The page, or for htmx the part alone with what there is to say.

    A restored history entry and a boosted link want the whole page although htmx asks.
    """
    if not wants_part(request):
        return render(request, page, context, status=status)
    said = render_to_string("components/toasts_beside.html", context, request)
    response = render(request, part, context, status=status)
    response.write(said)
    return response


def wants_part(request: HttpRequest) -> bool:
    """Whether htmx will swap the answer into a page."""
    return request.headers.get("HX-Request") == "true" and request.headers.get("HX-Request-Type") != "full"
