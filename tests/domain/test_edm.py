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
GUID = "c9e0b9a9-7e44-44d1-8fcb-2d8a4e6b7d10"
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

# cases that the round trips of the wire tests leave out
READ = [
    ("\x00\ud800😀'\"%+", None, Edm.STRING, "\x00\ud800😀'\"%+"),
    (False, "Edm.Boolean", Edm.BOOLEAN, False),
    ("False", "Edm.Boolean", Edm.BOOLEAN, False),
    (2**31 - 1, None, Edm.INT32, 2**31 - 1),
    (-(2**31), None, Edm.INT32, -(2**31)),
    (2**31, None, Edm.DOUBLE, 2147483648.0),
    (-(2**31) - 1, None, Edm.DOUBLE, -2147483649.0),
    (2**53, None, Edm.DOUBLE, 9007199254740992.0),
    (2**63, None, Edm.DOUBLE, 9223372036854775808.0),
    ("-7", "Edm.Int32", Edm.INT32, -7),
    (2**63 - 1, "Edm.Int64", Edm.INT64, 2**63 - 1),
    (-0.0, None, Edm.DOUBLE, -0.0),
    (10, "Edm.Double", Edm.DOUBLE, 10.0),
    ("-0.0", "Edm.Double", Edm.DOUBLE, -0.0),
    (".5", "Edm.Double", Edm.DOUBLE, 0.5),
    ("5.", "Edm.Double", Edm.DOUBLE, 5.0),
    ("1E+22", "Edm.Double", Edm.DOUBLE, 1e22),
    ("INF", "Edm.Double", Edm.DOUBLE, math.inf),
    ("-INF", "Edm.Double", Edm.DOUBLE, -math.inf),
    (GUID.upper(), "Edm.Guid", Edm.GUID, GUID),
]


@pytest.mark.parametrize(("value", "note", "type_", "expected"), READ)
def test_reads(value, note, type_, expected):
    assert same(read(value, note), EdmValue(type_, expected))


# no type, or an integer that neither an Int32 nor a Double is
REFUSED = {
    None: [2**53 + 1, 2**63 - 1, -(2**63) + 1, 10**23, 10**400, [], {}, [1], {"a": 1}, None],
    "Edm.String": [5, True, ["a"]],
    "Edm.Boolean": [1, ""],
    "Edm.Int32": [2**31, 1.0, True, " 5", "5\n", "٣", "1_000", "0x10", "9" * 100_000],
    "Edm.Int64": ["9223372036854775808", "-9223372036854775809", 2**63, 1e5, True, "5L"],
    "Edm.Double": [
        "1e400",
        "-1e400",
        10**400,
        True,
        "",
        "nan",
        "infinity",
        "1_0.0",
        "1,5",
        " 1.5",
        "0x1p3",
        ".",
        "e5",
    ],
    "Edm.DateTime": [0, ""],
    "Edm.Guid": [5, "c9e0b9a97e4444d18fcb2d8a4e6b7d10", f"{{{GUID}}}", f"{GUID}\n"],
    "Edm.Binary": [5, "A", "AA", "AA===", "=AA=", "AA =", "A A=", "AAA_", "é===", "\ud800==="],
    "Edm.Single": [1.0],
    "edm.string": ["a"],
    "String": ["a"],
    "": ["a"],
}


@pytest.mark.parametrize("note", REFUSED)
def test_refuses_values_of_other_types(note):
    for value in REFUSED[note]:
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2017-08-30T13:20:33z", INSTANT),
        ("2017-08-30 13:20:33", INSTANT),
        ("2017-08-30T13:20:33.12345678999Z", INSTANT + 1_234_567),
        ("2017-08-30T13:20:33.2", INSTANT + 2_000_000),
        ("2017-08-30T13:20Z", INSTANT - 33 * SECOND),
        ("2017-08-30", INSTANT - (13 * 3600 + 20 * 60 + 33) * SECOND),
        ("2017-08-30T06:50:33-06:30", INSTANT),
        ("2017-08-31T03:20:33+14:00", INSTANT),
        ("1601-01-01T14:00:00+14:00", FIRST_TICK),
    ],
)
def test_reads_datetimes(text, expected):
    assert read(text, "Edm.DateTime") == (Edm.DATETIME, expected)


