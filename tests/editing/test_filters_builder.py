"""Rows and the text they are written as: each the other's inverse."""

import math
import uuid
from datetime import UTC, datetime
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.domain.filters.ast import And, Comparison, IsSet, Match, MatchKind, Not, Operator, Or
from storage.domain.filters.literals import RELATIVE_UNITS, RelativeTime
from storage.domain.filters.parser import parse
from storage.domain.filters.writer import write
from storage.domain.values import dialects
from storage.domain.values.edm import Edm, EdmValue
from storage.editing.filters.builder import (
    GROUP_DEPTH_LIMIT,
    NO_CONDITIONS,
    Connective,
    FilterRow,
    NotDrawable,
    Obstacle,
    RowGroup,
    RowOperator,
    operators_for,
    prefix_end,
    to_filter,
    to_rows,
    to_text,
)
from tests import strategies
from tests.examples import of_usual

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)
AND, OR = Connective.AND, Connective.OR
EQ, GE, LE = RowOperator.EQ, RowOperator.GE, RowOperator.LE


def text(value):
    return EdmValue(Edm.STRING, value)


def int32(value):
    return EdmValue(Edm.INT32, value)


def clause(name, operator, *values, negated=False):
    return FilterRow(name, operator, values[0].type if values else None, values, negated)


def ago(amount, unit):
    return EdmValue(Edm.DATETIME, RelativeTime.at(NOW, -amount, unit))


def read(written):
    return parse(written, dialects.CONSOLE, NOW)


A, B, C = (clause(name, EQ, int32(number)) for number, name in enumerate("ABC", 1))


def group(*items, negated=False):
    return RowGroup(AND, items, negated)


def any_of(*items, negated=False):
    return RowGroup(OR, items, negated)


def prefix(name, value, *, negated=False):
    return clause(name, RowOperator.STARTS_WITH, text(value), negated=negated)


ONE_OF = clause("A", RowOperator.ONE_OF, int32(1), int32(2))
DRAWN = [
    ("", NO_CONDITIONS),
    ("A eq 1", group(A)),
    ("A eq 1 and B eq 2", group(A, B)),
    ("A eq 1 or B eq 2 and C eq 3", any_of(A, group(B, C))),
    ("(A eq 1 or B eq 2) and C eq 3", group(any_of(A, B), C)),
    ("A eq 1 and (B eq 2 and C eq 3)", group(A, group(B, C))),
    ("not (A eq 1)", group(clause("A", EQ, int32(1), negated=True))),
    ("not (A eq 1 or B eq 2)", group(any_of(A, B, negated=True))),
    ("B eq 2 and A ge 'abc' and A lt 'abd' and C eq 3", group(B, prefix("A", "abc"), C)),
    ("B eq 2 or A ge 'x' and A lt 'y'", any_of(B, prefix("A", "x"))),
    ("not (A ge 'x' and A lt 'y')", group(prefix("A", "x", negated=True))),
    ("B eq 2 and (A ge 'x' and A lt 'y')", group(B, group(prefix("A", "x")))),
    ("A ge 'x' and A lt 'z'", group(clause("A", GE, text("x")), clause("A", RowOperator.LT, text("z")))),
    ("A ge 1 and A le 5", group(clause("A", RowOperator.BETWEEN, int32(1), int32(5)))),
    ("A ge 1 and A le 5L", group(clause("A", GE, int32(1)), clause("A", LE, EdmValue(Edm.INT64, 5)))),
    ("A ge 1 and B le 5", group(clause("A", GE, int32(1)), clause("B", LE, int32(5)))),
    ("A le 5 and A ge 1", group(clause("A", LE, int32(5)), clause("A", GE, int32(1)))),
    ("A eq 1 or A eq 2", group(ONE_OF)),
    ("B eq 2 and (A eq 'x' or A eq 'y')", group(B, clause("A", RowOperator.ONE_OF, text("x"), text("y")))),
    ("not (A eq 1 or A eq 2)", group(clause("A", RowOperator.ONE_OF, int32(1), int32(2), negated=True))),
    ("A eq 1 or A eq 2L", any_of(A, clause("A", EQ, EdmValue(Edm.INT64, 2)))),
    ("A eq 1 or A eq 2 or B eq 2", any_of(A, clause("A", EQ, int32(2)), B)),
    ("B eq 2 or (A eq 1 or A eq 2)", any_of(B, ONE_OF)),
    ("not (endswith(A,'x'))", group(clause("A", RowOperator.ENDS_WITH, text("x"), negated=True))),
    (
        "isset(A) and not (isset(B))",
        group(clause("A", RowOperator.IS_SET), clause("B", RowOperator.IS_NOT_SET)),
    ),
    ("T ge datetime'{{now-24h}}'", group(clause("T", RowOperator.IN_THE_LAST, ago(24, "h")))),
    (
        "T gt datetime'{{now-24h}}' and T lt datetime'{{now}}'",
        group(clause("T", RowOperator.GT, ago(24, "h")), clause("T", RowOperator.LT, ago(0, "m"))),
    ),
    (
        "T ge datetime'{{now-2d}}' and T le datetime'{{now-1d}}'",
        group(clause("T", RowOperator.BETWEEN, ago(2, "d"), ago(1, "d"))),
    ),
    ("Flag eq true", group(clause("Flag", EQ, EdmValue(Edm.BOOLEAN, True)))),
    ("A eq 4294967296", group(clause("A", EQ, int32(2**32)))),
]


