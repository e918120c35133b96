"""Valid names of accounts, tables and properties, and valid keys."""

import pytest
from hypothesis import example, given

from storage.domain.errors import (
    InvalidResourceName,
    KeyValueTooLarge,
    OutOfRangeInput,
    PropertyNameInvalid,
    PropertyNameTooLong,
)
from storage.domain.values.dialects import KEY_LENGTH_LIMIT, Dialect
from storage.domain.values.edm import utf16_length
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import (
    check_key,
    check_property_name,
    fold_new_table_name,
    fold_table_name,
    is_account_name,
)
from tests.strategies import keys


def test_account_names():
    for name in ("devstoreaccount1", "abc", "a" * 24, "123"):
        assert is_account_name(name)
    for name in ("ab", "a" * 25, "", "Abc", "a-b", "abc\n", "abcé", "ab٣"):
        assert not is_account_name(name)


def test_tables_are_identified_by_lower_case_names():
    for name in ("abc", "People", "T42", "a" * 63, "tables1"):
        assert (
            fold_table_name(name, AccountKind.STORAGE)
            == fold_new_table_name(name, AccountKind.STORAGE)
            == name.lower()
        )


def test_no_table_is_created_with_the_name_of_a_metrics_table():
    name = "$MetricsHourPrimaryTransactionsTable"
    assert fold_table_name(name, AccountKind.STORAGE) == name.lower()
    with pytest.raises(InvalidResourceName):
        fold_new_table_name(name, AccountKind.STORAGE)


def test_refuses_table_names_by_their_characters_first():
    for name in [
        "1abc", "a-b", "a_b", "$logs", "$Metrics", "$Metric\u017fHourPrimary", "$MetricsHour1", "tablé", "ab٣", "abc\n",
        "a-", "tables", "TABLES", "x" * 70 + "!",
    ]:  # fmt: skip
        with pytest.raises(
            InvalidResourceName, match="The specifed resource name contains invalid characters"
        ):
            fold_table_name(name, AccountKind.STORAGE)
    for name in ("", "ab", "a" * 64, "a" * 10_000):
        with pytest.raises(
            OutOfRangeInput, match="resource name length is not within the permissible limits"
        ):
            fold_table_name(name, AccountKind.STORAGE)


def test_property_names():
    for name in [
        "A", "_1", "a" * 255, "é", "Ж", "名前", "Ⅷ", "a٣", "aु", "a‿b", "𝐀" * 127, "ETag", "timestamp",
    ]:  # fmt: skip
        check_property_name(name)
    for name in [
        "", "1a", "a-b", "a b", "a.b", "a:b", "a@b", "a$", "a\n", "٣a", "😀", "\ud800", "a\x00", "a'",
    ]:  # fmt: skip
        with pytest.raises(PropertyNameInvalid):
            check_property_name(name)
    for name in ("a" * 256, "𝐀" * 128, "1" * 256):
        with pytest.raises(PropertyNameTooLong):
            check_property_name(name)


@given(keys)
@example("\xa0~'%2F")
def test_almost_any_text_is_a_key(key):
    check_key("RowKey", key)


@pytest.mark.parametrize("limit", [KEY_LENGTH_LIMIT, 512])
@pytest.mark.parametrize("character", ["x", "名", "😀"])
def test_keys_are_limited_in_utf16_units(character, limit):
    key = character * (limit // utf16_length(character))
    check_key("PartitionKey", key, Dialect(key_limit=limit))
    with pytest.raises(KeyValueTooLarge):
        check_key("PartitionKey", key + "x", Dialect(key_limit=limit))


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
