"""Template filters for pages of entities."""

from django import template

from console.grid import tokens

register = template.Library()
register.filter("key_token", tokens.encode_key)
register.filter("key_query", tokens.key_query)
