"""What the pages of one entity have in common: its address, its draft, and how it is drawn."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.http import Http404, HttpRequest, QueryDict
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from console.entities import entity_form, opened, problems, property_row
from console.entities.entity_form import FieldError
from console.entities.property_row import PropertyRow
from console.grid import tokens
from console.site.access import find_table
from storage.domain.entities.entity import (
    PROPERTY_LIMIT,
    SIZE_LIMIT,
    Entity,
    EntityKey,
    StoredEntity,
    entity_size,
    read_stored,
)
from storage.domain.errors import (
    StorageError,
)
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import TICKS_PER_SECOND, Edm, EdmValue, second_text, write_datetime
from storage.domain.values.etag import write_etag
from storage.editing import document
from storage.models import Account, Table
from storage.operations import entities

EMPTY: Final = Entity(EntityKey("", ""), {})
BLANK: Final = 9999  # the number of the row that scripts copy
SAMPLE: Final = 50  # entities
MOST_SUGGESTED: Final = 40  # properties


@dataclass(frozen=True, slots=True)
class Visit:
    """Whoever looks at an entity of a table; there may be none of this key."""

    account: Account
    table: Table
    key: EntityKey

    def address(self, name: str = "entities:show", **parameters: str) -> str:
        return entity_address(self.account, self.table, self.key, name, **parameters)

    @property
    def table_address(self) -> str:
        return reverse("entities:index", args=(self.account.name, self.table.name))


@dataclass(frozen=True, slots=True)
class Draft:
    """What somebody has typed so far: rows or, in the tab of JSON, a text; ``properties`` if all can be read."""

    before: StoredEntity | None  # the entity as it was opened
    key: EntityKey
    rows: Sequence[PropertyRow] = ()
    text: str = ""
    tab: str = "form"
    mode: str = "merge"
    properties: Mapping[str, EdmValue] | None = None
    problems: Sequence[FieldError] = ()
    is_dirty: bool = False
    line: int = 0  # where the text is wrong, from one
    column: int = 0

    def refused(self, *problems: FieldError) -> "Draft":
        return replace(self, problems=[*self.problems, *problems], is_dirty=True)

    @property
    def entity(self) -> Entity:
        """For the meters: what can be read of it."""
        return Entity(self.key, self.properties or {})


# addresses


def entity_address(
    account: Account, table: Table, key: EntityKey, name: str = "entities:show", **parameters: str
) -> str:
    query = QueryDict(mutable=True)
    query.update({"pk": key.partition_key, "rk": key.row_key, **parameters})
    return f"{reverse(name, args=(account.name, table.name))}?{query.urlencode()}"


def visit_of(request: HttpRequest, account: Account, table: str) -> Visit:
    """An empty key is one, an absent one is none."""
    if (key := tokens.decode_entity_key(request.GET.get("key", ""))) is not None:
        return Visit(account, find_table(account, table), key)
    if "pk" not in request.GET or "rk" not in request.GET:
        raise Http404
    return Visit(account, find_table(account, table), EntityKey(request.GET["pk"], request.GET["rk"]))


# drafts


def opened_draft(stored: StoredEntity, tab: str) -> Draft:
    found = read_stored(stored)
    return Draft(
        stored,
        found.key,
        rows=property_row.rows_of(found.properties),
        text=document.write(found) if tab == "json" else "",
        tab=tab,
        properties=found.properties,
    )


def read_draft(request: HttpRequest, before: StoredEntity | None, key: EntityKey, now: datetime) -> Draft:
    """What a form holds; the key is that of the address, or of the form when the entity is new."""
    mode = "replace" if request.POST.get("mode") == "replace" else "merge"
    base = read_stored(before).properties if before is not None else {}
    if request.POST.get("tab") == "json":
        return _read_text(Draft(before, key, tab="json", mode=mode, text=request.POST.get("text", "")))
    submission = entity_form.read_entity_form(request.POST, request.FILES, base, now)
    problems = submission.problems
    return Draft(
        before,
        key,
        rows=submission.rows,
        mode=mode,
        properties=submission.properties,
        problems=problems,
        is_dirty=bool(problems) or entity_form.is_changed(base, submission.properties),
    )


def _read_text(draft: Draft) -> Draft:
    text = draft.text.replace("\r\n", "\n")
    draft = replace(draft, text=text, is_dirty=True)
    try:
        found = document.read(text)
    except document.InvalidDocument as refusal:
        placed = replace(draft, line=refusal.line, column=refusal.column)
        return placed.refused(FieldError("text", _place(refusal), problems.of_document(refusal)))
    draft = replace(draft, properties=found.properties)
    if draft.before is not None and found.key != draft.key:
        return draft.refused(FieldError("text", "", _("Keys can't be changed here. Use Change key instead.")))
    return replace(draft, key=found.key)


def _place(refusal: document.InvalidDocument) -> str:
    return _("Line %(line)s, column %(column)s") % {"line": refusal.line, "column": refusal.column}


# what is drawn


def draft_context(visit: Visit, draft: Draft, *, in_drawer: bool) -> dict[str, Any]:
    entity = draft.entity
    size = entity_size(entity)
    return {
        "visit": visit,
        "table": visit.table,
        "draft": draft,
        "entity_key": draft.key,
        "types": [(type_.value, type_.short_name) for type_ in Edm],
        "in_drawer": in_drawer,
        "size": size,
        "size_limit": SIZE_LIMIT,
        "size_high": SIZE_LIMIT * 9 // 10,
        "is_too_large": size > SIZE_LIMIT,
        "count": len(entity.properties),
        "count_limit": PROPERTY_LIMIT,
        "is_too_many": len(entity.properties) > PROPERTY_LIMIT,
        "table_address": visit.table_address,
        "blank": property_row.blank_row(BLANK),
        "row_address": reverse("entities:row", args=(visit.account.name, visit.table.name)),
        **({} if draft.before is None else stored_context(visit, draft.before)),
    }


def stored_context(visit: Visit, stored: StoredEntity) -> dict[str, Any]:
    return {
        "etag": write_etag(stored.timestamp),
        "timestamp": local_time(stored.timestamp),
        "utc": utc_time(stored.timestamp),
        "instant": write_datetime(stored.timestamp),
        "opened": opened.write(visit.table, stored),
        "address": visit.address(),
        "value_address": visit.address("entities:value"),
    }


def utc_time(ticks: int) -> str:
    """With every digit, also of those that end in zeros."""
    return f"{second_text(ticks // TICKS_PER_SECOND)}.{ticks % TICKS_PER_SECOND:07}Z"


def local_time(ticks: int) -> str:
    """In the zone of the reader, with every digit and the name of the zone."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=ticks // 10)
    with suppress(OverflowError):  # in its first and its last hours time has no other zones
        moment = timezone.localtime(moment)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{ticks % TICKS_PER_SECOND:07} {moment:%Z}"


def is_recent(moment: datetime) -> bool:
    """Whether it is so short ago that no minute can be named."""
    return timezone.now() - moment < timedelta(minutes=1)


def sample(table: Table) -> dict[str, Edm]:
    """Properties that entities of the table have, by the first of them."""
    try:
        found = entities.preview_page(table, EntityQuery(top=SAMPLE)).entities
    except StorageError:
        return {}
    return entity_form.names_and_types(glance.properties for glance in found)


def without(names: Mapping[str, Edm], taken: Collection[str]) -> dict[str, Edm]:
    return {name: type_ for name, type_ in names.items() if name not in taken}
