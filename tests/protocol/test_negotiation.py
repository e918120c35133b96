"""Formats, versions, preferences and tunnelled methods."""

import pytest

from storage.domain.errors import (
    AtomFormatNotSupported,
    InvalidHeaderValue,
    JsonFormatNotSupported,
    MediaTypeNotSupported,
    XMethodIncorrectCount,
    XMethodIncorrectValue,
    XMethodNotUsingPost,
)
from storage.protocol.negotiation import (
    NEWEST_VERSION,
    ErrorFormat,
    Level,
    Preference,
    Source,
    check_content_type,
    effective_method,
    error_format,
    read_preference,
    read_version,
    response_level,
)

VERSION = "2019-02-02"
JSON, NONE, ANY, ATOM = (
    b"application/json",
    b"application/json;odata=nometadata",
    b"*/*",
    b"application/atom+xml",
)


@pytest.mark.parametrize(
    ("format_option", "accept", "level"),
    [
        (None, None, Level.MINIMAL),
        (None, b"", Level.MINIMAL),
        (None, b"*/*", Level.MINIMAL),
        (None, b"application/*", Level.MINIMAL),
        (None, b"application/json", Level.MINIMAL),
        (None, b"application/json;odata=nometadata", Level.NONE),
        (None, b"application/json;odata=minimalmetadata", Level.MINIMAL),
        (None, b"application/json; odata=fullmetadata", Level.FULL),
        (None, b"APPLICATION/JSON ; ODATA = FullMetadata ; charset=utf-8", Level.FULL),
        (None, b'application/json;odata="fullmetadata"', Level.FULL),
        (None, b"application/json;streaming=true;odata=nometadata", Level.NONE),
        (None, b"application/json;odata=nometadata;q=0.5,application/json;odata=fullmetadata", Level.FULL),
        (None, b"application/json;odata=nometadata,application/json;odata=fullmetadata", Level.NONE),
        (None, b"application/atom+xml,application/json;odata=nometadata;q=0.1", Level.NONE),
        (None, b"*/*,application/json;odata=fullmetadata", Level.FULL),
        (None, b"application/json;odata=fullmetadata;q=0.1,*/*", Level.MINIMAL),
        (None, b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", Level.MINIMAL),
        (None, b"application/json;odata=verbose,application/json", Level.MINIMAL),
        (None, b"application/json;q=oops", Level.MINIMAL),
        (None, b",, application/json ,", Level.MINIMAL),
        pytest.param(None, b"text/plain;q=0.1," * 100 + NONE, Level.NONE, id="too long to be cached"),
        ("json", b"application/atom+xml", Level.MINIMAL),
        ("application/json;odata=fullmetadata", b"application/json;odata=nometadata", Level.FULL),
        ("application/json;odata=nometadata", None, Level.NONE),
        ("", b"application/json;odata=nometadata", Level.NONE),
    ],
)
def test_chooses_the_level(format_option, accept, level):
    assert response_level(format_option, accept, VERSION) is level


@pytest.mark.parametrize(
    ("format_option", "accept", "error"),
    [
        (None, b"application/atom+xml", AtomFormatNotSupported),
        (None, b"application/atom+xml,application/xml", AtomFormatNotSupported),
        (None, b"text/html, application/xml", AtomFormatNotSupported),
        ("atom", b"application/json", AtomFormatNotSupported),
        ("application/atom+xml", None, AtomFormatNotSupported),
        (None, b"text/html", MediaTypeNotSupported),
        (None, b"application/json;odata=verbose", MediaTypeNotSupported),
        (None, b"application/json;q=0", MediaTypeNotSupported),
        (None, b"application/json;q=0,*/*", MediaTypeNotSupported),
        (None, b"nonsense", MediaTypeNotSupported),
        ("xml", None, MediaTypeNotSupported),
        ("\ud800", None, MediaTypeNotSupported),
        pytest.param("x" * 100_000, None, MediaTypeNotSupported, id="too long"),
    ],
)
def test_refuses_formats_it_does_not_write(format_option, accept, error):
    for version in (VERSION, "2012-02-12"):
        with pytest.raises(error):
            response_level(format_option, accept, version)


def test_refuses_json_before_its_version():
    assert response_level(None, b"application/json", "2013-08-15") is Level.MINIMAL
    assert response_level(None, None, "2012-02-12") is Level.MINIMAL
    with pytest.raises(JsonFormatNotSupported):
        response_level(None, b"application/json", "2012-02-12")


def test_names_the_level_as_the_service_does():
    assert (
        Level.MINIMAL.content_type == b"application/json;odata=minimalmetadata;streaming=true;charset=utf-8"
    )


@pytest.mark.parametrize(
    ("source", "accept", "expected"),
    [
        (Source.ODATA, JSON, ErrorFormat.JSON_MINIMAL),
        (Source.ODATA, NONE, ErrorFormat.JSON_NONE),
        (Source.ODATA, b"application/json;odata=fullmetadata", ErrorFormat.JSON_FULL),
        (Source.ODATA, ANY, ErrorFormat.XML),
        (Source.ODATA, None, ErrorFormat.XML),
        (Source.ODATA, ATOM, ErrorFormat.XML),
        (Source.ODATA, b"text/html", ErrorFormat.XML),
        (Source.XML, JSON, ErrorFormat.PREFIXED_XML),
        (Source.XML, None, ErrorFormat.PREFIXED_XML),
        (Source.FRONT_END, NONE, ErrorFormat.JSON),
        (Source.FRONT_END, ANY, ErrorFormat.PREFIXED_XML),
        (Source.FRONT_END, None, ErrorFormat.PREFIXED_XML),
        (Source.PART, None, ErrorFormat.JSON_MINIMAL),
        (Source.PART, ANY, ErrorFormat.JSON_MINIMAL),
        (Source.PART, NONE, ErrorFormat.JSON_NONE),
        (Source.PART, ATOM, ErrorFormat.XML),
    ],
)
def test_chooses_the_format_of_an_error(source, accept, expected):
    assert error_format(source, None, accept) is expected


def test_the_format_option_decides_the_format_of_an_error():
    assert error_format(Source.ODATA, "application/json;odata=nometadata", ATOM) is ErrorFormat.JSON_NONE
    assert error_format(Source.ODATA, "atom", JSON) is ErrorFormat.XML


@pytest.mark.parametrize(
    ("value", "body"),
    [
        (b"application/json", b"{}"),
        (b"application/json;odata=nometadata", b""),
        (b"Application/JSON ; charset=utf-8", b"{}"),
        (None, b""),
        (None, b'\xef\xbb\xbf \r\n{"a":1}'),
    ],
)
def test_accepts_json_bodies(value, body):
    check_content_type(value, body, VERSION)


@pytest.mark.parametrize(
    ("value", "body", "error"),
    [
        (b"application/atom+xml", b"<entry/>", AtomFormatNotSupported),
        (b"application/xml", b"<entry/>", MediaTypeNotSupported),
        (b"text/plain", b"{}", MediaTypeNotSupported),
        (b"application/jsonx", b"{}", MediaTypeNotSupported),
        (b"", b"{}", MediaTypeNotSupported),
        (None, b"<entry/>", MediaTypeNotSupported),
        (None, b"[]", MediaTypeNotSupported),
    ],
)
def test_refuses_other_bodies(value, body, error):
    with pytest.raises(error):
        check_content_type(value, body, VERSION)


def test_refuses_json_bodies_before_their_version():
    with pytest.raises(JsonFormatNotSupported):
        check_content_type(b"application/json", b"{}", "2012-02-12")


@pytest.mark.parametrize(
    "value", [b"2009-04-14", b"2019-02-02", b" 2026-06-06 ", b"2044-02-29", b"9999-12-31"]
)
def test_accepts_every_date_since_the_first_version(value):
    assert read_version(value) == value.decode().strip()


def test_serves_a_request_without_a_version_as_the_newest():
    assert read_version(None) == NEWEST_VERSION


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"2009-04-13",
        b"2019-02-30",
        b"20190202",
        b"2019-W05-6",
        b"2019-2-2",
        b"x",
        b"2019-02-02T",
        b"\xb2019-02-02",
    ],
)
def test_refuses_what_is_no_version(value):
    with pytest.raises(InvalidHeaderValue) as refusal:
        read_version(value)
    assert refusal.value.details == {"HeaderName": "x-ms-version", "HeaderValue": value.decode("latin-1")}


