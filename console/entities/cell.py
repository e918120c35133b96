"""Editor of one property: its input, its notes, and the resulting change."""

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from django.http import QueryDict
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from console.entities.cell_changes import read_key, read_name
from console.entities.typed_input import TypedInput, read_form, read_input, read_type
from console.grid import cells
from console.site.typed_text import LOSSES, edited_text, sentence
from storage.domain.entities.entity import EntityKey
from storage.domain.entities.previews import BINARY_PREVIEW_LENGTH, STRING_PREVIEW_LENGTH
from storage.domain.errors import StorageError
from storage.domain.values.edm import Edm, EdmValue
from storage.editing import merge, typed_text
from storage.editing.conversions import convert
from storage.editing.input_context import InputContext
from storage.editing.typed_text import InvalidText, TextForm

_LONGEST_SHORTENED: Final = 160  # characters


@dataclass(frozen=True, slots=True)
class Note:
    """Note below the cell editor."""

    kind: str  # error, warn or info
    text: str
    suggestion: Edm | None = None  # a type that would accept the text
    needs_consent: bool = False


@dataclass(frozen=True, slots=True)
class CellDraft:
    """Input of a cell editor, from its form or an address."""

    key: EntityKey
    name: str
    etag: str  # the version that was edited
    was: str | None  # the value of that version, as write_preview writes it
    typed: TypedInput
    action: str
    is_agreed: bool

    def read(self, stored: EdmValue | None, context: InputContext) -> tuple[EdmValue | None, Note | None]:
        """Return the typed value and a note on it; without consent to a loss, only the note."""
        try:
            value = self.typed.read(context)
        except InvalidText as refusal:
            return None, _error(refusal, self.typed.type)
        loss = "" if self.is_agreed else _conversion_loss(value, stored, context)
        if loss:
            return None, Note("warn", loss, needs_consent=True)
        return value, hint(value, self.typed)


def read_cell(sent: QueryDict) -> CellDraft | None:
    """Parse the input of a cell editor; None for an invalid key or property."""
    try:
        key, name = read_key(sent.get("key", "")), read_name(sent.get("property", ""))
    except (ValueError, StorageError):
        return None
    action = "retype" if "retype" in sent else sent.get("action", "")
    return CellDraft(
        key, name, sent.get("etag", ""), sent.get("was"), read_input(sent), action, "agreed" in sent
    )


@dataclass(frozen=True, slots=True)
class Editor:
    """State of the editor: input and note, or a conflict."""

    typed: TypedInput
    note: Note | None = None
    conflict: dict[str, Any] | None = None
    status: int = 200


def _error(refusal: InvalidText, type_: Edm) -> Note:
    return Note("error", sentence(refusal, type_), refusal.suggestion)


def _conversion_loss(value: EdmValue, stored: EdmValue | None, context: InputContext) -> str:
    """Return the loss if this value is only a type conversion of the stored one; otherwise an empty string."""
    if stored is None or stored.type is value.type:
        return ""
    try:
        converted = convert(stored, value.type, context)
    except InvalidText:
        return ""
    if converted.loss is None or not merge.is_same(converted.value, value):
        return ""
    return f"{shorten_value(stored)} → {shorten_value(value)}. {LOSSES[converted.loss]}"


def hint(value: EdmValue, typed: TypedInput) -> Note | None:
    """Return a hint on a valid value: stored form, grouped digits, size, or JSON validity."""
    if written := typed_text.stored_text(value, typed.text):
        return Note("info", _("Stored as %(value)s") % {"value": written})
    match value:
        case (Edm.INT32 | Edm.INT64, int(number)) if abs(number) >= 10_000:
            return Note("info", number_format(number, force_grouping=True))
        case (Edm.STRING, str(text)) if typed.is_large and text[:1] in ("{", "["):
            return _json_hint(text)
        case (Edm.BINARY, bytes(data)):
            return Note("info", _("%(size)s bytes") % {"size": number_format(len(data), force_grouping=True)})
    return None


def _json_hint(text: str) -> Note:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        place = {"line": error.lineno, "column": error.colno}
        return Note("warn", _("Invalid JSON at line %(line)s, column %(column)s.") % place)
    except (RecursionError, ValueError):
        return Note("info", "")
    return Note("info", _("Valid JSON"))


