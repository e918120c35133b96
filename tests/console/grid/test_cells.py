"""The appearance of stored values in a grid."""

import math
from zoneinfo import ZoneInfo

import pytest
from django.utils.html import escape, strip_tags

from console.grid.cells import absent, draw, draw_time
from storage.domain.values.edm import Edm, EdmValue, read_datetime


def drawn(type_, value, size=None):
    return draw(EdmValue(type_, value), size)


def text(type_, value):
    return strip_tags(drawn(type_, value).markup)


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        (Edm.INT64, 2**63 - 1, "9223372036854775807"),
        (Edm.DOUBLE, -0.0, "-0.0"),
        (Edm.DOUBLE, math.nan, "NaN"),
        (Edm.BOOLEAN, True, "true"),
        (Edm.DATETIME, 1, "1970-01-01 00:00:00.0000001"),
        (Edm.BINARY, b"\x00\xff", "00ff"),
        (Edm.STRING, " Ada  Lovelace ", "·Ada ·Lovelace·"),
    ],
)
def test_text(type_, value, text):
    cell = drawn(type_, value)
    assert (strip_tags(cell.markup), cell.state) == (text, "")


def test_nothing_is_of_several_kinds():
    assert (absent().state, strip_tags(absent().markup)) == ("absent", "not set")
    assert drawn(Edm.STRING, "").state == "empty"
    assert drawn(Edm.BINARY, b"").state == "empty"
    assert drawn(Edm.STRING, " ").state == "whitespace"
    assert text(Edm.STRING, "  \t\n\u00a0") == "··⇥↵U+00A0"


@pytest.mark.parametrize("text", ["<b>&amp;", "<i>{{ 1 }}", '<span class="mark">↵</span>' * 20])
def test_markup_is_text(text):
    assert strip_tags(drawn(Edm.STRING, text).markup).startswith(escape(text[:20]))


@pytest.mark.parametrize(
    ("text", "picture"),
    [("a\nb", "↵"), ("a\0b", "␀"), ("a\u202eb", "U+202E"), ("a\ud800b", "U+D800"), ("\x7f", "␡")],
)
def test_invisible_characters_are_marked(text, picture):
    result = drawn(Edm.STRING, text).markup
    assert f'<span class="mark">{picture}</span>' in result
    result.encode()


def test_scripts_and_emoji_stay_whole():
    for whole in ("👩‍👩‍👧‍👦", "नमस्ते", "שלום", "می‌خواهم"):
        assert drawn(Edm.STRING, whole).markup == f"<bdi>{whole}</bdi>"


@pytest.mark.parametrize(
    ("value", "chip"), [("x" * 32000, "31.2"), ('{"a": "' + "é" * 500, "1007"), ('["a", ' * 50, "300")]
)
def test_long_texts_are_cut_and_measured(value, chip):
    cell = drawn(Edm.STRING, value)
    assert cell.state == "cut"
    assert value[:160] + "…" in strip_tags(cell.markup).replace("&quot;", '"')
    assert chip in cell.markup
    assert ("JSON" in cell.markup) is (value[0] != "x")
    assert "12.4" in drawn(Edm.STRING, value, 12_700).markup  # the full size of the value that was cut


def test_long_bytes_are_cut():
    assert strip_tags(drawn(Edm.BINARY, b"x" * 65536).markup).startswith("78" * 24 + "…")
    assert drawn(Edm.BINARY, b"x" * 24).state == ""
    assert "9.8" in drawn(Edm.BINARY, b"x" * 160, 10_000).markup


def test_times_in_a_zone_and_whole():
    cell = draw_time(17_424_217_151_234_560, ZoneInfo("Europe/Istanbul"))
    assert strip_tags(cell.markup) == "2025-03-20 01:01:55.123456"
    assert 'title="2025-03-19 22:01:55.1234560 UTC"' in cell.markup
    assert (
        strip_tags(draw_time(17_424_217_151_234_560, None, with_fraction=False).markup)
        == "2025-03-19 22:01:55"
    )


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59.9999999Z", "1601-01-01T00:00:00Z"])
def test_the_first_and_the_last_moment(text):
    for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
        assert text[:4] in draw_time(read_datetime(text), ZoneInfo(zone)).markup
