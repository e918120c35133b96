"""The editor of one property: its form, and the note beside the input."""

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, cast

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from console.entities.value_field import TypedInput, ValueField, suggested_type
from console.grid import cells
from console.site.typed_text import LOSSES, edited_text, sentence
from storage.domain.entities.previews import BINARY_PREVIEW_LENGTH, STRING_PREVIEW_LENGTH
from storage.domain.values.edm import Edm, EdmValue
from storage.editing import merge, typed_text
from storage.editing.conversions import convert
from storage.editing.typed_text import InvalidText, TextForm

_LOSS: Final = "loss"  # the code of an error that the user may override
_LONGEST_SHORTENED: Final = 160  # characters


@dataclass(frozen=True, slots=True)
class Note:
    """``kind``: error, warn or info; ``suggestion`` is a type that would accept the text."""

    kind: str
    text: str
    suggestion: Edm | None = None
    needs_consent: bool = False


class CellForm(forms.Form):
    """The value, and the consent to what a conversion from the stored type loses."""

    value = ValueField()
    agreed = forms.BooleanField(required=False)

    def __init__(self, data: QueryDict, stored: EdmValue | None, now: datetime) -> None:
        super().__init__(data)
        self.stored = stored
        self.now = now
        cast("ValueField", self.fields["value"]).now = now

    @property
    def typed(self) -> TypedInput:
        return cast("TypedInput", self["value"].value())

    def clean(self) -> None:
        value = self.cleaned_data.get("value")
        if value is not None and not self.cleaned_data["agreed"]:
            loss = _conversion_loss(value, self.stored, self.now)
            if loss:
                self.add_error("value", ValidationError(loss, code=_LOSS))

    @property
    def edm_value(self) -> EdmValue | None:
        """The value, or None if it is invalid."""
        return self.cleaned_data.get("value") if self.is_valid() else None

    @property
    def note(self) -> Note | None:
        if self.is_valid():
            return hint(self.cleaned_data["value"], self.typed)
        (error,) = self.errors["value"].as_data()
        if error.code == _LOSS:
            return Note("warn", str(error.message), needs_consent=True)
        return Note("error", str(error.message), suggested_type(error))


def check_input(typed: TypedInput, now: datetime) -> Note | None:
    """The note on an input by itself, whatever is stored."""
    try:
        return hint(ValueField(now).clean(typed), typed)
    except ValidationError as error:
        return Note("error", str(error.message), suggested_type(error))


def _conversion_loss(value: EdmValue, stored: EdmValue | None, now: datetime) -> str:
    """What is lost when the stored value becomes this one only by a change of its type."""
    if stored is None or stored.type is value.type:
        return ""
    try:
        converted = convert(stored, value.type, now)
    except InvalidText:
        return ""
    if converted.loss is None or not merge.is_same(converted.value, value):
        return ""
    return f"{shorten_value(stored)} → {shorten_value(value)}. {LOSSES[converted.loss]}"


def hint(value: EdmValue, typed: TypedInput) -> Note | None:
    """What helps to check a valid value: how it is stored, grouped digits, the size, whether JSON is valid."""
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


def change_type(
    typed: TypedInput, to: Edm, form: TextForm | None, now: datetime
) -> tuple[TypedInput, Note | None]:
    """The input as another type or in another form; its value is converted if one means the same."""
    unconverted = replace(typed, type=to, form=form)
    if not typed.text and to is not typed.type:
        return unconverted, None
    try:
        value = ValueField(now).clean(typed)
    except ValidationError:
        return unconverted, None  # an unfinished text: keep it
    try:
        converted = convert(value, to, now)
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
        kind = "warn" if converted.loss else "info"
        note = Note(kind, f"{came_from} {lost}", needs_consent=bool(converted.loss))
    return TypedInput(to, kept, text), note


def draw_value(value: EdmValue | None) -> SafeString:
    """Draw a value as the grid does, in the reader's time zone."""
    return cells.draw_or_absent(value, timezone.get_current_timezone()).markup


def write_preview(value: EdmValue | None) -> str:
    """Write what a grid shows of a value, for a form to send back: its type, its beginning and, if cut, its size."""
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
    """Draw the value of ``write_preview``; "not set" for any other text."""
    with suppress(InvalidText, OverflowError, RecursionError, TypeError, ValueError):
        type_name, written, size = json.loads(text)
        type_ = Edm(type_name)
        value = typed_text.read(type_, str(written), timezone.now(), _preview_form(type_))
        return cells.draw(value, int(size) or None, timezone.get_current_timezone()).markup
    return draw_value(None)


def _preview_form(type_: Edm) -> TextForm | None:
    return TextForm.ESCAPED if type_ is Edm.STRING else None


def shorten_value(value: EdmValue) -> str:
    """A value for a sentence."""
    if value.type is Edm.BINARY:
        return cast("bytes", value.value)[:BINARY_PREVIEW_LENGTH].hex()
    if value.type is Edm.STRING:
        text = f'"{"".join(map(_visible, str(value.value)[: _LONGEST_SHORTENED + 1]))}"'
    else:
        text = edited_text(value)
    return text if len(text) <= _LONGEST_SHORTENED else text[:_LONGEST_SHORTENED] + "…"


def _visible(character: str) -> str:
    """Escape what cannot be seen, or ends the quotation; letters of all scripts stay."""
    return character if character.isprintable() and character not in '"\\' else json.dumps(character)[1:-1]
