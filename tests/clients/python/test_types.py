"""Every EDM type: each value comes back as it was sent, from a point query and from a list."""

import math
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from uuid import UUID

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import EdmType, EntityProperty

from .libraries import Synchronous

# both libraries encode and decode by the same code
pytestmark = pytest.mark.parametrize("library", [Synchronous], ids=["sync"], indirect=True)

KEYS = {"PartitionKey": "se", "RowKey": "ada"}
GUID = UUID("c9da6455-213d-42c9-9a79-3e9149a57833")
BINARY_OF_ALL_BYTES = bytes(range(256)) * 256
FAMILY = "😀\U0001f469\u200d\U0001f469\u200d\U0001f467"
ALL_PLANES = "".join(chr(code) for code in (0x24, 0xE9, 0x20AC, 0xD55, 0xFFFD, 0x10348, 0x1F600, 0x10FFFF))


class Colour(Enum):
    RED = "red"


def returned(table, value):
    """What comes back for a value: from a point query, and from a list after an insert, a merge and a replacement."""
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


def test_returns_no_number(people):
    assert all(math.isnan(value) for value in returned(people, math.nan))


def test_returns_negative_zero(people):
    values = returned(people, -0.0)

    assert values == [0.0] * 4
    assert {type(value) for value in values} == {float}


@pytest.mark.parametrize(
    "value",
    [
        "", " ", "   Text   ", "quotes ' \" ` ''", "100% + %2B %00", "a+b", "back\\slash /", "\n\r\t\b\f", "\x00",
        "a\x00b", "\x01\x1f\x7f\x9f", "null", "true", "2020-01-01T00:00:00Z", str(GUID), "12345", "ꀕ", FAMILY,
        "e\u0301 é", "\u2028\u2029", "\ufeff", "\uffff\ufffe", ALL_PLANES, "\ud800", "low \udfff", "a\ud83d",
        "\udc00\ud800", "<a>&amp;", '{"a":[1]}', "$top", "--batch_x\r\nContent-Type: text/plain\r\n\r\n",
        "x" * 32768, "é" * 32768, "😀" * 16384, "\x00" * 32768,
    ],
    ids=lambda value: ascii(value[:12]),
)  # fmt: skip
def test_returns_strings(people, value):
    assert returned(people, value) == [value] * 4


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
    "text", ["C9DA6455-213D-42C9-9A79-3E9149A57833", "c9da6455-213d-42c9-9a79-3e9149a57833"]
)
def test_reads_guids_in_any_case(people, text):
    assert returned(people, (text, EdmType.GUID)) == [GUID] * 4


@pytest.mark.parametrize(
    "value",
    [
        datetime(1601, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2011, 11, 4, 0, 5, 23, 283000, tzinfo=UTC),
        datetime(2026, 2, 28, 23, 59, 59, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(2003, 9, 27, 9, 52, 43, tzinfo=timezone(timedelta(hours=-3))),
    ],
    ids=str,
)
def test_returns_datetimes(people, value):
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


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("2008-07-10T00:00:00", "2008-07-10T00:00:00Z"),
        ("2020-01-01T00:00:00.5000000Z", "2020-01-01T00:00:00.5Z"),
        ("2020-01-01T02:00:00+02:00", "2020-01-01T00:00:00Z"),
        ("2020-01-01T00:00Z", "2020-01-01T00:00:00Z"),
    ],
)
def test_writes_datetimes_in_one_form(people, text, kept):
    values = returned(people, (text, EdmType.DATETIME))

    assert {value.tables_service_value for value in values} == {kept}


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        (("false", "Edm.Boolean"), False),
        (("True", EdmType.BOOLEAN), True),
        ((42, EdmType.STRING), "42"),
        (("23", EdmType.INT32), 23),
        ((12345, "Edm.Int32"), 12345),
        ((64, EdmType.INT64), (64, EdmType.INT64)),
        (("1152921504606846976", EdmType.INT64), (2**60, EdmType.INT64)),
        (("test", EdmType.BINARY), b"test"),
        (("0", EdmType.DOUBLE), 0.0),
        (("3.14", EdmType.DOUBLE), 3.14),
        ((10, EdmType.DOUBLE), 10.0),
        (("NaN-like", EdmType.STRING), "NaN-like"),
        ((str(GUID), EdmType.GUID), GUID),
        (("not a guid", EdmType.STRING), "not a guid"),
        (Colour.RED, "Colour.RED"),
    ],
    ids=str,
)
def test_reads_values_given_with_their_type(people, typed, value):
    values = returned(people, typed)

    assert values == [value] * 4
    assert {type(found) for found in values} == {type(value) if type(value) is not tuple else EntityProperty}


