"""Reading and writing ``$filter``: tables of texts, and the law that writing is the inverse of reading."""

import contextlib
import math
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.domain.errors import InvalidInput, NotImplemented, OutOfRangeInput
from storage.domain.filters.ast import (
    And,
    Comparison,
    Constant,
    IsSet,
    Match,
    MatchKind,
    Not,
    Operator,
    Or,
    conjuncts,
    is_console_only,
    mentioned_properties,
)
from storage.domain.filters.parser import DEPTH_LIMIT, parse
from storage.domain.filters.query import matches_table, names_of_tables
from storage.domain.filters.writer import write
from storage.domain.values import dialects
from storage.domain.values.edm import Edm, EdmValue, read_datetime
from tests.cost import costs_less_than
from tests.examples import of_usual


def eq(name, type_, value):
    return Comparison(name, Operator.EQ, EdmValue(type_, value))


def int32(name, value, operator=Operator.EQ):
    return Comparison(name, operator, EdmValue(Edm.INT32, value))


A, B, C = int32("A", 1), int32("B", 2), int32("C", 3)
FLAG = eq("Flag", Edm.BOOLEAN, True)
NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)

READ = [
    ("A eq 1", A),
    ("  A \t eq\n1  ", A),
    ("((A)) eq ((1))", A),
    ("A ne 1", int32("A", 1, Operator.NE)),
    ("A gt 1", int32("A", 1, Operator.GT)),
    ("A le 1", int32("A", 1, Operator.LE)),
    ("1 eq A", A),
    ("1 gt A", int32("A", 1, Operator.LT)),
    ("1 le A", int32("A", 1, Operator.GE)),
    ("'x' eq PartitionKey", eq("PartitionKey", Edm.STRING, "x")),
    ("A eq 1 and B eq 2 and C eq 3", And((A, B, C))),
    ("A eq 1 or B eq 2 or C eq 3", Or((A, B, C))),
    ("A eq 1 or B eq 2 and C eq 3", Or((A, And((B, C))))),
    ("(A eq 1 or B eq 2) and C eq 3", And((Or((A, B)), C))),
    ("A eq 1 and (B eq 2 and C eq 3)", And((A, And((B, C))))),
    ("(A eq 1)and(B eq 2)", And((A, B))),
    ("not(A eq 1)", Not(A)),
    ("not A eq 1 and B eq 2", And((Not(A), B))),
    ("not (A eq 1 and B eq 2)", Not(And((A, B)))),
    ("not not A eq 1", Not(Not(A))),
    ("Flag", FLAG),
    ("not Flag", Not(FLAG)),
    ("Flag and A eq 1", And((FLAG, A))),
    ("true eq Flag", FLAG),
    ("true", Constant(True)),
    ("(false)", Constant(False)),
    ("eq eq 1", int32("eq", 1)),
    ("and eq 1 and or eq 1", And((int32("and", 1), int32("or", 1)))),
    ("Größe_1 eq 1", int32("Größe_1", 1)),
]

LITERALS = [
    ("''''", Edm.STRING, "'"),
    ("'a and (b'", Edm.STRING, "a and (b"),
    ("5", Edm.INT32, 5),
    ("007", Edm.INT32, 7),
    ("4294967295", Edm.INT32, 2**32 - 1),
    ("-9223372036854775808", Edm.INT32, -(2**63)),
    ("-5l", Edm.INT64, -5),
    pytest.param("0" * 5000, Edm.INT32, 0, id="thousands of zeros"),
    pytest.param(f"-{'0' * 5000}7L", Edm.INT64, -7, id="thousands of zeros before a digit"),
    ("-1.5d", Edm.DOUBLE, -1.5),
    ("5D", Edm.DOUBLE, 5.0),
    ("1.", Edm.DOUBLE, 1.0),
    ("1e3", Edm.DOUBLE, 1000.0),
    ("1.5E-3", Edm.DOUBLE, 0.0015),
    ("1e+3d", Edm.DOUBLE, 1000.0),
    ("Infinity", Edm.DOUBLE, math.inf),
    ("-Infinity", Edm.DOUBLE, -math.inf),
    ("datetime'1970-01-01T00:00:01Z'", Edm.DATETIME, 10_000_000),
    ("datetime'1970-01-01T01:00:01+01:00'", Edm.DATETIME, 10_000_000),
    ("datetime'1970-01-01T00:00:00.0000001'", Edm.DATETIME, 1),
    ("datetime'1970-01-02'", Edm.DATETIME, 864_000_000_000),
    ("guid'0123ABCD-0000-0000-0000-00000000000f'", Edm.GUID, "0123abcd-0000-0000-0000-00000000000f"),
    ("X'00fF'", Edm.BINARY, b"\x00\xff"),
    ("binary'01'", Edm.BINARY, b"\x01"),
]

