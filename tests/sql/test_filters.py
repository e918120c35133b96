"""Results of compiled filters, compared with a plain evaluation in Python; and the index that each uses."""

import math
import re
import string
from decimal import Decimal
from itertools import product

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.domain.filters.access_plan import plan_access
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
    fold,
)
from storage.domain.filters.parser import parse
from storage.domain.values import dialects
from storage.domain.values.edm import INT32, Edm, EdmValue, quote
from storage.domain.values.encoding import escape, project
from storage.editing.filters.builder import Connective, FilterRow, RowGroup, RowOperator
from storage.editing.filters.builder import to_text as rows_to_text
from storage.sql.filters import INDEXED_NUMBER, INDEXED_TEXT, INDEXED_TIME, Condition, compile
from tests.examples import of_usual

NUMBERS = (Edm.INT32, Edm.INT64, Edm.DOUBLE)
INTEGERS = [0, 1, -1, 5, 100, 2**31 - 1, -(2**31), 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)]
DOUBLES = [
    0.0, -0.0, 1.0, -1.0, 5.0, 5.5, 100.0, 0.1, 1e-7, 5e-324, 1.7976931348623157e308, -1.7976931348623157e308,
    2.0**53, 2.0**63, 1e16, 1e22, math.inf, -math.inf, math.nan,
]  # fmt: skip
TEXTS = [
    "", "a", "A", "b", "ab", "a b", "5", "5.00", ".00", "true", "false", "n", "s", "t", "t2020", "null", "1e400",
    "(.*)", "o'reilly", 'a"b\\c', "{}", "%", "$1", "é", "z", "\u007f", "\ud7ff", "\ue000", "\uffff", "😀",
    "\x00", "\x01", "a\x00", "a\x00b", "a\x01", "a\x00\x02b", "\x02", "\u0802", "\ud800", "\udfff", "a\ud800b",
    "a\ue000b", "\ud83d", "x" * 98, "x" * 99, "x" * 100, "x" * 99 + "y", "x" * 200 + "\x00", "x" * 9000,
]  # fmt: skip
GUIDS = [f"{digit * 8}-0000-0000-0000-000000000000" for digit in "09af"]
OCTETS = [b"", b"\x00", b"\x00\x00", b"\x7f", b"\x80", b"\xff", b".00", b"b"]
TICKS = [0, 1, -1, 10_000_000, -116444736000000000, 2534023007999999999]

VALUES = [
    *(EdmValue(Edm.INT32, number) for number in INTEGERS if number in INT32),
    *(EdmValue(Edm.INT64, number) for number in INTEGERS),
    *(EdmValue(Edm.DOUBLE, number) for number in DOUBLES),
    *(EdmValue(Edm.STRING, text) for text in TEXTS),
    *(EdmValue(Edm.GUID, guid) for guid in GUIDS),
    *(EdmValue(Edm.BINARY, octets) for octets in OCTETS),
    *(EdmValue(Edm.DATETIME, ticks) for ticks in TICKS),
    *(EdmValue(Edm.BOOLEAN, truth) for truth in (False, True)),
]
LITERALS = [*VALUES, *(EdmValue(Edm.INT32, number) for number in INTEGERS if number not in INT32)]
KEYS = [text for text in TEXTS if escape(text) == text or text in ("\x01", "a\x01", "\ue000", "a\ue000b")]
KEYS.remove("x" * 9000)  # no index entry holds it

TABLE = """
CREATE TEMPORARY TABLE entity (
    n int NOT NULL,
    pk text COLLATE "C" NOT NULL,
    rk text COLLATE "C" NOT NULL,
    ts bigint NOT NULL,
    props jsonb NOT NULL,
    PRIMARY KEY (pk, rk)
)
"""
SELECT = "SELECT n FROM entity WHERE {}"
GIN = "CREATE INDEX entity_props ON entity USING gin (props jsonb_path_ops)"
INDEXED = ("V", "W", "Missing", "Timestamp")


def rows():
    """Yield every value as property V, one entity without V, and every key, numbered as in ENTITIES."""
    for number, entity in enumerate(ENTITIES):
        members = (f"{quote(escape(name))}:{project(value)}" for name, value in entity["props"].items())
        yield number, entity["pk"], entity["rk"], entity["ts"], "{" + ",".join(members) + "}"


def entity(pk="p", rk="r", ts=0, **props):
    return {"pk": pk, "rk": rk, "ts": ts, "props": props}


