"""The rows of a filter as they are drawn: each with the choices it has, in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeVar

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from console.grid.state import GridState
from console.queries import drafts as query_rows
from console.queries import values as query_values
from console.queries.drafts import ROOT, Row, Rows, Unshowable
from console.queries.reading import Reading
from console.site.typed_text import sentence
from storage.domain.filters import Filter
from storage.domain.values.edm import Edm
from storage.editing.filters.builder import (
    CONSOLE_OPERATORS,
    GROUP_DEPTH_LIMIT,
    Connective,
    NotDrawable,
    Obstacle,
    RowOperator,
    operators_for,
    to_rows,
)
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
OF_TIMES: Final[Mapping[RowOperator, Promise]] = {
    RowOperator.GT: pgettext_lazy("condition", "is after"),
    RowOperator.GE: pgettext_lazy("condition", "is on or after"),
    RowOperator.LT: pgettext_lazy("condition", "is before"),
    RowOperator.LE: pgettext_lazy("condition", "is on or before"),
}
OBSTACLES: Final[Mapping[Obstacle, Promise]] = {
    Obstacle.TOO_DEEP: gettext_lazy("Groups are nested more than three levels deep."),
    Obstacle.CONSTANT: gettext_lazy(
        "The filter contains a bare true or false, which isn't a condition on a property."
    ),
    Obstacle.DOUBLE_NEGATION: gettext_lazy("The filter contains a double negation."),
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
HINTS: Final[Mapping[Edm, str]] = {
    Edm.INT32: "42",
    Edm.INT64: "9223372036854775807",
    Edm.DOUBLE: "1200.5",
    Edm.DATETIME: "2026-11-20T14:03:07Z",
    Edm.GUID: "c9da6455-213d-42c9-9a79-3e9149a57833",
    Edm.BINARY: "0a1b",
}

Name = TypeVar("Name", bound=StrEnum | str)
Choices = Sequence[tuple[str, str, bool]]  # value, label, whether it is chosen


@dataclass(frozen=True, slots=True)
class Value:
    id: str
    text: str
    error: str


@dataclass(frozen=True, slots=True)
class Line:
    place: str
    row: Row
    types: Choices
    operators: Choices
    console_operators: Choices
    values: Sequence[Value]
    units: Choices
    hint: str

    @property
    def is_boolean(self) -> bool:
        return self.row.type is Edm.BOOLEAN

    @property
    def is_number(self) -> bool:
        return self.row.type in (Edm.INT32, Edm.INT64)

    @property
    def has_many(self) -> bool:
        return self.row.operator is RowOperator.ONE_OF

    @property
    def is_between(self) -> bool:
        return self.row.operator is RowOperator.BETWEEN

    @property
    def is_only_here(self) -> bool:
        return self.row.operator in CONSOLE_OPERATORS

    @property
    def label(self) -> str:
        """What its button to remove it is about."""
        return self.row.property or _("empty")


@dataclass(frozen=True, slots=True)
class Box:
    """A group."""

    place: str
    rows: Rows
    connectives: Choices
    items: Sequence["Line | Box"]
    depth: int

    @property
    def is_root(self) -> bool:
        return self.place == ROOT

    @property
    def may_nest(self) -> bool:
        return self.depth < GROUP_DEPTH_LIMIT


@dataclass(frozen=True, slots=True)
class Builder:
    """``focus`` is the id of what gets the focus; ``text`` what the rows mean, if they were changed."""

    box: Box | None = None
    obstacle: str = ""
    names: Sequence[str] = field(default_factory=list)  # of known properties
    focus: str = ""
    text: str | None = None


def drawn(root: Filter | None, types: Mapping[str, Sequence[Edm]]) -> Builder:
    found = to_rows(root)
    if isinstance(found, NotDrawable):
        return Builder(obstacle=str(OBSTACLES[found.reason]))
    try:
        rows = query_rows.of(found)
    except Unshowable:
        return Builder(
            obstacle=_("A value is too long for a text field, or contains line breaks or control characters.")
        )
    if not rows.items:
        rows.items.append(Row())
    return Builder(box(rows, types), names=sorted(types))


def box(rows: Rows, types: Mapping[str, Sequence[Edm]], place: str = ROOT, depth: int = 1) -> Box:
    items: list[Line | Box] = []
    for at, item in enumerate(rows.items):
        where = f"{place}-{at}"
        items.append(
            box(item, types, where, depth + 1) if isinstance(item, Rows) else line(item, types, where)
        )
    return Box(place, rows, _choices(CONNECTIVES, rows.connective), items, depth)


def line(row: Row, types: Mapping[str, Sequence[Edm]], place: str) -> Line:
    stored = tuple(types.get(row.property, ()))
    ordered = (*stored, *(type_ for type_ in Edm if type_ not in stored))
    labels = {**OPERATORS, **OF_TIMES} if row.type is Edm.DATETIME else OPERATORS
    offered = {operator: labels[operator] for operator in operators_for(row.type)}
    texts = row.texts
    unit = ""
    if row.operator is RowOperator.IN_THE_LAST:
        texts, unit = [texts[0][:-1]], texts[0][-1:]
    return Line(
        place,
        row,
        [(type_, type_.short_name, type_ is row.type) for type_ in ordered],
        _choices(
            {key: label for key, label in offered.items() if key not in CONSOLE_OPERATORS}, row.operator
        ),
        _choices({key: label for key, label in offered.items() if key in CONSOLE_OPERATORS}, row.operator),
        [
            Value(f"{place}:value:{at}", text, sentence(row.faults[at]) if at in row.faults else "")
            for at, text in enumerate(texts)
        ],
        _choices(UNITS, unit) if row.operator is RowOperator.IN_THE_LAST else [],
        HINTS.get(row.type, ""),
    )


def _choices(labels: Mapping[Name, Promise], chosen: Name) -> Choices:
    return [(str(value), str(label), value == chosen) for value, label in labels.items()]


def requested_builder(table: Table, state: GridState, reading: Reading) -> Builder | None:
    """The rows, if they are asked for; none while the text cannot be read."""
    if not state.by:
        return None
    if reading.problem:
        return Builder(obstacle=_("The filter has an error."))
    return drawn(state.wanted.filter, query_values.types_of(table))