# each kind of refusal, with its sentence; which texts are refused is the wire cases' business
INVALID = [
    ("aaa bbb ccc", "Syntax error at position 7 in 'aaa bbb ccc'."),
    ("A eq", "Syntax error at position 4 in 'A eq'."),
    ("A Eq 1", "Syntax error at position 4 in 'A Eq 1'."),
    ("(1 1 1)", "Syntax error at position 4 in '(1 1 1)'."),
    ("A eq 5abc", "Syntax error at position 9 in 'A eq 5abc'."),
    ("A eq foo'bar'", "Syntax error at position 13 in 'A eq foo'bar''."),
    ("substringof(A, 'x'", "Syntax error at position 18 in 'substringof(A, 'x''."),
    ("A eq 'x''", "There is an unterminated string literal at position 9 in 'A eq 'x'''."),
    ("A eq X'00", "There is an unterminated string literal at position 9 in 'A eq X'00'."),
    ("A = 1", "Syntax error: character '=' is not valid at position 2 in 'A = 1'."),
    ("a· eq ·", "Syntax error: character '·' is not valid at position 6 in 'a· eq ·'."),
    ("A eq 1.5L", "Unrecognized 'Edm.Int64' literal '1.5L' at '5' in 'A eq 1.5L'."),
    ("A eq 1e400", "Unrecognized 'Edm.Double' literal '1e400' at '5' in 'A eq 1e400'."),
    ("A eq X'0 '", "Unrecognized 'Edm.Binary' literal 'X'0 '' at '5' in 'A eq X'0 ''."),
    ("A eq guid'0'", "Unrecognized 'Edm.Guid' literal 'guid'0'' at '5' in 'A eq guid'0''."),
    ("A eq datetime'yesterday'", "An error occurred while processing this request."),
    ("not 1", "The $filter expression must evaluate to a single boolean value."),
    ("A eq 1 and 1", "The $filter expression must evaluate to a single boolean value."),
    ("null ne A", InvalidInput.message),
    ("(PartitionKey eq 'x' eq 5.0)", InvalidInput.message),
]


UNSUPPORTED = [
    "1 eq 1", "'a' eq 'a'", "true eq true", "A eq B", "(A eq 1) eq true", "startswith(A, 'x')",
    "substringof('x', A) eq true and B eq 1", "length(A) gt 5", "year(A) eq year(B)", "now() gt A",
    "not startswith(A, 'x')", "A add 1 eq 2", "A mul 2 sub 1 eq B div 3 mod 2", "-A eq 1", "- 5 eq A",
    "A in (1, 2)", "A has 'x'", "Address/City eq 'x'", "Tags/any(t: t eq 'x')",
    "Tags/all(t: t/Name eq 'x' and t/Size gt 1)",
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), READ, ids=[text for text, _ in READ])
def test_reads(text, expected):
    assert parse(text) == expected


@pytest.mark.parametrize(("text", "type_", "value"), LITERALS, ids=[text for text, _, _ in LITERALS])
def test_reads_a_literal(text, type_, value):
    [literal] = {parse(f"A eq {text}").literal, parse(f"{text} eq A").literal}

    assert literal == (type_, value)
    assert literal.type is type_
    assert type(literal.value) is type(value)


@pytest.mark.parametrize("text", ["", " ", "\t\r\n"])
def test_a_blank_text_is_not_a_filter(text):
    assert parse(text) is None


@pytest.mark.parametrize(("text", "sentence"), INVALID, ids=[text for text, _ in INVALID])
def test_refuses_in_either_dialect(text, sentence):
    for dialect in (dialects.STORAGE, dialects.COSMOS, dialects.CONSOLE):
        with pytest.raises(InvalidInput) as refusal:
            parse(text, dialect, NOW)

        assert refusal.value.text == sentence


