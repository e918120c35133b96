"""Diagnostics and quick fixes for filters that cannot be parsed or are probably a mistake."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.domain.errors import NotImplemented, StorageError
from storage.domain.filters.parser import CONSOLE_LIMIT, parse
from storage.domain.refusals import Reason
from storage.domain.values import dialects
from storage.domain.values.edm import Edm
from storage.editing.filters.diagnosis import diagnose, parse_filter
from storage.editing.filters.diagnostics import NO_SCHEMA, Schema, Severity
from storage.editing.filters.highlight import highlight_filter
from storage.editing.filters.lint import WARNING_LIMIT
from tests.cost import costs_less_than
from tests.examples import of_usual

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)


def diagnosis(text, dialect=dialects.CONSOLE):
    """Return the diagnostic of a text that is not a filter."""
    [found] = diagnose(text, KNOWN, NOW, dialect)
    assert found.severity is not Severity.WARNING
    return found


def lint(text, schema=None):
    result = diagnose(text, schema or KNOWN, NOW)
    assert {it.severity for it in result} <= {Severity.WARNING}
    return result


REPAIRED = [
    # functions that the service does not have
    ("startswith(A,'abc')", "startswith(A,'abc')", "A ge 'abc' and A lt 'abd'", Reason.FILTER_UNSUPPORTED),
    ("B and startswith(A, 'o''r')", "startswith(A, 'o''r')", "B and A ge 'o''r' and A lt 'o''s'",
     Reason.FILTER_UNSUPPORTED),
    ("startswith(A,'x') eq true", "startswith(A,'x')", "A ge 'x' and A lt 'y'", Reason.FILTER_UNSUPPORTED),
    ("startswith(A,'x') eq false", "startswith(A,'x')", "not (A ge 'x' and A lt 'y')", Reason.FILTER_UNSUPPORTED),
    ("B and not startswith(A,'x')", "startswith(A,'x')", "B and not (A ge 'x' and A lt 'y')",
     Reason.FILTER_UNSUPPORTED),
    ("startswith(A,'')", "startswith(A,'')", "A ge ''", Reason.FILTER_UNSUPPORTED),
    ("substringof('x', A)", "substringof('x', A)", "contains(A,'x')", Reason.FILTER_UNSUPPORTED),
    ("contains('x',A)", "contains('x',A)", "contains(A,'x')", Reason.FILTER_UNSUPPORTED),
    ("EndsWith(A,'x')", "EndsWith(A,'x')", "endswith(A,'x')", Reason.FILTER_UNSUPPORTED),
    ("A contains 'x'", "contains", "contains(A,'x')", Reason.FILTER_UNSUPPORTED),
    # other languages
    ("A=1", "=", "A eq 1", Reason.FILTER_SIGN),
    ("A == 1 && (B != 'a = b' || !C)", "=", "A eq 1 and (B ne 'a = b' or not C)", Reason.FILTER_SIGN),
    ("A <> 1 or B>=2", "<", "A ne 1 or B ge 2", Reason.FILTER_SIGN),
    ('A eq "o\'x"', '"', "A eq 'o''x'", Reason.FILTER_QUOTES),
    ("A eq “x”", "“", "A eq 'x'", Reason.FILTER_QUOTES),
    ("A eq 1 AND B eq 2", "AND", "A eq 1 and B eq 2", Reason.FILTER_SIGN),
    ("NOT (A eq 1) Or B", "Or", "not (A eq 1) or B", Reason.FILTER_SIGN),
    ("NOT A eq 1", "A", "not A eq 1", Reason.FILTER_SIGN),
    ("A in ('x', 'y') and B", "in", "(A eq 'x' or A eq 'y') and B", Reason.FILTER_UNSUPPORTED),
    ("A in (5)", "in", "A eq 5", Reason.FILTER_UNSUPPORTED),
    ("A like 'abc%'", "like", "A ge 'abc' and A lt 'abd'", Reason.FILTER_UNSUPPORTED),
    ("A LIKE '%abc%'", "LIKE", "contains(A,'abc')", Reason.FILTER_UNSUPPORTED),
    ("A like '%abc'", "like", "endswith(A,'abc')", Reason.FILTER_UNSUPPORTED),
    ("A like 'abc'", "like", "A eq 'abc'", Reason.FILTER_UNSUPPORTED),
    ("A between 1 and 5", "between", "A ge 1 and A le 5", Reason.FILTER_UNSUPPORTED),
    ("A eq null", "A eq null", "not isset(A)", Reason.FILTER_NULL),
    ("null ne A", "null", "isset(A)", Reason.FILTER_NULL),
    ("A is null", "is", "not isset(A)", Reason.FILTER_NULL),
    ("A IS NOT NULL and B", "IS", "isset(A) and B", Reason.FILTER_NULL),
    ("Age eqq 1", "eqq", "Age eq 1", Reason.FILTER_OPERATOR_LIKE),
    ("A eq 1 adn B eq 2", "adn", "A eq 1 and B eq 2", Reason.FILTER_OPERATOR_LIKE),
    ("A eq 1 B eq 2", "B", "A eq 1 and B eq 2", Reason.FILTER_UNEXPECTED),
    ("A gte 5", "gte", "A ge 5", Reason.FILTER_OPERATOR_LIKE),
    # quotes and parentheses
    ("A eq 'x", "'x", "A eq 'x'", Reason.FILTER_OPEN_STRING),
    ("(A eq 1 and (B eq 2", "", "(A eq 1 and (B eq 2))", Reason.FILTER_OPEN_GROUP),
    ("A eq 1)", ")", "A eq 1", Reason.FILTER_NOT_OPENED),
    ("A eq foo", "A eq foo", "A eq 'foo'", Reason.FILTER_QUOTES),
    ("A eq 5abc", "5abc", "A eq '5abc'", Reason.FILTER_QUOTES),
    ("A eq 10%", "%", "A eq '10%'", Reason.FILTER_QUOTES),
    # literals
    ("A eq True", "A eq True", "A eq true", Reason.FILTER_LETTER_CASE),
    ("A eq 1.5L", "1.5L", "A eq 1.5", Reason.FILTER_LITERAL),
    ("A ge 2024-01-01T10:00:00Z", "01T10", "A ge datetime'2024-01-01T10:00:00Z'", Reason.FILTER_PREFIX),
    ("A ge 2024-01-01", "-01", "A ge datetime'2024-01-01'", Reason.FILTER_PREFIX),
    ("At le {{now-1h}} and B", "{", "At le datetime'{{now-1h}}' and B", Reason.FILTER_PREFIX),
    ("{{ now }} le At", "{", "datetime'{{ now }}' le At", Reason.FILTER_PREFIX),
    ("A eq DateTime'2024-01-01'", "'2024-01-01'", "A eq datetime'2024-01-01'", Reason.FILTER_PREFIX),
    ("A eq datetime('2024-01-01')", "datetime('2024-01-01')", "A eq datetime'2024-01-01'", Reason.FILTER_PREFIX),
    ("A lt datetime'yesterday'", "datetime'yesterday'", "A lt datetime'2026-11-20T00:00:00Z'", Reason.FILTER_LITERAL),
    (
        "A eq 00000000-0000-0000-0000-00000000000A",
        "00000000000A",
        "A eq guid'00000000-0000-0000-0000-00000000000a'",
        Reason.FILTER_PREFIX,
    ),
    (
        "A eq guid'{00000000-0000-0000-0000-00000000000A}'",
        "guid'{00000000-0000-0000-0000-00000000000A}'",
        "A eq guid'00000000-0000-0000-0000-00000000000a'",
        Reason.FILTER_LITERAL,
    ),
    ("A eq 9223372036854775808", "9223372036854775808", "A eq '9223372036854775808'", Reason.FILTER_QUOTES),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "fault", "repaired", "reason"), REPAIRED, ids=[case[0] for case in REPAIRED]
)
def test_q4_says_where_and_repairs(text, fault, repaired, reason):
    result = diagnosis(text)

    assert text[result.start : result.end] == fault
    assert (result.fixes[0].apply(text), result.fixes[0].refusal.reason) == (repaired, reason)
    assert parse(repaired, dialects.CONSOLE, NOW) is not None


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
def test_faults_without_a_fix_are_located(text, fault):
    result = diagnosis(text)

    assert text[result.start : result.end] == fault
    assert result.fixes == ()


ERRORS = [
    ("Age eqq 1", "Unknown operator “eqq”. Did you mean eq?"),
    ("A foo 1", "Unknown operator “foo”. Use eq, ne, gt, ge, lt or le."),
    ("Paid eq True", "Write true in lowercase."),
    ("Name like 'A%'", "like isn't supported in filters."),
    ("startswith(Name,'A')", "startswith() isn't supported in filters."),
    ("A in ('x', 'y')", "in isn't supported in filters."),
    ("tolower(A) eq 'x'", "tolower() isn't supported in filters."),
    ("A/C eq 1", "/ isn't supported in filters."),
    ("A add 1 eq 2", "add isn't supported in filters."),
    ("At ge 2024-01-01", "Write a DateTime as datetime'2024-01-01'."),
    ("At ge {{now-30d}}", "Write a DateTime as datetime'{{now-30d}}'."),
    ("At ge {{nowhere}}", "Write strings in single quotes."),
    ("At ge datetime'2024'", "datetime'2024' is not a valid DateTime."),
    ("A lt datetime'yesterday'", "datetime'yesterday' is not a valid DateTime."),
    ("A eq 1.5L", "1.5L is not a valid Int64."),
    ('A eq "x"', "Write strings in single quotes."),
    ("A eq foo", "Write strings in single quotes."),
    ("A = 1", "Filters have operators of their own: eq, ne, gt, ge, lt, le, and, or, not."),
    ("A eq 'K", "The string has no closing quote."),
    ("(A eq 1", "A closing parenthesis is missing."),
    ("A eq 1)", "Syntax error: this parenthesis has no opening one."),
    ("A eq 1 or", "Syntax error: the filter ends where a property or value is expected."),
    ("A eq 1 and (", "Syntax error: the filter ends where a property or value is expected."),
    ("A eq 1 x", "Syntax error: “x” is not expected here. Join conditions with and or or."),
    ("A eq 1 B eq 2", "Syntax error: “B” is not expected here. Join conditions with and or or."),
    ("'x' eq 'y'", "Compare a property with a value, not two properties or two values."),
    ("A eq 1 and 'x'", "'x' is not a condition. Compare a property with it."),
    ("A eq null", "Properties cannot be compared with null. Use isset()."),
    ("{{x}} eq 1", "The character “{” is not allowed here."),
    ("(" * 201 + "A", "Parentheses and not can be nested at most 200 levels deep."),
    ("(" * (CONSOLE_LIMIT + 1), "A filter can have at most 100,000 characters."),
]


@pytest.mark.parametrize(("text", "sentence"), ERRORS)
def test_errors_are_explained(text, sentence):
    assert str(diagnosis(text).refusal) == sentence


def test_the_longest_filter_is_named():
    assert f"{CONSOLE_LIMIT:,}" in Reason.FILTER_TOO_LONG


@pytest.mark.parametrize("text", ["A eq 'K", "(A eq 1", "A eq 1 or"])
def test_typing_on_may_end_an_error(text):
    assert diagnosis(text).severity is Severity.UNFINISHED
    assert diagnosis("A eqq 1").severity is Severity.ERROR


@pytest.mark.parametrize(
    ("text", "sentence", "corrected"),
    [
        ("contains(A,'x')", "contains() isn't supported in filters.", []),
        ("not isset(A)", "isset() isn't supported in filters.", []),
        ("A eq null", "null isn't supported in filters.", ["not isset(A)"]),
        ("A ge {{now}}", "Write strings in single quotes.", ["A ge '{{now}}'"]),
        ("A like 'x%'", "like isn't supported in filters.", ["A ge 'x' and A lt 'y'"]),
    ],
)
def test_only_the_console_has_additions(text, sentence, corrected):
    result = diagnosis(text, dialects.STORAGE)

    assert str(result.refusal) == sentence
    assert [fix.apply(text) for fix in result.fixes] == corrected


def test_a_reader_refuses_with_the_diagnosis():
    assert parse_filter("A ge datetime'{{now-1h}}'", NOW) == parse(
        "A ge datetime'{{now-1h}}'", dialects.CONSOLE, NOW
    )
    assert parse_filter(" ", None, dialects.STORAGE) is None
    with pytest.raises(StorageError) as refused:
        parse_filter("A eq 1 or Age eqq 1", NOW)
    error = refused.value
    assert (error.code, error.span, str(error.refusal)) == (
        "InvalidInput", (14, 17), "Unknown operator “eqq”. Did you mean eq?"
    )  # fmt: skip
    assert error.text == f"Position 15: {error.refusal}"
    with pytest.raises(NotImplemented):
        parse_filter("tolower(A) eq 'x'", NOW)


def test_a_fix_may_repair_one_of_several_faults():
    text = "A = 1 and (B eq 2 or startswith(C,'x')"
    first = diagnosis(text).fixes[0].apply(text)
    second = diagnosis(first).fixes[0].apply(first)

    assert diagnosis(second).fixes[0].apply(second) == "A eq 1 and (B eq 2 or C ge 'x' and C lt 'y')"


words = (
    "A B not and or eq in like is null between ( ) , - 1 5L 'x 'x' \" = && AND true f( startswith( / {{x}}"
)
odd_texts = st.text(alphabet="AB '\"()=<&|!,5L-eq{}\u201c\u2019😀\x00\ud800") | st.text()


@settings(max_examples=of_usual(50))
@given(
    st.lists(st.sampled_from([*words.split(), "contains(A,'x')", "datetime", "2024-01-01"])).map(" ".join)
    | odd_texts
)
def test_any_text_is_read_or_diagnosed(text):
    for diagnostic in diagnose(text, KNOWN, NOW):
        assert 0 <= diagnostic.start <= diagnostic.end <= len(text)
        assert str(diagnostic.refusal)
        for repair in diagnostic.fixes:
            assert repair.apply(text) != text


@pytest.mark.parametrize(
    "text",
    [
        "=" * 20_000, '"' * 20_001, "“" * 20_001, "A eq '" + "''" * 10_000, "(" * 20_000, "f(" * 10_000,
        "A in (" * 5_000, "A in (" + "1," * 10_000, "A AND " * 4_000, "A = 'x' && " * 3_000, "null " * 5_000,
        "A eq null and " * 2_000, "{{x}}" * 4_000, "x" * 20_000 + "$",
    ],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_diagnosis_takes_linear_time(text):
    with costs_less_than(3):
        diagnosis(text)
        highlight_filter(text)


def test_a_text_beyond_all_measure_is_not_looked_at():
    result = diagnosis("(" * (CONSOLE_LIMIT + 1))

    assert (result.start, result.end, result.fixes) == (0, CONSOLE_LIMIT + 1, ())


# filters that can be read

KNOWN_TYPES = {
    "Visits": (Edm.INT64,),
    "Age": (Edm.INT32,),
    "Balance": (Edm.DOUBLE,),
    "Name": (Edm.STRING,),
    "Since": (Edm.DATETIME,),
    "Id": (Edm.GUID,),
    "Active": (Edm.BOOLEAN,),
    "Score": (Edm.INT32, Edm.STRING),
}
KNOWN = Schema(KNOWN_TYPES, is_whole=True)
DOUBTS = [
    ("Visits eq 5454161346626", "5454161346626", Reason.FILTER_INT64_SUFFIX, "Visits eq 5454161346626L"),
    ("-5454161346626 lt Visits", "-5454161346626", Reason.FILTER_INT64_SUFFIX, "-5454161346626L lt Visits"),
    ("Nmae eq 'x'", "Nmae", Reason.FILTER_UNKNOWN_PROPERTY, "Name eq 'x'"),
    ("partitionkey eq 'x'", "partitionkey", Reason.FILTER_UNKNOWN_PROPERTY, "PartitionKey eq 'x'"),
    ("contains(Nam,'x')", "Nam", Reason.FILTER_UNKNOWN_PROPERTY, "contains(Name,'x')"),
    ("not activ", "activ", Reason.FILTER_UNKNOWN_PROPERTY, "not Active"),
    ("Entirely eq 'x'", "Entirely", Reason.FILTER_UNKNOWN_PROPERTY, None),
    ("Age eq '5'", "'5'", Reason.FILTER_OTHER_TYPE, "Age eq 5"),
    ("'5' eq Age", "'5'", Reason.FILTER_OTHER_TYPE, "5 eq Age"),
    ("Age eq 5L", "5L", Reason.FILTER_OTHER_TYPE, "Age eq 5"),
    ("Name eq 5", "5", Reason.FILTER_OTHER_TYPE, "Name eq '5'"),
    ("PartitionKey eq 5", "5", Reason.FILTER_OTHER_TYPE, "PartitionKey eq '5'"),
    ("Since ge '2024-01-01'", "'2024-01-01'", Reason.FILTER_OTHER_TYPE, "Since ge datetime'2024-01-01T00:00:00Z'"),
    ("Timestamp ge '2024-01-01'", "'2024-01-01'",
     Reason.FILTER_OTHER_TYPE, "Timestamp ge datetime'2024-01-01T00:00:00Z'"),
    (
        "Id eq '00000000-0000-0000-0000-00000000000A'",
        "'00000000-0000-0000-0000-00000000000A'",
        Reason.FILTER_OTHER_TYPE,
        "Id eq guid'00000000-0000-0000-0000-00000000000a'",
    ),
    ("Active eq 'true'", "'true'", Reason.FILTER_OTHER_TYPE, "Active eq true"),
    ("Score eq true", "true", Reason.FILTER_OTHER_TYPE, "Score eq 1"),
    ("Age eq 'many'", "'many'", Reason.FILTER_OTHER_TYPE, None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "at", "reason", "repaired"), DOUBTS, ids=[case[0] for case in DOUBTS])
def test_doubts(text, at, reason, repaired):
    [doubt] = lint(text)

    assert (text[doubt.start : doubt.end], doubt.refusal.reason) == (at, reason)
    assert [repair.apply(text) for repair in doubt.fixes[:1]] == ([repaired] if repaired else [])
    assert repaired is None or not lint(repaired)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Visits eq 5454161346626", "Azure rejects 5454161346626 without the suffix L."),
        ("Nmae eq 'x'", "“Nmae” wasn't found in any entity."),
        ("Score eq true", "Score is stored as Int32, String, not Boolean."),
    ],
)
def test_probable_mistakes_are_explained(text, sentence):
    assert [str(it.refusal) for it in lint(text)] == [sentence]


def test_a_property_may_be_outside_of_a_sample():
    [found] = lint("Nmae eq 'x'", Schema(KNOWN_TYPES))
    assert str(found.refusal) == "“Nmae” wasn't found in sampled entities."


@pytest.mark.parametrize(
    "text",
    [
        "", "Age eq 5 and Visits eq 5 and Visits eq 5L and Balance eq 5 and Age eq 5.0",
        "Score eq 'x' or Score eq 5", "Since ge datetime'{{now-1h}}' and Active and isset(Id)",
        "PartitionKey eq 'p' and RowKey ge 'r'", "Name eq '5454161346626'",
        pytest.param(f"Visits eq {'0' * 5000}5", id="thousands of zeros"),
    ],
)  # fmt: skip
def test_valid_filters_get_no_warnings(text):
    assert lint(text) == []


def test_warnings_are_limited_and_absent_for_empty_tables():
    assert lint("Anything eq 5", NO_SCHEMA) == []
    assert len(lint(" or ".join(["Age eq '5'"] * 3000))) == WARNING_LIMIT


def test_every_sentence_is_said():
    texts = [text for text, *_ in [*ERRORS, *DOUBTS]]
    said = {
        it.refusal.reason
        for text in texts
        for schema in (KNOWN, Schema(KNOWN_TYPES))
        for it in diagnose(text, schema, NOW)
    }
    assert said == {reason for reason in Reason if reason.name.startswith("FILTER_")}
