"""Plans of entities: they agree with reading and writing value by value, on every input."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from storage.domain.entities import plans
from storage.domain.entities.entity import write_fragments
from storage.domain.entities.members import read_values
from storage.domain.errors import StorageError
from storage.domain.values.kinds import AccountKind
from tests.strategies import names, texts

TYPES = [
    f"Edm.{name}" for name in ("String", "Boolean", "Int32", "Int64", "Double", "DateTime", "Guid", "Binary")
]

# input that a plan takes, input it barely refuses, and invalid input
written = st.sampled_from(
    [
        "0",
        "-0",
        "1",
        "-1",
        "007",
        "+1",
        "2147483647",
        "-2147483648",
        "2147483648",
        "999999999999999999",
        "9223372036854775807",
        "9223372036854775808",
        "NaN",
        "Infinity",
        "-Infinity",
        "INF",
        "1.0",
        "-0.0",
        "1e5",
        "true",
        "True",
        "FALSE",
        "null",
        "AAAA",
        "AAA=",
        "AAB=",
        "AA==",
        "A===",
        "AA",
        "A",
        "AA",
        "=",
        "AAAA",
        "2024-02-29T00:00:00Z",
        "2023-02-29T00:00:00Z",
        "2024-02-29T00:00:00.1200000Z",
        "2024-02-29T23:59:59.12345678Z",
        "2024-02-29T24:00:00Z",
        "2024-02-29T00:00:00+01:00",
        "2024-02-29",
        "1600-12-31T23:59:59Z",
        "1601-01-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59.9999999Z",
        "٢٠٢٤-02-29T00:00:00Z",
        "0d4b3c2e-8c1f-4f53-a9cd-0123456789ab",
        "0D4B3C2E-8C1F-4F53-A9CD-0123456789AB",
        "0d4b3c2e8c1f4f53a9cd0123456789ab",
    ]
)
numbers = (
    st.integers(-(2**64), 2**64)
    | st.integers(-(2**31) - 2, 2**31 + 1)
    | st.floats(allow_nan=False, allow_infinity=False)
)
jsons = st.one_of(written, texts, numbers, st.booleans(), st.none(), st.just([]), st.just({}))
annotations = st.sampled_from([*TYPES, "Edm.Int", "", None, 5, []])
control = st.sampled_from(
    ["odata.etag", "A@odata.type", "PartitionKey", "PartitionKey@odata.type", "Timestamp", "1x", "a-b", "a%s"]
)


@st.composite
def members(draw):
    results = {}
    for name in draw(st.lists(names | control, max_size=6)):
        results[name] = draw(jsons)
        if draw(st.booleans()):
            results[f"{name}@odata.type"] = draw(annotations)
    return results


@given(members())
@example({"A": "x" * 16384})
@example({"A": "x" * 16385})
@example({"A": "\U0001f600" * 16385})
@example({"A": "A" * 87384, "A@odata.type": "Edm.Binary"})
@example({"A": "A" * 87388, "A@odata.type": "Edm.Binary"})
@example({f"P{number}": number for number in range(252)})
@example({f"P{number}": number for number in range(253)})
def test_a_plan_agrees_with_reading_value_by_value(members):
    for encoded in (plans.encode(members), plans.encode(members)):  # the second time by the plan that is kept
        if encoded is not None:
            expected = read_values(members)
            assert encoded.fragments == write_fragments(expected)
            assert json.dumps(list(encoded)) == json.dumps(list(expected))
            assert repr(dict(encoded)) == repr(expected)


@pytest.mark.parametrize("type_", TYPES)
@given(data=st.data())
def test_a_plan_refuses_nothing_that_would_be_read(type_, data):
    """Nor takes what would be refused: errors come from reading value by value."""
    members = {"A": data.draw(jsons), "A@odata.type": type_}
    try:
        read_values(members)
    except StorageError:
        assert plans.encode(members) is None


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (None, "plain \\ \"quoted\" \n text"), (None, True), (None, 5), (None, 1.5),
        ("Edm.String", "x"), ("Edm.Boolean", False), ("Edm.Int32", -5), ("Edm.Int64", "12345678901"),
        ("Edm.Double", 2.25), ("Edm.DateTime", "2024-02-29T12:13:14.1234567Z"),
        ("Edm.Guid", "0d4b3c2e-8c1f-4f53-a9cd-0123456789ab"), ("Edm.Binary", "AAECAw=="),
    ],
)  # fmt: skip
def test_usual_values_take_the_short_way(type_, value):
    members = {"PartitionKey": "p", "RowKey": "r", "A": value}
    if type_ is not None:
        members["A@odata.type"] = type_
    for kind in AccountKind:
        result = plans.encode(members, kind)
        assert result is not None
        assert result.fragments == write_fragments(read_values(members, kind), kind)


def test_the_plans_that_are_kept_have_a_limit():
    for number in range(3 * plans.KEPT):
        plans.encode({f"P{number}": 1})
    assert len(plans._plans) <= plans.KEPT
    assert len(plans._annotations) <= plans.KEPT
