"""Values that become places, and the law that the same values make the same filter of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.filters import parse
from storage.editing.filters.parameters import (
    add_parameters,
    fill_parameters,
    list_parameters,
    suggest_parameters,
)

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
    assert add_parameters(text, []) == text


def test_only_those_that_are_wanted():
    assert add_parameters("Age ge 1 and Age lt 5", ["Age2", "Other"]) == "Age ge 1 and Age lt {{Age2}}"


compared = st.builds(
    "{} {} {}".format,
    st.sampled_from(["PartitionKey", "Age", "Größe", "eq", "datetime", "now"]),
    st.sampled_from(["eq", "ne", "gt", "ge", "lt", "le"]),
    st.text(alphabet="ab' ()=").map(lambda text: "'" + text.replace("'", "''") + "'")
    | st.sampled_from(["1", "-1", "30L", "1.5", "true", "NaN", "X'00ff'", "datetime'2026-01-01T00:00:00Z'"]),
)


@given(st.lists(compared, min_size=1, max_size=6).map(" and ".join))
def test_the_same_values_say_the_same(text):
    found = suggest_parameters(text)
    placed = add_parameters(text, [offer.name for offer in found])
    assert list_parameters(placed) == tuple(offer.name for offer in found)
    filled = fill_parameters(placed, {offer.name: offer.value for offer in found})
    assert repr(parse(filled)) == repr(parse(text))
