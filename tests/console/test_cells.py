"""How stored values look in a grid."""

import math

import pytest
from django.utils.html import strip_tags

from console.cells import ABSENT, Column, cell, grid
from storage.domain.edm import Edm, EdmValue
from storage.domain.entity import EntityKey, StoredEntity, fragments, write_keys

STRING = Column("Name", Edm.STRING)


def shown(type_, value):
    return cell(EdmValue(type_, value), Column("Name", type_.value))


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        (Edm.INT32, -5, "-5"),
        (Edm.INT64, 2**63 - 1, "9223372036854775807"),
        (Edm.DOUBLE, -0.0, "-0.0"),
        (Edm.DOUBLE, 5.0, "5.0"),
        (Edm.DOUBLE, 1e300, "1E+300"),
        (Edm.DOUBLE, math.nan, "NaN"),
        (Edm.DOUBLE, -math.inf, "-Infinity"),
        (Edm.BOOLEAN, True, "true"),
        (Edm.DATETIME, 1, "1970-01-01T00:00:00.0000001Z"),
        (Edm.GUID, "c9da6455-213d-42c9-9a79-3e9149a57833", "c9da6455-213d-42c9-9a79-3e9149a57833"),
        (Edm.BINARY, b"\x00\xff", "00ff"),
        (Edm.STRING, "Ada", "Ada"),
    ],
)
def test_text(type_, value, text):
    assert shown(type_, value).text == text
    assert shown(type_, value).state == ""


def test_numbers_are_at_the_right():
    assert [shown(type_, 5).is_number for type_ in (Edm.INT32, Edm.INT64)] == [True, True]
    assert not shown(Edm.STRING, "5").is_number


def test_nothing_is_of_several_kinds():
    assert cell(None, STRING) is ABSENT
    assert shown(Edm.STRING, "").state == "empty"
    assert shown(Edm.BINARY, b"").state == "empty"
    assert shown(Edm.STRING, " ").state == "whitespace"
    assert strip_tags(shown(Edm.STRING, "  \t\n\u00a0").text) == "··⇥↵U+00A0"


@pytest.mark.parametrize("text", ["<b>&amp;", "</script>", "'\"", "{{ 1 }}", '<span class="mark">↵</span>'])
def test_markup_is_text(text):
    assert "<" not in shown(Edm.STRING, text).text


@pytest.mark.parametrize(
    ("text", "picture"),
    [
        ("a\nb", "↵"),
        ("a\0b", "␀"),
        ("a\u202eb", "U+202E"),
        ("a\ud800b", "U+D800"),
        ("a\u200bb", "U+200B"),
        ("\x7f", "␡"),
    ],
)
def test_what_cannot_be_seen_is_marked(text, picture):
    found = shown(Edm.STRING, text).text
    assert f'<span class="mark">{picture}</span>' in found
    found.encode()


def test_scripts_and_emoji_stay_whole():
    for text in ("👩‍👩‍👧‍👦", "नमस्ते", "שלום", "می‌خواهم"):
        assert shown(Edm.STRING, text).text == text


def test_long_values_are_cut_and_measured():
    long = shown(Edm.STRING, "x" * 32000)
    assert (len(long.text), long.size) == (160, "32,000 characters")
    assert shown(Edm.STRING, "x" * 160).size == ""
    assert shown(Edm.STRING, " " * 200).size == "200 characters"
    assert len(shown(Edm.BINARY, b"x" * 65536).text) == 48
    assert "64.0" in shown(Edm.BINARY, b"x" * 65536).size


def stored(partition_key, row_key, **properties):
    key = EntityKey(partition_key, row_key)
    texts = fragments(properties)
    return StoredEntity(write_keys(key), b"0", (texts.annotations + texts.values).encode())


def test_columns_are_in_the_order_they_were_seen_in():
    first = stored("a", "1", Zeta=EdmValue(Edm.STRING, "z"), Score=EdmValue(Edm.INT32, 1))
    second = stored(
        "a",
        "2",
        Alpha=EdmValue(Edm.GUID, "c9da6455-213d-42c9-9a79-3e9149a57833"),
        Score=EdmValue(Edm.STRING, "high"),
    )
    found = grid("Entities", [first, second], before=50, is_last=True)
    assert [column.name for column in found.columns] == [
        "PartitionKey", "RowKey", "Zeta", "Score", "Alpha", "Timestamp",
    ]  # fmt: skip
    assert [column.type for column in found.columns][2:] == [Edm.STRING, "mix", Edm.GUID, Edm.DATETIME]
    assert [cell.type for cell in found.rows[0]] == ["", "", "", Edm.INT32, "", ""]
    assert found.rows[0][4] is ABSENT
    assert found.rows[1][2] is ABSENT
    assert (found.count, found.first) == (53, 52)


def test_a_page_that_is_not_the_last_counts_nothing():
    assert grid("Entities", [stored("a", "1")], before=0, is_last=False).count == -1