@pytest.mark.parametrize(("written", "rows"), DRAWN, ids=[written for written, _ in DRAWN])
def test_draws_and_compiles(written, rows):
    assert to_rows(read(written)) == rows
    assert to_text(rows) == written


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("A eq 1 and (B eq 2 or false)", Obstacle.CONSTANT),
        ("not not A eq 1", Obstacle.DOUBLE_NEGATION),
        ("not (A and (B or (C and B)))", Obstacle.TOO_DEEP),
    ],
)
def test_undrawable_filters_give_a_reason(written, reason):
    assert to_rows(read(written)) == NotDrawable(reason)
    assert to_rows(read("A and (B or (C and A))")).depth == GROUP_DEPTH_LIMIT


@pytest.mark.parametrize(
    ("rows", "written"),
    [
        (group(A, any_of()), "A eq 1"),
        (any_of(group(A)), "A eq 1"),
        (group(clause("A", RowOperator.ONE_OF, text("x"))), "A eq 'x'"),
        (group(prefix("A", ""), B), "A ge '' and B eq 2"),
        (group(A, B, negated=True), "not (A eq 1 and B eq 2)"),
        (group(clause("A", RowOperator.IS_NOT_SET, negated=True)), "not (not (isset(A)))"),
        (group(group(negated=True)), ""),
    ],
)
def test_compiles_rows_that_say_less_than_they_could(rows, written):
    assert to_text(rows) == written


@pytest.mark.parametrize(
    "unfit",
    [
        clause("A", RowOperator.BETWEEN, int32(1)),
        clause("A", EQ),
        clause("A", RowOperator.ONE_OF),
        clause("A", RowOperator.CONTAINS, int32(1)),
        clause("A", RowOperator.IS_SET, int32(1)),
    ],
)
def test_a_clause_without_its_values_is_refused(unfit):
    with pytest.raises(ValueError, match="does not take"):
        to_text(RowGroup(AND, (unfit,)))


@pytest.mark.parametrize("type_", Edm)
def test_every_type_has_operators_of_its_own(type_):
    operators = operators_for(type_)

    assert operators[0] is EQ
    assert (RowOperator.CONTAINS in operators) is (type_ is Edm.STRING)
    assert (RowOperator.IN_THE_LAST in operators) is (type_ is Edm.DATETIME)
    assert len(set(operators)) == len(operators)


# laws

