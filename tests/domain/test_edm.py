"""Values of the eight types: from JSON, to JSON, into the projection and back."""

import base64
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.errors import InvalidInput, OutOfRangeInput, PropertyValueTooLarge
from storage.domain.values.edm import (
    BINARY_LIMIT,
    STRING_LIMIT,
    Edm,
    EdmValue,
    read,
    read_datetime,
    utf16_length,
    write_datetime,
)
from storage.domain.values.encoding import (
    escape,
    needs_annotation,
    project,
    unescape,
    unproject,
    write,
    write_projected,
)
from tests.strategies import FIRST_TICK, LAST_TICK, doubles, texts, ticks, values

SECOND = 10_000_000
# 2017-08-30T13:20:33Z
INSTANT = 1_504_099_233 * SECOND


def same(left, right):
    """Equality of values that tells -0.0 from 0.0 and finds NaN equal to itself."""
    return left.type is right.type and bits(left.value) == bits(right.value)


def bits(value):
    return (type(value), repr(value) if isinstance(value, float) else value)


def annotation(value):
    return value.type if needs_annotation(value) else None


# reading

READ = [
    ("text", None, Edm.STRING, "text"),
    ("", None, Edm.STRING, ""),
    ("5", None, Edm.STRING, "5"),
    ("5", "Edm.String", Edm.STRING, "5"),
    ("\x00\ud800😀'\"%+", None, Edm.STRING, "\x00\ud800😀'\"%+"),
    (True, None, Edm.BOOLEAN, True),
    (False, "Edm.Boolean", Edm.BOOLEAN, False),
    ("true", "Edm.Boolean", Edm.BOOLEAN, True),
    ("False", "Edm.Boolean", Edm.BOOLEAN, False),
    (0, None, Edm.INT32, 0),
    (2**31 - 1, None, Edm.INT32, 2**31 - 1),
    (-(2**31), None, Edm.INT32, -(2**31)),
    (2**31, None, Edm.DOUBLE, 2147483648.0),
    (-(2**31) - 1, None, Edm.DOUBLE, -2147483649.0),
    (2**53, None, Edm.DOUBLE, 9007199254740992.0),
    (2**63, None, Edm.DOUBLE, 9223372036854775808.0),
    ("12345", "Edm.Int32", Edm.INT32, 12345),
    ("-7", "Edm.Int32", Edm.INT32, -7),
    ("9223372036854775807", "Edm.Int64", Edm.INT64, 2**63 - 1),
    ("-9223372036854775808", "Edm.Int64", Edm.INT64, -(2**63)),
    (5, "Edm.Int64", Edm.INT64, 5),
    (2**63 - 1, "Edm.Int64", Edm.INT64, 2**63 - 1),
    (1.0, None, Edm.DOUBLE, 1.0),
    (-0.0, None, Edm.DOUBLE, -0.0),
    (1e16, "Edm.Double", Edm.DOUBLE, 1e16),
    (10, "Edm.Double", Edm.DOUBLE, 10.0),
    ("10", "Edm.Double", Edm.DOUBLE, 10.0),
    ("3.14", "Edm.Double", Edm.DOUBLE, 3.14),
    ("-0.0", "Edm.Double", Edm.DOUBLE, -0.0),
    (".5", "Edm.Double", Edm.DOUBLE, 0.5),
    ("5.", "Edm.Double", Edm.DOUBLE, 5.0),
    ("1E+22", "Edm.Double", Edm.DOUBLE, 1e22),
    ("5e-324", "Edm.Double", Edm.DOUBLE, 5e-324),
    ("1.7976931348623157e308", "Edm.Double", Edm.DOUBLE, 1.7976931348623157e308),
    ("NaN", "Edm.Double", Edm.DOUBLE, math.nan),
    ("Infinity", "Edm.Double", Edm.DOUBLE, math.inf),
    ("-Infinity", "Edm.Double", Edm.DOUBLE, -math.inf),
    ("INF", "Edm.Double", Edm.DOUBLE, math.inf),
    ("-INF", "Edm.Double", Edm.DOUBLE, -math.inf),
    ("1970-01-01T00:00:00Z", "Edm.DateTime", Edm.DATETIME, 0),
    (
        "C9E0B9A9-7E44-44D1-8FCB-2D8A4E6B7D10",
        "Edm.Guid",
        Edm.GUID,
        "c9e0b9a9-7e44-44d1-8fcb-2d8a4e6b7d10",
    ),
    ("", "Edm.Binary", Edm.BINARY, b""),
    ("AAH/", "Edm.Binary", Edm.BINARY, b"\x00\x01\xff"),
    ("AA==", "Edm.Binary", Edm.BINARY, b"\x00"),
]


