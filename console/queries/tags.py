"""Syntax highlighting of filters in templates."""

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from storage.editing.filters.highlight import HighlightedText
from storage.editing.filters.highlight import highlight_filter as split_filter

register = template.Library()


@register.filter
def highlight_filter(text: str) -> SafeString:
    return format_html_join("", "{}", ((_highlight(piece),) for piece in split_filter(text)))


def _highlight(piece: HighlightedText) -> str:
    return (
        piece.text if piece.paint is None else format_html('<b class="p-{}">{}</b>', piece.paint, piece.text)
    )