@pytest.mark.parametrize("text", UNSUPPORTED)
def test_valid_but_unsupported_filters_are_not_implemented(text):
    for dialect in (dialects.STORAGE, dialects.COSMOS, dialects.CONSOLE):
        with pytest.raises(NotImplemented):
            parse(text, dialect)
    with pytest.raises(InvalidInput):
        parse(text + " and")


# depth and length


def test_reads_and_writes_hundreds_of_levels():
    assert parse("(" * DEPTH_LIMIT + "A eq 1" + ")" * DEPTH_LIMIT) == A
    for opening, closing in (("not (", ")"), ("not ", ""), ("A or B and not (", ")")):
        written = write(parse(opening * DEPTH_LIMIT + "A eq 1" + closing * DEPTH_LIMIT))
        assert written.count("not") == DEPTH_LIMIT
        assert write(parse(written)) == written


@pytest.mark.parametrize("opening", ["(", "not (", "not ", "A and (", "f(", "A or B and not (", "A in ("])
def test_refuses_deeper_nesting(opening):
    with pytest.raises(InvalidInput, match="nested deeper than 200 levels"):
        parse(opening * 5000 + "A eq 1")


@pytest.mark.parametrize(
    "text",
    [
        " or ".join(f"A eq {number}" for number in range(3000)), " and ".join(["not (A eq 'o''reilly')"] * 1200),
        "A eq '" + "''" * 16_000 + "'", "A eq '" + "''" * 16_000, "A eq 0." + "9" * 32_000, "A" * 32_000 + "·",
        "A" + "\u0301" * 32_000 + "\ud800", "A eq " + "-" * 32_000 + "5", "A eq" + " " * 32_000 + "1", "=" * 32_000,
    ],
    ids=range(10),
)  # fmt: skip
def test_time_is_linear_in_length(text):
    with costs_less_than(3), contextlib.suppress(InvalidInput, NotImplemented):
        parse(text)


@given(st.text(alphabet="ab \t'()=,:/.-+eELd015$\u0301\ud800\x00") | st.text())
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(InvalidInput, NotImplemented, OutOfRangeInput):
        parse(text)


# writing

reserved = ["true", "false", "null", "not", "NaN", "INF", "Infinity"]
names = st.sampled_from(
    ["A", "PartitionKey", "Größe", "eq", "or", "in", "datetime", "X", "L", "e5"]
) | st.from_regex(r"[^\W\d]\w{0,8}", fullmatch=True).filter(
    lambda name: name.isidentifier() and name not in reserved
)
literals = st.one_of(
    st.builds(EdmValue, st.just(Edm.STRING), st.text(alphabet="'a \x00\ud800😀") | st.text()),
    st.builds(EdmValue, st.just(Edm.BOOLEAN), st.booleans()),
    st.builds(EdmValue, st.sampled_from([Edm.INT32, Edm.INT64]), st.integers(-(2**63), 2**63 - 1)),
    st.builds(EdmValue, st.just(Edm.DOUBLE), st.floats(allow_nan=False) | st.just(math.nan)),
    st.builds(EdmValue, st.just(Edm.DATETIME), st.integers(-116444736000000000, 2534023007999999999)),
    st.builds(EdmValue, st.just(Edm.GUID), st.uuids().map(str)),
    st.builds(EdmValue, st.just(Edm.BINARY), st.binary(max_size=8)),
)
leaves = st.builds(Comparison, names, st.sampled_from(Operator), literals) | st.builds(
    Constant, st.booleans()
)


def branches(inner):
    operands = st.lists(inner, min_size=2, max_size=4).map(tuple)
    return st.builds(And, operands) | st.builds(Or, operands) | st.builds(Not, inner)


@pytest.mark.parametrize(
    "text",
    [
        "Name eq 'o''reilly'", "A eq 1 or B eq 2 and C eq 3", "(A eq 1 or B eq 2) and not (C eq 3)",
        "A eq 1 and (B eq 2 and C eq 3)", "A eq 5L and B eq 5.0 and C eq 1e+16 and D eq INF",
        "A eq datetime'2020-01-01T00:00:00.5Z'",
        "A eq X'00ff' or A eq guid'0123abcd-0000-0000-0000-00000000000f'",
    ],
)  # fmt: skip
def test_writes_no_more_than_was_read(text):
    assert write(parse(text)) == text


# operators of the console only

