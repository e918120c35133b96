"""Template filters for pages of entities."""

from urllib.parse import urlencode

from django import template

from console.grid import tokens
from storage.domain.entities.entity import EntityKey

register = template.Library()


@register.filter
def key_token(key: EntityKey) -> str:
    return tokens.encode_key(key)


@register.filter
def key_query(key: EntityKey) -> str:
    """The fields of a key in an address; empty keys are included."""
    return urlencode({"pk": key.partition_key, "rk": key.row_key})
