"""Three-way merge: changes that combine, and conflicts that the user must resolve."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.values.edm import Edm, EdmValue
from storage.editing.merge import Conflict, changed_names, is_same, merge


def text(value):
    return EdmValue(Edm.STRING, value)


ONE, TWO, THREE = text("1"), text("2"), text("3")


def test_takes_one_sided_changes():
    base = {"A": ONE, "B": ONE, "C": ONE}

    result = merge(base, {"A": TWO, "B": ONE, "C": ONE, "D": ONE}, {"A": ONE, "B": TWO, "C": ONE, "E": ONE})

    assert result.properties == {"A": TWO, "B": TWO, "C": ONE, "D": ONE, "E": ONE}
    assert result.conflicts == ()


@pytest.mark.parametrize(
    ("base", "theirs", "mine"),
    [
        pytest.param({"A": ONE}, {"A": TWO}, {"A": THREE}, id="both changed"),
        pytest.param({"A": ONE}, {}, {"A": THREE}, id="they removed what I changed"),
        pytest.param({"A": ONE}, {"A": TWO}, {}, id="I removed what they changed"),
        pytest.param({}, {"A": TWO}, {"A": THREE}, id="both added"),
        pytest.param({"A": ONE}, {"A": TWO}, {"A": EdmValue(Edm.INT32, 2)}, id="to other types"),
    ],
)
def test_asks_where_both_changed(base, theirs, mine):
    result = merge(base, theirs, mine)

    assert result.conflicts == (Conflict("A", base.get("A"), theirs.get("A"), mine.get("A")),)
    assert result.properties == theirs
    assert result.settled(frozenset({"A"})) == mine
    assert result.settled(frozenset()) == theirs


@pytest.mark.parametrize(
    ("base", "theirs", "mine", "properties"),
    [
        ({"A": ONE}, {"A": TWO}, {"A": TWO}, {"A": TWO}),
        ({"A": ONE}, {}, {}, {}),
        ({"A": ONE}, None, {"A": TWO, "B": ONE}, {"A": TWO, "B": ONE}),
    ],
    ids=["both changed it", "both removed it", "they deleted the entity"],
)
def test_does_not_ask_where_both_did_the_same_or_nothing_is_theirs(base, theirs, mine, properties):
    result = merge(base, theirs, mine)

    assert (result.properties, result.conflicts) == (properties, ())


def test_lists_changes_in_order():
    assert changed_names({"B": ONE, "A": ONE, "C": ONE}, {"D": ONE, "C": TWO, "A": ONE}) == ["B", "C", "D"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (EdmValue(Edm.DOUBLE, math.nan), EdmValue(Edm.DOUBLE, math.nan), True),
        (EdmValue(Edm.DOUBLE, 0.0), EdmValue(Edm.DOUBLE, -0.0), False),
        (EdmValue(Edm.DOUBLE, 1.0), EdmValue(Edm.INT32, 1), False),
        (EdmValue(Edm.INT32, 1), EdmValue(Edm.INT64, 1), False),
        (EdmValue(Edm.INT64, 1), text("1"), False),
        (EdmValue(Edm.BOOLEAN, True), EdmValue(Edm.INT32, 1), False),
        (text(""), None, False),
        (None, None, True),
        (text("\x00\ud800"), text("\x00\ud800"), True),
    ],
)
def test_knows_values_that_are_stored_alike(one, other, same):
    assert is_same(one, other) is same


PROPERTIES = st.dictionaries(
    st.sampled_from("ABCD"), st.sampled_from([ONE, TWO, EdmValue(Edm.DOUBLE, math.nan)])
)


@given(PROPERTIES, PROPERTIES, PROPERTIES)
def test_loses_nothing(base, theirs, mine):
    result = merge(base, theirs, mine)
    in_conflict = {conflict.name for conflict in result.conflicts}

    for name in {*base, *theirs, *mine} - in_conflict:
        of_mine = not is_same(base.get(name), mine.get(name))
        assert is_same(result.properties.get(name), (mine if of_mine else theirs).get(name))
    assert merge(base, theirs, base).properties == theirs
    assert merge(base, base, mine).settled(frozenset()) == mine
