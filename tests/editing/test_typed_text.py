"""Values as people type and read them: what each type takes, what it refuses and why, and the way back."""

import math
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given

from storage.domain.values.edm import (
    BINARY_LIMIT,
    FIRST_COSMOS_TICK,
    STRING_LIMIT,
    Edm,
    EdmValue,
    write_datetime,
)
from storage.editing.input_context import InputContext
from storage.editing.typed_text import (
    FORMS,
    InvalidText,
    TextFault,
    TextForm,
    field_form,
    read,
    stored_text,
    write,
)
from tests.domain.test_edm import same
from tests.strategies import FIRST_TICK, LAST_TICK, values

# 11:03:07.12 UTC
CONTEXT = InputContext(datetime(2026, 11, 20, 14, 3, 7, 120000, tzinfo=ZoneInfo("Europe/Istanbul")))
GUID = "c9da6455-213d-42c9-9a79-3e9149a57833"

ACCEPTED = [
    (Edm.STRING, " it's\n<b>\t😀 ", " it's\n<b>\t😀 "),
    (Edm.INT32, " -2147483648 ", -(2**31)),
    (Edm.INT32, "2_147 483\u202f647", 2**31 - 1),
    (Edm.INT32, "+7", 7),
    (Edm.INT32, "007", 7),
    (Edm.INT64, "9 223 372 036 854 775 807", 2**63 - 1),
    (Edm.DOUBLE, "-0", -0.0),
    (Edm.DOUBLE, ".5e-3", 0.0005),
    (Edm.DOUBLE, "5.", 5.0),
    (Edm.DOUBLE, "1_000.25", 1000.25),
    (Edm.DOUBLE, "NaN", math.nan),
    (Edm.DOUBLE, "-inf", -math.inf),
    (Edm.DOUBLE, "5e-324", 5e-324),
    (Edm.BOOLEAN, " False ", False),
    (Edm.GUID, "{C9DA6455-213D-42C9-9A79-3E9149A57833}", GUID),
    (Edm.GUID, "c9da6455213d42c99a793e9149a57833", GUID),
    (Edm.BINARY, "0x00 FF\n1a", b"\x00\xff\x1a"),
]


@pytest.mark.parametrize(("type_", "text", "value"), ACCEPTED)
def test_reads(type_, text, value):
    assert same(read(type_, text, CONTEXT), EdmValue(type_, value))


TIMES = [
    ("2026-11-20T14:03:07.1234567Z", "2026-11-20T14:03:07.1234567Z"),
    ("2026-11-20t14:03:07z", "2026-11-20T14:03:07Z"),
    ("2026-11-20 14:03", "2026-11-20T11:03:00Z"),
    ("2026-11-20", "2026-11-19T21:00:00Z"),
    ("2026-11-20T14:03:07,5+03:00", "2026-11-20T11:03:07.5Z"),
    ("2026-11-20T14:03:07 -0530", "2026-11-20T19:33:07Z"),
    ("2026-11-20T14:03+02", "2026-11-20T12:03:00Z"),
    ("1601-01-01T00:00:00Z", "1601-01-01T00:00:00Z"),
    ("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z"),
    ("now", "2026-11-20T11:03:07.12Z"),
    ("-2h", "2026-11-20T09:03:07.12Z"),
    ("now - 90s", "2026-11-20T11:01:37.12Z"),
    ("+1w", "2026-11-27T11:03:07.12Z"),
    ("Today", "2026-11-19T21:00:00Z"),
    ("tomorrow", "2026-11-20T21:00:00Z"),
]


@pytest.mark.parametrize(("text", "expected"), TIMES)
def test_reads_times_in_the_zone_of_now(text, expected):
    value = read(Edm.DATETIME, text, CONTEXT)
    assert write(value) == expected


def test_knows_the_summer_of_a_zone():
    there = CONTEXT.in_zone(ZoneInfo("Europe/Berlin"))
    assert write(read(Edm.DATETIME, "2026-07-01 12:00", there)) == "2026-07-01T10:00:00Z"
    assert write(read(Edm.DATETIME, "2026-12-01 12:00", there)) == "2026-12-01T11:00:00Z"
    assert write(read(Edm.DATETIME, "now", there)) == "2026-11-20T11:03:07.12Z"


