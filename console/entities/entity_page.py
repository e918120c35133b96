"""Common parts of the pages of one entity: its address and the contexts of their templates."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from console.entities import entity_form, property_row
from console.entities.entity_draft import EntityDraft, sign_entity
from console.entities.typed_input import TYPES
from console.grid import tokens
from console.site.access import AS_OF
from console.site.responses import render_page, render_part, see_other, wants_part
from storage.activity import activity
from storage.core import registry
from storage.core.subject import Hook
from storage.domain.entities.entity import (
    Entity,
    EntityKey,
    StoredEntity,
    entity_size,
)
from storage.domain.errors import (
    StorageError,
)
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import TICKS_PER_SECOND, Edm, second_text, write_datetime
from storage.domain.values.etag import write_etag
from storage.domain.values.kinds import AccountKind
from storage.domain.values.ticks import to_datetime
from storage.entities import entities
from storage.history import last_change, versions
from storage.models import Table

EMPTY: Final = Entity(EntityKey("", ""), {})
BLANK: Final = 9999  # the number of the row that scripts copy for new properties
SAMPLE: Final = 50  # entities
MOST_SUGGESTED: Final = 40  # properties


@dataclass(frozen=True, slots=True)
class EntityTarget:
    """Entity at an address, which need not exist."""

    table: Table
    key: EntityKey
    # a time at which a deleted table had its name, which all addresses contain; empty if it has it now
    as_of: str = ""

    @property
    def kind(self) -> AccountKind:
        return AccountKind(self.table.account.kind)

    def address(self, name: str = "entities:show", **parameters: str) -> str:
        query = {"pk": self.key.partition_key, "rk": self.key.row_key, **self._time, **parameters}
        return reverse(name, args=(self.table.account.name, self.table.name), query=query)

    @property
    def table_address(self) -> str:
        return reverse("entities:index", args=(self.table.account.name, self.table.name), query=self._time)

    @property
    def _time(self) -> dict[str, str]:
        return {AS_OF: self.as_of} if self.as_of else {}


def find_target(request: HttpRequest, table: Table) -> EntityTarget:
    """Return the entity at an address; an empty key is valid, a missing one raises Http404."""
    as_of = "" if table.deleted_at is None else request.GET.get(AS_OF, "")
    if (key := tokens.decode_key(request.GET.get("key", ""))) is not None:
        return EntityTarget(table, key, as_of)
    if "pk" not in request.GET or "rk" not in request.GET:
        raise Http404
    return EntityTarget(table, EntityKey(request.GET["pk"], request.GET["rk"]), as_of)


# contexts


def tab_links(target: EntityTarget, current: str) -> list[tuple[str, str, bool]]:
    """Return label, address and current state of each tab of the entity page."""
    labels = {"form": _("Form"), "json": "JSON", "history": _("History"), "snippets": _("Snippets")}
    tabs = [(tab, label, _tab_address(target, tab)) for tab, label in labels.items()]
    tabs += [tab for entity_tabs in registry.hooks(Hook.ENTITY_TABS) for tab in entity_tabs(target)]
    return [(label, address, tab == current) for tab, label, address in tabs]


def _tab_address(target: EntityTarget, tab: str) -> str:
    if tab == "history":
        return target.address("history:entity")
    return target.address(**({} if tab == "form" else {"tab": tab}))


def draft_context(target: EntityTarget, draft: EntityDraft, *, in_drawer: bool) -> dict[str, Any]:
    entity, kind = draft.entity, target.kind
    entity.kind = kind
    size, size_limit, count_limit = entity_size(entity), kind.entity_size_limit, kind.property_limit
    return {
        "table": target.table,
        "draft": draft,
        "entity_key": draft.key,
        "types": TYPES,
        "in_drawer": in_drawer,
        "size": size,
        "size_limit": size_limit,
        "size_high": size_limit * 9 // 10,
        "is_too_large": size > size_limit,
        "count": len(entity.properties),
        "count_limit": count_limit,
        "is_too_many": count_limit is not None and len(entity.properties) > count_limit,
        "table_address": target.table_address,
        "blank": property_row.blank_row(BLANK),
        "row_address": reverse("entities:row", args=(target.table.account.name, target.table.name)),
        **({} if draft.before is None else stored_context(target, draft.before)),
    }


def stored_context(target: EntityTarget, stored: StoredEntity) -> dict[str, Any]:
    seconds, fraction = divmod(stored.timestamp, TICKS_PER_SECOND)
    return {
        "etag": write_etag(stored.timestamp),
        "timestamp": local_time(stored.timestamp),
        "changed_at": (changed_at := to_datetime(stored.timestamp)),
        "is_recent": is_recent(changed_at),
        "utc": f"{second_text(seconds)}.{fraction:07}Z",
        "instant": write_datetime(stored.timestamp),
        "opened": sign_entity(target.table, stored),
        "address": target.address(),
        "value_address": target.address("entities:value"),
        "changed_address": target.address("history:changed"),
    }


def local_time(ticks: int) -> str:
    """Format a time in the user's zone with seven fraction digits and the zone's name."""
    moment = to_datetime(ticks)
    with suppress(OverflowError):  # the first and the last hours of the calendar have no other zones
        moment = timezone.localtime(moment)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{ticks % TICKS_PER_SECOND:07} {moment:%Z}"


def is_recent(moment: datetime) -> bool:
    """Return whether a time is less than a minute ago."""
    return timezone.now() - moment < timedelta(minutes=1)


def sample(table: Table) -> dict[str, Edm]:
    """Return the properties and types of the first entities of a table."""
    try:
        previews = entities.preview_page(table, EntityQuery(top=SAMPLE)).entities
    except StorageError:
        return {}
    return entity_form.names_and_types(glance.properties for glance in previews)


def without(names: Mapping[str, Edm], taken: Collection[str]) -> dict[str, Edm]:
    return {name: type_ for name, type_ in names.items() if name not in taken}


def leave(request: HttpRequest, target: EntityTarget, address: str) -> HttpResponse:
    """Respond after an insert or deletion: close a drawer, or redirect a page."""
    if not wants_part(request):
        return see_other(address)
    part = "console/entities/entity/_done.html"
    return render_part(request, part, part, {"token": tokens.encode_key(target.key)})


def render_missing(request: HttpRequest, target: EntityTarget) -> HttpResponse:
    """Render the page of a missing entity, with its deletion, if known, and how to restore it."""
    deletion = last_change.of_entity(target.table, target.key, None)
    done = None if deletion is None else activity.of_change(deletion)
    can_undo = done is not None and not activity.is_undone(done)
    context = {
        "table": target.table,
        "entity_key": target.key,
        "deletion": deletion,
        "undo": done if can_undo else None,
        "others": activity.count_changes(done) - 1 if done is not None else 0,
        "table_address": target.table_address,
        "new_address": target.address("entities:new"),
        "has_history": (deletion is not None and deletion.sequence > 0)
        or versions.newest(target.table, target.key) is not None,
        "history_address": target.address("history:entity"),
        "in_drawer": wants_part(request),
    }
    return render_page(request, "console/entities/entity/gone.html", context, status=404)
