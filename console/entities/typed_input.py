"""Typed input for a value: EDM type, form and text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.core.files.uploadedfile import UploadedFile
from django.utils.datastructures import MultiValueDict

from console.site.typed_text import edited_text, field_text
from storage.domain.values.edm import Edm, EdmValue
from storage.editing import typed_bytes, typed_text
from storage.editing.input_context import InputContext
from storage.editing.typed_text import FORMS, TextForm

LONGEST_IN_CELL = 1_000  # characters; a longer text needs more room than the editor over a cell has
LONGEST_BYTES_IN_CELL = 8_192  # characters of hexadecimal digits

TYPES: Final = [(type_.value, type_.short_name) for type_ in Edm]  # for a choice

Files = MultiValueDict[str, "UploadedFile[bytes]"]


@dataclass(frozen=True, slots=True)
class TypedInput:
    """Typed input of a user; ``form`` is None for types with a single form."""

    type: Edm
    form: TextForm | None
    text: str
    file: "UploadedFile[bytes] | None" = None

    @property
    def is_large(self) -> bool:
        """Return whether the value is edited in a dialog rather than in the cell."""
        if self.type is Edm.BINARY:
            return len(self.text) > LONGEST_BYTES_IN_CELL
        return self.type is Edm.STRING and (len(self.text) > LONGEST_IN_CELL or self.text[:1] in ("{", "["))

    @property
    def forms(self) -> Sequence[TextForm]:
        return FORMS.get(self.type, ())

    def read(self, context: InputContext) -> EdmValue:
        """Parse the value exactly, without stripping; raises InvalidText."""
        if self.file is None or self.type is not Edm.BINARY:
            return typed_text.read(self.type, self.text, context, self.form)
        typed_bytes.check_length(self.file.size or 0, context)
        return EdmValue(Edm.BINARY, bytes(self.file.read()))


def write_input(value: EdmValue | None, default: Edm) -> TypedInput:
    """Format a stored value for editing; None is a property that the entity lacks."""
    if value is None:
        return TypedInput(default, read_form(default, ""), "")
    form = typed_text.field_form(value)
    return TypedInput(value.type, form, edited_text(value, form))


def read_input(data: Mapping[str, Any], suffix: str = "", files: Files | None = None) -> TypedInput:
    """Parse the fields value, type, form and file with a common suffix."""
    type_ = read_type(data.get(f"type{suffix}", ""))
    text = data.get(f"value{suffix}")
    if text is None:
        text = "false" if type_ is Edm.BOOLEAN else ""  # browsers send nothing for a switch that is off
    form = read_form(type_, data.get(f"form{suffix}", ""))
    return TypedInput(type_, form, field_text(text), files.get(f"file{suffix}") if files else None)


def read_type(name: str) -> Edm:
    """Return an EDM type by name; String if unknown."""
    return Edm(name) if name in set(Edm) else Edm.STRING


def read_form(type_: Edm, name: str) -> TextForm | None:
    """Return a form of a type by name; its first form if unknown."""
    forms = FORMS.get(type_, ())
    return next((form for form in forms if form == name), forms[0] if forms else None)