@pytest.mark.parametrize(
    ("stored", "zone", "expected"),
    [
        ("2026-11-20T21:03:07.1234567Z", "Europe/Istanbul", "2026-11-21 00:03:07.1234567+03:00"),
        ("2026-07-01T12:00:00Z", "Europe/Berlin", "2026-07-01 14:00:00+02:00"),
        ("2026-07-01T12:00:00.5Z", "America/St_Johns", "2026-07-01 09:30:00.5-02:30"),
        ("2026-07-01T12:00:00Z", "UTC", "2026-07-01T12:00:00Z"),
        # an offset with seconds, and the ends of the calendar
        ("1700-01-01T00:00:00Z", "Europe/Istanbul", "1700-01-01T00:00:00Z"),
        ("9999-12-31T23:30:00Z", "Asia/Tokyo", "9999-12-31T23:30:00Z"),
        ("1601-01-01T00:30:00Z", "Etc/GMT+5", "1601-01-01T00:30:00Z"),
    ],
)
def test_times_are_written_in_a_zone_and_read_back(stored, zone, expected):
    value = read(Edm.DATETIME, stored, CONTEXT)
    text = write(value, zone=ZoneInfo(zone))
    assert text == expected
    assert read(Edm.DATETIME, text, CONTEXT) == value


def test_the_ends_of_time_survive_in_every_zone():
    for hours in (-12, 0, 14):
        there = CONTEXT.in_zone(timezone(timedelta(hours=hours)))
        for value in (FIRST_TICK, LAST_TICK, -1):
            assert read(Edm.DATETIME, write_datetime(value), there).value == value


