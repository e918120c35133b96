"""The key range that a filter leaves to be read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.filters.ast import Comparison, Operator
from storage.domain.filters.keys import ALL_KEYS, Bound, KeyInterval, key_range
from storage.domain.filters.parser import parse
from storage.domain.filters.writer import write
from storage.domain.values.edm import Edm, EdmValue


def included(key):
    return Bound(key, inclusive=True)


def excluded(key):
    return Bound(key, inclusive=False)


def only(key):
    return KeyInterval(included(key), included(key))


A_TO_B = KeyInterval(included("a"), excluded("b"))
BOUNDS = [
    ("PartitionKey eq 'p'", only("p"), ALL_KEYS, None),
    ("RowKey eq 'r' and (PartitionKey eq 'p' and A eq 1)", only("p"), only("r"), "A eq 1"),
    ("PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 'b'", only("p"), A_TO_B, None),
    ("PartitionKey eq 'p' and RowKey gt 'a'", only("p"), KeyInterval(lower=excluded("a")), None),
    ("PartitionKey eq 'p' and RowKey le 'a'", only("p"), KeyInterval(upper=included("a")), None),
    ("PartitionKey ge 'p' and PartitionKey le 'p' and RowKey eq 'r'", only("p"), only("r"), None),
    ("PartitionKey ge 'a' and PartitionKey lt 'b' and RowKey eq 'r'", A_TO_B, ALL_KEYS, "RowKey eq 'r'"),
    ("PartitionKey gt 'a' and PartitionKey ge 'a'", KeyInterval(lower=excluded("a")), ALL_KEYS, None),
    ("PartitionKey gt 'a' and PartitionKey ge 'b'", KeyInterval(lower=included("b")), ALL_KEYS, None),
    ("PartitionKey le 'b' and PartitionKey lt 'b'", KeyInterval(upper=excluded("b")), ALL_KEYS, None),
    ("PartitionKey lt 'b' and PartitionKey le 'a'", KeyInterval(upper=included("a")), ALL_KEYS, None),
    ("PartitionKey eq 'p' and RowKey ne 'r'", only("p"), ALL_KEYS, "RowKey ne 'r'"),
    *(
        (text, ALL_KEYS, ALL_KEYS, text)
        for text in (
            "A eq 1",
            "RowKey eq 'r'",
            "PartitionKey ne 'p'",
            "PartitionKey eq 5",
            "PartitionKey eq 'p' or PartitionKey eq 'q'",
            "not (PartitionKey eq 'p')",
        )
    ),
    ("true and PartitionKey eq 'p'", only("p"), ALL_KEYS, None),
    ("A eq 1 and true and B eq 2", ALL_KEYS, ALL_KEYS, "A eq 1 and B eq 2"),
]


@pytest.mark.parametrize(("text", "partition", "row", "residual"), BOUNDS, ids=[case[0] for case in BOUNDS])
def test_bounds(text, partition, row, residual):
    bounds = key_range(parse(text))

    assert (bounds.partition, bounds.row) == (partition, row)
    assert (write(bounds.residual) if bounds.residual else None) == residual
    assert not bounds.is_empty


def test_only_keys_bound_the_scan():
    comparison = Comparison("partitionkey", Operator.EQ, EdmValue(Edm.STRING, "p"))
    for tree in (None, comparison):
        bounds = key_range(tree)

        assert bounds.partition.is_unbounded
        assert bounds.row.is_unbounded
        assert bounds.residual == tree


@pytest.mark.parametrize(
    "text",
    [
        "PartitionKey eq 'a' and PartitionKey eq 'b'",
        "PartitionKey gt 'a' and PartitionKey lt 'a'",
        "PartitionKey gt 'a' and PartitionKey le 'a'",
        "PartitionKey gt 'b' and PartitionKey lt 'a'",
        "PartitionKey eq 'p' and RowKey eq 'a' and RowKey eq 'b'",
        "PartitionKey eq 'a\x00'",
        "PartitionKey eq '\ud800'",
    ],
    ids=ascii,
)
def test_a_contradiction_leaves_no_keys(text):
    assert key_range(parse(text)).is_empty


texts = st.text(alphabet="ab\x00\x01\ud7ff\ud800\udfff\ue000😀", max_size=3)
keys = st.text(alphabet="ab\x01\ud7ff\ue000😀", max_size=3)
orders = st.sampled_from([operator for operator in Operator if operator is not Operator.NE])


@given(st.lists(st.tuples(orders, texts), max_size=3), keys)
def test_the_interval_equals_its_comparisons(comparisons, key):
    interval = ALL_KEYS
    for operator, text in comparisons:
        interval = interval.narrowed(operator, text)

    assert contains(interval, key) is all(operator.holds(key, text) for operator, text in comparisons)
    for bound in (interval.lower, interval.upper):
        assert bound is None or (bound.key.encode() is not None and "\x00" not in bound.key)


def contains(interval, key):
    lower, upper = interval.lower, interval.upper
    above = lower is None or key > lower.key or (lower.inclusive and key == lower.key)
    below = upper is None or key < upper.key or (upper.inclusive and key == upper.key)
    return above and below and not interval.is_empty
