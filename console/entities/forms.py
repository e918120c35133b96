"""The properties of an entity as rows of a form: each with its name, type and text, and what is wrong with it.

Every value comes back as it was stored unless somebody changed it. What no field can carry is written as JSON writes
it; bytes that are too many for a field stay where they are until others take their place.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from django.core.files.uploadedfile import UploadedFile
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext as _

from console.entities.entity_row import Row, row_of
from console.site.typed_text import LOSSES, field_text, sentence
from storage.domain.entities.entity import SYSTEM_PROPERTIES
from storage.domain.errors import PropertyNameTooLong, StorageError
from storage.domain.values.edm import BINARY_LIMIT, Edm, EdmValue
from storage.domain.values.names import check_property_name
from storage.editing import merge, typed_text
from storage.editing.conversions import convert
from storage.editing.typed_text import InvalidText, TextForm

Properties = Mapping[str, EdmValue]

TYPES: Final = tuple(Edm)


@dataclass(frozen=True, slots=True)
class Problem:
    """``field`` is the id of what holds it, empty when it is of the whole; ``about`` names a property."""

    field: str
    about: str
    text: str


@dataclass(frozen=True, slots=True)
class Submission:
    """What came of a form: its rows, and the properties if nothing is wrong with them."""

    rows: Sequence[Row]
    properties: dict[str, EdmValue] = field(default_factory=dict)

    @property
    def problems(self) -> list[Problem]:
        names = [
            Problem(f"name-{row.number}", row.name, row.name_problem) for row in self.rows if row.name_problem
        ]
        values = [Problem(f"value-{row.number}", row.name, row.problem) for row in self.rows if row.problem]
        return names + values


def read(
    data: QueryDict, files: "MultiValueDict[str, UploadedFile[bytes]]", before: Properties, now: datetime
) -> Submission:
    """``before``: the values when the form was opened; ``now`` gives times their zone."""
    rows = []
    properties: dict[str, EdmValue] = {}
    for number in _numbers(data):
        row, value = _read_row(_row(data, files, before, number), now)
        if value is not None or (row.is_set and row.problem):
            row = _named(row, properties)
        if value is not None:
            properties[row.name] = value
        rows.append(row)
    return Submission(rows, properties)


def read_row(
    data: QueryDict, files: "MultiValueDict[str, UploadedFile[bytes]]", before: Properties, now: datetime
) -> Row | None:
    """The one row that is sent while somebody types; a type that was just chosen converts what is there."""
    numbers = _numbers(data)
    if len(numbers) != 1:
        return None
    row = _row(data, files, before, numbers[0])
    form = _form(row.type, data.get(f"was-form-{row.number}", ""))
    if form is not row.form and row.type is Edm.BINARY:
        return _rewritten(row, form, now)
    was = _type(data.get(f"was-{row.number}", ""))
    if was is not None and was is not row.type:
        return _converted(row, was, now)
    return _read_row(row, now)[0]


def _numbers(data: QueryDict) -> list[int]:
    """Of the rows, in the order of the form."""
    texts = (name.removeprefix("name-") for name in data if name.startswith("name-"))
    return sorted({int(text) for text in texts if text.isascii() and text.isdecimal() and len(text) < 7})


def _row(
    data: QueryDict, files: "MultiValueDict[str, UploadedFile[bytes]]", before: Properties, number: int
) -> Row:
    def value(name: str) -> str:
        return data.get(f"{name}-{number}", "")

    name = value("name")
    type_ = _type(value("type")) or Edm.STRING
    text = field_text(value("value"))
    if type_ is Edm.BOOLEAN and f"value-{number}" not in data:
        text = "false"  # of a switch that is off nothing is sent
    was = before.get(value("origin") if f"origin-{number}" in data else name)
    return Row(
        number,
        name,
        type_,
        text,
        _form(type_, value("form")),
        before=was,
        is_new=bool(value("new")),
        # what was typed into a row that is not set is meant
        is_set=not value("remove") or (bool(value("suggested")) and bool(text.strip()) and text != "false"),
        is_kept=bool(value("kept")) and was is not None and was.type is Edm.BINARY,
        is_lost=bool(value("kept")) and (was is None or was.type is not Edm.BINARY) and not text,
        file=files.get(f"file-{number}"),
        lossy_text=field_text(value("lossy")),
        is_loss_accepted=bool(value("accept")),
    )


def _type(text: str) -> Edm | None:
    return Edm(text) if text in set(Edm) else None


def _form(type_: Edm, text: str) -> TextForm | None:
    forms = typed_text.FORMS.get(type_, ())
    return next((form for form in forms if form.value == text), forms[0] if forms else None)


def _read_row(row: Row, now: datetime) -> tuple[Row, EdmValue | None]:
    """The value of a row; None of one that is not set, was left empty, or cannot be read."""
    if not row.is_set or (row.is_new and not row.name.strip() and not row.text and row.file is None):
        return row, None
    if row.is_lost and row.type is Edm.BINARY and row.file is None:
        problem = _("The binary data is no longer available. Upload it again.")
        return replace(row, problem=problem), None
    try:
        value = _value(row, now)
    except InvalidText as refusal:
        return replace(row, problem=sentence(refusal), suggestion=refusal.suggestion), None
    if row.lossy_text and row.lossy_text == row.text:
        row = replace(row, loss=_loss(row, now))
        if not row.is_loss_accepted:
            return replace(row, problem=_("This conversion loses data. Confirm it below.")), None
    if row.text:
        row = replace(row, stored_as=typed_text.stored_text(value, row.text))
    if row.file is not None:  # it is not sent a second time
        row = replace(row, text=typed_text.write(value), form=typed_text.field_form(value), is_kept=False)
    return row, value


def _value(row: Row, now: datetime) -> EdmValue:
    if row.file is not None and row.type is Edm.BINARY:
        size = row.file.size or 0
        if size > BINARY_LIMIT:
            raise InvalidText(typed_text.TextFault.TOO_LONG, size=size)
        return EdmValue(Edm.BINARY, row.file.read())
    if row.is_kept and row.before is not None:
        return row.before if row.type is row.before.type else convert(row.before, row.type, now).value
    return typed_text.read(row.type, row.text, now, row.form)


def _loss(row: Row, now: datetime) -> str:
    try:
        loss = convert(row.before, row.type, now).loss if row.before is not None else None
    except InvalidText:
        loss = None
    return str(LOSSES[loss]) if loss is not None else _("Some data is lost.")


def _named(row: Row, others: Properties) -> Row:
    """With what is wrong with the name, if anything is."""
    if row.name in SYSTEM_PROPERTIES:
        return replace(row, name_problem=_("This name is reserved by the service. Choose another one."))
    if row.name in others:
        return replace(row, name_problem=_("This entity already has a property with this name."))
    try:
        check_property_name(row.name)
    except PropertyNameTooLong:
        return replace(row, name_problem=_("A property name can have up to 255 characters."))
    except StorageError:
        rule = _(
            "A property name starts with a letter or underscore and contains only letters, digits and underscores."
        )
        return replace(row, name_problem=rule if row.name else _("Enter a property name."))
    return row


def _converted(row: Row, was: Edm, now: datetime) -> Row:
    """The row when its type was changed: with the value converted, what is lost by that, or why it cannot be."""
    try:
        value = _value(replace(row, type=was, form=_form(was, row.form or "")), now)
        found = convert(value, row.type, now)
    except InvalidText as refusal:
        if not row.text and not row.is_kept:
            return replace(row, form=_form(row.type, ""))
        return replace(row, problem=sentence(refusal), suggestion=refusal.suggestion, text_type=was)
    fresh = row_of(row.number, row.name, found.value)
    text = fresh.text if not fresh.is_kept else typed_text.write(found.value, fresh.form)
    converted = replace(row, text=text, form=fresh.form, is_kept=False)
    if found.loss is None:
        return converted
    return replace(converted, loss=str(LOSSES[found.loss]), lossy_text=text)


def _rewritten(row: Row, was: TextForm | None, now: datetime) -> Row:
    """The row when bytes are to be written in another way."""
    try:
        value = typed_text.read(row.type, row.text, now, was)
        return replace(row, text=typed_text.write(value, row.form))
    except InvalidText as refusal:
        return replace(row, form=was, problem=sentence(refusal))


def is_changed(before: Properties, after: Properties) -> bool:
    return bool(merge.changed_names(before, after))


def names_and_types(samples: Iterable[Properties]) -> dict[str, Edm]:
    """The properties that some entities have, in the order they are seen, each with its most frequent type."""
    counts: dict[str, dict[Edm, int]] = {}
    for properties in samples:
        for name, value in properties.items():
            types = counts.setdefault(name, {})
            types[value.type] = types.get(value.type, 0) + 1
    return {name: max(types, key=lambda type_: types[type_]) for name, types in counts.items()}
