"""Lists a page at a time: `limit`, an opaque `cursor`, and the address of what follows, also as a Link header."""

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from storage.api.serializers.fields import Parameters

T = TypeVar("T")
MOST: Final = 500
USUAL: Final = 100


class Cursor(serializers.CharField):
    """Where the last page ended, as text that means nothing to others."""

    def to_internal_value(self, data: Any) -> str:
        try:
            found = base64.b64decode(super().to_internal_value(data), altchars=b"-_", validate=True).decode()
        except (binascii.Error, ValueError):
            found = "\0"
        if "\0" in found or len(found) > 256:
            raise serializers.ValidationError("This cursor is none of this server's.")
        return found


class PageParameters(Parameters):
    limit = serializers.IntegerField(
        min_value=1, max_value=MOST, default=USUAL, help_text="How many there are on a page at most."
    )
    cursor = Cursor(default="", help_text="What `next` of the page before says; opaque.")


@dataclass(frozen=True, slots=True)
class Page:
    """``end`` is where the next one starts; None: there is none."""

    items: Sequence[Any]
    end: str | None = None


def cut(found: Sequence[T], limit: int, name: Callable[[T], str]) -> Page:
    """A page of what was found with one more than it may hold; the next starts after the last."""
    items = found[:limit]
    return Page(items, name(items[-1]) if len(found) > limit else None)


def respond(request: Request, page: Page) -> Response:
    if page.end is None:
        return Response({"items": page.items, "next": None})
    cursor = base64.urlsafe_b64encode(page.end.encode()).decode()
    following = replace_query_param(request.build_absolute_uri(), "cursor", cursor)
    return Response({"items": page.items, "next": following}, headers={"Link": f'<{following}>; rel="next"'})