NAMES = ["PartitionKey", "RowKey", "Timestamp", "A", "Größe", "and", "contains"]
VALUES = {
    Edm.STRING: ["", "a", "b", "o'reilly", "''", "\x00", "\ud800", "😀", "a\uffff", "{{x}}", "{{now}}", "5"],
    Edm.BOOLEAN: [True, False],
    Edm.INT32: [0, -1, 5, 2**31 - 1, 2**31, -(2**63)],
    Edm.INT64: [0, -1, 5, 2**63 - 1],
    Edm.DOUBLE: [0.0, -0.0, 5.0, 1e300, 5e-324, math.inf, -math.inf, math.nan],
    Edm.DATETIME: [0, 1, -1, 10_000_000, strategies.FIRST_TICK, strategies.LAST_TICK],
    Edm.GUID: [str(uuid.UUID(int=number)) for number in range(3)],
    Edm.BINARY: [b"", b"\x00", b"'"],
}
relative = st.builds(ago, st.integers(1, 9999), st.sampled_from(sorted(RELATIVE_UNITS)))
values_of = {
    type_: st.sampled_from(values).map(partial(EdmValue, type_)) for type_, values in VALUES.items()
} | {Edm.DATETIME: st.sampled_from(VALUES[Edm.DATETIME]).map(partial(EdmValue, Edm.DATETIME)) | relative}
COUNTS = {RowOperator.BETWEEN: 2, RowOperator.ONE_OF: 3, RowOperator.IS_SET: 0, RowOperator.IS_NOT_SET: 0}
kinds = st.sampled_from([(type_, operator) for type_ in Edm for operator in operators_for(type_)])


@st.composite
def clauses(draw_from, name):
    type_, operator = draw_from(kinds)
    values = tuple(draw_from(values_of[type_]) for _ in range(COUNTS.get(operator, 1)))
    if operator is RowOperator.STARTS_WITH and not values[0].value:
        operator = EQ  # an empty prefix matches any text and has no upper bound
    if operator is RowOperator.IN_THE_LAST:
        values = (draw_from(relative),)
    elif operator is GE and isinstance(values[0].value, RelativeTime):
        operator = RowOperator.IN_THE_LAST
    negated = bool(values) and draw_from(st.booleans())
    return FilterRow(name, operator, type_ if values else None, values, negated)


@st.composite
def groups(draw_from, depth, negatable=True):
    """Neighbours are of different properties: together they might be a clause of another operator."""
    first = draw_from(st.integers(0, len(NAMES) - 1))
    items = []
    for number in range(first, first + draw_from(st.integers(2, 3))):
        is_group = depth > 1 and draw_from(st.integers(0, 2)) == 0
        items.append(draw_from(groups(depth - 1) if is_group else clauses(NAMES[number % len(NAMES)])))
    return RowGroup(
        draw_from(st.sampled_from(Connective)), tuple(items), negatable and draw_from(st.booleans())
    )


@settings(max_examples=of_usual(40))
@given(groups(GROUP_DEPTH_LIMIT, negatable=False))
def test_q1_rows_to_text_to_rows_is_identity(rows):
    written = to_text(rows)

    assert repr(to_rows(read(written))) == repr(rows)
    assert to_text(to_rows(read(written))) == written


leaves = (
    st.builds(
        Comparison, st.sampled_from("AB"), st.sampled_from(Operator), st.sampled_from([int32(1), text("")])
    )
    | st.builds(
        Comparison,
        st.just("A"),
        st.sampled_from([Operator.GE, Operator.LE, Operator.LT]),
        st.sampled_from([text("a"), text("b"), text("c")]),
    )
    | st.builds(Match, st.just("A"), st.sampled_from(MatchKind), st.sampled_from(VALUES[Edm.STRING]))
    | st.just(IsSet("A"))
)


def branches(inner):
    operands = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.builds(And, operands) | st.builds(Or, operands) | st.builds(Not, inner)


@settings(max_examples=of_usual(40))
@given(st.recursive(leaves, branches, max_leaves=8))
def test_q1_drawn_rows_compile_to_the_original_filter(tree):
    rows = to_rows(tree)
    if not isinstance(rows, NotDrawable):
        assert to_filter(rows) == tree
        assert to_text(rows) == write(tree)


# prefixes


alphabet = "ab\x7f\ud7ff\ue000\ufffe\uffff😀\U0010ffff"


@given(st.text(alphabet, max_size=3), st.text(alphabet, max_size=4))
def test_q5_a_prefix_range_holds_exactly_its_texts(prefix, key):
    end = prefix_end(prefix)

    assert key.startswith(prefix) is (key >= prefix and (end is None or key < end))
    assert end is None or not 0xD800 <= ord(end[-1]) <= 0xDFFF
