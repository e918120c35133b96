"""Template tags and filters of the console."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from zlib import crc32

from django import template
from django.contrib.messages.storage.base import Message
from django.forms import BoundField
from django.template.loader import render_to_string
from django.utils.formats import number_format
from django.utils.html import format_html, format_html_join
from django.utils.module_loading import import_string
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from console.site import (
    actors,
    azure_rules,
    commands,
    glyphs,
    last_changes,
    layout,
    roles,
    static_files,
    times,
    toasts,
)
from console.site.glyphs import GLYPHS, Glyph
from storage.activity.actors import actor_of
from storage.core import registry
from storage.core.subject import Part, Place, Slot
from storage.domain.access.actor import Actor
from storage.domain.history.recorded import RecordedChange
from storage.history.last_change import TableDeletion
from storage.models import Account

register = template.Library()
register.simple_tag(azure_rules.list_rules, name="azure_rules")
register.filter("type_mark", glyphs.mark)
register.filter("role_label", roles.label)
register.filter("distance", times.show_distance)
register.filter("day", times.write_day)
register.filter("minute", times.write_minute)
register.filter("moment", times.write_moment)
register.filter("exact", times.write_exact)
register.filter("zoned", times.write_zoned)
register.filter("clock", times.write_clock)
register.filter("actor_of", actor_of)
register.filter("actor_name", actors.name_actor)
SPRITE = static_files.ROOT / "vendor/lucide/1.62.0/sprite.svg"


@register.simple_tag
@lru_cache(maxsize=512)
def icon(name: str, size: int = 16) -> SafeString:
    """Render an icon as decoration; adjacent text carries the meaning."""
    return format_html(
        '<svg class="icon" width="{0}" height="{0}" viewBox="0 0 24 24" aria-hidden="true" focusable="false">{1}</svg>',
        size,
        _shapes().get(name, ""),
    )


# In the page: icons that refer to a file are missing from the first paint, and a browser reads all 107 of it for a few.
@cache
def _shapes() -> dict[str, SafeString]:
    symbols = re.findall(r'<symbol id="([^"]+)"[^>]*>(.*)</symbol>', SPRITE.read_text())
    # blanks between shapes would be part of the text of a button or link with the icon
    return {name: SafeString(shapes.replace("> <", "><")) for name, shapes in symbols}


@register.simple_tag(takes_context=True)
def slot(context: template.Context, name: str) -> SafeString:
    """Include subjects' templates in a slot of the page: see Slot in storage.core.subject."""
    # each is escaped as a template is
    return mark_safe("".join(_draw_part(part, context) for part in registry.parts(Slot[name])))  # noqa: S308


def _draw_part(part: Part, context: template.Context) -> str:
    drawn = context.template.engine.get_template(part.template)  # type: ignore[union-attr]
    with context.push(**(import_string(part.values)(context) if part.values else {})):
        text: str = drawn.render(context)
        return text


@register.simple_tag
def shortcut_list() -> SafeString:
    """Render the help sheet."""
    return _draw_shortcuts(get_language())


@lru_cache(maxsize=8)  # it is on every page, and a tenth of the time of most
def _draw_shortcuts(_language: str | None) -> SafeString:
    items = (*layout.navigation(Place.SERVER)[:1], *layout.navigation(Place.ACCOUNT))
    groups = commands.list_commands((item.letter, item.label) for item in items if item.letter)
    return render_to_string("components/shortcut_list.html", {"groups": groups})


@register.simple_tag(takes_context=True)
def actor(context: template.Context, who: Actor) -> SafeString:
    """Render the actor of a change."""
    return actors.draw_actor(who, _account_of_tokens(context))


@register.simple_tag(takes_context=True)
def last_change(context: template.Context, change: RecordedChange) -> SafeString:
    """Describe who changed or deleted an entity and when."""
    return last_changes.describe_change(change, _account_of_tokens(context))


@register.simple_tag(takes_context=True)
def table_deletion(context: template.Context, deletion: TableDeletion) -> SafeString:
    """Describe who deleted a table and when."""
    return last_changes.describe_deletion(deletion, _account_of_tokens(context))