CONSOLE_READ = [
    ("contains(A,'x')", Match("A", MatchKind.CONTAINS, "x")),
    ("contains ( A , 'it''s' )", Match("A", MatchKind.CONTAINS, "it's")),
    ("endswith(A,'')", Match("A", MatchKind.ENDS_WITH, "")),
    ("isset(A)", IsSet("A")),
    ("not isset(A) and Flag", And((Not(IsSet("A")), FLAG))),
    ("(isset(A) or contains(isset,'x'))", Or((IsSet("A"), Match("isset", MatchKind.CONTAINS, "x")))),
]


@pytest.mark.parametrize(("text", "expected"), CONSOLE_READ, ids=[text for text, _ in CONSOLE_READ])
def test_the_console_alone_reads(text, expected):
    assert parse(text, dialects.CONSOLE) == expected
    assert parse(write(expected), dialects.CONSOLE) == expected
    assert is_console_only(expected)
    with pytest.raises(NotImplemented):
        parse(text)


def test_functions_of_the_console_may_be_names():
    expected = And((int32("contains", 1), eq("isset", Edm.BOOLEAN, True)))

    assert parse("contains eq 1 and isset", dialects.CONSOLE) == parse("contains eq 1 and isset") == expected


@pytest.mark.parametrize(
    "text",
    [
        "contains('x',A)", "contains(A,5)", "contains(A)", "contains(A,'x','y')",
        "contains(A,B)", "isset('A')", "isset(A,B)", "isset()", "contains(A,'x') eq true",
        "isset(A) eq isset(B)", "A eq contains(A,'x')",
    ],
)  # fmt: skip
def test_the_console_does_not_implement(text):
    with pytest.raises(NotImplemented):
        parse(text, dialects.CONSOLE)


def test_relative_times_need_a_current_time():
    text = "T ge datetime'{{now-24h}}' and T lt datetime'{{now}}'"
    since, until = parse(text, dialects.CONSOLE, NOW).operands

    assert since.literal == EdmValue(Edm.DATETIME, read_datetime("2026-11-20T12:30:00Z"))
    assert until.literal == EdmValue(Edm.DATETIME, read_datetime("2026-11-21T12:30:00Z"))
    assert write(parse(text, dialects.CONSOLE, NOW)) == text
    with pytest.raises(InvalidInput):
        parse(text)


console_leaves = (
    leaves
    | st.builds(Match, names, st.sampled_from(MatchKind), st.text(alphabet="'a \x00\ud800😀") | st.text())
    | st.builds(IsSet, names)
)


@settings(max_examples=of_usual(50))
@given(st.recursive(console_leaves, branches, max_leaves=20))
def test_reading_is_the_inverse_of_writing(tree):
    # 1 == 1.0 == True: equality of values says nothing about their classes
    assert repr(parse(write(tree), dialects.CONSOLE)) == repr(tree)
    if not is_console_only(tree):
        assert repr(parse(write(tree))) == repr(tree)


# where a text is at fault


def test_a_refusal_has_the_span_at_fault():
    text = "A eq datetime'0001-01-01' or B"
    with pytest.raises(OutOfRangeInput) as refusal:
        parse(text)

    start, end = refusal.value.span
    assert text[start:end] == "datetime'0001-01-01'"


# questions about a tree


def test_conjuncts_see_through_grouping():
    assert conjuncts(parse("A eq 1 and (B eq 2 and (C eq 3))")) == [A, B, C]
    assert conjuncts(parse("A eq 1 or B eq 2")) == [Or((A, B))]


def test_mentions_every_property_once():
    assert mentioned_properties(parse("A eq 1 or not (B eq 2 and A eq 3) and true")) == {"A", "B"}


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [
        ("TableName eq 'People'", "people", "people"),
        ("TableName ge 'p' and TableName lt 'p~'", "p", "p" + "z" * 63),
        ("TableName gt 'a!b' and Name eq 1", "a", ""),
        ("not (TableName eq 'people')", "", ""),
        ("TableName ne 'people' and TableName le 'Q'", "", "q"),
    ],
)
def test_bounds_the_names_of_matching_tables(text, lower, upper):
    assert names_of_tables(parse(text)) == (lower, upper)


def test_matches_a_table_by_its_name():
    for text in ("TableName eq 'PEOPLE'", "TableName ge 'P' and TableName lt 'Q'", "not (Name eq 'people')"):
        assert matches_table(parse(text), "People")
    for text in ("TableName eq 'a' or TableName lt 'people'", "TableName eq 5", "false"):
        assert not matches_table(parse(text), "People")