ENTITIES = [
    *(entity(rk=f"{n:03}", V=value, W=EdmValue(Edm.INT32, n)) for n, value in enumerate(VALUES)),
    entity(rk="missing"),
    *(entity(pk=key, rk="partition") for key in KEYS),
    *(entity(pk="rows", rk=key) for key in KEYS),
    *(entity(pk="times", rk=str(n), ts=ticks) for n, ticks in enumerate(TICKS)),
]


@pytest.fixture(scope="module")
def cursor(postgres):
    with psycopg.connect(**postgres, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
        cursor = connection.cursor()
        cursor.execute(TABLE)
        cursor.executemany("INSERT INTO entity VALUES ($1, $2, $3, $4, $5)", list(rows()))
        cursor.execute(GIN)
        cursor.execute(f"CREATE INDEX entity_times ON entity ({INDEXED_TIME})")
        for name in INDEXED[:3]:
            columns = f"{INDEXED_NUMBER}, {INDEXED_TEXT}".format(name=f"'{name}'")
            cursor.execute(f"CREATE INDEX entity_{name.lower()} ON entity ({columns})")
        cursor.execute("ANALYZE entity")
        yield cursor


def selected(cursor, tree):
    """Return the results of a filter, which must be the same with and without indexes."""
    found, *others = (found_by(cursor, compile(tree, 1, indexed)) for indexed in ((), INDEXED))
    assert others == [found], tree
    return found


def found_by(cursor, condition):
    cursor.execute(SELECT.format(condition.text), condition.parameters)
    return {number for (number,) in cursor}


def expected(tree):
    return {number for number, entity in enumerate(ENTITIES) if holds(tree, entity)}


def holds(tree, entity):
    """Evaluate a filter in plain Python: a missing property or one of another type satisfies no comparison."""

    def visit(node, operands):
        match node:
            case Comparison(name, operator, literal):
                return compares(value_of(entity, name), operator, literal)
            case Match(name, kind, text):
                value = value_of(entity, name)
                return value is not None and value.type is Edm.STRING and FINDS[kind](value.value, text)
            case IsSet(name):
                return value_of(entity, name) is not None
            case Constant(value):
                return value
            case Not():
                return not operands[0]
            case And():
                return all(operands)
            case Or():
                return any(operands)

    return fold(tree, visit)


FINDS = {MatchKind.CONTAINS: str.__contains__, MatchKind.ENDS_WITH: str.endswith}


def value_of(entity, name):
    match name:
        case "PartitionKey":
            return EdmValue(Edm.STRING, entity["pk"])
        case "RowKey":
            return EdmValue(Edm.STRING, entity["rk"])
        case "Timestamp":
            return EdmValue(Edm.DATETIME, entity["ts"])
    return entity["props"].get(name)


def compares(value, operator, literal):
    if value is None:
        return False
    if value.type in NUMBERS and literal.type in NUMBERS:
        if literal.type is Edm.INT64 and value.type is not Edm.INT64:
            return False
        return compares_numbers(value.value, operator, literal.value)
    return value.type is literal.type and operator.holds(value.value, literal.value)


def compares_numbers(value, operator, literal):
    if math.isnan(value) or math.isnan(literal):
        return operator is Operator.NE
    # a Double is the decimal number it is written as
    return operator.holds(Decimal(repr(value)), Decimal(repr(literal)))


def assert_selects(cursor, tree):
    """Check that a filter selects the expected entities, and its negation all the rest."""
    assert selected(cursor, tree) == expected(tree), tree
    assert selected(cursor, Not(tree)) == expected(Not(tree)), tree


@pytest.mark.parametrize("literal", LITERALS, ids=lambda literal: ascii(literal)[:60])
def test_every_comparison_selects_what_it_should(cursor, literal):
    for operator in Operator:
        assert_selects(cursor, Comparison("V", operator, literal))


@pytest.mark.parametrize("operator", Operator)
def test_system_properties_compare_by_code_point_and_tick(cursor, operator):
    for text in TEXTS:
        for name in ("PartitionKey", "RowKey"):
            assert_selects(cursor, Comparison(name, operator, EdmValue(Edm.STRING, text)))
    for ticks in TICKS:
        assert_selects(cursor, Comparison("Timestamp", operator, EdmValue(Edm.DATETIME, ticks)))


@pytest.mark.parametrize("kind", MatchKind)
@pytest.mark.parametrize("name", ["V", "PartitionKey", "RowKey", "Timestamp", "Missing"])
def test_a_part_of_a_text_is_found_wherever_it_is(cursor, name, kind):
    for text in TEXTS:
        assert_selects(cursor, Match(name, kind, text))


def test_a_property_of_any_type_is_set(cursor):
    for name in ("V", "W", "Missing", "PartitionKey", "RowKey", "Timestamp", "a\x00b", "\ud800"):
        assert_selects(cursor, IsSet(name))


@pytest.mark.parametrize("text", ["PartitionKey ne 5", "RowKey ge X''", "Timestamp gt '2020'"])
def test_a_system_property_matches_no_other_type(cursor, text):
    assert selected(cursor, parse(text)) == set()
    assert len(selected(cursor, parse(f"not ({text})"))) == len(ENTITIES)


def found_by_rows(cursor, name, operator, *values):
    clause = FilterRow(name, operator, values[0].type, values)
    return selected(cursor, parse(rows_to_text(RowGroup(Connective.AND, (clause,))), dialects.CONSOLE))


def scanned(name, test):
    values = ((number, value_of(entity, name)) for number, entity in enumerate(ENTITIES))
    return {number for number, value in values if value is not None and test(value)}


# the end of a prefix is never a surrogate, which no address carries: too many texts with lone ones may be found
PREFIXES = [text for text in TEXTS if text and not "\ud7ff" <= text[-1] <= "\udfff"]


@pytest.mark.parametrize("name", ["V", "PartitionKey", "RowKey"])
def test_q5_a_prefix_finds_what_begins_with_it(cursor, name):
    for prefix in PREFIXES:
        result = found_by_rows(cursor, name, RowOperator.STARTS_WITH, EdmValue(Edm.STRING, prefix))

        begins = scanned(
            name, lambda it, prefix=prefix: it.type is Edm.STRING and it.value.startswith(prefix)
        )
        assert result == begins, prefix


@pytest.mark.parametrize("type_", [Edm.STRING, Edm.INT32, Edm.INT64, Edm.DOUBLE, Edm.DATETIME])
def test_q5_between_finds_what_lies_between_and_both_ends(cursor, type_):
    values = [it for it in LITERALS if it.type is type_ and it.value == it.value]
    for first, last in product(values[::2], values[::4]):
        tree = And((Comparison("V", Operator.GE, first), Comparison("V", Operator.LE, last)))

        assert found_by_rows(cursor, "V", RowOperator.BETWEEN, first, last) == expected(tree), (first, last)


@pytest.mark.parametrize(
    "text", ["V ge 5 and W eq 1 and V lt 10 and V gt 6", "V gt 'a' and V le 'b' and V lt 'c'"]
)
def test_both_ends_of_a_range_are_written_together(cursor, text):
    """Each bound extracts the property from the document once more, which is most of the cost of a scan."""
    tree = parse(text)
    assert_selects(cursor, tree)
    bounds = compile(tree, 1).text.count("(props->")
    assert bounds == sum(operand.operator is not Operator.EQ for operand in tree.operands)


@pytest.mark.parametrize("type_", [type_ for type_ in Edm if type_ is not Edm.BOOLEAN])
def test_q5_one_of_matches_each_listed_value(cursor, type_):
    values = tuple(it for it in LITERALS if it.type is type_)
    result = found_by_rows(cursor, "V", RowOperator.ONE_OF, *values)

    assert result == scanned("V", lambda it: any(compares(it, Operator.EQ, value) for value in values))


def test_constants(cursor):
    assert len(selected(cursor, parse("true"))) == len(ENTITIES)
    assert selected(cursor, parse("false")) == set()


comparisons = st.builds(
    Comparison,
    st.sampled_from(["V", "V", "V", "W", "Missing", "RowKey", "PartitionKey", "Timestamp"]),
    st.sampled_from([*Operator, Operator.EQ, Operator.EQ]),
    st.sampled_from(LITERALS),
)


def branches(inner):
    operands = st.lists(inner, min_size=2, max_size=5).map(tuple)
    return st.builds(And, operands) | st.builds(Or, operands) | st.builds(Not, inner)


matches = st.builds(
    Match, st.sampled_from(["V", "W", "RowKey"]), st.sampled_from(MatchKind), st.sampled_from(TEXTS)
)
leaves = comparisons | st.builds(Constant, st.booleans()) | matches | st.builds(IsSet, st.sampled_from("VW"))


@given(st.recursive(leaves, branches, max_leaves=12))
@settings(
    max_examples=of_usual(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_every_combination_selects_what_it_should(cursor, tree):
    assert selected(cursor, tree) == expected(tree)


def test_many_alternatives_of_any_type_select_what_they_should(cursor):
    assert_selects(cursor, Or(tuple(Comparison("V", Operator.EQ, literal) for literal in LITERALS)))


@pytest.mark.parametrize("size", [1, 2, len(LITERALS)])
def test_differences_from_several_values_of_any_type_select_what_they_should(cursor, size):
    for first in range(0, len(LITERALS), size):
        chosen = LITERALS[first : first + size]
        differences = And(tuple(Comparison("V", Operator.NE, it) for it in (*chosen, *chosen)))
        assert_selects(cursor, differences)
        assert_selects(cursor, Not(differences))
    for type_ in Edm:
        of_type = tuple(Comparison("V", Operator.NE, it) for it in LITERALS if it.type is type_)
        assert_selects(cursor, And((*of_type, *of_type)))


# text that reaches PostgreSQL

HOSTILE = "x' OR '1'='1\"}]; DROP TABLE entity; -- %s $1 \\"


@pytest.mark.parametrize("name", [HOSTILE, "a\x00b", "\ud800"])
def test_names_and_texts_are_bound(cursor, name):
    for operator in Operator:
        comparison = Comparison(name, operator, EdmValue(Edm.STRING, name))
        condition = compile(comparison, 1)

        assert selected(cursor, Or((comparison, comparison, Not(comparison)))) == set(range(len(ENTITIES)))
        assert set(condition.text) <= {*string.ascii_letters, *string.digits, *" ()'\"$:.->=<@,"}
        assert "DROP" not in condition.text


def test_placeholders_are_numbered_from_the_start_and_bound_once():
    assert compile(parse("RowKey gt 'r' and A eq 5"), 4) == Condition(
        '(rk > $4::text COLLATE "C" AND props @> $5::jsonb)', ("r", '{"A":5}')
    )
    assert compile(parse("A gt 5 and A lt 9 and not (A eq 7)"), 1).parameters == ('{"A":7}', "A", "5", "9")


def test_thousands_of_alternatives_run(cursor):
    equalities = " or ".join(f"W eq {number}" for number in range(2000))
    ranges = " or ".join(f"W ge {number} and W lt {number}.5" for number in range(1000))

    assert selected(cursor, parse(equalities)) == set(range(len(VALUES)))
    assert selected(cursor, parse(ranges)) == set(range(len(VALUES)))
    assert len(selected(cursor, parse(f"not ({ranges})"))) == len(ENTITIES) - len(VALUES)


@pytest.mark.parametrize("opening", ["not (", "W or W and not (", "W ge 5 or W lt 5 and ("])
def test_the_deepest_filter_runs(cursor, opening):
    tree = parse(opening * 200 + "W ge 0" + ")" * 200)

    assert selected(cursor, tree) == expected(tree)


# indexes


def plan(cursor, tree, indexed=()):
    condition = compile(tree, 1, indexed)
    cursor.execute("SET enable_seqscan = off")
    cursor.execute("EXPLAIN " + SELECT.format(condition.text), condition.parameters)
    lines = "\n".join(line for (line,) in cursor)
    cursor.execute("RESET enable_seqscan")
    return lines


@pytest.mark.parametrize(
    "text",
    [
        "V eq 5",
        "V eq 5L",
        "V eq 'a'",
        "V eq datetime'2020-01-01'",
        "V eq X'00' and W gt 5",
        "V eq 'a' or V eq 5L",
        "(V eq 'a' or V eq 'b') and not (W eq 5)",
        " or ".join(f"V eq {number}" for number in range(100)),
    ],
)
def test_equality_is_answered_by_the_gin_index(cursor, text):
    tree = parse(text)

    assert plan_access(tree).index_candidates() is None
    assert "Index Scan on entity_props" in plan(cursor, tree)


@pytest.mark.parametrize(
    "text",
    [
        "V ge 5 and V lt 10",
        "V gt 5L",
        "V le 5.5",
        "V ge 'a' and V lt 'b'",
        f"V gt '{'x' * 8000}'",
        "V gt datetime'2020-01-01'",
        "V lt 5 or V gt 'x'",
        "V gt 5 and PartitionKey ne 'p'",
        "Timestamp gt datetime'2020-01-01'",
    ],
)
def test_a_range_is_answered_by_the_index_of_the_property(cursor, text):
    tree = parse(text)

    assert plan_access(tree).index_candidates(INDEXED) is None
    assert re.search("Index (Only )?Scan (on|using) entity_(v|times)", plan(cursor, tree, INDEXED))


@pytest.mark.parametrize(
    "text",
    [
        "PartitionKey eq 'p' and RowKey ge 'a'",
        "PartitionKey gt 'a' and PartitionKey lt 'b'",
        " or ".join(f"PartitionKey eq '{number}'" for number in range(1000)),
    ],
    ids=["a partition", "a range", "alternatives"],
)
def test_keys_are_answered_by_the_primary_key(cursor, text):
    assert "entity_pkey" in plan(cursor, parse(text))
