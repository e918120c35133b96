"""Expressions: their values by EDM types, what is refused before an entity is read, and that they always end."""

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.errors import InvalidInput
from storage.domain.filters.literals import write_literal
from storage.domain.values.edm import Edm, EdmValue
from storage.editing.conversions import Loss
from storage.editing.expressions.evaluation import TEXT_LIMIT, EvaluationError, Fault, Scope
from storage.editing.expressions.functions import CHAINED, COALESCE, FUNCTIONS, OPERATORS
from storage.editing.expressions.parser import DEPTH_LIMIT, LENGTH_LIMIT, parse
from storage.editing.expressions.tree import compile, mentioned_properties
from storage.editing.input_context import InputContext
from tests import strategies
from tests.live_server import ROOT

NOW = datetime(2026, 11, 26, 4, 5, 6, tzinfo=UTC)
ENTITY = {
    "PartitionKey": EdmValue(Edm.STRING, "tr"),
    "Name": EdmValue(Edm.STRING, " Ada King "),
    "Count": EdmValue(Edm.INT32, 7),
    "Big": EdmValue(Edm.INT64, 2**62),
    "Odd": EdmValue(Edm.INT64, 2**53 + 1),
    "Price": EdmValue(Edm.DOUBLE, 2.675),
    "Paid": EdmValue(Edm.BOOLEAN, True),
    "At": EdmValue(Edm.DATETIME, 0),
    "Id": EdmValue(Edm.GUID, "00000000-0000-0000-0000-00000000000a"),
    "Photo": EdmValue(Edm.BINARY, b"\x00\xff"),
    "INF2": EdmValue(Edm.DOUBLE, math.inf),
}


