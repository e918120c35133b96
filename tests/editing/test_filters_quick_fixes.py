"""What is said of a filter that cannot be read, or is probably not meant as it stands; and what would mend it."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.errors import StorageError
from storage.domain.filters.parser import CONSOLE_LIMIT, Dialect, parse
from storage.domain.values.edm import Edm
from storage.editing.filters.highlight import highlight_filter
from storage.editing.filters.lint import FINDING_LIMIT, LintRule, lint_filter
from storage.editing.filters.quick_fixes import FixReason, diagnose
from storage.editing.filters.suggestions import FilterFault
from tests.cost import costs_less_than

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)


def diagnosis(text):
    with pytest.raises(StorageError) as refusal:
        parse(text, Dialect.CONSOLE, NOW)
    return diagnose(text, refusal.value, NOW)


REPAIRED = [
    # functions that the service does not have
    ("startswith(A,'abc')", "startswith(A,'abc')", "A ge 'abc' and A lt 'abd'", FixReason.FUNCTION),
    ("B and startswith(A, 'o''r')", "startswith(A, 'o''r')", "B and A ge 'o''r' and A lt 'o''s'", FixReason.FUNCTION),
    ("startswith(A,'x') eq true", "startswith(A,'x')", "A ge 'x' and A lt 'y'", FixReason.FUNCTION),
    ("startswith(A,'x') eq false", "startswith(A,'x')", "not (A ge 'x' and A lt 'y')", FixReason.FUNCTION),
    ("B and not startswith(A,'x')", "startswith(A,'x')", "B and not (A ge 'x' and A lt 'y')", FixReason.FUNCTION),
    ("startswith(A,'')", "startswith(A,'')", "A ge ''", FixReason.FUNCTION),
    ("substringof('x', A)", "substringof('x', A)", "contains(A,'x')", FixReason.FUNCTION),
    ("contains('x',A)", "contains('x',A)", "contains(A,'x')", FixReason.FUNCTION),
    ("EndsWith(A,'x')", "EndsWith(A,'x')", "endswith(A,'x')", FixReason.FUNCTION),
    ("A contains 'x'", "contains", "contains(A,'x')", FixReason.FUNCTION),
    # other languages
    ("A=1", "=", "A eq 1", FixReason.FOREIGN_SIGN),
    ("A == 1 && (B != 'a = b' || !C)", "=", "A eq 1 and (B ne 'a = b' or not C)", FixReason.FOREIGN_SIGN),
    ("A <> 1 or B>=2", "<", "A ne 1 or B ge 2", FixReason.FOREIGN_SIGN),
    ('A eq "o\'x"', '"', "A eq 'o''x'", FixReason.FOREIGN_SIGN),
    ("A eq “x”", "“", "A eq 'x'", FixReason.FOREIGN_SIGN),
    ("A eq 1 AND B eq 2", "AND", "A eq 1 and B eq 2", FixReason.FOREIGN_SIGN),
    ("NOT (A eq 1) Or B", "Or", "not (A eq 1) or B", FixReason.FOREIGN_SIGN),
    ("NOT A eq 1", "A", "not A eq 1", FixReason.FOREIGN_SIGN),
    ("A in ('x', 'y') and B", "in", "(A eq 'x' or A eq 'y') and B", FixReason.LIST),
    ("A in (5)", "in", "A eq 5", FixReason.LIST),
    ("A like 'abc%'", "like", "A ge 'abc' and A lt 'abd'", FixReason.SQL),
    ("A LIKE '%abc%'", "LIKE", "contains(A,'abc')", FixReason.SQL),
    ("A like '%abc'", "like", "endswith(A,'abc')", FixReason.SQL),
    ("A like 'abc'", "like", "A eq 'abc'", FixReason.SQL),
    ("A between 1 and 5", "between", "A ge 1 and A le 5", FixReason.SQL),
    ("A eq null", "A eq null", "not isset(A)", FixReason.NULL),
    ("null ne A", "null", "isset(A)", FixReason.NULL),
    ("A is null", "is", "not isset(A)", FixReason.NULL),
    ("A IS NOT NULL and B", "IS", "isset(A) and B", FixReason.NULL),
    ("Age eqq 1", "eqq", "Age eq 1", FixReason.OPERATOR),
    ("A eq 1 adn B eq 2", "adn", "A eq 1 and B eq 2", FixReason.OPERATOR),
    ("A eq 1 B eq 2", "B", "A eq 1 and B eq 2", FixReason.OPERATOR),
    ("A gte 5", "gte", "A ge 5", FixReason.OPERATOR),
    # quotes and parentheses
    ("A eq 'x", "'x", "A eq 'x'", FixReason.UNCLOSED),
    ("(A eq 1 and (B eq 2", "", "(A eq 1 and (B eq 2))", FixReason.UNCLOSED),
    ("A eq 1)", ")", "A eq 1", FixReason.UNOPENED),
    ("A eq foo", "A eq foo", "A eq 'foo'", FixReason.UNQUOTED),
    ("A eq 5abc", "5abc", "A eq '5abc'", FixReason.UNQUOTED),
    ("A eq 10%", "%", "A eq '10%'", FixReason.UNQUOTED),
    # literals
    ("A eq True", "A eq True", "A eq true", FixReason.SPELLING),
    ("A eq 1.5L", "1.5L", "A eq 1.5", FixReason.SPELLING),
    ("A ge 2024-01-01T10:00:00Z", "01T10", "A ge datetime'2024-01-01T10:00:00Z'", FixReason.PREFIX),
    ("A ge 2024-01-01", "-01", "A ge datetime'2024-01-01'", FixReason.PREFIX),
    ("A eq DateTime'2024-01-01'", "'2024-01-01'", "A eq datetime'2024-01-01'", FixReason.PREFIX),
    ("A eq datetime('2024-01-01')", "datetime('2024-01-01')", "A eq datetime'2024-01-01'", FixReason.PREFIX),
    ("A lt datetime'yesterday'", "datetime'yesterday'", "A lt datetime'2026-11-20T00:00:00Z'", FixReason.SPELLING),
    (
        "A eq 00000000-0000-0000-0000-00000000000A",
        "00000000000A",
        "A eq guid'00000000-0000-0000-0000-00000000000a'",
        FixReason.PREFIX,
    ),
    (
        "A eq guid'{00000000-0000-0000-0000-00000000000A}'",
        "guid'{00000000-0000-0000-0000-00000000000A}'",
        "A eq guid'00000000-0000-0000-0000-00000000000a'",
        FixReason.SPELLING,
    ),
    ("A eq 9223372036854775808", "9223372036854775808", "A eq '9223372036854775808'", FixReason.UNQUOTED),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "fault", "repaired", "reason"), REPAIRED, ids=[case[0] for case in REPAIRED]
)
def test_q4_says_where_and_repairs(text, fault, repaired, reason):
    found = diagnosis(text)

    assert text[found.start : found.end] == fault
    assert (found.fixes[0].apply(text), found.fixes[0].reason) == (repaired, reason)
    assert parse(repaired, Dialect.CONSOLE, NOW) is not None


def test_every_kind_of_repair_is_tried():
    tried = {reason for *_, reason in REPAIRED} | {
        doubt.fixes[0].reason for doubt in lint_filter(DOUBTFUL, KNOWN, NOW)
    }

    assert tried == set(FixReason)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("tolower(A) eq 'x'", "tolower(A)"),
        ("B eq 1 and A/C eq 1", "/"),
        ("A add 1 eq 2", "add"),
        ("'x' eq 'y'", "'x' eq 'y'"),
        ("5", "5"),
        ("A eq 1 and 'x'", "'x'"),
        ("A eq", ""),
        ("A eq 1 x", "x"),
    ],
)
def test_what_cannot_be_repaired_is_shown_where_it_is(text, fault):
    found = diagnosis(text)

    assert text[found.start : found.end] == fault
    assert found.fixes == ()


@pytest.mark.parametrize(
    ("text", "fault", "name", "instead"),
    [
        ("Age eqq 1", FilterFault.OPERATOR, "eqq", "eq"),
        ("A foo 1", FilterFault.OPERATOR, "foo", ""),
        ("Paid eq True", FilterFault.LETTER_CASE, "True", "true"),
        ("Name like 'A%'", FilterFault.UNSUPPORTED, "like", "Name ge 'A' and Name lt 'B'"),
        ("startswith(Name,'A')", FilterFault.UNSUPPORTED, "startswith()", "Name ge 'A' and Name lt 'B'"),
        ("tolower(A) eq 'x'", FilterFault.UNSUPPORTED, "tolower()", ""),
        ("A/C eq 1", FilterFault.UNSUPPORTED, "/", ""),
        ("A add 1 eq 2", FilterFault.UNSUPPORTED, "add", ""),
        ("At ge 2024-01-01", FilterFault.PREFIX, "", "datetime'2024-01-01'"),
        ("At ge datetime'2024'", FilterFault.LITERAL, "datetime'2024'", ""),
        ("A eq 1.5L", FilterFault.LITERAL, "1.5L", ""),
        ('A eq "x"', FilterFault.QUOTES, "", ""),
        ("A eq foo", FilterFault.QUOTES, "A", "'foo'"),
        ("A = 1", FilterFault.SIGN, "", ""),
        ("A eq 'K", FilterFault.OPEN_STRING, "", ""),
        ("(A eq 1", FilterFault.OPEN_GROUP, "", ""),
        ("A eq 1)", FilterFault.NOT_OPENED, ")", ""),
        ("A eq 1 or", FilterFault.INCOMPLETE, "", ""),
        ("A eq 1 and (", FilterFault.INCOMPLETE, "", ""),
        ("A eq 1 x", FilterFault.UNEXPECTED, "x", ""),
        ("A eq 1 B eq 2", FilterFault.UNEXPECTED, "B", ""),
        ("'x' eq 'y'", FilterFault.OPERANDS, "'x'", ""),
        ("A eq 1 and 'x'", FilterFault.CONDITION, "'x'", ""),
        ("A eq null", FilterFault.NULL, "A", "not isset(A)"),
        ("{{x}} eq 1", FilterFault.CHARACTER, "{", ""),
        ("(" * 201 + "A", FilterFault.TOO_DEEP, "", ""),
        ("(" * (CONSOLE_LIMIT + 1), FilterFault.TOO_LONG, "", ""),
    ],
)
def test_names_the_fault(text, fault, name, instead):
    found = diagnosis(text)

    assert (found.fault, found.name, found.instead) == (fault, name, instead)


def test_one_of_several_steps_is_better_than_none():
    text = "A = 1 and (B eq 2 or startswith(C,'x')"
    first = diagnosis(text).fixes[0].apply(text)
    second = diagnosis(first).fixes[0].apply(first)

    assert diagnosis(second).fixes[0].apply(second) == "A eq 1 and (B eq 2 or C ge 'x' and C lt 'y')"


words = (
    "A B not and or eq in like is null between ( ) , - 1 5L 'x 'x' \" = && AND true f( startswith( / {{x}}"
)
odd_texts = st.text(alphabet="AB '\"()=<&|!,5L-eq{}\u201c\u2019😀\x00\ud800") | st.text()


@given(
    st.lists(st.sampled_from([*words.split(), "contains(A,'x')", "datetime", "2024-01-01"])).map(" ".join)
    | odd_texts
)
def test_any_text_is_read_or_diagnosed(text):
    try:
        parse(text, Dialect.CONSOLE, NOW)
    except StorageError as error:
        found = diagnose(text, error, NOW)
        assert 0 <= found.start <= found.end <= len(text)
        assert found.fault is not None
        for repair in found.fixes:
            assert repair.apply(text) != text
    else:
        lint_filter(text, KNOWN, NOW)


@pytest.mark.parametrize(
    "text",
    [
        "=" * 20_000, '"' * 20_001, "“" * 20_001, "A eq '" + "''" * 10_000, "(" * 20_000, "f(" * 10_000,
        "A in (" * 5_000, "A in (" + "1," * 10_000, "A AND " * 4_000, "A = 'x' && " * 3_000, "null " * 5_000,
        "A eq null and " * 2_000, "{{x}}" * 4_000, "x" * 20_000 + "$",
    ],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_a_long_text_takes_no_longer_than_it_is_long(text):
    with costs_less_than(3):
        diagnosis(text)
        highlight_filter(text)


def test_a_text_beyond_all_measure_is_not_looked_at():
    found = diagnosis("(" * (CONSOLE_LIMIT + 1))

    assert (found.start, found.end, found.fixes) == (0, CONSOLE_LIMIT + 1, ())


# filters that can be read

KNOWN = {
    "Visits": (Edm.INT64,),
    "Age": (Edm.INT32,),
    "Balance": (Edm.DOUBLE,),
    "Name": (Edm.STRING,),
    "Since": (Edm.DATETIME,),
    "Id": (Edm.GUID,),
    "Active": (Edm.BOOLEAN,),
    "Score": (Edm.INT32, Edm.STRING),
}
DOUBTFUL = "Visits eq 5454161346626 and Nmae eq 'x' and Age eq '5'"
DOUBTS = [
    ("Visits eq 5454161346626", "5454161346626", LintRule.INT64_SUFFIX, "Visits eq 5454161346626L"),
    ("-5454161346626 lt Visits", "-5454161346626", LintRule.INT64_SUFFIX, "-5454161346626L lt Visits"),
    ("Nmae eq 'x'", "Nmae", LintRule.UNKNOWN_PROPERTY, "Name eq 'x'"),
    ("partitionkey eq 'x'", "partitionkey", LintRule.UNKNOWN_PROPERTY, "PartitionKey eq 'x'"),
    ("contains(Nam,'x')", "Nam", LintRule.UNKNOWN_PROPERTY, "contains(Name,'x')"),
    ("not activ", "activ", LintRule.UNKNOWN_PROPERTY, "not Active"),
    ("Entirely eq 'x'", "Entirely", LintRule.UNKNOWN_PROPERTY, None),
    ("Age eq '5'", "'5'", LintRule.OTHER_TYPE, "Age eq 5"),
    ("'5' eq Age", "'5'", LintRule.OTHER_TYPE, "5 eq Age"),
    ("Age eq 5L", "5L", LintRule.OTHER_TYPE, "Age eq 5"),
    ("Name eq 5", "5", LintRule.OTHER_TYPE, "Name eq '5'"),
    ("PartitionKey eq 5", "5", LintRule.OTHER_TYPE, "PartitionKey eq '5'"),
    ("Since ge '2024-01-01'", "'2024-01-01'", LintRule.OTHER_TYPE, "Since ge datetime'2024-01-01T00:00:00Z'"),
    ("Timestamp ge '2024-01-01'", "'2024-01-01'", LintRule.OTHER_TYPE, "Timestamp ge datetime'2024-01-01T00:00:00Z'"),
    (
        "Id eq '00000000-0000-0000-0000-00000000000A'",
        "'00000000-0000-0000-0000-00000000000A'",
        LintRule.OTHER_TYPE,
        "Id eq guid'00000000-0000-0000-0000-00000000000a'",
    ),
    ("Active eq 'true'", "'true'", LintRule.OTHER_TYPE, "Active eq true"),
    ("Score eq true", "true", LintRule.OTHER_TYPE, "Score eq 1"),
    ("Age eq 'many'", "'many'", LintRule.OTHER_TYPE, None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "at", "reason", "repaired"), DOUBTS, ids=[case[0] for case in DOUBTS])
def test_doubts(text, at, reason, repaired):
    [doubt] = lint_filter(text, KNOWN, NOW)

    assert (text[doubt.start : doubt.end], doubt.reason) == (at, reason)
    assert [repair.apply(text) for repair in doubt.fixes[:1]] == ([repaired] if repaired else [])
    assert repaired is None or not lint_filter(repaired, KNOWN, NOW)


@pytest.mark.parametrize(
    "text",
    [
        "", "Age eq 5 and Visits eq 5 and Visits eq 5L and Balance eq 5 and Age eq 5.0",
        "Score eq 'x' or Score eq 5", "Since ge datetime'{{now-1h}}' and Active and isset(Id)",
        "PartitionKey eq 'p' and RowKey ge 'r'", "Name eq '5454161346626'",
        pytest.param(f"Visits eq {'0' * 5000}5", id="thousands of zeros"),
    ],
)  # fmt: skip
def test_has_no_doubts_of_what_fits(text):
    assert lint_filter(text, KNOWN, NOW) == []


def test_has_a_few_doubts_at_once_and_none_of_an_empty_table():
    assert lint_filter("Anything eq 5", {}, NOW) == []
    assert len(lint_filter(" or ".join(["Age eq '5'"] * 3000), KNOWN, NOW)) == FINDING_LIMIT
