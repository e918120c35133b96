"""Draft of an entity: its original state, signed in the form, and the user's input so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.core import signing
from django.http import HttpRequest
from django.utils.translation import gettext as _

from console.entities import entity_form, problems, property_row
from console.entities.entity_form import FieldError
from console.entities.property_row import PropertyRow
from console.grid.property_order import order_properties
from storage.domain.entities.entity import Entity, EntityKey, StoredEntity, encode_entity_key, read_stored
from storage.domain.values.edm import EdmValue
from storage.domain.values.kinds import AccountKind
from storage.editing import document, merge
from storage.editing.input_context import InputContext
from storage.models import Table

_SALT: Final = "console.entities.opened"


def sign_entity(table: Table, stored: StoredEntity) -> str:
    content = [table.pk, *stored.key, stored.timestamp, stored.content.decode()]
    return signing.dumps(content, salt=_SALT, compress=True)


def read_signed_entity(table: Table, token: str) -> StoredEntity | None:
    """Return the entity in a signed token; None for an invalid one."""
    try:
        table_id, partition_key, row_key, ticks, content = signing.loads(token, salt=_SALT)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    if table_id != table.pk:
        return None
    return StoredEntity(encode_entity_key(EntityKey(partition_key, row_key)), b"%d" % ticks, content.encode())


@dataclass(frozen=True, slots=True)
class EntityDraft:
    """User's input, as rows or JSON ``text``; ``properties`` if all of it is valid."""

    before: StoredEntity | None  # the entity as it was opened
    key: EntityKey
    rows: Sequence[PropertyRow] = ()
    text: str = ""
    tab: str = "form"
    mode: str = "merge"
    properties: Mapping[str, EdmValue] | None = None
    problems: Sequence[FieldError] = ()
    is_dirty: bool = False
    line: int = 0  # the line of the error in the text, from one
    column: int = 0

    def with_blank_row(self) -> "EntityDraft":
        """Add an empty row for a new property below the others."""
        return replace(self, rows=[*self.rows, property_row.next_blank_row(self.rows)], is_dirty=True)

    def refused(self, *problems: FieldError) -> "EntityDraft":
        return replace(self, problems=[*self.problems, *problems], is_dirty=True)

    @property
    def entity(self) -> Entity:
        """Return the valid part of the entity, for the meters of size and count."""
        return Entity(self.key, self.properties or {})


def open_draft(table: Table, stored: StoredEntity, tab: str) -> EntityDraft:
    """Open a stored entity as a draft, with properties in the table's column order."""
    entity = read_stored(stored)
    names = order_properties(table, entity.properties)
    return EntityDraft(
        stored,
        entity.key,
        rows=property_row.rows_of({name: entity.properties[name] for name in names}),
        text=document.write(entity) if tab == "json" else "",
        tab=tab,
        properties={name: entity.properties[name] for name in names},
    )


def read_draft(
    request: HttpRequest, before: StoredEntity | None, key: EntityKey, context: InputContext
) -> EntityDraft:
    """Parse a form; ``key`` comes from the address, or from the form of a new entity."""
    mode = "replace" if request.POST.get("mode") == "replace" else "merge"
    base = read_stored(before).properties if before is not None else {}
    if request.POST.get("tab") == "json":
        return _read_text(
            EntityDraft(before, key, tab="json", mode=mode, text=request.POST.get("text", "")), context.kind
        )
    rows, read = entity_form.read_entity_form(request.POST, request.FILES, base, context)
    properties = {
        name: read[name] for name in {**base, **read} if name in read
    }  # in the order of the storage
    wrong = entity_form.problems_of(rows)
    is_dirty = bool(wrong or merge.changed_names(base, properties))
    return EntityDraft(before, key, rows, mode=mode, properties=properties, problems=wrong, is_dirty=is_dirty)


def _read_text(draft: EntityDraft, kind: AccountKind) -> EntityDraft:
    text = draft.text.replace("\r\n", "\n")
    draft = replace(draft, text=text, is_dirty=True)
    try:
        typed = document.read(text, kind)
    except document.InvalidDocument as refusal:
        line, column = refusal.line, refusal.column
        about = _("Line %(line)s, column %(column)s") % {"line": line, "column": column}
        error = FieldError("text", about, problems.describe_invalid_document(refusal, kind))
        return replace(draft, line=line, column=column).refused(error)
    draft = replace(draft, properties=typed.properties)
    if draft.before is not None and typed.key != draft.key:
        return draft.refused(FieldError("text", "", _("Keys can't be changed here. Use Change key instead.")))
    return replace(draft, key=typed.key)
