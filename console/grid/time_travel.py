"""Past states of a grid: the selected moment, and the differences from now."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from html import unescape
from typing import Final

from django.http import QueryDict
from django.utils.html import strip_tags
from django.utils.translation import gettext as _

from console.grid import cells
from console.site.access import AS_OF
from storage.domain.entities.entity import EntityKey, read_stored
from storage.domain.entities.moments import read_moment
from storage.domain.entities.previews import EntityPreview
from storage.domain.errors import InvalidInput
from storage.editing import merge
from storage.entities import entities
from storage.history import past
from storage.history.past import Past
from storage.models import Table


@dataclass(frozen=True, slots=True)
class ChangesSince:
    """Differences between a page of the past and now: deleted entities, and current values of changed properties.

    A value is plain text, or a mark that the property is not set.
    """

    deleted: frozenset[EntityKey] = frozenset()
    values: Mapping[EntityKey, Mapping[str, str]] = field(default_factory=dict)

    @property
    def entities(self) -> int:
        return len(self.deleted) + len(self.values)


UNCHANGED: Final = ChangesSince()


def field_text(moment: datetime, zone: tzinfo | None) -> str:
    """Format a time of the grid for a field, with its zone."""
    return moment.astimezone(zone or UTC).isoformat(" ").replace("+00:00", "Z")


def find_past(query: QueryDict, table: Table) -> Past | None:
    """Return the selected past of a form or address, None at present; raises InvalidInput for a malformed time."""
    text = query.get(AS_OF, "")
    if not text:
        return None
    moment = read_moment(text)
    if moment is None:
        raise InvalidInput(_("%(text)s is not a time such as 2026-11-30T18:00:00Z.") % {"text": text[:64]})
    return past.find(table, moment)


def compare_with_now(
    table: Table, previews: Iterable[EntityPreview], then: Past, zone: tzinfo | None
) -> ChangesSince:
    """Compare the entities of a page with their current state, reading full values of changed ones."""
    timestamps = {glance.key: glance.timestamp for glance in previews}
    if table.deleted_at is not None:
        return ChangesSince(frozenset(timestamps))
    now = {stored.key: stored for page in entities.get_many_paged(table, timestamps) for stored in page}
    changed = [key for key in timestamps if key in now and now[key].timestamp != timestamps[key]]
    values: dict[EntityKey, dict[str, str]] = {}
    for stored in (it for page in entities.get_many_paged(table, changed, then) for it in page):
        was, current = read_stored(stored).properties, read_stored(now[stored.key]).properties
        names = merge.changed_names(was, current)
        if names:
            drawn = {name: cells.draw_or_absent(current.get(name), zone) for name in names}
            values[stored.key] = {name: unescape(strip_tags(cell.markup)) for name, cell in drawn.items()}
    return ChangesSince(frozenset(timestamps.keys() - now.keys()), values)