def evaluate(text, entity=ENTITY, losses=None):
    scope = Scope(entity.get, InputContext(NOW))
    result = compile(parse(text, NOW))(scope)
    if losses is not None:
        losses += scope.losses
    return result


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        # constants as in $filter; whole numbers beyond 32 bits are Int64
        ("'o''reilly'", Edm.STRING, "o'reilly"),
        ("5", Edm.INT32, 5),
        ("5L", Edm.INT64, 5),
        ("2147483648", Edm.INT64, 2**31),
        ("5.0", Edm.DOUBLE, 5.0),
        ("true", Edm.BOOLEAN, True),
        ("X'00ff'", Edm.BINARY, b"\x00\xff"),
        ("datetime'1970-01-02T00:00:00Z'", Edm.DATETIME, 864_000_000_000),
        ("guid'0000000A-0000-0000-0000-00000000000A'", Edm.GUID, "0000000a-0000-0000-0000-00000000000a"),
        # arithmetic: the wider type, and / is always a Double
        ("Count + 1", Edm.INT32, 8),
        ("Count+1L", Edm.INT64, 8),
        ("Count-1", Edm.INT32, 6),
        ("Count - -1", Edm.INT32, 8),
        ("-Count", Edm.INT32, -7),
        ("Count * 1.5", Edm.DOUBLE, 10.5),
        ("Count / 2", Edm.DOUBLE, 3.5),
        ("Count div 2", Edm.INT32, 3),
        ("-Count div 2", Edm.INT32, -3),
        ("-Count % 4", Edm.INT32, -3),
        ("7.5 % 2", Edm.DOUBLE, 1.5),
        ("1 + 2 * 3 - 4", Edm.INT32, 3),
        ("(1 + 2) * 3", Edm.INT32, 9),
        ("2 - 3 - 4", Edm.INT32, -5),
        ("Count add 1 mul 2", Edm.INT32, 9),
        ("INF2 + 1", Edm.DOUBLE, math.inf),
        ("round(Price, 2)", Edm.DOUBLE, 2.68),
        ("round(-0.5)", Edm.DOUBLE, -1.0),
        ("round(Count)", Edm.INT32, 7),
        ("floor(-1.5)", Edm.DOUBLE, -2.0),
        ("ceiling(1e300)", Edm.DOUBLE, 1e300),
        # texts
        ("'a' + 'b' + PartitionKey", Edm.STRING, "abtr"),
        ("concat(PartitionKey, '-', string(Count))", Edm.STRING, "tr-7"),
        ("toupper(trim(Name))", Edm.STRING, "ADA KING"),
        ("lower('İß')", Edm.STRING, "i̇ß"),
        ("substring('abcdef', 2)", Edm.STRING, "cdef"),
        ("substring('abcdef', 1, 2)", Edm.STRING, "bc"),
        ("substring('abcdef', -2)", Edm.STRING, "ef"),
        ("substring('abc', 5, 1)", Edm.STRING, ""),
        ("substring('abc', -9, -9)", Edm.STRING, ""),
        ("replace('a.b.c', '.', '--')", Edm.STRING, "a--b--c"),
        ("replace('abc', '', 'x')", Edm.STRING, "abc"),
        ("length('🦊ß')", Edm.INT32, 2),
        ("pad(Count, 3)", Edm.STRING, "007"),
        ("pad('42', 5L)", Edm.STRING, "00042"),
        ("pad(Big, 5)", Edm.STRING, str(2**62)),
        ("pad('007', 0)", Edm.STRING, "007"),
        ("indexof(Name, 'King')", Edm.INT32, 5),
        # times
        ("now()", Edm.DATETIME, 17_956_659_060_000_000),
        ("adddays(At, 1)", Edm.DATETIME, 864_000_000_000),
        ("addhours(At, -0.5)", Edm.DATETIME, -18_000_000_000),
        ("year(now()) * 100 + month(now())", Edm.INT32, 202611),
        ("second(At)", Edm.INT32, 0),
        # conversions
        ("string(Id)", Edm.STRING, "00000000-0000-0000-0000-00000000000a"),
        ("int64('12')", Edm.INT64, 12),
        ("boolean(1)", Edm.BOOLEAN, True),
        ("datetime('2026-11-26T04:05:06Z')", Edm.DATETIME, 17_956_659_060_000_000),
        ("datetime('26.11.2026', 'dd.MM.yyyy')", Edm.DATETIME, 17_956_512_000_000_000),
        ("datetime('26.11.2026 04:05', 'd.M.yyyy HH:mm')", Edm.DATETIME, 17_956_659_000_000_000),
        ("datetime('11/26/26 4:05:06.5', 'M/d/yy H:m:s.f')", Edm.DATETIME, 17_956_659_065_000_000),
        (
            "datetime('2026-11-26T06:05:06+02:00', 'yyyy-MM-dd''T''HH:mm:ssz')",
            Edm.DATETIME,
            17_956_659_060_000_000,
        ),
        ("datetime('20261126', 'yyyyMMdd')", Edm.DATETIME, 17_956_512_000_000_000),
        (
            "datetime('26 of 11.2026 4 o''clock', 'd'' of ''M.yyyy H ''o''''clock''')",
            Edm.DATETIME,
            17_956_656_000_000_000,
        ),
        ("year(datetime('1.1.69', 'd.M.yy')) - year(datetime('1.1.70', 'd.M.yy'))", Edm.INT32, 99),
        ("binary('ä')", Edm.BINARY, "ä".encode()),
        ("coalesce(Missing, Other, Count)", Edm.INT32, 7),
    ],
)
def test_values(text, type_, value):
    assert evaluate(text) == EdmValue(type_, value)


