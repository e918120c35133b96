"""Formats, versions, preferences and tunnelled methods."""

from contextlib import suppress

import pytest

from storage.domain.errors import (
    AtomFormatNotSupported,
    InvalidHeaderValue,
    InvalidQueryParameterValue,
    JsonFormatNotSupported,
    MediaTypeNotSupported,
    XMethodIncorrectCount,
    XMethodIncorrectValue,
    XMethodNotUsingPost,
)
from storage.protocol.accept import Format
from storage.protocol.negotiation import (
    NEWEST_VERSION,
    OLDEST_VERSION,
    Preference,
    effective_method,
    read_preference,
    read_version,
    request_format,
    response_format,
    supported_options,
)
from tests.cost import costs_less_than

VERSION = "2019-02-02"
JSON, NONE, ANY, ATOM = (
    b"application/json",
    b"application/json;odata=nometadata",
    b"*/*",
    b"application/atom+xml",
)


@pytest.mark.parametrize(
    ("format_option", "accept", "expected"),
    [
        (None, None, Format.JSON_MINIMAL),
        (None, b"", Format.JSON_MINIMAL),
        (None, b"*/*", Format.JSON_MINIMAL),
        (None, b"application/*", Format.JSON_MINIMAL),
        (None, b"application/json", Format.JSON_MINIMAL),
        (None, b"application/json;odata=nometadata", Format.JSON_NONE),
        (None, b"application/json;odata=minimalmetadata", Format.JSON_MINIMAL),
        (None, b"application/json; odata=fullmetadata", Format.JSON_FULL),
        (None, b"APPLICATION/JSON ; ODATA = FullMetadata ; charset=utf-8", Format.JSON_FULL),
        (None, b'application/json;odata="fullmetadata"', Format.JSON_FULL),
        (None, b"application/json;streaming=true;odata=nometadata", Format.JSON_NONE),
        (
            None,
            b"application/json;odata=nometadata;q=0.5,application/json;odata=fullmetadata",
            Format.JSON_FULL,
        ),
        (None, b"application/json;odata=nometadata,application/json;odata=fullmetadata", Format.JSON_NONE),
        (None, b"application/atom+xml,application/json;odata=nometadata;q=0.1", Format.JSON_NONE),
        (None, b"*/*,application/json;odata=fullmetadata", Format.JSON_FULL),
        (None, b"application/json;odata=fullmetadata;q=0.1,*/*", Format.JSON_MINIMAL),
        (None, b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", Format.JSON_MINIMAL),
        (None, b"application/json;odata=verbose,application/json", Format.JSON_MINIMAL),
        (None, b"application/json;q=oops", Format.JSON_MINIMAL),
        (None, b",, application/json ,", Format.JSON_MINIMAL),
        pytest.param(None, b"text/plain;q=0.1," * 100 + NONE, Format.JSON_NONE, id="too long to be cached"),
        ("json", b"application/atom+xml", Format.JSON_MINIMAL),
        ("application/json;odata=fullmetadata", b"application/json;odata=nometadata", Format.JSON_FULL),
        ("application/json;odata=nometadata", None, Format.JSON_NONE),
        ("", b"application/json;odata=nometadata", Format.JSON_NONE),
    ],
)
def test_chooses_the_format(format_option, accept, expected):
    assert response_format(format_option, accept, VERSION) is expected


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
        (None, b"application/json;q=0,*/*", AtomFormatNotSupported),
        (None, b"nonsense", MediaTypeNotSupported),
        ("xml", None, MediaTypeNotSupported),
        ("\ud800", None, MediaTypeNotSupported),
        pytest.param("x" * 100_000, None, MediaTypeNotSupported, id="too long"),
    ],
)
def test_refuses_formats_it_does_not_write(format_option, accept, error):
    with pytest.raises(error):
        response_format(format_option, accept, VERSION)


