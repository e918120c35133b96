"""What the text of a filter is made of."""

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from storage.editing.filters import parameters
from storage.editing.filters.highlight import HighlightedText, highlight_filter

register = template.Library()


@register.filter
def places(text: str) -> tuple[str, ...]:
    """The names of what is asked for when it is run as a saved query."""
    return parameters.list_parameters(text)


@register.filter
def painted(text: str) -> SafeString:
    return format_html_join("", "{}", ((_paint(piece),) for piece in highlight_filter(text)))


def _paint(piece: HighlightedText) -> str:
    return (
        piece.text if piece.paint is None else format_html('<b class="p-{}">{}</b>', piece.paint, piece.text)
    )