@pytest.mark.parametrize(
    ("value", "preference"),
    [
        (None, Preference.ABSENT),
        (b"", Preference.ABSENT),
        (b"return-content", Preference.CONTENT),
        (b"return-no-content", Preference.NO_CONTENT),
        (b" Return-No-Content ; x=1", Preference.NO_CONTENT),
        (b"wait=5, return-content, return-no-content", Preference.CONTENT),
        (b"return=minimal", Preference.ABSENT),
    ],
)
def test_reads_preferences(value, preference):
    assert read_preference(value, VERSION) is preference
    assert read_preference(value, "2012-02-12") is Preference.ABSENT


def test_a_preference_says_what_was_applied():
    assert Preference.NO_CONTENT.applied == b"return-no-content"
    assert Preference.ABSENT.applied is None


@pytest.mark.parametrize("value", [b"MERGE", b"PUT", b"DELETE", b"PATCH", b" merge "])
def test_tunnels_methods_through_post(value):
    assert effective_method("POST", [value]) == value.decode().strip().upper()
    assert effective_method("POST", []) == "POST"


@pytest.mark.parametrize(
    ("method", "values", "error"),
    [
        ("POST", [b"MERGE", b"MERGE"], XMethodIncorrectCount),
        ("POST", [b"GET"], XMethodIncorrectValue),
        ("POST", [b""], XMethodIncorrectValue),
        ("POST", [b"MERGE, PUT"], XMethodIncorrectValue),
        ("PUT", [b"MERGE"], XMethodNotUsingPost),
    ],
)
def test_refuses_other_tunnels(method, values, error):
    with pytest.raises(error):
        effective_method(method, values)
