"""A value of one type as another: what stays, what is lost, and what cannot be."""

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.values.edm import STRING_LIMIT, Edm, EdmValue
from storage.editing.conversions import Loss, convert
from storage.editing.input_context import InputContext
from storage.editing.typed_text import InvalidText, TextFault
from tests.domain.test_edm import same
from tests.strategies import values

CONTEXT = InputContext(datetime(2026, 11, 20, 14, 3, 7, tzinfo=UTC))
GUID = "c9da6455-213d-42c9-9a79-3e9149a57833"
BYTES = bytes.fromhex(GUID.replace("-", ""))
SECOND = 10_000_000

CONVERTED = [
    (Edm.INT32, 5, Edm.DOUBLE, 5.0, None),
    (Edm.INT32, 1, Edm.BOOLEAN, True, None),
    (Edm.INT64, 2**31 - 1, Edm.INT32, 2**31 - 1, None),
    (Edm.INT64, 2**53, Edm.DOUBLE, 2.0**53, None),
    (Edm.INT64, 2**53 + 1, Edm.DOUBLE, 2.0**53, Loss.PRECISION),
    (Edm.DOUBLE, 5.0, Edm.INT32, 5, None),
    (Edm.DOUBLE, -2.75, Edm.INT64, -2, Loss.FRACTION),
    (Edm.DOUBLE, -0.0, Edm.INT32, 0, Loss.SIGN),
    (Edm.DOUBLE, -0.0, Edm.STRING, "-0.0", None),
    (Edm.DOUBLE, math.nan, Edm.STRING, "NaN", None),
    (Edm.DOUBLE, 1.0, Edm.BOOLEAN, True, None),
    (Edm.BOOLEAN, False, Edm.DOUBLE, 0.0, None),
    (Edm.BOOLEAN, False, Edm.STRING, "false", None),
    (Edm.STRING, "42", Edm.INT32, 42, None),
    (Edm.STRING, "0042", Edm.INT64, 42, Loss.SPELLING),
    (Edm.STRING, "0.50", Edm.DOUBLE, 0.5, Loss.SPELLING),
    (Edm.STRING, "0.1234567890123456789", Edm.DOUBLE, 0.12345678901234568, Loss.PRECISION),
    (Edm.STRING, "TRUE", Edm.BOOLEAN, True, Loss.SPELLING),
    (Edm.STRING, GUID.upper(), Edm.GUID, GUID, Loss.SPELLING),
    (Edm.STRING, "1970-01-01T00:00:01Z", Edm.DATETIME, SECOND, None),
    (Edm.STRING, "1970-01-01T01:00:01+01:00", Edm.DATETIME, SECOND, Loss.SPELLING),
    (Edm.STRING, "é", Edm.BINARY, b"\xc3\xa9", None),
    (Edm.BINARY, b"\xc3\xa9", Edm.STRING, "é", None),
    (Edm.BINARY, b"\xff\xfe", Edm.STRING, "//4=", None),
    (Edm.GUID, GUID, Edm.BINARY, BYTES, None),
    (Edm.BINARY, BYTES, Edm.GUID, GUID, None),
    (Edm.DATETIME, SECOND, Edm.STRING, "1970-01-01T00:00:01Z", None),
]


@pytest.mark.parametrize(("type_", "value", "to", "expected", "loss"), CONVERTED)
def test_converts(type_, value, to, expected, loss):
    converted = convert(EdmValue(type_, value), to, CONTEXT)
    assert same(converted.value, EdmValue(to, expected))
    assert (converted.loss, converted.is_lossless) == (loss, loss is None)


@pytest.mark.parametrize(
    ("type_", "value", "to", "fault"),
    [
        (Edm.INT64, 2**31, Edm.INT32, TextFault.TOO_LARGE),
        (Edm.DOUBLE, 1e19, Edm.INT64, TextFault.TOO_LARGE),
        (Edm.DOUBLE, math.nan, Edm.INT32, TextFault.NOT_WHOLE),
        (Edm.INT32, 2, Edm.BOOLEAN, TextFault.NO_MEANING),
        (Edm.INT64, 5, Edm.DATETIME, TextFault.NO_MEANING),
        (Edm.BINARY, b"5", Edm.INT32, TextFault.NO_MEANING),
        (Edm.INT32, 5, Edm.BINARY, TextFault.NO_MEANING),
        (Edm.STRING, "ada", Edm.INT32, TextFault.NOT_WHOLE),
        (Edm.STRING, "now", Edm.DATETIME, TextFault.NOT_DATETIME),
        (Edm.STRING, "\ud800", Edm.BINARY, TextFault.SURROGATE),
        (Edm.BINARY, b"\xff" * 60_000, Edm.STRING, TextFault.TOO_LONG),
        (Edm.BINARY, b"a" * (STRING_LIMIT + 1), Edm.STRING, TextFault.TOO_LONG),
    ],
)
def test_says_why_not(type_, value, to, fault):
    with pytest.raises(InvalidText) as refusal:
        convert(EdmValue(type_, value), to, CONTEXT)
    assert refusal.value.fault is fault


@given(values, st.sampled_from(Edm))
def test_lossless_conversions_are_reversible(value, to):
    try:
        converted = convert(value, to, CONTEXT)
        back = convert(converted.value, value.type, CONTEXT)
    except InvalidText:
        return
    if converted.is_lossless and value.type is not Edm.BINARY:
        assert same(back.value, value)
