"""The editor of one property: its form, and the note beside the input."""

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, cast

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from console.entities.value_field import TypedInput, ValueField, suggested_type
from console.site.typed_text import LOSSES, edited_text, sentence
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


def shorten_value(value: EdmValue | None) -> str:
    """A value for a sentence."""
    if value is None:
        return _("not set")
    if value.type is Edm.BINARY:
        return cast("bytes", value.value)[:24].hex()
    text = edited_text(value, TextForm.ESCAPED if value.type is Edm.STRING else None)
    return text if len(text) <= _LONGEST_SHORTENED else text[:_LONGEST_SHORTENED] + "…"
