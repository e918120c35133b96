"""Pagination: `limit`, an opaque `cursor`, and the URL of the next page."""

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from rest_framework import serializers

from storage.rest.fields import IntegerParameterField, QueryParameters

T = TypeVar("T")
LIMIT_MAXIMUM: Final = 500
LIMIT_DEFAULT: Final = 100


class CursorField(serializers.CharField):
    """Opaque cursor for the end of the previous page."""

    def to_internal_value(self, data: Any) -> str:
        try:
            cursor = base64.b64decode(super().to_internal_value(data), altchars=b"-_", validate=True).decode()
        except (binascii.Error, ValueError):
            cursor = "\0"
        if "\0" in cursor or len(cursor) > 256:
            raise serializers.ValidationError("The cursor is not valid.")
        return cursor


class PageParameters(QueryParameters):
    limit = IntegerParameterField(
        min_value=1, max_value=LIMIT_MAXIMUM, default=LIMIT_DEFAULT, help_text="Maximum number of items."
    )
    cursor = CursorField(default="", help_text="The cursor in `next` of the previous page.")


class PageSerializer(serializers.Serializer[Any]):
    """Page of a list; unpaged lists have the form of a last page."""

    next = serializers.URLField(allow_null=True, help_text="URL of the next page; null on the last one.")


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list."""

    items: Sequence[Any]
    end: str | None = None  # the cursor after which the next page starts; None on the last page


def take_page(found: Sequence[T], limit: int, cursor_of: Callable[[T], str]) -> Page:
    """Return the first ``limit`` items of ``found``; one extra item means that there is a next page."""
    items = found[:limit]
    return Page(items, cursor_of(items[-1]) if len(found) > limit else None)


def encode_cursor(end: str) -> str:
    return base64.urlsafe_b64encode(end.encode()).decode()
