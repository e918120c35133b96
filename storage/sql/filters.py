"""Compiler from filters to SQL conditions on the columns pk, rk, ts and props."""

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias, assert_never

from storage.domain.filters.ast import (
    And,
    Comparison,
    Constant,
    Filter,
    IsSet,
    Match,
    MatchKind,
    Not,
    Operator,
    Or,
    fold,
)
from storage.domain.filters.keys import to_storable
from storage.domain.filters.query import SORTED_TEXT_LENGTH
from storage.domain.values.edm import Edm, EdmValue, quote
from storage.domain.values.encoding import escape, project

SYSTEM_COLUMNS: Final = {"PartitionKey": "pk", "RowKey": "rk", "Timestamp": "ts"}
OPERATORS: Final = {
    Operator.EQ: "=",
    Operator.NE: "<>",
    Operator.GT: ">",
    Operator.GE: ">=",
    Operator.LT: "<",
    Operator.LE: "<=",
}
HASHED_FROM: Final = 9  # array members; PostgreSQL compares fewer one by one
NOT_A_NUMBER: Final = EdmValue(Edm.DOUBLE, math.nan)


@dataclass(frozen=True, slots=True)
class Condition:
    """SQL condition that can be joined by AND; ``parameters`` are the values of its ``$n``."""

    text: str
    parameters: tuple[str, ...]


class _Span(NamedTuple):
    """Range of one kind of values in an expression's order, from ``lower`` (inclusive) to ``upper`` (exclusive)."""

    expression: str
    cast: str
    lower: str
    upper: str
    others: str = ""
    length: float = math.inf


# jsonb sorts numbers above all strings and below booleans; strings it sorts by the collation of the database
_NUMBERS: Final = _Span("(props->{name})", "jsonb", "'-1e400'::jsonb", "'false'::jsonb")
_TEXT: Final = '((props->>{name}) COLLATE "C")'
_SPANS: Final = {
    Edm.INT32: _NUMBERS,
    Edm.INT64: _NUMBERS,
    Edm.DOUBLE: _NUMBERS,
    Edm.STRING: _Span(_TEXT, "text", "'s'", "'t'"),
    Edm.DATETIME: _Span(_TEXT, "text", "'t'", "'t:'"),  # below 'true', a boolean's text
    Edm.GUID: _Span(_TEXT, "text", "'g'", "'h'"),
    Edm.BINARY: _Span(_TEXT, "text", "'b'", "'c'"),
}
# The same over the columns of the index of a property: the number, and the beginning of the text of anything else,
# because an index entry holds at most 2,704 bytes.
INDEXED_NUMBER: Final = "(CASE WHEN jsonb_typeof(props->{name}) = 'number' THEN (props->{name})::numeric END)"
INDEXED_TEXT: Final = f"""(CASE WHEN jsonb_typeof(props->{{name}}) <> 'number'
    THEN left(props->>{{name}}, {SORTED_TEXT_LENGTH}) END COLLATE "C")"""
# an index on ts itself could be chosen for a change on condition of an ETag, which must use the primary key
INDEXED_TIME: Final = "(ts + 0)"
_INDEXED_NUMBERS: Final = _Span(INDEXED_NUMBER, "numeric", "'-1e401'", "'1e401'")
_INDEXED_SPANS: Final = {
    type_: _INDEXED_NUMBERS
    if span is _NUMBERS
    else span._replace(expression=INDEXED_TEXT, others=f"{INDEXED_NUMBER} IS NULL", length=SORTED_TEXT_LENGTH)
    for type_, span in _SPANS.items()
}
_INCLUSIVE: Final = {Operator.GT: Operator.GE, Operator.LT: Operator.LE}

_TEXT_MATCHES: Final = {
    MatchKind.CONTAINS: "strpos({text}, {part}) > 0",
    MatchKind.ENDS_WITH: "right({text}, length({part})) = {part}",
}
_PAIRS: Final = "[\x01\ue000]"  # the first characters of pairs made by encoding.escape


class _Equality(NamedTuple):
    """Unbound equality of a key column or property, so that alternatives can be combined."""

    subject: str
    value: str
    is_key: bool = False


