"""The form field of a typed value: its EDM type, the form of its text, and the text itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.utils import timezone
from django.utils.datastructures import MultiValueDict

from console.site.typed_text import edited_text, field_text, sentence
from storage.domain.values.edm import BINARY_LIMIT, Edm, EdmValue
from storage.editing import typed_text
from storage.editing.typed_text import FORMS, InvalidText, TextFault, TextForm

LONGEST_IN_CELL = 1_000  # characters; a longer text needs more room than the editor over a cell has
LONGEST_BYTES_IN_CELL = 8_192  # characters of hexadecimal digits

Files = MultiValueDict[str, "UploadedFile[bytes]"]


@dataclass(frozen=True, slots=True)
class TypedInput:
    """What a user entered; ``form`` is None for types that are written in one way only."""

    type: Edm
    form: TextForm | None
    text: str
    file: "UploadedFile[bytes] | None" = None

    @property
    def is_large(self) -> bool:
        """Whether a dialog shows it, and not the editor over the cell."""
        if self.type is Edm.BINARY:
            return len(self.text) > LONGEST_BYTES_IN_CELL
        return self.type is Edm.STRING and (len(self.text) > LONGEST_IN_CELL or self.text[:1] in ("{", "["))

    @property
    def forms(self) -> Sequence[TextForm]:
        return FORMS.get(self.type, ())


def typed_input(value: EdmValue | None, default: Edm) -> TypedInput:
    """A stored value as a user edits it; None: a property that the entity does not have yet."""
    if value is None:
        return TypedInput(default, read_form(default, ""), "")
    form = typed_text.field_form(value)
    return TypedInput(value.type, form, edited_text(value, form))


def read_type(name: str) -> Edm:
    """An EDM type by its name; String for an unknown name."""
    return Edm(name) if name in set(Edm) else Edm.STRING


def read_form(type_: Edm, name: str) -> TextForm | None:
    """A form of a type by its name; the first form of the type for an unknown name."""
    forms = FORMS.get(type_, ())
    return next((form for form in forms if form == name), forms[0] if forms else None)


class ValueWidget(forms.Widget):
    """Collects the fields value, type, form and file, which share one suffix; templates draw them."""

    def value_from_datadict(self, data: Mapping[str, Any], files: Files, name: str) -> TypedInput:
        suffix = name.removeprefix("value")
        type_ = read_type(data.get(f"type{suffix}", ""))
        text = data.get(name)
        if text is None:
            text = "false" if type_ is Edm.BOOLEAN else ""  # browsers send nothing for a switch that is off
        form = read_form(type_, data.get(f"form{suffix}", ""))
        return TypedInput(type_, form, field_text(text), files.get(f"file{suffix}"))


class ValueField(forms.Field):
    """Reads a value exactly: neither stripped nor changed in any other way.

    ``now`` knows the time zone of times without an offset. The error has the type that would accept the text, if
    there is one, as the parameter ``suggestion``.
    """

    widget = ValueWidget

    def __init__(self, now: datetime | None = None) -> None:
        super().__init__()
        self.now = now or timezone.now()

    def clean(self, value: TypedInput) -> EdmValue:
        try:
            if value.file is not None and value.type is Edm.BINARY:
                return EdmValue(Edm.BINARY, _read_file(value.file))
            return typed_text.read(value.type, value.text, self.now, value.form)
        except InvalidText as refusal:
            raise invalid_value(refusal, value.type) from None


def _read_file(file: "UploadedFile[bytes]") -> bytes:
    size = file.size or 0
    if size > BINARY_LIMIT:
        raise InvalidText(TextFault.TOO_LONG, size=size)
    return bytes(file.read())


def invalid_value(refusal: InvalidText, type_: Edm | None = None) -> ValidationError:
    return ValidationError(sentence(refusal, type_), params={"suggestion": refusal.suggestion})


def suggested_type(error: ValidationError) -> Edm | None:
    """The type that would accept the refused text."""
    return (error.params or {}).get("suggestion")