@pytest.mark.parametrize(
    "text", ["Missing", "Missing + 1", "upper(Missing)", "coalesce(A, B)", "1 + (2 - A)"]
)
def test_a_missing_property_has_no_value(text):
    assert evaluate(text) is None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("2147483647 + Count", Fault.OUT_OF_RANGE),
        ("Big * 2", Fault.OUT_OF_RANGE),
        ("-(-2147483647 - 1)", Fault.OUT_OF_RANGE),
        ("1e308 * 10", Fault.OUT_OF_RANGE),
        ("Count div 0", Fault.DIVISION_BY_ZERO),
        ("Count % 0", Fault.DIVISION_BY_ZERO),
        ("1 / 0", Fault.DIVISION_BY_ZERO),
        ("7.5 % 0.0", Fault.DIVISION_BY_ZERO),
        ("Name * 2", Fault.WRONG_TYPE),
        ("Name + Count", Fault.WRONG_TYPE),
        ("upper(Photo)", Fault.WRONG_TYPE),
        ("int32(Name)", Fault.NOT_CONVERTIBLE),
        ("int32(Big)", Fault.NOT_CONVERTIBLE),
        ("datetime('now')", Fault.NOT_CONVERTIBLE),
        ("datetime('31.02.2026', 'dd.MM.yyyy')", Fault.NOT_CONVERTIBLE),
        ("datetime('1.2.2026', 'dd.MM.yyyy')", Fault.NOT_CONVERTIBLE),
        ("datetime('01.02.2026 ', 'dd.MM.yyyy')", Fault.NOT_CONVERTIBLE),
        ("datetime('٠١.٠٢.٢٠٢٦', 'dd.MM.yyyy')", Fault.NOT_CONVERTIBLE),
        ("datetime('01.02.2026 24:00', 'dd.MM.yyyy HH:mm')", Fault.NOT_CONVERTIBLE),
        ("datetime('01.02.1500', 'dd.MM.yyyy')", Fault.NOT_CONVERTIBLE),
        ("adddays(At, 4000000)", Fault.OUT_OF_RANGE),
        ("adddays(At, INF2)", Fault.OUT_OF_RANGE),
        ("round(Price, 99)", Fault.OUT_OF_RANGE),
        ("pad(-Count, 5)", Fault.OUT_OF_RANGE),
        ("pad(Count, 1025)", Fault.OUT_OF_RANGE),
        ("pad(Name, 5)", Fault.NOT_CONVERTIBLE),
        ("pad('', 5)", Fault.NOT_CONVERTIBLE),
        ("pad('٤٢', 5)", Fault.NOT_CONVERTIBLE),
        ("pad(Price, 5)", Fault.WRONG_TYPE),
    ],
)
def test_faults(text, fault):
    with pytest.raises(EvaluationError) as found:
        evaluate(text)
    assert found.value.fault is fault


@pytest.mark.parametrize(
    ("text", "loss"),
    [
        ("Odd * 1.0", Loss.PRECISION),
        ("int32(Price)", Loss.FRACTION),
        ("int32(' 7')", Loss.SPELLING),
        ("double(Odd)", Loss.PRECISION),
        ("double('007.5')", Loss.SPELLING),
        ("double('1.9180000000000000000001')", Loss.PRECISION),
    ],
)
def test_losses_are_noted(text, loss):
    losses = []
    assert evaluate(text, losses=losses) is not None
    assert losses == [loss]


@pytest.mark.parametrize("text", ["1918.10", "5.00", "0.0", "-2.50", "1918.1", "7"])
def test_zeros_at_the_end_of_a_fraction_are_no_loss_to_a_double(text):
    losses = []
    assert evaluate(f"double('{text}')", losses=losses) == EdmValue(Edm.DOUBLE, float(text))
    assert losses == []


@pytest.mark.parametrize(
    ("text", "sentence", "span"),
    [
        ("datetime(Name, Name)", "The pattern must be a text such as 'dd.MM.yyyy' (position 16).", (15, 19)),
        (
            "datetime(Name, 'dd.MM.yyyy hh')",
            "hh is no part of a time (position 28). Use d, dd, M, MM, yy, yyyy, H,",
            (27, 29),
        ),
        ("datetime(Name, 'd.d.yyyy')", "d repeats a part of the time (position 19).", (18, 19)),
        (
            "datetime(Name, 'dM yyyy')",
            "M follows a part of one or two digits (position 18). Write a character between them.",
            (17, 18),
        ),
        (
            "datetime(Name, 'dd.MM')",
            "The pattern needs the day, the month and the year: d, M and y (position 17).",
            (16, 21),
        ),
        ("datetime(Name, 'd.M.yyyy mm')", "In the pattern, mm needs H as well (position 17).", (16, 27)),
        (
            "datetime(Name, '''''''T d.M.yyyy')",
            "The text at position 17 of the pattern has no closing apostrophe.",
            (16, 32),
        ),
        ("", "A value is expected at position 1.", (0, 1)),
        ("Count +", "A value is expected at position 8.", (7, 8)),
        ("Count 5", "An operator is expected at position 7, not 5.", (6, 7)),
        ("(Count", "An operator or a closing parenthesis is expected at position 7.", (6, 7)),
        ("Count)", "An operator is expected at position 6, not ).", (5, 6)),
        ("'abc", "The text at position 1 has no closing apostrophe.", (0, 4)),
        ("Count ; 1", "An operator is expected at position 7, not ;.", (6, 7)),
        ("__import__('os')", "There is no function __import__ (position 1).", (0, 10)),
        ("uper(Name)", "There is no function uper (position 1). Did you mean upper?", (0, 4)),
        ("null", "null is not a value (position 1). Remove the property instead.", (0, 4)),
        ("Count.real", "An operator is expected at position 6, not ..", (5, 6)),
        # types that never go together
        ("upper(5)", "upper cannot be used with Int32 (position 1): upper(s).", (0, 5)),
        ("1 + upper(Name)", "+ cannot be used with Int32, String (position 3): a + b.", (2, 3)),
        ("length(Name) + 'x'", "+ cannot be used with Int32, String (position 14): a + b.", (13, 14)),
        ("now(1)", "now cannot be used with Int32 (position 1): now().", (0, 3)),
        ("concat('a')", "concat cannot be used like this (position 1): concat(a, b, …).", (0, 6)),
        ("year('2026')", "year cannot be used with String (position 1):", (0, 4)),
    ],
)
def test_refused_with_the_position(text, sentence, span):
    with pytest.raises(InvalidInput) as found:
        parse(text, NOW)
    assert found.value.text.startswith(sentence)
    assert found.value.span == span