class _Bound(NamedTuple):
    """Unbound bound of a property, so that both ends of a range can be combined."""

    span: _Span
    name: str
    operator: Operator
    value: str
    is_int64: bool

    @property
    def is_lower(self) -> bool:
        return self.operator in (Operator.GT, Operator.GE)


class _Difference(NamedTuple):
    """Unbound ``ne`` of a property with values of one kind, so that several can be combined."""

    span: _Span
    name: str
    value: str
    or_nan: bool = False
    is_int64: bool = False


_Part: TypeAlias = str | _Equality | _Bound | _Difference


def compile(root: Filter, start: int, indexed: Collection[str] = ()) -> Condition:
    """Compile a filter; placeholders start at ``$start``, and ``indexed`` properties have an index."""
    compiler = _Compiler(start, indexed)
    text = compiler.text(fold(root, compiler.visit))
    return Condition(text, tuple(value for value, _ in compiler.numbers))


class _Compiler:
    def __init__(self, start: int, indexed: Collection[str]) -> None:
        self.start = start
        self.indexed = indexed
        self.numbers: dict[tuple[str, str], int] = {}

    def bind(self, value: str, cast: str) -> str:
        number = self.numbers.setdefault((value, cast), self.start + len(self.numbers))
        return f"${number}::{cast}"

    def text(self, part: _Part) -> str:
        if isinstance(part, str):
            return part
        if isinstance(part, _Bound):
            return self._range([part])
        if isinstance(part, _Difference):
            return self._differs([part])
        if part.is_key:
            return f"{part.subject} = {self.bind(part.value, 'text')}"
        return self._contains({part.subject: part.value})

    def visit(self, node: Filter, operands: list[_Part]) -> _Part:
        match node:
            case Comparison():
                return self._compare(node)
            case Match():
                return self._match(node)
            case IsSet(name):
                return "TRUE" if name in SYSTEM_COLUMNS else f"props ? {self._name(name)}"
            case Constant(value):
                return _constant(value)
            case Not():
                return f"({self.text(operands[0])}) IS NOT TRUE"
            case And():
                return self._all(operands)
            case Or():
                return self._either(operands)
            case _:
                assert_never(node)

    def _all(self, operands: Iterable[_Part]) -> str:
        """Combine equalities of properties into one document, and the bounds or differences of a property.

        So the index is searched once, and a scan extracts fewer values from documents.
        """
        texts: list[str] = []
        differences: dict[_Difference, list[_Difference]] = {}
        documents: list[dict[str, str]] = []  # a name once in each
        ranges: dict[tuple[_Span, str, bool], list[_Bound]] = {}
        for operand in operands:
            if isinstance(operand, _Bound):
                ranges.setdefault((operand.span, operand.name, operand.is_int64), []).append(operand)
            elif isinstance(operand, _Difference):
                differences.setdefault(operand._replace(value=""), []).append(operand)
            elif isinstance(operand, _Equality) and not operand.is_key:
                if not documents or operand.subject in documents[-1]:
                    documents.append({})
                documents[-1][operand.subject] = operand.value
            else:
                texts.append(self.text(operand))
        texts.extend(map(self._contains, documents))
        texts.extend(map(self._range, ranges.values()))
        texts.extend(map(self._differs, differences.values()))
        return "(" + " AND ".join(texts) + ")"

    def _contains(self, values: Mapping[str, str]) -> str:
        return f"props @> {self.bind(_document(values), 'jsonb')}"

    def _range(self, bounds: Sequence[_Bound]) -> str:
        """Return SQL for the bounds of one property; a missing end becomes that of the value's type."""
        span, name, *_, is_int64 = bounds[0]
        expression = span.expression.format(name=self._name(name))
        limits = [f"{expression} {OPERATORS[it.operator]} {self.bind(it.value, span.cast)}" for it in bounds]
        ends = {bound.is_lower for bound in bounds}
        if True not in ends:
            limits.append(f"{expression} >= {span.lower}")
        if False not in ends:
            limits.append(f"{expression} < {span.upper}")
        if span.others:
            limits.append(span.others.format(name=self._name(name)))
        if is_int64:
            limits.append(self._is_int64(name))
        return "(" + " AND ".join(limits) + ")"

    def _differs(self, differences: Sequence[_Difference]) -> str:
        """Return SQL for a value of one kind that equals none of several.

        As nearly everything differs from a value, a page is found soonest in the order of keys. The planner, which
        multiplies its guesses for a range of values, would expect hardly any row, and read and sort all of them; of
        a CASE it expects half of them.
        """
        first = differences[0]
        name = self._name(first.name)
        values = [it.value for it in differences]
        if len(values) == 1:
            differs = f"NOT {self._contains({first.name: values[0]})}"
        else:
            differs = f"(props->{name}) <> ALL ({self.bind(_array(values), 'jsonb[]')})"
        text = f"CASE WHEN {self._within(first.span, first.name)} THEN {differs} ELSE FALSE END"
        if first.is_int64:
            return f"({text} AND {self._is_int64(first.name)})"
        if first.or_nan:
            return f"({text} OR {self.text(_having(first.name, NOT_A_NUMBER))})"
        return f"({text})"

    def _either(self, operands: Iterable[_Part]) -> str:
        """Combine equalities of the same column or property into a single = ANY condition."""
        texts: list[str] = []
        values: dict[tuple[str, bool], list[str]] = {}
        for operand in operands:
            if not isinstance(operand, _Equality):
                texts.append(self.text(operand))
            else:
                values.setdefault((operand.subject, operand.is_key), []).append(operand.value)
        for (subject, is_key), among in values.items():
            if len(among) == 1:
                texts.append(self.text(_Equality(subject, among[0], is_key)))
            elif is_key:
                texts.append(f"{subject} = ANY ({self.bind(_array(among), 'text[]')})")
            else:
                texts.append(self._has_any(subject, among))
        return "(" + " OR ".join(texts) + ")"

    def _has_any(self, name: str, values: list[str]) -> str:
        documents = _array(_document({name: value}) for value in values)
        contained = f"props @> ANY ({self.bind(documents, 'jsonb[]')})"
        if len(values) < HASHED_FROM:
            return contained
        # redundant, but a scan, chosen for many values, then looks values up by hash instead of one by one
        equal = f"(props->{self._name(name)}) = ANY ({self.bind(_array(values), 'jsonb[]')})"
        return f"({contained} AND {equal})"

    def _compare(self, comparison: Comparison) -> _Part:
        match comparison.property, comparison.literal:
            case ("PartitionKey" | "RowKey") as name, EdmValue(Edm.STRING, str(key)):
                return self._compare_key(SYSTEM_COLUMNS[name], comparison.operator, key)
            case "Timestamp", EdmValue(Edm.DATETIME, int(ticks)):
                column = INDEXED_TIME if "Timestamp" in self.indexed else "ts"
                return f"{column} {OPERATORS[comparison.operator]} {self.bind(str(ticks), 'bigint')}"
            case (("PartitionKey" | "RowKey" | "Timestamp"), _):
                # the service may refuse other types here; no match, as for any property, is safe [inferred]
                return _constant(False)
            case _, EdmValue(Edm.BOOLEAN, bool(truth)):
                return self._compare_boolean(comparison, truth)
            case _, EdmValue(Edm.INT32 | Edm.DOUBLE):
                return self._compare_number(comparison)
            case _, EdmValue(Edm.INT64):
                return self._compare_int64(comparison)
            case _:
                return self._compare_in_span(comparison)

    def _compare_key(self, column: str, operator: Operator, key: str) -> _Part:
        storable = to_storable(operator, key)
        if isinstance(storable, bool):
            return _constant(storable)
        if operator is Operator.EQ:
            return _Equality(column, key, is_key=True)
        operator, key = storable
        return f'{column} {OPERATORS[operator]} {self.bind(key, "text")} COLLATE "C"'

    def _match(self, match: Match) -> _Part:
        column = SYSTEM_COLUMNS.get(match.property)
        if column is None:
            return self._match_property(match)
        if column == "ts" or isinstance(to_storable(Operator.EQ, match.text), bool):
            return _constant(False)
        return _TEXT_MATCHES[match.kind].format(text=column, part=self.bind(match.text, "text"))

    def _match_property(self, match: Match) -> _Part:
        """Match text; escaped pairs, which could overlap, need an additional pattern."""
        text = f"(props->>{self._name(match.property)})"
        part = escape(match.text)
        plain = _TEXT_MATCHES[match.kind].format(text=f"substr({text}, 2)", part=self.bind(part, "text"))
        pattern = self.bind(_whole_characters(part, match.kind), "text")
        return (
            f"(starts_with({text}, 's') AND {plain}"
            f" AND ({text} !~ {self.bind(_PAIRS, 'text')} OR {text} ~ {pattern}))"
        )

    def _compare_boolean(self, comparison: Comparison, truth: bool) -> _Part:
        matching = [value for value in (False, True) if comparison.operator.holds(value, truth)]
        if not matching:
            return _constant(False)
        having = [_having(comparison.property, EdmValue(Edm.BOOLEAN, value)) for value in matching]
        return having[0] if len(having) == 1 else self._either(having)

    def _compare_number(self, comparison: Comparison) -> _Part:
        """Compare numbers; NaN, projected as a string, is unequal to everything."""
        literal = comparison.literal.value
        against_nan = isinstance(literal, float) and math.isnan(literal)
        if comparison.operator is Operator.NE and against_nan:
            is_nan = self.text(_having(comparison.property, NOT_A_NUMBER))
            return f"({self._within(self._span(comparison), comparison.property)} OR {is_nan})"
        if against_nan:
            return _constant(False)
        part = self._compare_in_span(comparison)
        return part._replace(or_nan=True) if isinstance(part, _Difference) else part

    def _compare_int64(self, comparison: Comparison) -> _Part:
        part = self._compare_in_span(comparison)
        if isinstance(part, _Bound | _Difference):
            return part._replace(is_int64=True)
        return f"({self.text(part)} AND {self._is_int64(comparison.property)})"

    def _is_int64(self, name: str) -> str:
        # right() and not LIKE: drivers may take a % for a placeholder
        return f"right(props->>{self._name(name)}, 3) = '.00'"

    def _compare_in_span(self, comparison: Comparison) -> _Part:
        name, operator, literal = comparison.property, comparison.operator, comparison.literal
        if operator is Operator.EQ:
            return _having(name, literal)
        span = self._span(comparison)
        projected = project(literal)
        if operator is Operator.NE:
            return _Difference(span, name, projected)
        value = str(json.loads(projected)) if span.cast == "text" else projected
        bound = _Bound(span, name, operator, value, is_int64=False)
        if len(value) < span.length:
            return bound
        # the index has only the beginning of such a text
        beginning = bound._replace(
            operator=_INCLUSIVE.get(operator, operator), value=value[:SORTED_TEXT_LENGTH]
        )
        exact = bound._replace(span=_SPANS[literal.type])
        return f"({self.text(beginning)} AND {self.text(exact)})"

    def _span(self, comparison: Comparison) -> _Span:
        spans = _INDEXED_SPANS if comparison.property in self.indexed else _SPANS
        return spans[comparison.literal.type]

    def _within(self, span: _Span, name: str) -> str:
        """Return the condition that a property's value is of a kind."""
        parameter = self._name(name)
        expression = span.expression.format(name=parameter)
        others = f" AND {span.others.format(name=parameter)}" if span.others else ""
        return f"({expression} >= {span.lower} AND {expression} < {span.upper}{others})"

    def _name(self, name: str) -> str:
        return self.bind(escape(name), "text")


def _whole_characters(escaped: str, kind: MatchKind) -> str:
    """Return a regular expression for strings with the text that does not start inside an escaped pair."""
    quoted = "".join(c if c.isalnum() or ord(c) > 127 or c == "\x01" else f"\\{c}" for c in escaped)
    end = "$" if kind is MatchKind.ENDS_WITH else ""
    return f"^s(?:[^\x01\ue000]|[\x01\ue000].)*{quoted}{end}"


def _constant(value: bool) -> str:
    return "TRUE" if value else "FALSE"


def _having(name: str, value: EdmValue) -> _Equality:
    return _Equality(name, project(value))


def _document(values: Mapping[str, str]) -> str:
    """Serialize projected values by name to a JSON object."""
    return "{" + ",".join(f"{quote(escape(name))}:{value}" for name, value in values.items()) + "}"


def _array(values: Iterable[str]) -> str:
    """Build a PostgreSQL array literal."""
    quoted = (value.replace("\\", "\\\\").replace('"', '\\"') for value in values)
    return "{" + ",".join(f'"{value}"' for value in quoted) + "}"