def retype(draft: CellDraft, sent: QueryDict, context: InputContext) -> Editor:
    """Convert the input to another type or form; ``from`` and ``from_form`` are the previous ones."""
    before = read_type(sent.get("from", ""))
    text = "false" if before is Edm.BOOLEAN and not draft.typed.text else draft.typed.text
    old = TypedInput(before, read_form(before, sent.get("from_form", "")), text)
    typed, note = _change_type(old, draft.typed.type, draft.typed.form, context)
    if note is None and typed.text:
        _value, note = replace(draft, typed=typed).read(None, context)
    return Editor(typed, note)


def _change_type(
    typed: TypedInput, to: Edm, form: TextForm | None, context: InputContext
) -> tuple[TypedInput, Note | None]:
    """Convert the input to another type if its value is preserved."""
    unconverted = replace(typed, type=to, form=form)
    if not typed.text and to is not typed.type:
        return unconverted, None
    try:
        value = typed.read(context)
    except InvalidText:
        return unconverted, None  # an unfinished text: keep it
    try:
        converted = convert(value, to, context)
        kept = form if to is typed.type or to is not Edm.STRING else typed_text.field_form(converted.value)
        text = edited_text(converted.value, kept)
    except InvalidText as refusal:
        if to is typed.type:
            return typed, Note("error", sentence(refusal))
        return unconverted, Note("error", _("Not converted. %(why)s") % {"why": sentence(refusal)})
    note = None
    if to is not typed.type and typed.text:
        lost = str(LOSSES[converted.loss]) if converted.loss else _("No data is lost.")
        came_from = _("Converted from %(type)s.") % {"type": typed.type.short_name}
        severity = "warn" if converted.loss else "info"
        note = Note(severity, f"{came_from} {lost}", needs_consent=bool(converted.loss))
    return TypedInput(to, kept, text), note


def draw_value(value: EdmValue | None) -> SafeString:
    """Render a value like the grid, in the user's time zone."""
    return cells.draw_or_absent(value, timezone.get_current_timezone()).markup


def write_preview(value: EdmValue | None) -> str:
    """Serialize the displayed part of a value for a form: its type, its beginning and, if truncated, its size."""
    match value:
        case None:
            return ""
        case (Edm.STRING, str(text)) if len(text) > STRING_PREVIEW_LENGTH:
            shown = EdmValue(Edm.STRING, text[:STRING_PREVIEW_LENGTH])
            size = len(text.encode(errors="surrogatepass"))
        case (Edm.BINARY, bytes(data)) if len(data) > BINARY_PREVIEW_LENGTH:
            shown, size = EdmValue(Edm.BINARY, data[:BINARY_PREVIEW_LENGTH]), len(data)
        case _:
            shown, size = value, 0
    return json.dumps([shown.type.value, typed_text.write(shown, _preview_form(shown.type)), size])


def draw_preview(text: str) -> SafeString:
    """Render the value from ``write_preview``; "not set" for any other text."""
    with suppress(InvalidText, OverflowError, RecursionError, TypeError, ValueError):
        type_name, written, size = json.loads(text)
        type_ = Edm(type_name)
        form = _preview_form(type_)
        value = typed_text.read(type_, str(written), InputContext.of_any_account(timezone.now()), form)
        return cells.draw(value, int(size) or None, timezone.get_current_timezone()).markup
    return draw_value(None)


def _preview_form(type_: Edm) -> TextForm | None:
    return TextForm.ESCAPED if type_ is Edm.STRING else None


def shorten_value(value: EdmValue) -> str:
    """Abbreviate a value for a sentence."""
    if value.type is Edm.BINARY:
        return cast("bytes", value.value)[:BINARY_PREVIEW_LENGTH].hex()
    if value.type is Edm.STRING:
        text = f'"{"".join(map(_visible, str(value.value)[: _LONGEST_SHORTENED + 1]))}"'
    else:
        text = edited_text(value)
    return text if len(text) <= _LONGEST_SHORTENED else text[:_LONGEST_SHORTENED] + "…"


def _visible(character: str) -> str:
    """Escape an invisible or quoting character; letters of all scripts are kept."""
    return character if character.isprintable() and character not in '"\\' else json.dumps(character)[1:-1]
