"""Rendering of the table list's values, by the kind of cell of a column."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from django import template
from django.template.defaultfilters import filesizeformat
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from console.site import times
from console.site.tags import grouped, icon
from storage.metrics.last_day import Hours
from storage.models import Account
from storage.tables.list_columns import Cell, Column, TableRow

register = template.Library()


@dataclass(frozen=True, slots=True)
class _Place:
    """Context in which a value is rendered."""

    account: str
    table: str
    is_estimate: bool
    is_tried: bool


@register.simple_tag(name="cell")
def draw_cell(column: Column, row: TableRow, account: Account, *, is_tried: bool = False) -> SafeString:
    """Render a cell of a table; ``is_tried`` tells that counting its entities timed out."""
    if column.is_measured and row.size is None:
        return _draw_awaited(get_language())
    is_estimate = column.is_measured and not (row.size and row.size.is_exact)
    place = _Place(account.name, row.table.name, is_estimate, is_tried)
    value = column.read(row)
    return conditional_escape(_draw_absent(column) if value is None else _DRAWERS[column.cell](value, place))


@lru_cache(maxsize=8)
def _draw_awaited(_language: str | None) -> SafeString:
    skeleton = render_to_string("components/skeleton.html", {"kind": "cell"})
    return format_html('<span class="awaited">{}</span>', SafeString(skeleton))


def _draw_absent(column: Column) -> SafeString:
    if column.cell is Cell.MOMENT:
        return format_html(_UNRECORDED, _("not recorded"))
    return format_html(_FAINT, _("unknown"))


def _draw_count(number: int, place: _Place) -> str:
    return _("about %(shown)s") % {"shown": grouped(number)} if place.is_estimate else grouped(number)


def _draw_entities(number: int, place: _Place) -> str:
    count = _draw_count(number, place)
    if not place.is_estimate:
        return count
    if place.is_tried:
        return format_html(
            '{} <span class="visually-hidden">{}</span>', count, _("Counting exactly takes too long.")
        )
    return format_html(
        _ESTIMATE,
        count,
        reverse("tables:sizes", args=[place.account], query={"exactly": place.table}),
        _("Count exactly"),
        _("Count the entities of %(name)s exactly") % {"name": place.table},
        icon("refresh-cw"),
    )


def _draw_bytes(number: int, _place: _Place) -> str:
    return filesizeformat(number)


def _draw_hours(hours: Hours, _place: _Place) -> str:
    if not hours:
        return format_html(_FAINT, 0)
    bars = SafeString(render_to_string("components/sparkline.html", {"values": hours, "label": ""}))
    return format_html("<span>{} <b>{}</b></span>", bars, grouped(sum(hours)))


def _draw_moment(moment: datetime, _place: _Place) -> str:
    return times.show_distance(moment)


def _draw_policies(number: int, place: _Place) -> str:
    values = {"name": place.table, "number": number}
    return format_html(
        '<span{}><a href="{}" aria-label="{}">{}</a></span>',
        SafeString("" if number else ' class="faint"'),
        reverse("policies:show", args=[place.account, place.table]),
        _("Policies of %(name)s: %(number)s of 5") % values,
        _("%(number)s of 5") % values,
    )


_FAINT: Final = '<span class="faint">{}</span>'
_UNRECORDED: Final = '<span class="faint">–<span class="visually-hidden">{}</span></span>'
_ESTIMATE: Final = (
    '{} <button class="button ghost icon-only exactly" type="button" hx-get="{}" '
    'hx-target="closest [id]" hx-swap="innerHTML" title="{}" aria-label="{}">{}</button>'
)
_DRAWERS: Final[Mapping[Cell, Callable[[Any, _Place], str]]] = {
    Cell.ENTITIES: _draw_entities,
    Cell.COUNT: _draw_count,
    Cell.BYTES: _draw_bytes,
    Cell.HOURS: _draw_hours,
    Cell.MOMENT: _draw_moment,
    Cell.POLICIES: _draw_policies,
}
