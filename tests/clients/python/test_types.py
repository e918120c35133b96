"""Every EDM type: each value comes back as it was sent, from a point query and from a list."""

import math
from uuid import UUID

import pytest
from azure.data.tables import EdmType, EntityProperty

from .libraries import Synchronous

# both libraries encode and decode by the same code
pytestmark = pytest.mark.parametrize("library", [Synchronous], ids=["sync"], indirect=True)

KEYS = {"PartitionKey": "se", "RowKey": "ada"}
GUID = UUID("c9da6455-213d-42c9-9a79-3e9149a57833")
BINARY_OF_ALL_BYTES = bytes(range(256)) * 256


def returned(table, value):
    """Return the values read back: from a point query, and from a list after an insert, a merge and a replacement."""
    table.create_entity({**KEYS, "Value": value})
    table.upsert_entity({**KEYS, "RowKey": "merged", "Value": value}, mode="merge")
    table.upsert_entity({**KEYS, "RowKey": "replaced", "Value": value}, mode="replace")
    return [table.get_entity("se", "ada")["Value"], *(entity["Value"] for entity in table.list_entities())]


def test_returns_booleans(people):
    assert returned(people, True) == [True] * 4
    assert returned_type(people) is bool


@pytest.mark.parametrize("value", [0, 1, -1, 2**31 - 1, -(2**31)])
def test_returns_int32(people, value):
    assert returned(people, value) == [value] * 4
    assert returned_type(people) is int


@pytest.mark.parametrize("value", [0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)])
def test_returns_int64(people, value):
    assert returned(people, (value, EdmType.INT64)) == [EntityProperty(value, EdmType.INT64)] * 4


@pytest.mark.parametrize(
    "value",
    [
        0.0, 1.0, -1.0, 0.1, 1 / 3, 3.14, 1e16, 1e22, 123456789012345.12, 1e-7, 2.0**53, 5e-324,
        2.2250738585072014e-308, 1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf, 1e100,
    ],
)  # fmt: skip
def test_returns_doubles(people, value):
    assert returned(people, value) == [value] * 4
    assert returned_type(people) is float


def test_returns_negative_zero(people):
    values = returned(people, -0.0)

    assert values == [0.0] * 4
    assert {type(value) for value in values} == {float}


@pytest.mark.parametrize(
    "value",
    [b"", b" ", b"\x00", bytes(range(256)), b"   Text   ", b"\xff\xfe", BINARY_OF_ALL_BYTES],
    ids=lambda value: repr(value[:12]),
)
def test_returns_binaries(people, value):
    assert returned(people, value) == [value] * 4


@pytest.mark.parametrize("value", [GUID, UUID(int=0), UUID(int=2**128 - 1)])
def test_returns_guids(people, value):
    assert returned(people, value) == [value] * 4


@pytest.mark.parametrize(
    "text",
    [
        "2013-08-22T01:12:06.2608595Z",
        "1601-01-01T00:00:00Z",
        "1601-01-01T00:00:00.0000001Z",
        "1969-12-31T23:59:59.9999999Z",
        "9999-12-31T23:59:59.9999999Z",
    ],
)
def test_returns_datetimes_to_100_nanoseconds(people, text):
    values = returned(people, (text, EdmType.DATETIME))

    assert {value.tables_service_value for value in values} == {text}


def test_stores_a_datetime_it_returned_unchanged(people):
    text = "2013-08-22T01:12:06.2608595Z"
    people.create_entity({**KEYS, "Value": (text, EdmType.DATETIME)})

    people.update_entity(people.get_entity("se", "ada"), mode="replace")

    assert people.get_entity("se", "ada")["Value"].tables_service_value == text


def returned_type(table):
    return type(table.get_entity("se", "ada")["Value"])
