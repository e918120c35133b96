"""A property as a row of a form: its display and its input."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from django.core.files.uploadedfile import UploadedFile

from console.grid.documents import indent_json
from console.site.typed_text import edited_text
from storage.domain.values.edm import Edm, EdmValue
from storage.editing import typed_text
from storage.editing.typed_text import TextForm

LONGEST_HEX: Final = 512  # bytes of a Binary in a field; longer ones stay on the server
_NARROW: Final = frozenset({Edm.INT32, Edm.INT64, Edm.DOUBLE, Edm.BOOLEAN})
_SPACES: Final = {" ": "·", "\t": "⇥", "\n": "↵"}


@dataclass(frozen=True, slots=True)
class PropertyRow:
    """A property in the form of an entity."""

    number: int
    name: str
    type: Edm
    text: str = ""
    form: TextForm | None = None
    before: EdmValue | None = None  # the value from when the form was opened, None if new
    is_new: bool = False
    is_set: bool = True  # False if the row is displayed, but the entity does not have the property
    is_kept: bool = False  # whether its bytes are left out of the form
    is_lost: bool = False  # the form refers to bytes that no longer exist
    file: "UploadedFile[bytes] | None" = None
    loss: str = ""  # loss by the change of the type
    lossy_text: str = ""
    is_loss_accepted: bool = False
    name_problem: str = ""
    problem: str = ""
    suggestion: Edm | None = None
    stored_as: str = ""  # if it differs from the text
    text_type: Edm | None = None  # the type of a text that could not be converted

    @property
    def is_narrow(self) -> bool:
        """Return whether the field fits half a line, by type alone so that typing moves nothing."""
        return not self.is_new and self.type in _NARROW

    @property
    def is_boolean(self) -> bool:
        return self.type is Edm.BOOLEAN and self.text in ("true", "false")

    @property
    def pretty(self) -> str:
        """Return a JSON document in a String, indented."""
        return indent_json(self.text) if self.type is Edm.STRING and self.form is not TextForm.ESCAPED else ""

    @property
    def whitespace(self) -> str:
        """Return whitespace-only text with visible characters."""
        if self.type is not Edm.STRING or not self.text.isspace() or len(self.text) > 80:
            return ""
        return "".join(_SPACES.get(character, f"U+{ord(character):04X} ") for character in self.text)

    @property
    def is_long(self) -> bool:
        return len(self.text) > 60 or "\n" in self.text

    @property
    def size(self) -> int:
        """Return the number of kept bytes."""
        return len(cast("bytes", self.before.value)) if self.before and self.is_kept else 0

    @property
    def start(self) -> str:
        """Return the first kept bytes in hexadecimal."""
        return cast("bytes", self.before.value)[:24].hex(" ") if self.before and self.is_kept else ""

    @property
    def was(self) -> str:
        """Return the text as opened; empty if it is long."""
        if self.before is None or self.before.type is Edm.BINARY:
            return ""
        text = edited_text(self.before, typed_text.field_form(self.before))
        return text if 0 < len(text) <= 80 else ""

    @property
    def was_empty(self) -> bool:
        return self.before is not None and self.before.value in ("", b"")


def rows_of(properties: Mapping[str, EdmValue]) -> list[PropertyRow]:
    return [row_of(number, name, value) for number, (name, value) in enumerate(properties.items())]


def row_of(number: int, name: str, value: EdmValue) -> PropertyRow:
    is_kept = value.type is Edm.BINARY and len(cast("bytes", value.value)) > LONGEST_HEX
    form = typed_text.field_form(value)
    text = "" if is_kept else edited_text(value, form)
    return PropertyRow(number, name, value.type, text, form, before=value, is_kept=is_kept)


def blank_row(number: int) -> PropertyRow:
    return PropertyRow(number, "", Edm.STRING, is_new=True)


def suggested_row(number: int, name: str, type_: Edm) -> PropertyRow:
    """Return an unset row for a property that other entities have."""
    return PropertyRow(number, name, type_, text="false" if type_ is Edm.BOOLEAN else "", is_set=False)


def next_blank_row(rows: Sequence[PropertyRow]) -> PropertyRow:
    """Return an empty row for a new property below the others."""
    return blank_row(max((row.number for row in rows), default=-1) + 1)
