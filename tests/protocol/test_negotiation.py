"""Choices of a format that the wire cases do not make: by weights, in odd spellings, too long to be remembered."""

from contextlib import suppress

import pytest

from storage.domain.errors import AtomFormatNotSupported, JsonFormatNotSupported, MediaTypeNotSupported
from storage.protocol.accept import Format
from storage.protocol.negotiation import response_format
from tests.cost import costs_less_than

OLD, NEW = "2014-02-14", "2019-02-02"
JSON, NONE, FULL = (f"application/json{level}" for level in ("", ";odata=nometadata", ";odata=fullmetadata"))
ATOM = "application/atom+xml"


@pytest.mark.parametrize(
    ("version", "accept", "expected"),
    [
        (NEW, 'application/json;odata="fullmetadata"', Format.JSON_FULL),
        (NEW, "application/json;streaming=true;odata=nometadata", Format.JSON_NONE),
        (NEW, f"{NONE},{FULL}", Format.JSON_NONE),
        (NEW, f"*/*,{FULL}", Format.JSON_FULL),
        (NEW, f"{FULL};q=0.1,*/*", Format.JSON_MINIMAL),
        (NEW, f"application/json;odata=verbose,{JSON}", Format.JSON_MINIMAL),
        (NEW, f"{JSON};q=oops", Format.JSON_MINIMAL),
        (NEW, f",, {JSON} ,", Format.JSON_MINIMAL),
        pytest.param(NEW, "text/plain;q=0.1," * 100 + NONE, Format.JSON_NONE, id="too long to be cached"),
        (OLD, f"*/*, {JSON}", Format.JSON_MINIMAL),
        (OLD, f"{ATOM}, {JSON}", Format.ATOM),
        (OLD, f"{JSON}, {ATOM}", Format.JSON_MINIMAL),
        (OLD, f"{ATOM};q=0, */*", Format.JSON_MINIMAL),
        (OLD, f"{JSON};q=0, */*", Format.ATOM),
    ],
)
def test_chooses_the_format(version, accept, expected):
    assert response_format(None, accept.encode(), version) is expected


@pytest.mark.parametrize(
    ("version", "format_option", "accept", "error"),
    [
        (NEW, None, f"{JSON};q=0", MediaTypeNotSupported),
        (NEW, None, f"{JSON};q=0,*/*", AtomFormatNotSupported),
        (NEW, "xml", "", MediaTypeNotSupported),
        (NEW, "\ud800", "", MediaTypeNotSupported),
        pytest.param(NEW, "x" * 100_000, "", MediaTypeNotSupported, id="too long"),
        (OLD, None, f"{JSON};q=0, {ATOM};q=0, */*", MediaTypeNotSupported),
        ("2012-02-12", None, f"{ATOM};q=0, */*", JsonFormatNotSupported),
    ],
)
def test_refuses_formats_it_does_not_write(version, format_option, accept, error):
    with pytest.raises(error):
        response_format(format_option, accept.encode(), version)


@pytest.mark.parametrize("accept", [b"a," * 30_000, b"a" + b";q=1" * 15_000, b"," * 60_000])
def test_a_long_accept_takes_no_time(accept):
    with costs_less_than(3), suppress(MediaTypeNotSupported):
        response_format(None, accept, NEW)
