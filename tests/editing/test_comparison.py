"""Differences between two entities: changes of values, and changes of the type alone."""

import math

import pytest

from storage.domain.entities.differences import DifferenceKind
from storage.domain.values.edm import Edm, EdmValue
from storage.editing.comparison import compare, kind_of


def test_names_differences_in_any_property_order():
    one, two = EdmValue(Edm.INT32, 1), EdmValue(Edm.INT32, 2)

    result = compare({"A": one, "B": one, "C": one}, {"D": one, "C": two, "A": one})

    assert [(it.name, it.left, it.right) for it in result] == [
        ("B", one, None),
        ("C", one, two),
        ("D", None, one),
    ]
    assert kind_of({"A": one, "B": two}, {"B": two, "A": one}) is None


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((Edm.INT32, 41), (Edm.INT64, 41)),
        ((Edm.INT64, 41), (Edm.DOUBLE, 41.0)),
        ((Edm.INT32, 41), (Edm.STRING, "41")),
        ((Edm.BOOLEAN, True), (Edm.STRING, "true")),
        ((Edm.DATETIME, 0), (Edm.STRING, "1970-01-01T00:00:00Z")),
        (
            (Edm.GUID, "6affbc9a-cd45-f31a-a134-75fe29fd96b2"),
            (Edm.STRING, "6affbc9a-cd45-f31a-a134-75fe29fd96b2"),
        ),
        ((Edm.DOUBLE, math.nan), (Edm.STRING, "NaN")),
    ],
    ids=str,
)
def test_a_type_alone(left, right):
    assert kind_of({"A": EdmValue(*left)}, {"A": EdmValue(*right)}) is DifferenceKind.TYPE_ONLY


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((Edm.INT32, 41), (Edm.INT64, 42)),
        ((Edm.DOUBLE, 0.0), (Edm.DOUBLE, -0.0)),
        ((Edm.STRING, "41"), (Edm.STRING, "41.0")),
        ((Edm.STRING, 'a"n'), (Edm.STRING, "an")),
    ],
    ids=str,
)
def test_a_value(left, right):
    assert kind_of({"A": EdmValue(*left)}, {"A": EdmValue(*right)}) is DifferenceKind.CHANGED
    other = {"B": EdmValue(Edm.INT32, 1)}, {"B": EdmValue(Edm.INT64, 1)}
    sides = {"A": EdmValue(*left), **other[0]}, {"A": EdmValue(*right), **other[1]}
    assert kind_of(*sides) is DifferenceKind.CHANGED