def _account_of_tokens(context: template.Context) -> str:
    """Return the account whose SAS tokens the user may see, for links; empty if none."""
    allowed = context.get("may")
    return context["account"].name if allowed and allowed["manage_access"] else ""


@register.filter
@lru_cache(maxsize=64)
def dot(colour: str) -> SafeString:
    """Render the colour mark of an account; a ring without a colour."""
    drawn = format_html(_DISC, colour) if colour else _RING
    return format_html(
        '<svg class="dot" width="10" height="10" viewBox="0 0 10 10" aria-hidden="true" focusable="false">{}</svg>',
        drawn,
    )


_DISC = '<circle cx="5" cy="5" r="5" fill="{}"/>'
_RING = SafeString('<circle cx="5" cy="5" r="4" fill="none" stroke="currentColor" stroke-width="1.5"/>')


@register.filter
def account_name(account: Account) -> SafeString:
    """Render an account's colour, name and label, with badges for protected and read-only."""
    return format_html(
        '{} <span class="name">{}</span>{}{}{}',
        dot(account.colour),
        account.name,
        format_html('<span class="label">{}</span>', account.label) if account.label else "",
        format_html(_BADGE, "danger", icon("lock"), _("protected")) if account.protected else "",
        format_html(_BADGE, "warn", icon("eye"), _("read-only")) if account.read_only else "",
    )


_BADGE = '<span class="badge {}">{}<span class="word">{}</span></span>'


@register.filter
def initials(name: str) -> str:
    """Return one or two initials for a badge, ignoring an e-mail domain."""
    words = re.split(r"[\s._-]+", name.partition("@")[0].strip(" ._-"))
    return "".join(word[0] for word in words[:2] if word)


@register.filter
def type_glyph(name: str) -> Glyph:
    return GLYPHS[name]


@register.filter
def grouped(number: int) -> str:
    """Format a count with the language's separators."""
    return number_format(number, force_grouping=True)


@register.filter
def undo_numbers(message: Message) -> str:
    """Return the ids of activities that a message offers to undo."""
    return _after_prefix(message, toasts.UNDO)


@register.filter
def link_address(message: Message) -> str:
    """Return the address linked by a message."""
    return _after_prefix(message, toasts.LINK)


def _after_prefix(message: Message, prefix: str) -> str:
    tags = str(message.extra_tags or "").split(" ")
    return next((tag.removeprefix(prefix) for tag in tags if tag.startswith(prefix)), "")


@register.filter
def lookup(mapping: Mapping[object, object], key: object) -> object:
    """Look up a key that is a template variable."""
    return mapping.get(key, "")


@register.filter
def options(choices: Iterable[tuple[str, object]], chosen: str) -> SafeString:
    """Render the options of a select, for forms with hundreds of them."""
    drawn = ((value, _SELECTED if value == chosen else "", label) for value, label in choices)
    return format_html_join("\n", '<option value="{}"{}>{}</option>', drawn)


_SELECTED = SafeString(" selected")


@register.filter
def hidden_initial(field: BoundField) -> SafeString | str:
    """Return the hidden initial value of a field whose choices a template renders itself."""
    return field.as_hidden(only_initial=True) if field.field.show_hidden_initial else ""


@register.filter
def total(numbers: Sequence[int]) -> int:
    return sum(numbers)


@register.filter
def sparkline_bars(values: Sequence[int]) -> str:
    """Return the SVG path of a sparkline of 120 by 28, one bar per value: flat for 0, a stub for small ones."""
    top = max(values, default=0) or 1
    step = 120 / max(len(values), 1)
    heights = [max(value / top * 28, 4) if value else 1 for value in values]
    return "".join(
        f"M{place * step:.1f} 28v-{height:.1f}h{step - 1:.1f}v{height:.1f}z"
        for place, height in enumerate(heights)
    )


HUES = 6


@register.filter
def hue(text: str) -> int:
    """Return a stable tag colour for a text."""
    return crc32(text.casefold().encode()) % HUES