def test_refuses_invalid_datetimes():
    for text in [
        "2017", "17-08-30", "2017-8-30", "2017-13-01", "2017-02-29", "2017-00-10", "2017-08-30T", "2017-08-30T13",
        "2017-08-30T24:00:00Z", "2017-08-30T13:60:00Z", "2017-08-30T13:20:60Z", "2017-08-30T13:20:33.Z",
        "2017-08-30T13:20:33,5Z", "2017-08-30T13:20:33Z ", " 2017-08-30", "2017-08-30T13:20:33Z\n",
        "2017-08-30T13:20:33+0200", "2017-08-30T13:20:33+15:00", "2017-08-30T13:20:33+01:60", "2017-08-30T13:20:33 Z",
        "20170830T132033Z", "２０１７-08-30", "Wed, 30 Aug 2017 13:20:10 GMT", "/Date(1504099233000)/", "-2017-08-30",
    ]:  # fmt: skip
        with pytest.raises(InvalidInput):
            read_datetime(text)


def test_refuses_datetimes_out_of_range():
    for text in ("0000-01-01", "1601-01-01T00:00:00+00:01", "9999-12-31T23:59:59.9999999-00:01"):
        with pytest.raises(OutOfRangeInput):
            read_datetime(text)


@pytest.mark.parametrize(
    ("instant", "expected"),
    [
        (INSTANT, "2017-08-30T13:20:33Z"),
        (INSTANT + 4_139_140, "2017-08-30T13:20:33.413914Z"),
        (INSTANT + 7 * SECOND, "2017-08-30T13:20:40Z"),
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
    (Edm.INT64, 2**63 - 1, '"9223372036854775807"'),
    (Edm.DOUBLE, 1.0, "1.0"),
    (Edm.DOUBLE, -0.0, "-0.0"),
    (Edm.DOUBLE, 123.45, "123.45"),
    (Edm.DOUBLE, 1e16, "1E+16"),
    (Edm.DOUBLE, 5e-324, "5E-324"),
    (Edm.DOUBLE, 1.7976931348623157e308, "1.7976931348623157E+308"),
    (Edm.DOUBLE, math.nan, '"NaN"'),
    (Edm.DATETIME, 0, '"1970-01-01T00:00:00Z"'),
    (Edm.GUID, GUID, f'"{GUID}"'),
    (Edm.BINARY, b"\x00\x01\xff", '"AAH/"'),
]


@pytest.mark.parametrize(("type_", "value", "expected"), WRITTEN)
def test_writes(type_, value, expected):
    assert write(EdmValue(type_, value)) == expected


def test_annotates_types_that_json_lacks():
    plain = [(Edm.STRING, ""), (Edm.BOOLEAN, True), (Edm.INT32, 1), (Edm.DOUBLE, 1.0)]
    annotated = [
        (Edm.DOUBLE, math.nan),
        (Edm.DOUBLE, -math.inf),
        (Edm.INT64, 1),
        (Edm.DATETIME, 0),
        (Edm.BINARY, b""),
    ]
    assert not any(needs_annotation(EdmValue(*value)) for value in plain)
    assert all(needs_annotation(EdmValue(*value)) for value in [*annotated, (Edm.GUID, GUID)])


@given(values)
def test_a_written_value_reads_back_exactly(value):
    text = write(value)

    assert text.isascii()
    assert "\n" not in text
    for note in (annotation(value), value.type):
        assert same(read(json.loads(text), note), value)


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
    """Return a member as ->> returns it: a string without its quotes, a number without exponent."""
    if projected.startswith('"'):
        return json.loads(projected)
    return projected.replace("1e400", "1" + "0" * 400)


@given(values)
def test_a_projected_value_comes_back_exactly(value):
    assert same(unproject(as_postgres_gives(project(value))), value)


@given(doubles.filter(math.isfinite))
def test_doubles_never_project_with_the_scale_of_an_int64(value):
    whole, _, fraction = project(EdmValue(Edm.DOUBLE, value)).partition(".")

    assert whole.lstrip("-").isdigit()
    assert fraction.isdigit()
    assert fraction != "00"


@given(values, st.booleans())
def test_a_selected_value_equals_a_full_read(value, annotations):
    content = write_projected(b'"P"', as_postgres_gives(project(value)).encode(), annotations=annotations)

    members = json.loads(b'{"first":0' + content + b"}")
    assert members.get("P@odata.type") == (annotation(value) if annotations else None)
    assert bits(members["P"]) == bits(json.loads(write(value)))
    assert content.endswith(b',"P":' + write(value).encode())


# the escape of text


@given(texts)
def test_escaped_text_comes_back_and_can_be_stored(text):
    escaped = escape(text)

    assert unescape(escaped) == text
    assert "\x00" not in escaped
    escaped.encode()  # no lone surrogate


def test_the_escape_keeps_the_order_of_code_points():
    escaped = [escape(chr(code)).encode() for code in range(0x110000)]

    assert escaped == sorted(escaped)
    assert len(set(escaped)) == len(escaped)
    assert escape("é😀\x02") == "é😀\x02"


@given(texts)
def test_counts_utf16_units(text):
    assert utf16_length(text) == len(text) + sum(ord(character) > 0xFFFF for character in text)
