"""A property while it is being edited: its text, its type, and what there is to say about both."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, cast

from django.http import QueryDict
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from console.site.typed_text import LOSSES, field_text, sentence
from storage.domain.values.edm import Edm, EdmValue
from storage.editing import merge, typed_text
from storage.editing.conversions import convert
from storage.editing.typed_text import FORMS, InvalidText, TextForm

LONG: Final = 256  # characters; beyond, a line is too little room
_SHOWN: Final = 160  # characters of what a value was


@dataclass(frozen=True, slots=True)
class Draft:
    """What the editor holds; ``form`` is None for types that are written in one way only."""

    type: Edm
    form: TextForm | None
    text: str
    agreed: bool = False  # to what a conversion loses

    @property
    def is_large(self) -> bool:
        if self.type is Edm.BINARY:
            return True
        is_string = self.type is Edm.STRING
        return is_string and (len(self.text) > LONG or "\n" in self.text or self.text[:1] in ("{", "["))

    @property
    def forms(self) -> Sequence[TextForm]:
        return FORMS.get(self.type, ())


@dataclass(frozen=True, slots=True)
class Note:
    """``kind``: error, warn or info; ``suggestion`` is a type that would take the text."""

    kind: str
    text: str
    suggestion: Edm | None = None
    needs_tick: bool = False


def draft_of(value: EdmValue | None, default: Edm) -> Draft:
    """The editor of a stored value, or of a property that the entity lacks."""
    if value is None:
        return Draft(default, FORMS.get(default, (None,))[0], "")
    form = typed_text.field_form(value)
    return Draft(value.type, form, typed_text.write(value, form))


def read_draft(form: QueryDict) -> Draft:
    """Of the fields type, form, value and agreed; a type that is none of ours is String."""
    type_ = read_type(form.get("type", ""))
    text = field_text(form.get("value", ""))
    if type_ is Edm.BOOLEAN and "value" not in form:
        text = "false"  # a switch that is off sends nothing
    return Draft(type_, read_form(type_, form.get("form", "")), text, "agreed" in form)


def read_type(name: str) -> Edm:
    try:
        return Edm(name)
    except ValueError:
        return Edm.STRING


def read_form(type_: Edm, name: str) -> TextForm | None:
    forms = FORMS.get(type_, ())
    return next((form for form in forms if form == name), forms[0] if forms else None)


def read(draft: Draft, stored: EdmValue | None, now: datetime) -> tuple[EdmValue | None, Note | None]:
    """The value, unless something is wrong with it, and what there is to say."""
    try:
        value = typed_text.read(draft.type, draft.text, now, draft.form)
    except InvalidText as refusal:
        return None, Note("error", sentence(refusal), refusal.suggestion)
    if (loss := _loss(value, stored, now)) and not draft.agreed:
        return None, Note("warn", loss, needs_tick=True)
    return value, _hint(value, draft)


def _loss(value: EdmValue, stored: EdmValue | None, now: datetime) -> str:
    """What is lost when the stored value becomes this one by changing its type alone."""
    if stored is None or stored.type is value.type:
        return ""
    try:
        converted = convert(stored, value.type, now)
    except InvalidText:
        return ""
    if converted.loss is None or not merge.is_same(converted.value, value):
        return ""
    return f"{shortened(stored)} → {shortened(value)}. {LOSSES[converted.loss]}"


def _hint(value: EdmValue, draft: Draft) -> Note | None:
    if written := typed_text.stored_text(value, draft.text):
        return Note("info", _("Stored as %(value)s") % {"value": written})
    match value:
        case (Edm.INT32 | Edm.INT64, int(number)) if abs(number) >= 10_000:
            return Note("info", number_format(number, force_grouping=True))
        case (Edm.STRING, str(text)) if draft.is_large and text[:1] in ("{", "["):
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


def retyped(draft: Draft, to: Edm, form: TextForm | None, now: datetime) -> tuple[Draft, Note | None]:
    """The draft as another type, or in another form: its value converted where one means the same."""
    if not draft.text and to is not draft.type:
        return _as_typed(draft, to, form), None
    try:
        value = typed_text.read(draft.type, draft.text, now, draft.form)
    except InvalidText:
        return _as_typed(draft, to, form), None  # what is no value is what somebody began to type
    try:
        converted = convert(value, to, now)
        kept = form if to is draft.type or to is not Edm.STRING else typed_text.field_form(converted.value)
        text = typed_text.write(converted.value, kept)
    except InvalidText as refusal:
        if to is draft.type:
            return draft, Note("error", sentence(refusal))
        return _as_typed(draft, to, form), Note(
            "error", _("Not converted. %(why)s") % {"why": sentence(refusal)}
        )
    note = None
    if to is not draft.type and draft.text:
        lost = str(LOSSES[converted.loss]) if converted.loss else _("No data is lost.")
        came_from = _("Converted from %(type)s.") % {"type": draft.type.short_name}
        note = Note(
            "warn" if converted.loss else "info", f"{came_from} {lost}", needs_tick=bool(converted.loss)
        )
    return replace(draft, type=to, form=kept, text=text, agreed=False), note


def _as_typed(draft: Draft, to: Edm, form: TextForm | None) -> Draft:
    return replace(draft, type=to, form=form, agreed=False)


def shortened(value: EdmValue | None) -> str:
    """A value in a sentence."""
    if value is None:
        return _("not set")
    if value.type is Edm.BINARY:
        return cast("bytes", value.value)[:24].hex()
    text = typed_text.write(value, TextForm.ESCAPED if value.type is Edm.STRING else None)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
