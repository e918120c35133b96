"""Template tags for highlighted filters and choices."""

from collections.abc import Iterable

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from console.grid.markup import Column
from storage.editing.filters.highlight import HighlightedText
from storage.editing.filters.highlight import highlight_filter as split_filter

register = template.Library()


@register.filter
def highlight_filter(text: str) -> SafeString:
    return format_html_join("", "{}", ((_highlight(piece),) for piece in split_filter(text)))


@register.filter
def sort_options(columns: Iterable[Column]) -> SafeString:
    """Return the options that sort a grid by column; there may be hundreds."""
    up, down = _("ascending"), _("descending")
    return format_html_join("\n", _SORT_OPTIONS, ((column.name, up, down) for column in columns))


_SORT_OPTIONS = '<option value="{0}">{0} {1}</option><option value="-{0}">{0} {2}</option>'


def _highlight(piece: HighlightedText) -> str:
    return (
        piece.text if piece.paint is None else format_html('<b class="p-{}">{}</b>', piece.paint, piece.text)
    )
