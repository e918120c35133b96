"""What may name an account, a table, a property; what may be a key."""

import pytest
from hypothesis import example, given

from storage.domain.errors import (
    InvalidResourceName,
    KeyValueTooLarge,
    OutOfRangeInput,
    PropertyNameInvalid,
    PropertyNameTooLong,
)
from storage.domain.values.edm import utf16_length
from storage.domain.values.names import (
    KEY_LENGTH_LIMIT,
    check_key,
    check_property_name,
    fold_table_name,
    is_account_name,
    is_analytics_name,
)
from tests.strategies import keys


@pytest.mark.parametrize("name", ["devstoreaccount1", "abc", "a" * 24, "123"])
def test_account_names(name):
    assert is_account_name(name)


@pytest.mark.parametrize("name", ["ab", "a" * 25, "", "Abc", "a-b", "abc\n", "abcé", "ab٣"])
def test_what_is_no_account_name(name):
    assert not is_account_name(name)


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


@given(keys)
@example("\xa0~'%2F")
def test_almost_any_text_is_a_key(key):
    check_key("RowKey", key)


@pytest.mark.parametrize("limit", [KEY_LENGTH_LIMIT, 512])
@pytest.mark.parametrize("character", ["x", "名", "😀"])
def test_a_key_holds_so_many_utf16_units_and_no_more(character, limit):
    key = character * (limit // utf16_length(character))
    check_key("PartitionKey", key, limit=limit)
    with pytest.raises(KeyValueTooLarge):
        check_key("PartitionKey", key + "x", limit=limit)


def test_refuses_disallowed_characters_in_keys():
    for character in [
        "/",
        "\\",
        "#",
        "?",
        *map(chr, range(0x20)),
        *map(chr, range(0x7F, 0xA0)),
        "\ud800",
        "\udfff",
    ]:
        with pytest.raises(OutOfRangeInput, match="The 'RowKey' parameter of value"):
            check_key("RowKey", f"a{character}b")