@pytest.mark.parametrize(("value", "note", "type_", "expected"), READ)
def test_reads(value, note, type_, expected):
    assert same(read(value, note), EdmValue(type_, expected))


# no type, or an integer that neither an Int32 nor a Double is
REFUSED = [2**53 + 1, 2**63 - 1, -(2**63) + 1, 10**23, 10**400, [], {}, [1], {"a": 1}, None]
REFUSED_WITH_TYPE = {
    "Edm.String": [5, True, ["a"]],
    "Edm.Boolean": [1, "yes", ""],
    "Edm.Int32": [2**31, "2147483648", 1.0, True, "", " 5", "5\n", "٣", "1_000", "0x10", "9" * 100_000],
    "Edm.Int64": ["9223372036854775808", "-9223372036854775809", 2**63, 1e5, True, "5L"],
    "Edm.Double": ["1e400", "-1e400", 10**400, True, "", "nan", "infinity", "1_0.0", "1,5", " 1.5", "0x1p3",
        ".", "e5"],
    "Edm.DateTime": [0, "", "yesterday"],
    "Edm.Guid": ["", 5, "c9e0b9a97e4444d18fcb2d8a4e6b7d10", "{c9e0b9a9-7e44-44d1-8fcb-2d8a4e6b7d10}",
        "g9e0b9a9-7e44-44d1-8fcb-2d8a4e6b7d10", "c9e0b9a9-7e44-44d1-8fcb-2d8a4e6b7d10\n"],
    "Edm.Binary": [5, "A", "AA", "AA===", "=AA=", "AA =", "A A=", "AAA_", "é===", "\ud800==="],
    "Edm.Single": [1.0],
    "Edm.Decimal": ["1"],
    "Edm.Byte": [1],
    "Edm.Time": ["PT1S"],
    "edm.string": ["a"],
    "String": ["a"],
    "": ["a"],
}  # fmt: skip


@pytest.mark.parametrize("value", REFUSED, ids=lambda value: repr(value)[:20])
def test_refuses_what_has_no_type(value):
    with pytest.raises(InvalidInput):
        read(value, None)


@pytest.mark.parametrize(
    ("note", "value"),
    [(note, value) for note, refused in REFUSED_WITH_TYPE.items() for value in refused],
    ids=lambda value: ascii(value)[:20],
)
def test_refuses_what_is_not_of_its_type(note, value):
    with pytest.raises(InvalidInput):
        read(value, note)


