"""Why a query finds nothing: the condition to blame, and filters that find something."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from storage.domain.filters.ast import Comparison, Filter, Operator, all_of, conjuncts
from storage.domain.filters.literals import write_literal
from storage.domain.filters.query import EntityQuery, Sort
from storage.domain.filters.writer import write
from storage.domain.refusals import Reason, Refusal
from storage.domain.values.edm import Edm, EdmValue
from storage.editing.filters.diagnosis import diagnose, parse_filter
from storage.editing.filters.diagnostics import apply_all
from storage.editing.filters.lint import SYSTEM_TYPES
from storage.entities import properties
from storage.entities.time_budget import TimeBudget
from storage.models import Table
from storage.sql import estimates, previews
from storage.sql.relations import relation_of
from storage.sql.spellings import spellings
from storage.tables.indexes import using

LIMIT: Final = timedelta(milliseconds=1_500)  # for all statements together
COUNTED: Final = 1_000  # entities of a proposed filter; more are not counted
_CONDITIONS: Final = 8  # of a filter, which are tried one by one
_NUMBERS: Final = frozenset({Edm.INT32, Edm.INT64, Edm.DOUBLE})
_LOWEST: Final = {
    **dict.fromkeys(_NUMBERS, EdmValue(Edm.DOUBLE, float("-inf"))),
    Edm.DATETIME: EdmValue(Edm.DATETIME, 0),
}
# bounds that may explain an operator: whether each is the upper one
_BOUNDS: Final = {
    Operator.EQ: (True, False),
    **dict.fromkeys((Operator.GT, Operator.GE), (True,)),
    **dict.fromkeys((Operator.LT, Operator.LE), (False,)),
}
_INCLUSIVE: Final = {Operator.GT: Operator.GE, Operator.LT: Operator.LE}


@dataclass(frozen=True, slots=True)
class EmptyReason:
    """Reason why nothing was found, with a filter that finds something, or the condition that it leaves out."""

    refusal: Refusal
    repaired: str = ""
    removed: str = ""
    entities: int | None = None  # that the filter finds; more than COUNTED are COUNTED + 1


def explain_empty(table: Table, text: str, now: datetime) -> list[EmptyReason]:
    """Explain why a valid filter matches no entity; empty if there is no explanation in time."""
    root = parse_filter(text, now)
    if root is None:
        return []
    diagnostics = diagnose(text, properties.sample(table).schema, now)
    wrong = [it for it in diagnostics if it.refusal.reason is not Reason.FILTER_INT64_SUFFIX]
    if not wrong:
        return list(_Searcher(table, conjuncts(root)).explain())
    by_name = {it.refusal.facts["name"]: it.refusal for it in wrong}
    fixed = apply_all(text, [it.fixes[0] for it in wrong if it.fixes])
    *others, last = by_name.values()
    return [*map(EmptyReason, others), EmptyReason(last, "" if fixed == text else fixed)]


def _is_beyond(literal: EdmValue, bound: EdmValue, *, is_upper: bool) -> bool:
    """Return whether no value is beyond a literal; an equal bound is beyond none."""
    return (Operator.GE if is_upper else Operator.LE).holds(literal.value, bound.value)


@dataclass
class _Searcher:
    """Search for the condition to blame, within the time limit."""

    table: Table
    conditions: Sequence[Filter]
    budget: TimeBudget = field(default_factory=lambda: TimeBudget(LIMIT))

    def explain(self) -> Iterator[EmptyReason]:
        conditions = self.conditions
        if len(conditions) == 1:
            yield self._explain_condition(0)
            return
        tried = range(min(len(conditions), _CONDITIONS))
        blamed = [at for at in tried if self._count(conditions[at], 1) == 0]
        for at in blamed:
            yield self._explain_condition(at)
        if blamed:
            return
        for at in tried:
            rest = all_of(self._others(at))
            if number := self._count(rest, COUNTED + 1):
                yield EmptyReason(Reason.EMPTY_TOGETHER.of(), write(rest), write(conditions[at]), number)

    def _others(self, at: int) -> list[Filter]:
        return [*self.conditions[:at], *self.conditions[at + 1 :]]

    def _explain_condition(self, at: int) -> EmptyReason:
        """Explain a condition that no entity meets, alone or beside others."""
        condition = self.conditions[at]
        refusal, better = self._look_closer(condition)
        if better is not None:
            filter_ = all_of([*self.conditions[:at], better, *self.conditions[at + 1 :]])
            if number := self._count(filter_, COUNTED + 1):
                return EmptyReason(refusal, write(filter_), "", number)
        rest = self._others(at)
        if not rest:
            return EmptyReason(refusal)
        number = self._count(all_of(rest), COUNTED + 1)
        if number == 0:
            return EmptyReason(refusal)
        return EmptyReason(refusal, write(all_of(rest)), write(condition), number)

    def _look_closer(self, condition: Filter) -> tuple[Refusal, Filter | None]:
        """Return why a condition is never met, and the nearest one that is."""
        if not isinstance(condition, Comparison):
            return Reason.EMPTY_CONDITION.of(condition=write(condition)), None
        name, literal = condition.property, condition.literal
        if condition.operator is Operator.EQ and literal.type is Edm.STRING:
            statement = spellings(relation_of(self.table), name, str(literal.value), limit=COUNTED)
            for text in self.budget.run(statement) or ():
                better = EdmValue(Edm.STRING, text)
                shown, instead = write_literal(literal), write_literal(better)
                refusal = Reason.EMPTY_CASE.of(name=name, value=shown, instead=instead)
                return refusal, replace(condition, literal=better)
        if literal.type in _LOWEST and name not in SYSTEM_TYPES:
            for is_upper in _BOUNDS.get(condition.operator, ()):
                bound = self._bound(name, literal.type, is_upper=is_upper)
                if bound is None or not _is_beyond(literal, bound, is_upper=is_upper):
                    continue
                nearest = _INCLUSIVE.get(condition.operator, condition.operator)
                limit, at_bound = write_literal(bound), Comparison(name, nearest, bound)
                if is_upper:
                    return Reason.EMPTY_MOST.of(name=name, value=limit), at_bound
                return Reason.EMPTY_LEAST.of(name=name, value=limit), at_bound
        if condition.operator is Operator.EQ:
            return Reason.EMPTY_VALUE.of(name=name, value=write_literal(literal)), None
        return Reason.EMPTY_CONDITION.of(condition=write(condition)), None

    def _bound(self, name: str, type_: Edm, *, is_upper: bool) -> EdmValue | None:
        """Return the greatest or least value of a property, of the kind of a type."""
        kind = Comparison(name, Operator.GE, _LOWEST[type_])
        query = EntityQuery(filter=kind, select=(name,), top=1)
        statement = previews.sorted_page(
            relation_of(self.table), using(self.table, query), Sort(name, descending=is_upper), None
        )
        page = self.budget.run(statement)
        return page.entities[0].properties.get(name) if page and page.entities else None

    def _count(self, root: Filter, limit: int) -> int | None:
        query = using(self.table, EntityQuery(filter=root))
        return self.budget.run(estimates.matching(relation_of(self.table), query, limit=limit))
