"""Patterns of keys and kinds of entities, and keys that only resemble them."""

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.design.keys import KeyName, KeyPattern, find_patterns, read_inverted_ticks, read_ticks
from storage.design.kinds import find_kinds, find_mixed
from storage.domain.entities.entity import EntityKey
from storage.domain.values.edm import Edm
from storage.sql.design import PropertySet

UNPADDED, DATE = KeyPattern.UNPADDED, KeyPattern.DATE


def of_rows(*rows):
    return [EntityKey("p", row) for row in rows]


def patterns(keys):
    return {(it.key, it.pattern) for it in find_patterns(keys)}


@pytest.mark.parametrize(
    ("rows", "pattern", "examples"),
    [
        (["1", "2", "10"], UNPADDED, ("2", "10")),
        (["order-9", "order-10"], UNPADDED, ("order-9", "order-10")),
        (["27.11.2026", "01.12.2026"], DATE, ("01.12.2026", "27.11.2026")),
        (["1.2.2026", "11.2.2026"], DATE, ("1.2.2026", "11.2.2026")),
        (["2026-1-2", "2026-11-2"], DATE, ("2026-1-2", "2026-11-2")),
        (["2516789012345678901", "2516789012345678902"], KeyPattern.INVERTED_TICKS, ()),
        (["2516789012345678901_dev-7", "2516789012345678901_dev-8"], KeyPattern.INVERTED_TICKS, ()),
        (["639000000000000000", "639000000000000001"], KeyPattern.TICKS, ()),
        (["Ada", "ada"], KeyPattern.MIXED_CASE, ("Ada", "ada")),
        (["x" * 900, "y"], KeyPattern.LONG, ("x" * 900,)),
        (["50%", "x"], KeyPattern.DIFFICULT, ("50%",)),
        (["O'Brien", "x"], KeyPattern.DIFFICULT, ("O'Brien",)),
    ],
)
def test_patterns_of_row_keys(rows, pattern, examples):
    found = [it for it in find_patterns(of_rows(*rows)) if it.key is KeyName.ROW]
    assert [it.pattern for it in found] == [pattern]
    assert found[0].examples[: len(examples)] == examples


@pytest.mark.parametrize(
    "rows",
    [
        ["01", "02", "10"],
        ["1", "2", "3"],
        ["order-09", "order-10"],
        ["2026-11-27", "2026-12-01"],
        ["2026-11-27T10", "2026-11-27T11"],
        ["7e1", "7e12", "a3", "b44", "c5", "d666", "e7", "f88"],  # hexadecimal: few are numbers by chance
        ["31.12.9999", "x"],
        ["0" * 19, "1" * 19],  # no time that a table has
        ["1MBFDx", "1MbFDx"],  # random, and alike by chance
        ["a", "b", ""],
    ],
)
def test_other_row_keys_have_no_pattern(rows):
    assert [it.pattern for it in find_patterns(of_rows(*rows)) if it.key is KeyName.ROW] == []


def test_rows_of_different_partitions_are_not_compared():
    keys = [EntityKey("a", "9"), EntityKey("b", "10"), EntityKey("c", "Ada"), EntityKey("d", "ada")]
    assert patterns(keys) == set()


def test_guids_are_a_pattern_of_partition_keys_and_counted_with_all_their_entities():
    guids = ["f3b0c442-98fc-1c14-9afb-f4c8996fb924", "a3b0c442-98fc-1c14-9afb-f4c8996fb924"]
    [guid] = [
        it
        for it in find_patterns([EntityKey(one, row) for one in guids for row in "ab"])
        if it.pattern is KeyPattern.GUID
    ]
    assert (guid.key, guid.entities) == (KeyName.PARTITION, 4)


def test_ticks_are_times():
    assert str(read_ticks("639000000000000000"))[:4] == "2025"
    assert str(read_inverted_ticks("2516378975999999999"))[:4] == "2025"
    assert read_inverted_ticks("639000000000000000") is None
    assert read_ticks("0639000000000000000") == read_ticks("639000000000000000")


@given(st.lists(st.text(alphabet="0123456789", min_size=1, max_size=12), unique=True, max_size=30))
def test_numbers_are_unpadded_exactly_if_their_order_is_wrong(digits):
    unpadded = [it for it in find_patterns(of_rows(*digits)) if it.pattern is UNPADDED]
    is_wrong = sorted(digits) != sorted(digits, key=lambda it: (int(it), it))
    assert bool(unpadded) == is_wrong
    for it in unpadded:
        first, second = it.examples[:2]
        assert int(first) < int(second) and first > second
        padded = [one.rjust(it.width, "0") for one in digits]
        assert sorted(padded) == sorted(padded, key=int)


def test_padded_numbers_that_are_equal_stay_apart():
    """Numbers such as 7 and 07 cannot be padded to different keys: the edit refuses the second of them."""
    assert patterns(of_rows("7", "07", "10")) == {(KeyName.ROW, UNPADDED)}


# kinds


def sets(*described):
    return [
        PropertySet(tuple((name, Edm.STRING) for name in names.split()), number, EntityKey("p", names))
        for names, number in described
    ]


def test_sets_of_similar_properties_are_one_kind():
    kinds = find_kinds(
        sets(("First Last Mail", 50), ("First Last Mail Phone", 30), ("Budget Head", 20), ("First Last", 5))
    )
    assert [(it.entities, it.filter) for it in kinds] == [(85, "isset(First)"), (20, "isset(Budget)")]
    assert dict(kinds[0].properties)["Phone"] == 30 / 85


def test_one_kind_needs_no_filter_and_a_subset_is_told_by_what_it_lacks():
    assert [it.filter for it in find_kinds(sets(("A B", 3)))] == [""]
    kinds = find_kinds(sets(("A B C D E F", 3), ("A B", 2)))
    assert [it.filter for it in kinds] == ["isset(C)", "not isset(C)"]


def test_optional_properties_make_no_kinds():
    optional = [f"O{number}" for number in range(8)]
    combined = [" ".join(["Name", *some]) for number in range(4) for some in combinations(optional, number)]
    [kind] = find_kinds(sets(*[(names, 1) for names in combined]))
    assert kind.entities == len(combined)


def test_mixed_properties_name_their_types_by_frequency():
    text, number = ("N", Edm.STRING), ("N", Edm.INT32)
    [mixed] = find_mixed(
        [PropertySet((text,), 2, EntityKey("p", "a")), PropertySet((number,), 5, EntityKey("p", "b"))]
    )
    assert mixed.types == ((Edm.INT32, 5), (Edm.STRING, 2))
    assert Counter(dict(mixed.types)).total() == 7
