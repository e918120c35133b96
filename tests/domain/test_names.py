"""What may name an account, a table, a property; what may be a key."""

import pytest
from hypothesis import given

from storage.domain.errors import (
    InvalidResourceName,
    KeyValueTooLarge,
    OutOfRangeInput,
    PropertyNameInvalid,
    PropertyNameTooLong,
)
from storage.domain.values.names import (
    KEY_LENGTH_LIMIT,
    check_key,
    check_property_name,
    fold_table_name,
    is_account_name,
    is_analytics_name,
)
from tests.strategies import keys, names


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("devstoreaccount1", True),
        ("abc", True),
        ("a" * 24, True),
        ("123", True),
        ("ab", False),
        ("a" * 25, False),
        ("", False),
        ("Abc", False),
        ("a-b", False),
        ("abc\n", False),
        ("abcé", False),
        ("ab٣", False),
    ],
)
def test_account_names(name, expected):
    assert is_account_name(name) is expected


@pytest.mark.parametrize("name", ["abc", "People", "T42", "a" * 63, "tables1", "Table"])
def test_a_table_is_known_by_its_lower_case_name(name):
    assert fold_table_name(name) == name.lower()


@pytest.mark.parametrize(
    "name",
    [
        "1abc", "a-b", "a_b", "a b", "$logs", "$Metrics", "$Metric\u017fHourPrimary", "$MetricsHour1",
        "tablé", "ab٣", "abc\n", "a-", "tables", "TABLES", "x" * 70 + "!",
    ],
)  # fmt: skip
def test_refuses_table_names_by_their_characters_first(name):
    with pytest.raises(InvalidResourceName, match="The specifed resource name contains invalid characters"):
        fold_table_name(name)


@pytest.mark.parametrize("name", ["$MetricsHourPrimaryTransactionsTable", "$METRICSX"])
def test_what_the_service_writes_has_names_of_its_own(name):
    assert is_analytics_name(fold_table_name(name))
    assert not is_analytics_name(fold_table_name(name[1:]))


@pytest.mark.parametrize("name", ["", "a", "ab", "a" * 64, "a" * 10_000])
def test_refuses_table_names_by_their_length(name):
    with pytest.raises(OutOfRangeInput, match="resource name length is not within the permissible limits"):
        fold_table_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "A", "_", "_1", "a" * 255, "é", "Ж", "名前", "Ⅷ", "a٣", "aु", "a‿b", "𝐀", "𝐀" * 127, "ETag",
        "timestamp", "class",
    ],
)  # fmt: skip
def test_property_names(name):
    check_property_name(name)


@pytest.mark.parametrize(
    "name",
    ["", "1a", "123", "a-b", "a b", "a.b", "a:b", "a@b", "a$", "a\n", "٣a", "😀", "\ud800", "a\x00", "a'"],
)
def test_refuses_property_names(name):
    with pytest.raises(PropertyNameInvalid):
        check_property_name(name)


@pytest.mark.parametrize("name", ["a" * 256, "𝐀" * 128, "1" * 256])
def test_refuses_property_names_that_are_too_long(name):
    with pytest.raises(PropertyNameTooLong):
        check_property_name(name)


@given(names)
def test_generated_property_names_are_names(name):
    check_property_name(name)


@given(keys)
def test_almost_any_text_is_a_key(key):
    check_key("RowKey", key)


@pytest.mark.parametrize(
    "key", ["", " ", "'", "%", "+", "%2F", "a,b(c)=", "😀", "\ue000", "\uffff", "\xa0", "~", "\u200b"]
)
def test_troublesome_keys(key):
    check_key("PartitionKey", key)


@pytest.mark.parametrize("key", ["x" * 1024, "名" * 1024, "😀" * 512])
def test_a_key_holds_1024_utf16_units_and_no_more(key):
    assert KEY_LENGTH_LIMIT == 1024
    check_key("PartitionKey", key)
    with pytest.raises(KeyValueTooLarge):
        check_key("PartitionKey", key + "x")


def test_the_limit_of_keys_may_be_lower():
    check_key("RowKey", "x" * 512, limit=512)
    check_key("RowKey", "😀" * 256, limit=512)
    for key in ("x" * 513, "😀" * 256 + "x"):
        with pytest.raises(KeyValueTooLarge):
            check_key("RowKey", key, limit=512)


DISALLOWED = ["/", "\\", "#", "?", *map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), "\ud800", "\udfff"]


@pytest.mark.parametrize("character", DISALLOWED, ids=ascii)
def test_refuses_disallowed_characters_in_keys(character):
    key = f"a{character}b"

    with pytest.raises(OutOfRangeInput) as refusal:
        check_key("RowKey", key)

    assert refusal.value.text == f"The 'RowKey' parameter of value '{key}' is out of range."
