"""Query builder: a filter as groups and conditions, with choices and labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar

from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy, pgettext_lazy
from django.utils.translation import gettext as _

from console.grid.state import GridState
from console.queries import drafts
from console.queries.drafts import ROOT, ConditionDraft, GroupDraft, ValueNotEditable
from console.queries.reading import Reading
from console.queries.values import property_types
from console.site.typed_text import sentence
from storage.domain.values.edm import Edm
from storage.editing.filters.builder import (
    CONSOLE_OPERATORS,
    GROUP_DEPTH_LIMIT,
    Connective,
    NotDrawable,
    RowOperator,
    operators_for,
    to_rows,
)
from storage.editing.filters.diagnostics import KnownTypes
from storage.models import Table

OPERATORS: Final[Mapping[RowOperator, Promise]] = {
    RowOperator.EQ: pgettext_lazy("condition", "is"),
    RowOperator.NE: pgettext_lazy("condition", "is not"),
    RowOperator.GT: pgettext_lazy("condition", "is greater than"),
    RowOperator.GE: pgettext_lazy("condition", "is at least"),
    RowOperator.LT: pgettext_lazy("condition", "is less than"),
    RowOperator.LE: pgettext_lazy("condition", "is at most"),
    RowOperator.STARTS_WITH: pgettext_lazy("condition", "starts with"),
    RowOperator.BETWEEN: pgettext_lazy("condition", "is between"),
    RowOperator.ONE_OF: pgettext_lazy("condition", "is one of"),
    RowOperator.IN_THE_LAST: pgettext_lazy("condition", "is in the last"),
    RowOperator.CONTAINS: pgettext_lazy("condition", "contains"),
    RowOperator.ENDS_WITH: pgettext_lazy("condition", "ends with"),
    RowOperator.IS_SET: pgettext_lazy("condition", "is set"),
    RowOperator.IS_NOT_SET: pgettext_lazy("condition", "is not set"),
}
TIME_OPERATORS: Final[Mapping[RowOperator, Promise]] = {
    RowOperator.GT: pgettext_lazy("condition", "is after"),
    RowOperator.GE: pgettext_lazy("condition", "is on or after"),
    RowOperator.LT: pgettext_lazy("condition", "is before"),
    RowOperator.LE: pgettext_lazy("condition", "is on or before"),
}
UNITS: Final[Mapping[str, Promise]] = {
    "m": gettext_lazy("minutes"),
    "h": gettext_lazy("hours"),
    "d": gettext_lazy("days"),
    "w": gettext_lazy("weeks"),
}
CONNECTIVES: Final[Mapping[Connective, Promise]] = {
    Connective.AND: gettext_lazy("Match all (and)"),
    Connective.OR: gettext_lazy("Match any (or)"),
}
PLACEHOLDERS: Final[Mapping[Edm, str]] = {
    Edm.INT32: "42",
    Edm.INT64: "9223372036854775807",
    Edm.DOUBLE: "1200.5",
    Edm.DATETIME: "2026-11-20T14:03:07Z",
    Edm.GUID: "c9da6455-213d-42c9-9a79-3e9149a57833",
    Edm.BINARY: "0a1b",
}

Name = TypeVar("Name", bound=StrEnum | str)
Choices = Sequence[tuple[str, str, bool]]  # value, label, whether it is chosen
View = dict[str, Any]  # values of a group or a condition, for its template


@dataclass(frozen=True, slots=True)
class Builder:
    """Query builder state, or the obstacle that prevents it."""

    group: View | None = None
    obstacle: str = ""
    names: Sequence[str] = ()  # names of known properties
    focus: str = ""  # the id of the field to focus
    text: str | None = None  # the filter of the conditions, after they were edited


def draw_builder(table: Table, state: GridState, reading: Reading) -> Builder | None:
    """Return the query builder of a grid; None if its address does not open it."""
    if not state.by:
        return None
    if reading.problem:
        return Builder(obstacle=_("The filter has an error."))
    group = to_rows(state.wanted.filter)
    if isinstance(group, NotDrawable):
        return Builder(obstacle=gettext(group.reason.value))
    types = property_types(table)
    try:
        draft = drafts.draft_group(group)
    except ValueNotEditable:
        return Builder(
            obstacle=_("A value is too long for a text field, or contains line breaks or control characters.")
        )
    if not draft.items:
        draft.items.append(ConditionDraft())
    return Builder(view_group(draft, types), names=sorted(types))


def view_group(draft: GroupDraft, types: KnownTypes, place: str = ROOT, depth: int = 1) -> View:
    items = [
        view_group(item, types, f"{place}-{index}", depth + 1)
        if isinstance(item, GroupDraft)
        else _view_condition(item, types, f"{place}-{index}")
        for index, item in enumerate(draft.items)
    ]
    return {
        "place": place,
        "draft": draft,
        "connectives": _choices(CONNECTIVES, draft.connective),
        "items": items,
        "is_root": place == ROOT,
        "may_nest": depth < GROUP_DEPTH_LIMIT,
    }


def _view_condition(draft: ConditionDraft, types: KnownTypes, place: str) -> View:
    stored = tuple(types.get(draft.property, ()))
    ordered = (*stored, *(type_ for type_ in Edm if type_ not in stored))
    labels = {**OPERATORS, **TIME_OPERATORS} if draft.type is Edm.DATETIME else OPERATORS
    offered = {operator: labels[operator] for operator in operators_for(draft.type)}
    texts = draft.texts
    unit = ""
    if draft.operator is RowOperator.IN_THE_LAST:
        texts, unit = [texts[0][:-1]], texts[0][-1:]
    errors = {index: sentence(error) for index, error in draft.errors.items()}
    choices = _choices(offered, draft.operator)
    return {
        "place": place,
        "draft": draft,
        "label": draft.property or _("empty"),
        "types": [(type_, type_.short_name, type_ is draft.type) for type_ in ordered],
        "operators": [choice for choice in choices if choice[0] not in CONSOLE_OPERATORS],
        "console_operators": [choice for choice in choices if choice[0] in CONSOLE_OPERATORS],
        "values": [
            {"id": f"{place}:value:{index}", "text": text, "error": errors.get(index, "")}
            for index, text in enumerate(texts)
        ],
        "units": _choices(UNITS, unit) if draft.operator is RowOperator.IN_THE_LAST else [],
        "placeholder": PLACEHOLDERS.get(draft.type, ""),
        "is_boolean": draft.type is Edm.BOOLEAN,
        "is_number": draft.type in (Edm.INT32, Edm.INT64),
        "has_many": draft.operator is RowOperator.ONE_OF,
        "is_between": draft.operator is RowOperator.BETWEEN,
        "is_console_only": draft.operator in CONSOLE_OPERATORS,
    }


def _choices(labels: Mapping[Name, Promise], chosen: Name) -> Choices:
    return [(str(value), str(label), value == chosen) for value, label in labels.items()]