def test_length_and_depth_are_bounded():
    for text in (
        "1" * (LENGTH_LIMIT + 1),
        "(" * 500 + "1" + ")" * 500,
        "-" * 500 + "1",
        "+".join("1" * 500),
        f"concat({','.join(['Name'] * (DEPTH_LIMIT + 2))})",
        "upper(" * 150 + "Name" + ")" * 150,
    ):
        with pytest.raises(InvalidInput):
            parse(text, NOW)
    assert evaluate("+".join("1" * 90)).value == 90


def test_texts_are_bounded():
    large = {"A": EdmValue(Edm.STRING, "a" * (TEXT_LIMIT // 2 + 1))}
    for text in ("A + A", "concat(A, A)", "replace(A, 'a', 'bb')"):
        with pytest.raises(EvaluationError) as refused:
            evaluate(text, large)
        assert refused.value.fault is Fault.TOO_LONG


@given(strategies.values)
def test_each_value_has_a_literal(value):
    if value.type is Edm.DATETIME or not isinstance(value.value, float) or math.isfinite(value.value):
        assert evaluate(write_literal(value)) == value


_leaves = st.sampled_from([*ENTITY, "Missing", "1", "-3L", "2.5", "'x'", "true", "now()", "NaN", "0"])


def _grown(inner):
    pairs = st.tuples(inner, st.sampled_from([*OPERATORS]), inner).map(
        lambda it: f"({it[0]} {it[1]} {it[2]})"
    )
    calls = st.tuples(st.sampled_from([*FUNCTIONS]), st.lists(inner, max_size=3))
    return pairs | calls.map(lambda it: f"{it[0]}({','.join(it[1])})")


@given(
    st.recursive(_leaves, _grown, max_leaves=8),
    st.dictionaries(st.sampled_from([*ENTITY]), strategies.values),
)
def test_an_expression_is_refused_or_has_a_value_of_a_foreseen_type(text, entity):
    try:
        tree = parse(text, NOW)
    except InvalidInput:
        return
    assert set(mentioned_properties(tree)) <= {*ENTITY, "Missing"}
    entity = entity | {name: ENTITY[name] for name in ("PartitionKey",)}
    try:
        value = compile(tree)(Scope(entity.get, InputContext(NOW)))
    except EvaluationError:
        return
    assert value is None or value.type in tree.types


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text):
    try:
        parse(text, NOW)
    except InvalidInput:
        pass


def test_the_documentation_lists_every_function():
    text = (ROOT / "docs" / "bulk-edit.md").read_text()
    for function in {*FUNCTIONS.values(), *(function for _, function in OPERATORS.values())}:
        is_listed = f"`{function.usage}`" in text or f"`{function.name}`" in text
        assert is_listed, f"docs/bulk-edit.md, Expressions: add {function.usage}"
        assert function.signatures or function is COALESCE
    assert all(function in FUNCTIONS.values() for function in CHAINED)
