"""Form of the query builder: groups and conditions as typed, also incomplete ones.

Each has a place, such as ``r-0-2`` for the third condition of the first group; its fields are named by place.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Final, TypeVar, cast

from django.http import QueryDict

from storage.domain.filters.literals import RELATIVE_UNITS, RelativeTime, read_relative
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.numbers import read_number
from storage.editing import typed_text
from storage.editing.filters.builder import Connective, FilterRow, RowGroup, RowOperator, operators_for
from storage.editing.filters.diagnostics import KnownTypes
from storage.editing.input_context import InputContext
from storage.editing.typed_text import InvalidText, TextFault, TextForm

Choice = TypeVar("Choice", bound=StrEnum)

ROOT: Final = "r"
CONDITION_LIMIT: Final = 200  # conditions of a form
VALUE_LENGTH: Final = 1000  # characters that fit into a field
WITHOUT_VALUES: Final = frozenset({RowOperator.IS_SET, RowOperator.IS_NOT_SET})
A_DAY: Final = "24h"


@dataclass(slots=True)
class ConditionDraft:
    property: str = ""
    operator: RowOperator = RowOperator.EQ
    type: Edm = Edm.STRING
    texts: list[str] = field(default_factory=lambda: [""])
    negated: bool = False
    errors: dict[int, InvalidText] = field(default_factory=dict)  # by the index of the text


@dataclass(slots=True)
class GroupDraft:
    connective: Connective = Connective.AND
    negated: bool = False
    items: list["ConditionDraft | GroupDraft"] = field(default_factory=list)


Draft = ConditionDraft | GroupDraft


# from a filter


class ValueNotEditable(Exception):
    """A text field would not return the value unchanged."""


def draft_group(group: RowGroup) -> GroupDraft:
    """Convert a group of conditions to drafts; raises ValueNotEditable."""
    items = [
        draft_group(item) if isinstance(item, RowGroup) else _draft_condition(item) for item in group.items
    ]
    return GroupDraft(group.connective, group.negated, items)


def _draft_condition(row: FilterRow) -> ConditionDraft:
    texts = [_write_value(row.operator, value) for value in row.values]
    return ConditionDraft(row.property, row.operator, row.type or Edm.STRING, texts, row.negated)


def _write_value(operator: RowOperator, value: EdmValue) -> str:
    if isinstance(value.value, RelativeTime):
        moment = value.value
        return f"{-moment.amount}{moment.unit}" if operator is RowOperator.IN_THE_LAST else moment.text
    text = typed_text.write(value)
    is_lost = typed_text.field_form(value) is TextForm.ESCAPED or "\n" in text or "\t" in text
    if len(text) > VALUE_LENGTH or is_lost:
        raise ValueNotEditable
    return text


# from a form


def read_form(sent: QueryDict, types: KnownTypes) -> GroupDraft:
    """Parse the form; a condition on a changed property takes a type of that property."""
    groups = {ROOT: GroupDraft(*_read_connective(sent, ROOT))}
    for place in sent.getlist("row")[:CONDITION_LIMIT]:
        parent = groups.get(place.rpartition("-")[0])
        if parent is None:
            continue
        if f"{place}:connective" in sent:
            groups[place] = GroupDraft(*_read_connective(sent, place))
            parent.items.append(groups[place])
        else:
            parent.items.append(_read_condition(sent, place, types))
    return groups[ROOT]


def _read_connective(sent: QueryDict, place: str) -> tuple[Connective, bool]:
    return _read_choice(
        Connective, sent.get(f"{place}:connective"), Connective.AND
    ), f"{place}:negated" in sent


def _read_condition(sent: QueryDict, place: str, types: KnownTypes) -> ConditionDraft:
    name = sent.get(f"{place}:property", "").strip()
    type_ = _read_choice(Edm, sent.get(f"{place}:type"), Edm.STRING)
    if name != sent.get(f"{place}:was", name) and types.get(name):
        type_ = types[name][0]
    operator = _read_choice(RowOperator, sent.get(f"{place}:operator"), RowOperator.EQ)
    texts = sent.getlist(f"{place}:value")[:CONDITION_LIMIT]
    draft = ConditionDraft(name, operator, type_, texts, f"{place}:negated" in sent)
    return _fit_operator(draft, sent.get(f"{place}:unit", ""))


def _read_choice(kind: type[Choice], text: str | None, default: Choice) -> Choice:
    return kind(text) if text in list(kind) else default


def _fit_operator(draft: ConditionDraft, unit: str) -> ConditionDraft:
    """Replace an operator that the type lacks, and keep as many texts as the new one takes."""
    operator = draft.operator if draft.operator in operators_for(draft.type) else RowOperator.EQ
    texts = [text for text in draft.texts if len(text) <= VALUE_LENGTH]
    if operator in WITHOUT_VALUES:
        texts = []
    elif operator is RowOperator.IN_THE_LAST:
        texts = [(texts or [""])[0] + unit if unit in RELATIVE_UNITS else A_DAY]
    elif operator is RowOperator.BETWEEN:
        texts = [*texts, "", ""][:2]
    elif operator is not RowOperator.ONE_OF or not texts:
        texts = (texts or [""])[:1]
    if draft.type is Edm.BOOLEAN:
        texts = [text if text in ("true", "false") else "true" for text in texts]
    return replace(draft, operator=operator, texts=texts)


# to a filter


def finish_group(draft: GroupDraft, now: datetime) -> RowGroup:
    """Return the finished conditions, noting errors of others in the draft."""
    items: list[RowGroup | FilterRow] = []
    for item in draft.items:
        if isinstance(item, GroupDraft):
            group = finish_group(item, now)
            items += [group] if group.items else []
        else:
            row = _finish_condition(item, now)
            items += [row] if row is not None else []
    return RowGroup(draft.connective, tuple(items), draft.negated)


def _finish_condition(draft: ConditionDraft, now: datetime) -> FilterRow | None:
    draft.errors = {}
    values = []
    for index, text in enumerate(draft.texts):
        try:
            values.append(_read_value(draft, text, now))
        except InvalidText as error:
            draft.errors[index] = error
    if not draft.property.isidentifier() or draft.errors:
        return None
    type_ = None if draft.operator in WITHOUT_VALUES else draft.type
    return FilterRow(draft.property, draft.operator, type_, tuple(values), draft.negated)


def _read_value(draft: ConditionDraft, text: str, now: datetime) -> EdmValue:
    if draft.type is Edm.DATETIME:
        return EdmValue(Edm.DATETIME, _read_time(draft.operator, text, now))
    if draft.type is Edm.INT32:
        # an integer literal without a suffix compares with numbers of any size
        return EdmValue(Edm.INT32, _read_typed(Edm.INT64, text, now).value)
    return _read_typed(draft.type, text, now)


def _read_time(operator: RowOperator, text: str, now: datetime) -> int:
    if operator is RowOperator.IN_THE_LAST:
        amount, unit = text[:-1], text[-1:]
        number = read_number(amount)
        if unit not in RELATIVE_UNITS or not number or number >= 10_000:
            raise InvalidText(TextFault.NOT_WHOLE)
        return RelativeTime.at(now, -number, unit)
    moment = read_relative(text, now)
    return moment if moment is not None else cast("int", _read_typed(Edm.DATETIME, text, now).value)


def _read_typed(type_: Edm, text: str, now: datetime) -> EdmValue:
    return typed_text.read(type_, text, InputContext.of_any_account(now))


# changes


def apply_action(root: GroupDraft, action: str) -> str:
    """Apply a button such as ``add:r-0`` or ``drop:r-1:2``; return the id of the field to focus."""
    verb, _, target = action.partition(":")
    place, _, index = target.partition(":")
    drafts = dict(_walk(root, ROOT))
    match verb, drafts.get(place):
        case "add", GroupDraft() as group:
            group.items.append(ConditionDraft())
            return f"{place}-{len(group.items) - 1}:property"
        case "group", GroupDraft() as group:
            group.items.append(GroupDraft(Connective.OR, items=[ConditionDraft()]))
            return f"{place}-{len(group.items) - 1}-0:property"
        case "value", ConditionDraft() as condition:
            condition.texts.append("")
            return f"{place}:value:{len(condition.texts) - 1}"
        case "drop", ConditionDraft() as condition if (
            number := read_number(index, digits=4)
        ) is not None and number < len(condition.texts) > 1:
            del condition.texts[number]
            return f"{place}:value:{max(0, number - 1)}"
        case "remove", ConditionDraft() | GroupDraft() if place != ROOT:
            return _remove(drafts, place)
    return ""


def _remove(drafts: Mapping[str, Draft], place: str) -> str:
    parent, _, index = place.rpartition("-")
    group = cast("GroupDraft", drafts[parent])
    del group.items[int(index)]
    if not group.items:
        return f"{parent}:add"
    return f"{parent}-{min(int(index), len(group.items) - 1)}:remove"


def _walk(draft: Draft, place: str) -> Iterator[tuple[str, Draft]]:
    yield place, draft
    if isinstance(draft, GroupDraft):
        for index, item in enumerate(draft.items):
            yield from _walk(item, f"{place}-{index}")
