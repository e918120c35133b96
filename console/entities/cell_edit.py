"""Edit of one property of an entity: stored and typed value, the change, and conflicts."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from console.entities.cell import CellDraft, Editor, Note, draw_preview, draw_value, hint, write_preview
from console.entities.cell_changes import CellChange, change_entity, is_staging
from console.entities.saving import Conflict, EntityEdit, Refusal, back_address
from console.entities.typed_input import TYPES, write_input
from console.grid.tokens import encode_key, key_query
from console.site.responses import wants_part
from console.site.typed_text import input_context
from storage.domain.entities.changes import Change, Insert
from storage.domain.entities.entity import Entity, StoredEntity, read_stored
from storage.domain.errors import ResourceNotFound, UpdateConditionNotSatisfied
from storage.domain.values.edm import EdmValue
from storage.domain.values.etag import ANY, read_if_match, write_etag
from storage.editing.input_context import InputContext
from storage.entities.edits import Applied
from storage.models import Table

CONFLICT = 412


@dataclass(frozen=True)
class CellEdit:
    """Edit of a property by a user; the stored entity is read lazily."""

    request: HttpRequest
    table: Table
    draft: CellDraft

    @cached_property
    def entity(self) -> EntityEdit:
        return EntityEdit(self.request, self.table, self.draft.key)

    @property
    def input_context(self) -> InputContext:
        return input_context(self.table.account)

    @property
    def is_again(self) -> bool:
        """Return whether the edit inserts a deleted entity again."""
        return self.draft.action == "insert" and self.entity.stored is None

    @property
    def is_as_it_was(self) -> bool:
        """Return whether a deleted entity is inserted again without a typed value, also in an editor opened later."""
        return self.is_again and not self.draft.etag and not self.draft.typed.text

    @property
    def stored_value(self) -> EdmValue | None:
        return self._value_in(self.entity.stored)

    def _value_in(self, stored: StoredEntity | None) -> EdmValue | None:
        return None if stored is None else read_stored(stored).properties.get(self.draft.name)

    def open(self) -> Editor:
        """Return the editor with the stored value; for a deleted entity, with the user who deleted it."""
        draft, stored, value = self.draft, self.entity.stored, self.stored_value
        typed = write_input(value, draft.typed.type)
        if stored is None:
            # the grid takes no other answer for the editor, into which it puts what was typed
            status = 200 if wants_part(self.request) else 404
            return Editor(typed, None, self._describe(self.entity.conflict(), None), status)
        note = None if value is None else hint(value, typed)
        if draft.etag not in ("", write_etag(stored.timestamp)):
            text = _("This entity has changed since the page was loaded. This is the current value.")
            note = Note("warn", text)
        return Editor(typed, note)

    def save(self, value: EdmValue | None) -> Applied | Editor:
        """Save a value, or remove the property if it is None; return the editor again on a refusal or conflict."""
        before = self.entity.conflict() if self.is_again else None
        deleted = None if before is None else before.deleted
        stored = self.entity.stored
        done = self.entity.save(lambda: self._change(stored, value, deleted), known=stored)
        match done:
            case Refusal():
                shown = None if before is None else self._describe(before, value)
                return Editor(self.draft.typed, Note("error", done.text), shown, 422)
            case Conflict():
                return Editor(self.draft.typed, None, self._describe(done, value), CONFLICT)
        return done

    def _change(
        self, stored: StoredEntity | None, value: EdmValue | None, deleted: StoredEntity | None
    ) -> Change:
        """Build the change of the entity; ``deleted`` is the entity to insert again."""
        draft = self.draft
        if deleted is not None:
            changed = {} if value is None else {draft.name: value}
            return Insert(Entity(draft.key, {**read_stored(deleted).properties, **changed}))
        if read_if_match(draft.etag) == ANY:  # the console never overwrites an unknown version
            raise UpdateConditionNotSatisfied
        if stored is None:
            raise ResourceNotFound
        return change_entity([CellChange(draft.key, draft.name, draft.etag, value)], stored)

    def _describe(self, conflict: Conflict, value: EdmValue | None) -> dict[str, Any]:
        """Describe the opened, current and typed values, and whether a deleted entity can be inserted."""
        return {
            "is_gone": conflict.stored is None,
            "can_insert": conflict.deleted is not None,
            "was": draw_preview(self.draft.was or ""),
            "theirs": draw_value(self._value_in(conflict.stored)),
            "mine": draw_value(value),
            "etag": conflict.etag,
            "last": conflict.last,
        }

    def context(self, editor: Editor) -> dict[str, Any]:
        """Return the template context of the editor."""
        draft, stored = self.draft, self.entity.stored
        value, token = self._value_in(stored), encode_key(draft.key)
        etag = "" if stored is None else write_etag(stored.timestamp)
        return {
            "table": self.table,
            "key": draft.key,
            "token": token,
            "property": draft.name,
            "etag": draft.etag if self.request.method == "POST" else etag,
            "was": write_preview(value) if draft.was is None else draft.was,
            "typed": editor.typed,
            "agreed": draft.is_agreed and draft.action != "retype",
            "note": editor.note,
            "conflict": editor.conflict,
            "is_set": value is not None,
            "is_staged": is_staging(self.request, self.table.account),
            "types": TYPES,
            "zone": timezone.get_current_timezone_name(),
            "next": back_address(self.request, self.table),
            "download": urlencode({"key": token, "property": draft.name, "download": "1"}),
            "address": key_query(draft.key),
        }