@pytest.mark.parametrize(
    "text", ["x" * STRING_LIMIT, "é" * STRING_LIMIT, "\ud800" * STRING_LIMIT, "😀" * (STRING_LIMIT // 2)]
)
def test_a_string_holds_32k_utf16_units_and_no_more(text):
    assert read(text, None).value == text
    with pytest.raises(PropertyValueTooLarge):
        read(text + "x", None)


def test_a_binary_holds_64_kib_and_no_more():
    data = bytes(range(256)) * (BINARY_LIMIT // 256)

    assert read(base64.b64encode(data).decode(), "Edm.Binary").value == data
    with pytest.raises(PropertyValueTooLarge):
        read(base64.b64encode(data + b"\x00").decode(), "Edm.Binary")


# DateTime

DATETIMES = [
    ("2017-08-30T13:20:33Z", INSTANT),
    ("2017-08-30T13:20:33z", INSTANT),
    ("2017-08-30T13:20:33", INSTANT),
    ("2017-08-30 13:20:33", INSTANT),
    ("2017-08-30T13:20:33.413914Z", INSTANT + 4_139_140),
    ("2017-08-30T13:20:33.1234567Z", INSTANT + 1_234_567),
    ("2017-08-30T13:20:33.0000001Z", INSTANT + 1),
    ("2017-08-30T13:20:33.12345678999Z", INSTANT + 1_234_567),
    ("2017-08-30T13:20:33.2", INSTANT + 2_000_000),
    ("2017-08-30T13:20Z", INSTANT - 33 * SECOND),
    ("2017-08-30", INSTANT - (13 * 3600 + 20 * 60 + 33) * SECOND),
    ("2017-08-30T15:20:33+02:00", INSTANT),
    ("2017-08-30T06:50:33-06:30", INSTANT),
    ("2017-08-31T03:20:33+14:00", INSTANT),
    ("1969-12-31T23:59:59.9999999Z", -1),
    ("2020-02-29T00:00:00Z", 1_582_934_400 * SECOND),
    ("1601-01-01T00:00:00Z", FIRST_TICK),
    ("9999-12-31T23:59:59.9999999Z", LAST_TICK),
    ("1601-01-01T14:00:00+14:00", FIRST_TICK),
]


@pytest.mark.parametrize(("text", "expected"), DATETIMES)
def test_reads_datetimes(text, expected):
    assert read_datetime(text) == expected
    assert read(text, "Edm.DateTime") == (Edm.DATETIME, expected)


@pytest.mark.parametrize(
    "text",
    [
        "", "2017", "2017-08", "17-08-30", "2017-8-30", "2017-13-01", "2017-02-29", "2017-00-10",
        "2017-08-30T", "2017-08-30T13", "2017-08-30T24:00:00Z", "2017-08-30T13:60:00Z",
        "2017-08-30T13:20:60Z", "2017-08-30T13:20:33.Z", "2017-08-30T13:20:33,5Z", "2017-08-30T13:20:33Z ",
        " 2017-08-30", "2017-08-30T13:20:33Z\n", "2017-08-30T13:20:33+0200", "2017-08-30T13:20:33+15:00",
        "2017-08-30T13:20:33+01:60", "2017-08-30T13:20:33 Z", "20170830T132033Z", "２０１７-08-30",
        "Wed, 30 Aug 2017 13:20:33 GMT", "/Date(1504099233000)/", "-2017-08-30",
    ],
)  # fmt: skip
def test_refuses_what_is_no_datetime(text):
    with pytest.raises(InvalidInput):
        read_datetime(text)


@pytest.mark.parametrize(
    "text",
    [
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "1600-12-31T23:59:59.9999999Z",
        "1601-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59.9999999-00:01",
    ],
)
def test_refuses_datetimes_out_of_range(text):
    with pytest.raises(OutOfRangeInput):
        read_datetime(text)


@pytest.mark.parametrize(
    ("instant", "expected"),
    [
        (INSTANT, "2017-08-30T13:20:33Z"),
        (INSTANT + 2_000_000, "2017-08-30T13:20:33.2Z"),
        (INSTANT + 4_139_140, "2017-08-30T13:20:33.413914Z"),
        (INSTANT + 1, "2017-08-30T13:20:33.0000001Z"),
        (INSTANT + 10 * SECOND - 3 * SECOND, "2017-08-30T13:20:40Z"),
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.9999999Z"),
        (FIRST_TICK, "1601-01-01T00:00:00Z"),
        (LAST_TICK, "9999-12-31T23:59:59.9999999Z"),
    ],
)
def test_writes_datetimes_with_no_trailing_zero(instant, expected):
    assert write_datetime(instant) == expected


@given(ticks)
def test_a_written_datetime_reads_back(instant):
    assert read_datetime(write_datetime(instant)) == instant


# writing

WRITTEN = [
    (Edm.STRING, "a\n\"\\'/\x00é\ud800😀", '"a\\n\\"\\\\\'/\\u0000\\u00e9\\ud800\\ud83d\\ude00"'),
    (Edm.BOOLEAN, True, "true"),
    (Edm.BOOLEAN, False, "false"),
    (Edm.INT32, -5, "-5"),
    (Edm.INT64, 2**63 - 1, '"9223372036854775807"'),
    (Edm.DOUBLE, 1.0, "1.0"),
    (Edm.DOUBLE, 10.0, "10.0"),
    (Edm.DOUBLE, -0.0, "-0.0"),
    (Edm.DOUBLE, 123.45, "123.45"),
    (Edm.DOUBLE, 1e16, "1E+16"),
    (Edm.DOUBLE, 5e-324, "5E-324"),
    (Edm.DOUBLE, 1.7976931348623157e308, "1.7976931348623157E+308"),
    (Edm.DOUBLE, math.nan, '"NaN"'),
    (Edm.DOUBLE, math.inf, '"Infinity"'),
    (Edm.DOUBLE, -math.inf, '"-Infinity"'),
    (Edm.DATETIME, 0, '"1970-01-01T00:00:00Z"'),
    (Edm.GUID, "c9e0b9a9-7e44-44d1-8fcb-2d8a4e6b7d10", '"c9e0b9a9-7e44-44d1-8fcb-2d8a4e6b7d10"'),
    (Edm.BINARY, b"\x00\x01\xff", '"AAH/"'),
    (Edm.BINARY, b"", '""'),
]


@pytest.mark.parametrize(("type_", "value", "expected"), WRITTEN)
def test_writes(type_, value, expected):
    assert write(EdmValue(type_, value)) == expected


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        (Edm.STRING, "", False),
        (Edm.BOOLEAN, True, False),
        (Edm.INT32, 1, False),
        (Edm.INT64, 1, True),
        (Edm.DOUBLE, 1.0, False),
        (Edm.DOUBLE, math.nan, True),
        (Edm.DOUBLE, math.inf, True),
        (Edm.DOUBLE, -math.inf, True),
        (Edm.DATETIME, 0, True),
        (Edm.GUID, "c9e0b9a9-7e44-44d1-8fcb-2d8a4e6b7d10", True),
        (Edm.BINARY, b"", True),
    ],
)
def test_says_the_types_that_json_does_not(type_, value, expected):
    assert needs_annotation(EdmValue(type_, value)) is expected


@given(values)
def test_a_written_value_reads_back_exactly(value):
    text = write(value)

    assert text.isascii()
    assert "\n" not in text
    assert same(read(json.loads(text), annotation(value)), value)


@given(values)
def test_a_written_value_reads_back_with_its_type_said_needlessly(value):
    assert same(read(json.loads(write(value)), value.type), value)


# the projection

PROJECTED = [
    (Edm.INT32, 5, "5"),
    (Edm.INT64, 5, "5.00"),
    (Edm.INT64, -(2**63), "-9223372036854775808.00"),
    (Edm.DOUBLE, 5.0, "5.0"),
    (Edm.DOUBLE, 0.0, "0.0"),
    (Edm.DOUBLE, -0.0, "0.000"),
    (Edm.DOUBLE, 123.45, "123.45"),
    (Edm.DOUBLE, 1e22, "10000000000000000000000.0"),
    (Edm.DOUBLE, 1e-7, "0.0000001"),
    (Edm.DOUBLE, math.inf, "1e400"),
    (Edm.DOUBLE, -math.inf, "-1e400"),
    (Edm.DOUBLE, math.nan, '"n"'),
    (Edm.STRING, "", '"s"'),
    (Edm.STRING, "5", '"s5"'),
    (Edm.DATETIME, INSTANT, '"t2017-08-30T13:20:33.0000000"'),
    (Edm.DATETIME, -1, '"t1969-12-31T23:59:59.9999999"'),
    (Edm.GUID, "c9e0b9a9-7e44-44d1-8fcb-2d8a4e6b7d10", '"gc9e0b9a9-7e44-44d1-8fcb-2d8a4e6b7d10"'),
    (Edm.BINARY, b"\x00\xff", '"b00ff"'),
    (Edm.BOOLEAN, True, "true"),
]


@pytest.mark.parametrize(("type_", "value", "expected"), PROJECTED)
def test_projects(type_, value, expected):
    assert project(EdmValue(type_, value)) == expected


def as_postgres_gives(projected):
    """What ->> makes of a member: a string without its quotes, a number without exponent."""
    if projected.startswith('"'):
        return json.loads(projected)
    return projected.replace("1e400", "1" + "0" * 400)


@given(values)
def test_a_projected_value_comes_back_exactly(value):
    assert same(unproject(as_postgres_gives(project(value))), value)


@given(doubles.filter(math.isfinite))
def test_the_scale_of_a_double_is_never_that_of_an_int64(value):
    whole, _, fraction = project(EdmValue(Edm.DOUBLE, value)).partition(".")

    assert whole.lstrip("-").isdigit()
    assert fraction.isdigit()
    assert fraction != "00"


@given(values, st.booleans())
def test_a_selected_value_is_what_a_full_read_gives(value, annotations):
    content = write_projected(b'"P"', as_postgres_gives(project(value)).encode(), annotations=annotations)

    members = json.loads(b'{"first":0' + content + b"}")
    assert members.get("P@odata.type") == (annotation(value) if annotations else None)
    assert bits(members["P"]) == bits(json.loads(write(value)))


def test_a_selected_property_that_is_missing_is_null():
    assert write_projected(b'"P"', None, annotations=True) == b',"P":null'


def test_refuses_a_projection_of_no_known_letter():
    with pytest.raises(ValueError, match="projected"):
        unproject("x")


# the escape of text


@given(texts)
def test_escaped_text_comes_back_and_can_be_stored(text):
    escaped = escape(text)

    assert unescape(escaped) == text
    assert "\x00" not in escaped
    escaped.encode()  # no lone surrogate


@given(texts, texts)
def test_the_escape_keeps_the_order_of_code_points(left, right):
    assert (escape(left) < escape(right)) == (left < right)
    assert (escape(left).encode() < escape(right).encode()) == (left < right)


def test_the_escape_of_every_code_point_keeps_its_place():
    escaped = [escape(chr(code)).encode() for code in range(0x110000)]

    assert escaped == sorted(escaped)
    assert len(set(escaped)) == len(escaped)


def test_ordinary_text_is_not_escaped():
    assert escape("é😀\x02") == "é😀\x02"


@given(texts)
def test_counts_utf16_units(text):
    assert utf16_length(text) == len(text) + sum(ord(character) > 0xFFFF for character in text)