@pytest.mark.parametrize(
    ("format_option", "accept", "expected"),
    [
        (None, None, Format.ATOM),
        (None, b"", Format.ATOM),
        (None, b"*/*", Format.ATOM),
        (None, b"application/*", Format.ATOM),
        (None, b"application/atom+xml", Format.ATOM),
        (None, b"application/atom+xml,application/xml", Format.ATOM),
        (None, b"Application/Atom+XML;type=feed; charset=utf-8", Format.ATOM),
        (None, b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", Format.ATOM),
        (None, b"application/json", Format.JSON_MINIMAL),
        (None, b"application/json;odata=nometadata", Format.JSON_NONE),
        (None, b"application/json, */*", Format.JSON_MINIMAL),
        (None, b"*/*, application/json", Format.JSON_MINIMAL),
        (None, b"application/json;q=0.5, */*", Format.ATOM),
        (None, b"application/atom+xml, application/json", Format.ATOM),
        (None, b"application/json, application/atom+xml", Format.JSON_MINIMAL),
        (None, b"application/atom+xml;q=0.5, application/json;q=0.4", Format.ATOM),
        (None, b"application/atom+xml;q=0.4, application/json;odata=fullmetadata;q=0.5", Format.JSON_FULL),
        (None, b"application/atom+xml;q=0, */*", Format.JSON_MINIMAL),
        (None, b"application/json;q=0, */*", Format.ATOM),
        ("atom", b"application/json", Format.ATOM),
        ("application/atom+xml", b"application/json", Format.ATOM),
        ("json", None, Format.JSON_MINIMAL),
        ("application/json;odata=nometadata", b"application/atom+xml", Format.JSON_NONE),
        ("", b"application/json", Format.JSON_MINIMAL),
    ],
)
def test_chooses_the_format_while_there_was_atom(format_option, accept, expected):
    for version in ("2013-08-15", "2015-07-08"):
        assert response_format(format_option, accept, version) is expected


@pytest.mark.parametrize(
    "accept", [None, b"*/*", b"application/atom+xml", b"application/json, */*;q=0.1", b"application/xml"]
)
def test_chooses_atom_before_there_was_json(accept):
    for version in (OLDEST_VERSION, "2012-02-12"):
        assert response_format(None, accept, version) is Format.ATOM


@pytest.mark.parametrize(
    ("format_option", "accept", "version", "error"),
    [
        (None, b"application/json", "2012-02-12", JsonFormatNotSupported),
        (None, b"application/atom+xml;q=0, */*", "2012-02-12", JsonFormatNotSupported),
        ("json", b"application/atom+xml", "2012-02-12", JsonFormatNotSupported),
        (None, b"text/html", "2012-02-12", MediaTypeNotSupported),
        (None, b"application/json;odata=verbose", "2014-02-14", MediaTypeNotSupported),
        (None, b"*/*;q=0", "2014-02-14", MediaTypeNotSupported),
        (None, b"application/json;q=0, application/atom+xml;q=0, */*", "2014-02-14", MediaTypeNotSupported),
    ],
)
def test_refuses_what_an_old_version_does_not_write(format_option, accept, version, error):
    with pytest.raises(error):
        response_format(format_option, accept, version)


@pytest.mark.parametrize("accept", [b"a," * 30_000, b"a" + b";q=1" * 15_000, b"," * 60_000])
def test_a_long_accept_takes_no_time(accept):
    with costs_less_than(0.5), suppress(MediaTypeNotSupported):
        response_format(None, accept, VERSION)


def test_only_json_without_metadata_leaves_out_the_types():
    assert [form for form in Format if not form.annotations] == [Format.JSON_NONE]


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
def test_recognizes_json_bodies(value, body):
    assert request_format(value, body, VERSION) is Format.JSON_MINIMAL
    assert request_format(value, body, "2013-08-15") is Format.JSON_MINIMAL
    with pytest.raises(JsonFormatNotSupported):
        request_format(value, body, "2012-02-12")


@pytest.mark.parametrize(
    ("value", "body"),
    [
        (b"application/atom+xml", b"<entry/>"),
        (b"Application/Atom+XML ; type=entry", b""),
        (None, b"\xef\xbb\xbf <entry/>"),
    ],
)
def test_recognizes_atom_bodies(value, body):
    assert request_format(value, body, "2015-07-08") is Format.ATOM
    assert request_format(value, body, OLDEST_VERSION) is Format.ATOM
    with pytest.raises(AtomFormatNotSupported):
        request_format(value, body, "2015-12-11")


@pytest.mark.parametrize(
    ("value", "body"),
    [
        (b"application/xml", b"<entry/>"),
        (b"text/plain", b"{}"),
        (b"application/jsonx", b"{}"),
        (b"", b"{}"),
        (None, b"[]"),
    ],
)
def test_refuses_other_bodies(value, body):
    for version in (VERSION, "2012-02-12"):
        with pytest.raises(MediaTypeNotSupported):
            request_format(value, body, version)


@pytest.mark.parametrize(
    "value", [b"2009-04-14", b"2019-02-02", b" 2026-06-06 ", b"2044-02-29", b"9999-12-31"]
)
def test_accepts_every_date_since_the_first_version(value):
    assert read_version({b"x-ms-version": value}, {}) == value.decode().strip()


@pytest.mark.parametrize(
    ("headers", "options"),
    [
        ({b"accept": b"application/json"}, {}),
        ({b"accept": b"text/html, application/json;odata=nometadata"}, {}),
        ({b"content-type": b"Application/JSON; charset=utf-8"}, {}),
        ({b"accept": b"application/atom+xml"}, {"$format": "json"}),
        ({b"dataserviceversion": b"3.0;NetFx"}, {}),
        ({b"maxdataserviceversion": b"3.0", b"dataserviceversion": b"1.0"}, {}),
        ({b"accept": b"application/xml"}, {"comp": "acl"}),
        ({}, {"restype": "service", "comp": "stats"}),
    ],
)
def test_serves_a_request_without_a_version_as_the_newest_if_it_cannot_be_old(headers, options):
    assert read_version(headers, options) == NEWEST_VERSION


@pytest.mark.parametrize(
    ("headers", "options"),
    [
        ({}, {}),
        ({b"accept": b"*/*"}, {}),
        ({b"accept": b"application/atom+xml,application/xml"}, {}),
        ({b"content-type": b"application/atom+xml"}, {}),
        ({b"accept": b"application/json"}, {"$format": "atom"}),
        ({b"dataserviceversion": b"1.0;NetFx", b"maxdataserviceversion": b"2.0;NetFx"}, {}),
        ({}, {"api-version": "2014-02-14"}),
    ],
)
def test_serves_other_requests_without_a_version_as_the_oldest(headers, options):
    assert read_version(headers, options) == OLDEST_VERSION


@pytest.mark.parametrize(
    ("header", "options", "version"),
    [
        (None, {"sv": "2012-02-12"}, "2012-02-12"),
        (b"2019-02-02", {"sv": "2012-02-12"}, "2019-02-02"),
        (b"2019-02-02", {"sv": "2020-12-06", "api-version": "2014-02-14"}, "2014-02-14"),
        (None, {"sv": "2020-12-06", "api-version": "2014-02-14"}, "2014-02-14"),
        (None, {"sv": "2020-12-06", "api-version": ""}, "2020-12-06"),
        (None, {"sv": "", "sig": "x"}, OLDEST_VERSION),
    ],
)
def test_a_shared_access_signature_brings_its_version(header, options, version):
    assert read_version({} if header is None else {b"x-ms-version": header}, options) == version


@pytest.mark.parametrize("name", ["api-version", "sv"])
@pytest.mark.parametrize("value", ["x", "2019-02-30", "2008-01-01", "\ud800", "２０１９-02-02"])
def test_refuses_a_parameter_that_is_no_version(name, value):
    with pytest.raises(InvalidQueryParameterValue) as refusal:
        read_version({}, {"sv": "2019-02-02", name: value})
    assert refusal.value.details["QueryParameterName"] == name


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
        read_version({b"x-ms-version": value}, {})
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


def test_select_is_passed_over_before_its_version():
    options = {"$select": "a", "raw:$select": "a", "$top": "1"}
    assert supported_options(options, "2009-09-19") == {"$top": "1"}
    assert supported_options(options, "2011-08-18") is options


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
