"""Entity form: a row per property with name, type, text and errors."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from django.http import QueryDict
from django.utils.translation import gettext as _

from console.entities.property_row import PropertyRow, row_of
from console.entities.typed_input import Files, TypedInput, read_form, read_input
from console.site.typed_text import LOSSES, edited_text, field_text, sentence
from storage.domain.entities.entity import SYSTEM_PROPERTIES
from storage.domain.errors import PropertyNameTooLong, StorageError
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.names import check_property_name
from storage.domain.values.numbers import read_numbers
from storage.editing import typed_text
from storage.editing.conversions import convert
from storage.editing.input_context import InputContext
from storage.editing.typed_text import InvalidText, TextForm

Properties = Mapping[str, EdmValue]


@dataclass(frozen=True, slots=True)
class FieldError:
    """Error in a form; ``field`` is the input's id or empty, ``about`` names a property."""

    field: str
    about: str
    text: str


def problems_of(rows: Iterable[PropertyRow]) -> list[FieldError]:
    """Return the errors of names, then of values."""
    rows = list(rows)
    names = [FieldError(f"name-{row.number}", row.name, row.name_problem) for row in rows if row.name_problem]
    return names + [FieldError(f"value-{row.number}", row.name, row.problem) for row in rows if row.problem]


def read_entity_form(
    data: QueryDict, files: Files, before: Properties, context: InputContext
) -> tuple[list[PropertyRow], dict[str, EdmValue]]:
    """Parse the rows of a form, and return also the valid properties."""
    rows = []
    properties: dict[str, EdmValue] = {}
    for number in _numbers(data):
        row, value = _read_value(_read_row(data, files, before, number), context)
        if value is not None or (row.is_set and row.problem):
            row = _check_name(row, properties)
        if value is not None:
            properties[row.name] = value
        rows.append(row)
    return rows, properties


def read_property_row(
    data: QueryDict, files: Files, before: Properties, context: InputContext
) -> PropertyRow | None:
    """Parse the row sent while the user types, converting its value if the type was changed."""
    numbers = _numbers(data)
    if len(numbers) != 1:
        return None
    row = _read_row(data, files, before, numbers[0])
    form = read_form(row.type, data.get(f"was-form-{row.number}", ""))
    if form is not row.form and row.type is Edm.BINARY:
        return _change_form(row, form, context)
    was = data.get(f"was-{row.number}", "")
    if was in set(Edm) and was != row.type:
        return _change_type(row, Edm(was), context)
    return _read_value(row, context)[0]


def _numbers(data: QueryDict) -> list[int]:
    """Return the numbers of the rows, in the order of the form."""
    texts = (name.removeprefix("name-") for name in data if name.startswith("name-"))
    return sorted(set(read_numbers(texts, digits=6)))


def _read_row(data: QueryDict, files: Files, before: Properties, number: int) -> PropertyRow:
    def value(name: str) -> str:
        return data.get(f"{name}-{number}", "")

    name = value("name")
    typed = read_input(data, f"-{number}", files)
    was = before.get(value("origin") if f"origin-{number}" in data else name)
    is_typed = bool(value("suggested")) and bool(typed.text.strip()) and typed.text != "false"
    return PropertyRow(
        number,
        name,
        typed.type,
        typed.text,
        typed.form,
        before=was,
        is_new=bool(value("new")),
        is_set=not value("remove") or is_typed,  # text in a suggested row adds the property
        is_kept=bool(value("kept")) and was is not None and was.type is Edm.BINARY,
        is_lost=bool(value("kept")) and (was is None or was.type is not Edm.BINARY) and not typed.text,
        file=typed.file,
        lossy_text=field_text(value("lossy")),
        is_loss_accepted=bool(value("accept")),
    )


