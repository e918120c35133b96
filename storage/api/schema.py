"""The OpenAPI document of this API: made once, of its views."""

from functools import cache
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator


@cache
def document() -> dict[str, Any]:
    found: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return found


@require_safe
def show(request: HttpRequest) -> JsonResponse:
    """For everybody: it says what there is, not what is in it."""
    return JsonResponse(document(), headers={"Cache-Control": "public, max-age=300"})


show.login_required = False  # type: ignore[attr-defined]