REFUSED = [
    (Edm.INT32, "2147483648", TextFault.TOO_LARGE, Edm.INT64),
    (Edm.INT32, "9223372036854775808", TextFault.TOO_LARGE, Edm.DOUBLE),  # 2^63 is exactly a Double
    (Edm.INT32, "9223372036854775809", TextFault.TOO_LARGE, Edm.STRING),
    (Edm.INT64, "9" * 5000, TextFault.TOO_LARGE, Edm.STRING),
    (Edm.INT64, "9" * 390, TextFault.TOO_LARGE, Edm.STRING),
    (Edm.INT32, "1.5", TextFault.NOT_WHOLE, Edm.DOUBLE),
    (Edm.INT32, "NaN", TextFault.NOT_WHOLE, Edm.DOUBLE),
    (Edm.INT64, "ada", TextFault.NOT_WHOLE, Edm.STRING),
    (Edm.INT64, "", TextFault.NOT_WHOLE, Edm.STRING),
    (Edm.INT64, "٣", TextFault.NOT_WHOLE, Edm.STRING),
    (Edm.DOUBLE, "1,5", TextFault.NOT_NUMBER, Edm.STRING),
    (Edm.DOUBLE, "0x10", TextFault.NOT_NUMBER, Edm.STRING),
    (Edm.DOUBLE, "1e400", TextFault.TOO_LARGE, Edm.STRING),
    (Edm.BOOLEAN, "yes", TextFault.NOT_BOOLEAN, Edm.STRING),
    (Edm.DATETIME, "20.11.2026", TextFault.NOT_DATETIME, Edm.STRING),
    (Edm.DATETIME, "2026-11-20T14+00", TextFault.NOT_DATETIME, Edm.STRING),
    (Edm.DATETIME, "2026-02-29", TextFault.NO_SUCH_TIME, None),
    (Edm.DATETIME, "2026-11-20T24:00Z", TextFault.NO_SUCH_TIME, None),
    (Edm.DATETIME, "2026-11-20T14:00+15:00", TextFault.NO_SUCH_TIME, None),
    (Edm.DATETIME, "1600-12-31T23:59:59Z", TextFault.OUT_OF_RANGE, None),
    (Edm.DATETIME, "1601-01-01T00:00:00+01:00", TextFault.OUT_OF_RANGE, None),
    (Edm.DATETIME, "9999-12-31T23:59:59-01:00", TextFault.OUT_OF_RANGE, None),
    (Edm.DATETIME, "-999999w", TextFault.OUT_OF_RANGE, None),
    (Edm.DATETIME, "+9999999w", TextFault.OUT_OF_RANGE, None),
    (Edm.DATETIME, "2026-11-20T14:03:07.12345678Z", TextFault.TOO_PRECISE, None),
    (Edm.GUID, GUID[:-1], TextFault.NOT_GUID, Edm.STRING),
    (Edm.GUID, f"{{{GUID}", TextFault.NOT_GUID, Edm.STRING),
    (Edm.BINARY, "0aF", TextFault.HALF_BYTE, None),
    (Edm.STRING, "ab" * (STRING_LIMIT // 2) + "c", TextFault.TOO_LONG, None),
    (Edm.STRING, "😀" * (STRING_LIMIT // 2) + "c", TextFault.TOO_LONG, None),
    (Edm.BINARY, "00" * (BINARY_LIMIT + 1), TextFault.TOO_LONG, None),
]


@pytest.mark.parametrize(("type_", "text", "fault", "suggestion"), REFUSED)
def test_refuses_and_suggests(type_, text, fault, suggestion):
    with pytest.raises(InvalidText) as refusal:
        read(type_, text, CONTEXT)
    assert (refusal.value.fault, refusal.value.suggestion) == (fault, suggestion)


def test_cosmos_accounts_have_wider_limits():
    def value(type_, text, form=None):
        return read(type_, text, InputContext.of_any_account(CONTEXT.now), form).value

    assert value(Edm.DATETIME, "0001-01-01T00:00:00Z") == FIRST_COSMOS_TICK
    assert value(Edm.DATETIME, "0001-01-01 02:00+02:00") == FIRST_COSMOS_TICK
    assert len(value(Edm.STRING, "a" * (STRING_LIMIT + 1))) == STRING_LIMIT + 1
    assert len(value(Edm.BINARY, "00" * (BINARY_LIMIT + 1))) == BINARY_LIMIT + 1
    for text in ("0001-01-01T00:00:00+01:00", "-999999w", "9999-12-31T23:59:59-01:00"):
        with pytest.raises(InvalidText) as refusal:
            value(Edm.DATETIME, text)
        assert refusal.value.fault is TextFault.OUT_OF_RANGE


@pytest.mark.parametrize(
    ("type_", "form", "text", "fault", "position"),
    [
        (Edm.BINARY, TextForm.HEX, "00 zz", TextFault.NOT_HEX, 4),
        (Edm.BINARY, TextForm.HEX, "0x0g", TextFault.NOT_HEX, 4),
        (Edm.BINARY, TextForm.BASE64, "aGV$bG8=", TextFault.NOT_BASE64, 4),
        (Edm.BINARY, TextForm.BASE64, "aG=VsbG8=", TextFault.NOT_BASE64, 3),
        (Edm.BINARY, TextForm.BASE64, "aGVsb", TextFault.BASE64_LENGTH, 0),
        (Edm.BINARY, TextForm.TEXT, "a\ud800", TextFault.SURROGATE, 2),
        (Edm.STRING, TextForm.PLAIN, "ab\udfff", TextFault.SURROGATE, 3),
        (Edm.STRING, TextForm.ESCAPED, "ab", TextFault.NOT_ESCAPED, 1),
        (Edm.STRING, TextForm.ESCAPED, '"a\\x"', TextFault.NOT_ESCAPED, 3),
        (Edm.STRING, TextForm.ESCAPED, "[1]", TextFault.NOT_ESCAPED, 1),
        (Edm.STRING, TextForm.ESCAPED, "[" * 100_000, TextFault.NOT_ESCAPED, 1),
    ],
)
def test_points_at_the_character(type_, form, text, fault, position):
    with pytest.raises(InvalidText) as refusal:
        read(type_, text, CONTEXT, form)
    assert (refusal.value.fault, refusal.value.position) == (fault, position)


@pytest.mark.parametrize("text", ["aGVsbG8=", "aGVs\nbG8", " aGVsbG8= "])
def test_reads_base64_with_and_without_padding(text):
    assert read(Edm.BINARY, text, CONTEXT, TextForm.BASE64).value == b"hello"
    assert read(Edm.BINARY, "-_8", CONTEXT, TextForm.BASE64).value == b"\xfb\xff"


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        (Edm.DOUBLE, "0.1", ""),
        (Edm.DOUBLE, "0.10", ""),
        (Edm.DOUBLE, "1_000", ""),
        (Edm.DOUBLE, "NaN", ""),
        (Edm.DOUBLE, "0.1234567890123456789", "0.12345678901234568"),
        (Edm.DOUBLE, "9007199254740993", "9007199254740992.0"),
        (Edm.DOUBLE, "1e-400", "0.0"),
        (Edm.DATETIME, "2026-11-20T11:03:07Z", ""),
        (Edm.DATETIME, "2026-11-20T14:03:07+03:00", "2026-11-20T11:03:07Z"),
        (Edm.INT32, "007", ""),
    ],
)
def test_reports_a_different_stored_spelling(type_, text, expected):
    assert stored_text(read(type_, text, CONTEXT), text) == expected


@given(values)
def test_every_capable_form_round_trips(value):
    assert same(read(value.type, write(value, field_form(value)), CONTEXT, field_form(value)), value)
    for form in FORMS.get(value.type, ()):
        with suppress(InvalidText):  # bytes that are not UTF-8, halves of characters
            assert same(read(value.type, write(value, form), CONTEXT, form), value)


def test_escapes_only_characters_lost_in_fields():
    assert field_form(EdmValue(Edm.STRING, "line\nand\ttab")) is TextForm.PLAIN
    for character in "\r\x00\x0b\x7f\ud800":
        assert field_form(EdmValue(Edm.STRING, character)) is TextForm.ESCAPED
