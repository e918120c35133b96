"""The text of a filter in the colours of its pieces."""

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from storage.domain.filters.highlight import Piece, pieces

register = template.Library()


@register.filter
def painted(text: str) -> SafeString:
    return format_html_join("", "{}", ((_paint(piece),) for piece in pieces(text)))


def _paint(piece: Piece) -> str:
    return piece.text if piece.paint is None else format_html('<b class="p-{}">{}</b>', piece.paint, piece.text)
