"""The rows of a filter as a form has them: half-written ones too, which say nothing yet.

Each row has a place, as ``r-0-2`` for the third of the first group; its fields are called by place and name.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Final, TypeVar, cast

from django.http import QueryDict

from storage.domain.filters.literals import RELATIVE_UNITS, RelativeTime, read_relative
from storage.domain.values.edm import Edm, EdmValue
from storage.editing import typed_text
from storage.editing.filters.builder import Connective, FilterRow, RowGroup, RowOperator, operators_for
from storage.editing.typed_text import InvalidText, TextFault, TextForm

Choice = TypeVar("Choice", bound=StrEnum)

ROOT: Final = "r"
MOST: Final = 200  # rows of a form
WITHOUT_VALUES: Final = frozenset({RowOperator.IS_SET, RowOperator.IS_NOT_SET})
A_DAY: Final = "24h"
LONGEST: Final = 1000  # characters of a value that has a field


@dataclass(slots=True)
class Row:
    """A clause as it is typed."""

    property: str = ""
    operator: RowOperator = RowOperator.EQ
    type: Edm = Edm.STRING
    texts: list[str] = field(default_factory=lambda: [""])
    negated: bool = False
    faults: dict[int, InvalidText] = field(default_factory=dict)  # by the place of the text


@dataclass(slots=True)
class Rows:
    """A group as it is typed."""

    connective: Connective = Connective.AND
    negated: bool = False
    items: list["Row | Rows"] = field(default_factory=list)


Item = Row | Rows


# from a filter


class Unshowable(Exception):
    """A value that no field could give back as it is."""


def of(group: RowGroup) -> Rows:
    items = [of(item) if isinstance(item, RowGroup) else _row(item) for item in group.items]
    return Rows(group.connective, group.negated, items)


def _row(clause: FilterRow) -> Row:
    texts = [_text(clause.operator, value) for value in clause.values]
    return Row(clause.property, clause.operator, clause.type or Edm.STRING, texts, clause.negated)


def _text(operator: RowOperator, value: EdmValue) -> str:
    if isinstance(value.value, RelativeTime):
        moment = value.value
        return f"{-moment.amount}{moment.unit}" if operator is RowOperator.IN_THE_LAST else moment.text
    text = typed_text.write(value)
    is_lost = typed_text.field_form(value) is TextForm.ESCAPED or "\n" in text or "\t" in text
    if len(text) > LONGEST or is_lost:
        raise Unshowable
    return text


# from a form


def read(sent: QueryDict, types: Mapping[str, Sequence[Edm]]) -> Rows:
    """``types`` of the properties, for a row whose property is another than when it was drawn."""
    rows: dict[str, Rows] = {ROOT: Rows(*_joined(sent, ROOT))}
    for place in sent.getlist("row")[:MOST]:
        above = rows.get(place.rpartition("-")[0])
        if above is None:
            continue
        if f"{place}:connective" in sent:
            rows[place] = Rows(*_joined(sent, place))
            above.items.append(rows[place])
        else:
            above.items.append(_read_row(sent, place, types))
    return rows[ROOT]


def _joined(sent: QueryDict, place: str) -> tuple[Connective, bool]:
    connective = sent.get(f"{place}:connective", "")
    return Connective.OR if connective == Connective.OR else Connective.AND, f"{place}:negated" in sent


def _read_row(sent: QueryDict, place: str, types: Mapping[str, Sequence[Edm]]) -> Row:
    name = sent.get(f"{place}:property", "").strip()
    type_ = _one_of(Edm, sent.get(f"{place}:type", ""), Edm.STRING)
    if name != sent.get(f"{place}:was", name) and types.get(name):
        type_ = types[name][0]
    operator = _one_of(RowOperator, sent.get(f"{place}:operator", ""), RowOperator.EQ)
    row = Row(name, operator, type_, sent.getlist(f"{place}:value")[:MOST], f"{place}:negated" in sent)
    return fitted(row, sent.get(f"{place}:unit", ""))


def _one_of(kind: type[Choice], text: str, otherwise: Choice) -> Choice:
    return kind(text) if text in list(kind) else otherwise


def fitted(row: Row, unit: str = "") -> Row:
    """With an operator that its type has, and as many texts as that takes."""
    operator = row.operator if row.operator in operators_for(row.type) else RowOperator.EQ
    texts = [text for text in row.texts if len(text) <= LONGEST]
    if operator in WITHOUT_VALUES:
        texts = []
    elif operator is RowOperator.IN_THE_LAST:
        texts = [(texts or [""])[0] + unit if unit in RELATIVE_UNITS else A_DAY]
    elif operator is RowOperator.BETWEEN:
        texts = [*texts, "", ""][:2]
    elif operator is not RowOperator.ONE_OF or not texts:
        texts = (texts or [""])[:1]
    if row.type is Edm.BOOLEAN:
        texts = [text if text in ("true", "false") else "true" for text in texts]
    return replace(row, operator=operator, texts=texts)


# to a filter


def finished(rows: Rows, now: datetime) -> RowGroup:
    """What is said so far; marks the texts that are no values, and leaves their rows out."""
    items: list[RowGroup | FilterRow] = []
    for item in rows.items:
        if isinstance(item, Rows):
            group = finished(item, now)
            items += [group] if group.items else []
        else:
            clause = _clause(item, now)
            items += [clause] if clause is not None else []
    return RowGroup(rows.connective, tuple(items), rows.negated)


def _clause(row: Row, now: datetime) -> FilterRow | None:
    row.faults = {}
    values = []
    for at, text in enumerate(row.texts):
        try:
            values.append(_value(row, text, now))
        except InvalidText as fault:
            row.faults[at] = fault
    if not row.property.isidentifier() or row.faults:
        return None
    type_ = None if row.operator in WITHOUT_VALUES else row.type
    return FilterRow(row.property, row.operator, type_, tuple(values), row.negated)


def _value(row: Row, text: str, now: datetime) -> EdmValue:
    if row.type is Edm.DATETIME:
        return EdmValue(Edm.DATETIME, _time(row.operator, text, now))
    if row.type is Edm.INT32:
        # digits alone compare with numbers of any size
        value = typed_text.read(Edm.INT64, text, now)
        return EdmValue(Edm.INT32, value.value)
    return typed_text.read(row.type, text, now)


def _time(operator: RowOperator, text: str, now: datetime) -> int:
    if operator is RowOperator.IN_THE_LAST:
        amount, unit = text[:-1], text[-1:]
        if not amount.isdecimal() or unit not in RELATIVE_UNITS or not 0 < int(amount) < 10_000:
            raise InvalidText(TextFault.NOT_WHOLE)
        return RelativeTime.at(now, -int(amount), unit)
    moment = read_relative(text, now)
    return moment if moment is not None else cast("int", typed_text.read(Edm.DATETIME, text, now).value)


# changes


def change(rows: Rows, wanted: str) -> str:
    """Does what a button says, as ``add:r-0`` or ``drop:r-1:2``; the place where the focus goes."""
    what, _, where = wanted.partition(":")
    place, _, number = where.partition(":")
    found = dict(_walk(rows, ROOT))
    item = found.get(place)
    match what, item:
        case "add", Rows():
            item.items.append(Row())
            return f"{place}-{len(item.items) - 1}:property"
        case "group", Rows():
            item.items.append(Rows(Connective.OR, items=[Row()]))
            return f"{place}-{len(item.items) - 1}-0:property"
        case "value", Row():
            item.texts.append("")
            return f"{place}:value:{len(item.texts) - 1}"
        case "drop", Row() if number.isdecimal() and int(number) < len(item.texts) > 1:
            del item.texts[int(number)]
            return f"{place}:value:{max(0, int(number) - 1)}"
        case "remove", Row() | Rows() if place != ROOT:
            return _remove(found, place)
    return ""


def _remove(found: Mapping[str, Item], place: str) -> str:
    above, _, at = place.rpartition("-")
    group = cast("Rows", found[above])
    del group.items[int(at)]
    if not group.items:
        return f"{above}:add"
    return f"{above}-{min(int(at), len(group.items) - 1)}:remove"


def _walk(item: Item, place: str) -> Iterator[tuple[str, Item]]:
    yield place, item
    if isinstance(item, Rows):
        for at, inner in enumerate(item.items):
            yield from _walk(inner, f"{place}-{at}")
