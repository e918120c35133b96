"""Parameters of a filter: finding, filling and suggesting them."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.errors import InvalidInput
from storage.domain.filters.ast import Comparison, Operator
from storage.domain.filters.parser import parse
from storage.domain.refusals import Reason
from storage.domain.values.edm import Edm, EdmValue
from storage.editing.filters.parameters import (
    UnfilledParameter,
    add_parameters,
    fill_parameters,
    fill_samples,
    list_parameters,
    suggest_parameters,
)

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("A eq 1", ()),
        ("A eq '{{tenant}}'", ("tenant",)),
        ("A eq {{ size }} and B eq '{{tenant}}-{{size}}'", ("size", "tenant")),
        ("A eq 'it''s {{größe_1}}'", ("größe_1",)),
        ("A ge datetime'{{now}}' and A lt datetime'{{now-24h}}'", ()),
        ("A ge datetime'{{since}}'", ("since",)),
        ("A eq '{{1st}} {{}} {{a b}} {x}'", ()),
    ],
)
def test_the_names_of_the_places(text, names):
    assert list_parameters(text) == names


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("A eq '{{text}}'", "A eq 'o''reilly'"),
        ("A eq 'x {{text}} {{number}}'", "A eq 'x o''reilly  5L '"),
        ("A eq {{number}}", "A eq 5L"),
        ("A eq {{quoted}}", "A eq 'a'"),
        ("(A eq {{number}})", "(A eq 5L)"),
        ("A eq{{number}}and B eq 1", "A eq 5L and B eq 1"),
        ("A eq 'x'{{quoted}}", "A eq 'x' 'a'"),
        ("A eq guid'{{id}}'", "A eq guid'{{text}}'"),
        ("A ge datetime'{{now-1d}}'", "A ge datetime'{{now-1d}}'"),
    ],
)
def test_fills(text, filled):
    values = {"text": "o'reilly", "number": " 5L ", "quoted": "'a'", "id": "{{text}}"}

    assert fill_parameters(text, values) == filled


@pytest.mark.parametrize(
    "value",
    ["", " ", "1 or true", "1)", "A", "not", "5 5", "'a' 'b'", "'a", "(1)", "1,2", "X'0'", "5.5L", "null"],
)
def test_an_unquoted_parameter_takes_one_literal(value):
    with pytest.raises(UnfilledParameter) as refusal:
        fill_parameters("A eq {{x}}", {"x": value})

    assert (refusal.value.name, refusal.value.refusal.reason) == ("x", Reason.PARAMETER_NOT_A_LITERAL)


def test_refuses_to_leave_a_place_empty():
    for text in ("A eq {{x}}", "A eq '{{x}}'"):
        with pytest.raises(UnfilledParameter) as refusal:
            fill_parameters(text, {"y": "1"})

        assert (refusal.value.name, refusal.value.refusal.reason) == ("x", Reason.PARAMETER_MISSING)


@given(st.text(alphabet="'{}x now-1h()") | st.text())
def test_whatever_is_put_in_quotes_is_text(value):
    filled = fill_parameters("Flag and A eq '<{{x}}>'", {"x": value})

    assert parse(filled).operands[1] == Comparison("A", Operator.EQ, EdmValue(Edm.STRING, f"<{value}>"))


@pytest.mark.parametrize(
    ("place", "meant"),
    [
        ("{{ now }}", "2026-11-21T12:30:00Z"),
        ("{{now-90m}}", "2026-11-21T11:00:00Z"),
        ("{{now - 7d}}", "2026-11-14T12:30:00Z"),
        ("{{now+2w}}", "2026-12-05T12:30:00Z"),
        ("{{now-24y}}", None),
        ("{{now-99999h}}", None),
        ("{{now -}}", None),
        ("x{{now}}", None),
    ],
)
def test_relative_times_use_the_run_time(place, meant):
    text = f"T ge datetime'{place}' and A eq '{{{{now-24h}}}}' and B eq 'datetime''{{{{now}}}}'''"

    if meant is None:
        with pytest.raises(InvalidInput):
            parse(text, now=NOW)
    else:
        assert parse(text, now=NOW) == parse(text.replace(place, meant))


def test_a_value_may_be_relative_itself():
    filled = fill_parameters("T ge datetime'{{since}}' and A eq '{{since}}'", {"since": "{{now-1h}}"})

    assert parse(filled, now=NOW) == parse("T ge datetime'2026-11-21T11:30:00Z' and A eq '{{now-1h}}'")


EXAMPLES = [
    ("PartitionKey eq 'se' and Age ge 30", "PartitionKey eq '{{PartitionKey}}' and Age ge {{Age}}"),
    ("Age ge 1 and Age lt 5L", "Age ge {{Age}} and Age lt {{Age2}}"),
    ("Name eq 'O''Hara' or not (Active eq true)", "Name eq '{{Name}}' or not (Active eq {{Active}})"),
    ("Since lt datetime'2026-01-01T00:00:00Z'", "Since lt datetime'{{Since}}'"),
    ("now eq 1", "now eq {{now2}}"),
    ("eq eq 1", "eq eq {{eq}}"),
    ("contains(Name,'a')", "contains(Name,'{{Name}}')"),
    ("Since gt datetime'{{now-24h}}' and Name eq '{{who}}'", None),
    ("Name eq", None),
    ("Name eq 'x", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "expected"), EXAMPLES)
def test_values_become_places(text, expected):
    names = [offer.name for offer in suggest_parameters(text)]
    assert add_parameters(text, names) == (expected or text)
    assert add_parameters(text, ["Other"]) == text


compared = st.builds(
    "{} {} {}".format,
    st.sampled_from(["PartitionKey", "Age", "Größe", "eq", "datetime", "now"]),
    st.sampled_from(["eq", "ne", "gt", "ge", "lt", "le"]),
    st.text(alphabet="ab' ()=").map(lambda text: "'" + text.replace("'", "''") + "'")
    | st.sampled_from(["1", "-1", "30L", "1.5", "true", "NaN", "X'00ff'", "datetime'2026-01-01T00:00:00Z'"]),
)


@given(st.lists(compared, min_size=1, max_size=6).map(" and ".join))
def test_the_same_values_say_the_same(text):
    result = suggest_parameters(text)
    placed = add_parameters(text, [offer.name for offer in result])
    assert list_parameters(placed) == tuple(offer.name for offer in result)
    filled = fill_parameters(placed, {offer.name: offer.value for offer in result})
    assert repr(parse(filled)) == repr(parse(text))


@pytest.mark.parametrize(
    ("text", "samples"),
    [
        ("Age ge {{least}}", ["Age ge 1", "Age ge 'a'"]),
        ("Name eq 'x {{name}}'", ["Name eq 'a'"] * 2),
        ("At ge datetime'{{day}}T00:00:00Z' and Ok", ["At ge datetime'2000-01-01T00:00:00Z' and Ok"] * 2),
        ("Raw eq X'{{raw}}' or Name eq '{x}'", ["Raw eq X'00' or Name eq '{x}'"] * 2),
    ],
)
def test_samples_stand_where_values_will(text, samples):
    assert fill_samples(text) == samples