def _read_value(row: PropertyRow, context: InputContext) -> tuple[PropertyRow, EdmValue | None]:
    """Return the row with its parsed value; None if it is unset, empty or invalid."""
    if not row.is_set or (row.is_new and not row.name.strip() and not row.text and row.file is None):
        return row, None
    if row.is_lost and row.type is Edm.BINARY and row.file is None:
        problem = _("The binary data is no longer available. Upload it again.")
        return replace(row, problem=problem), None
    try:
        value = _value(row, context)
    except InvalidText as refusal:
        return _refused(row, refusal, row.type), None
    if row.lossy_text and row.lossy_text == row.text:
        row = replace(row, loss=_loss(row, context))
        if not row.is_loss_accepted:
            return replace(row, problem=_("This conversion loses data. Confirm it below.")), None
    if row.text and row.text != edited_text(value):
        row = replace(row, stored_as=typed_text.stored_text(value, row.text))
    if row.file is not None:  # it is not sent a second time
        row = replace(row, text=typed_text.write(value), form=typed_text.field_form(value), is_kept=False)
    return row, value


def _refused(row: PropertyRow, refusal: InvalidText, type_: Edm | None) -> PropertyRow:
    return replace(row, problem=sentence(refusal, type_), suggestion=refusal.suggestion)


def _value(row: PropertyRow, context: InputContext) -> EdmValue:
    """Read the value of a row; raises InvalidText."""
    is_uploaded = row.file is not None and row.type is Edm.BINARY
    if row.is_kept and row.before is not None and not is_uploaded:
        return row.before if row.type is row.before.type else convert(row.before, row.type, context).value
    return TypedInput(row.type, row.form, row.text, row.file).read(context)


def _loss(row: PropertyRow, context: InputContext) -> str:
    try:
        loss = convert(row.before, row.type, context).loss if row.before is not None else None
    except InvalidText:
        loss = None
    return str(LOSSES[loss]) if loss is not None else _("Some data is lost.")


def _check_name(row: PropertyRow, others: Properties) -> PropertyRow:
    if row.name in SYSTEM_PROPERTIES:
        return replace(row, name_problem=_("This name is reserved by the service. Choose another one."))
    if row.name in others:
        return replace(row, name_problem=_("This entity already has a property with this name."))
    try:
        check_property_name(row.name)
    except PropertyNameTooLong:
        return replace(row, name_problem=_("A property name can have up to 255 UTF-16 code units."))
    except StorageError:
        rule = _(
            "A property name starts with a letter or underscore and contains only letters, digits and underscores."
        )
        return replace(row, name_problem=rule if row.name else _("Enter a property name."))
    return row


def _change_type(row: PropertyRow, was: Edm, context: InputContext) -> PropertyRow:
    """Convert a row's value to its new type, with a note on a loss or on the failure."""
    type_: Edm | None = was
    try:
        value = _value(replace(row, type=was, form=read_form(was, row.form or "")), context)
        type_ = None
        converted = convert(value, row.type, context)
    except InvalidText as refusal:
        if not row.text and not row.is_kept:
            return replace(row, form=read_form(row.type, ""))
        return replace(_refused(row, refusal, type_), text_type=was)
    fresh = row_of(row.number, row.name, converted.value)
    text = fresh.text if not fresh.is_kept else typed_text.write(converted.value, fresh.form)
    changed = replace(row, text=text, form=fresh.form, is_kept=False)
    if converted.loss is None:
        return changed
    return replace(changed, loss=str(LOSSES[converted.loss]), lossy_text=text)


def _change_form(row: PropertyRow, was: TextForm | None, context: InputContext) -> PropertyRow:
    """Convert the bytes of a row to another form."""
    try:
        value = TypedInput(row.type, was, row.text).read(context)
        return replace(row, text=typed_text.write(value, row.form))
    except InvalidText as refusal:
        return replace(row, form=was, problem=sentence(refusal))


def names_and_types(samples: Iterable[Properties]) -> dict[str, Edm]:
    """Return the properties of sampled entities in order of appearance, each with its most frequent type."""
    counts: defaultdict[str, Counter[Edm]] = defaultdict(Counter)
    for properties in samples:
        for name, value in properties.items():
            counts[name][value.type] += 1
    return {name: types.most_common(1)[0][0] for name, types in counts.items()}