@pytest.mark.parametrize(
    "typed",
    [
        ("not a bool", EdmType.BOOLEAN),
        (2, EdmType.BOOLEAN),
        ("", EdmType.DOUBLE),
        ("abc", EdmType.DOUBLE),
        ("13e7705", EdmType.DOUBLE),
        ("not a guid", EdmType.GUID),
        ("", EdmType.GUID),
        ("yesterday", EdmType.DATETIME),
        ("", EdmType.DATETIME),
        ("2020-13-01T00:00:00Z", EdmType.DATETIME),
        ("0001-01-01T00:00:00Z", EdmType.DATETIME),
        ("1600-12-31T23:59:59.9999999Z", EdmType.DATETIME),
    ],
    ids=str,
)
@pytest.mark.parametrize("write", ["create_entity", "upsert_entity", "update_entity"])
def test_refuses_values_that_are_not_of_their_type(people, write, typed):
    people.upsert_entity({**KEYS, "RowKey": "before"})
    row = "ada" if write == "create_entity" else "before"

    with pytest.raises(HttpResponseError) as refusal:
        getattr(people, write)({**KEYS, "RowKey": row, "Value": typed})

    assert refusal.value.status_code == 400
    assert list(people.list_entities()) == [{**KEYS, "RowKey": "before"}]


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**63])
def test_the_sdk_keeps_int32_in_range(people, value):
    with pytest.raises(TypeError, match="too large to be cast to"):
        people.create_entity({**KEYS, "Value": value})


def test_reads_annotations_given_as_ordinary_properties(people):
    people.create_entity(
        {
            **annotated("PartitionKey", "se", "Edm.String"),
            **annotated("RowKey", "ada", "Edm.String"),
            **annotated("Count", "12345", "Edm.Int32"),
            **annotated("Flag", "False", "Edm.Boolean"),
            **annotated("Data", b"testdata", "Edm.Binary"),
            **annotated("Since", datetime(2022, 4, 1, 9, 30, 45, tzinfo=UTC), "Edm.DateTime"),
            **annotated("Id", GUID, "Edm.Guid"),
            **annotated("Text", "Foobar", "Edm.String"),
            **annotated("Ratio", "3.14", "Edm.Double"),
            **annotated("Big", "1152921504606846976", "Edm.Int64"),
        }
    )

    assert people.get_entity("se", "ada") == {
        **KEYS,
        "Count": 12345,
        "Flag": False,
        "Data": b"testdata",
        "Since": datetime(2022, 4, 1, 9, 30, 45, tzinfo=UTC),
        "Id": GUID,
        "Text": "Foobar",
        "Ratio": 3.14,
        "Big": (2**60, EdmType.INT64),
    }


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1])
def test_refuses_int64_out_of_range(people, number):
    with pytest.raises(HttpResponseError, match='"code":"InvalidInput"') as refusal:
        people.create_entity({**KEYS, **annotated("Value", str(number), "Edm.Int64")})

    assert "An error occurred while processing this request." in str(refusal.value)


def test_takes_a_key_with_a_type_when_it_updates(people):
    people.create_entity(KEYS)

    people.upsert_entity(
        {**annotated("PartitionKey", "se", "Edm.Guid"), "RowKey": "ada", "Value": 1}, mode="replace"
    )

    assert people.get_entity("se", "ada") == {**KEYS, "Value": 1}


def returned_type(table):
    return type(table.get_entity("se", "ada")["Value"])


def annotated(name, value, kind):
    """A property with its annotation as a property of its own, as the Azure CLI gives them to the SDK."""
    return {name: value, f"{name}@odata.type": kind}
