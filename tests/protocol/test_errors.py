"""Every error has a status, and a body that parsers can read whatever it holds."""

import json
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain import errors
from storage.domain.errors import (
    AuthenticationFailed,
    EntityAlreadyExists,
    InvalidHeaderValue,
    InvalidInput,
    StorageError,
    TableNotFound,
)
from storage.domain.requests.statuses import status_of
from storage.protocol.errors import ErrorFormat, ErrorOrigin, reason_phrase, write_error

REQUEST_ID = "1056d2e8-0002-001e-6603-674cea000000"
NOW = 1504099210_0000120
SUFFIX = f"\nRequestId:{REQUEST_ID}\nTime:2017-08-30T13:20:10.0000120Z"
XML_NAMESPACE = "{http://schemas.microsoft.com/ado/2007/08/dataservices/metadata}"
JSON, NONE = b"application/json", b"application/json;odata=nometadata"
ANY, ATOM = b"*/*", b"application/atom+xml"
NAMED = [
    error for error in vars(errors).values() if isinstance(error, type) and issubclass(error, StorageError)
]


def write(error, origin=ErrorOrigin.ODATA, **options):
    return write_error(error, origin, REQUEST_ID, now=NOW, **options)


@pytest.mark.parametrize("error", [error for error in NAMED if error is not StorageError])
def test_every_error_has_a_status(error):
    assert 400 <= status_of(error) <= 599
    assert status_of(error()) == status_of(error)


def test_writes_json_as_the_service_does():
    answer = write(TableNotFound(), accept=JSON)
    assert answer.status == 404
    assert answer.content_type == b"application/json;odata=minimalmetadata;streaming=true;charset=utf-8"
    assert answer.body == (
        b'{"odata.error":{"code":"TableNotFound","message":{"lang":"en-US",'
        b'"value":"The table specified does not exist.\\nRequestId:' + REQUEST_ID.encode() + b"\\n"
        b'Time:2017-08-30T13:20:10.0000120Z"}}}'
    )


def test_writes_xml_as_the_service_does():
    answer = write(TableNotFound())
    assert answer.content_type == b"application/xml;charset=utf-8"
    assert answer.body.decode() == (
        '<?xml version="1.0" encoding="utf-8"?>'
        '<error xmlns="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata">'
        '<code>TableNotFound</code><message xml:lang="en-US">The table specified does not exist.'
        f"{SUFFIX}</message></error>"
    )


def test_writes_prefixed_xml_as_the_service_does():
    error = InvalidHeaderValue(HeaderName="x-ms-version", HeaderValue="<1>")
    answer = write(error, ErrorOrigin.XML_OPERATION)
    assert answer.content_type == b"application/xml"
    assert answer.body.decode() == (
        '<?xml version="1.0" encoding="utf-8"?>'
        '<m:error xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata">'
        '<m:code>InvalidHeaderValue</m:code><m:message xml:lang="en-US">'
        f"The value for one of the HTTP headers is not in the correct format.{SUFFIX}</m:message>"
        "<m:HeaderName>x-ms-version</m:HeaderName><m:HeaderValue>&lt;1&gt;</m:HeaderValue></m:error>"
    )


def test_names_the_operation_of_a_change_set_that_failed():
    answer = write(EntityAlreadyExists(), ErrorOrigin.BATCH_PART, accept=NONE, index=3)
    message = json.loads(answer.body)["odata.error"]["message"]["value"]
    assert message == "3:The specified entity already exists." + SUFFIX


@pytest.mark.parametrize("origin", [ErrorOrigin.ODATA, ErrorOrigin.AUTHORIZATION])
def test_json_has_only_code_and_message(origin):
    error = AuthenticationFailed(AuthenticationErrorDetail="why")
    content = json.loads(write(error, origin, accept=JSON).body)
    assert list(content) == ["odata.error"]
    assert list(content["odata.error"]) == ["code", "message"]


@given(st.text(st.characters(categories=None)), st.text(st.characters(categories=None)))
def test_any_text_makes_a_well_formed_body(message, detail):
    error = InvalidInput(message, HeaderValue=detail)
    for origin in (ErrorOrigin.ODATA, ErrorOrigin.XML_OPERATION):
        parsed = ElementTree.fromstring(write(error, origin).body)
        assert parsed.findtext(f"{XML_NAMESPACE}code") == "InvalidInput"
        assert parsed.findtext(f"{XML_NAMESPACE}message").endswith(SUFFIX)
    body = write(error, accept=JSON).body
    assert json.loads(body)["odata.error"]["message"]["value"] == message + SUFFIX


def test_replaces_only_what_xml_cannot_hold():
    body = write(InvalidInput("a\0\ud800\r\n<é\U0001f600&]]>")).body
    message = ElementTree.fromstring(body).findtext(f"{XML_NAMESPACE}message")
    assert message == "a\ufffd\ufffd\r\n<é\U0001f600&]]>" + SUFFIX


@pytest.mark.parametrize(("status", "phrase"), [(204, b"No Content"), (404, b"Not Found"), (599, b"Unknown")])
def test_every_status_has_a_reason(status, phrase):
    assert reason_phrase(status) == phrase


@pytest.mark.parametrize(
    ("origin", "accept", "expected"),
    [
        (ErrorOrigin.CONNECTION, JSON, ErrorFormat.PREFIXED_XML),
        (ErrorOrigin.ODATA, JSON, ErrorFormat.JSON_MINIMAL),
        (ErrorOrigin.ODATA, NONE, ErrorFormat.JSON_NONE),
        (ErrorOrigin.ODATA, b"application/json;odata=fullmetadata", ErrorFormat.JSON_FULL),
        (ErrorOrigin.ODATA, ANY, ErrorFormat.XML),
        (ErrorOrigin.ODATA, None, ErrorFormat.XML),
        (ErrorOrigin.ODATA, ATOM, ErrorFormat.XML),
        (ErrorOrigin.ODATA, b"text/html", ErrorFormat.XML),
        (ErrorOrigin.XML_OPERATION, JSON, ErrorFormat.PREFIXED_XML),
        (ErrorOrigin.XML_OPERATION, None, ErrorFormat.PREFIXED_XML),
        (ErrorOrigin.AUTHORIZATION, NONE, ErrorFormat.JSON),
        (ErrorOrigin.AUTHORIZATION, ANY, ErrorFormat.PREFIXED_XML),
        (ErrorOrigin.AUTHORIZATION, None, ErrorFormat.PREFIXED_XML),
        (ErrorOrigin.BATCH_PART, None, ErrorFormat.JSON_MINIMAL),
        (ErrorOrigin.BATCH_PART, ANY, ErrorFormat.JSON_MINIMAL),
        (ErrorOrigin.BATCH_PART, NONE, ErrorFormat.JSON_NONE),
        (ErrorOrigin.BATCH_PART, ATOM, ErrorFormat.XML),
    ],
)
def test_origin_and_accept_decide_the_format(origin, accept, expected):
    assert write(InvalidInput(), origin, accept=accept).format is expected


def test_a_part_that_asks_for_nothing_gets_the_default_of_its_version():
    part = ErrorOrigin.BATCH_PART
    assert write(InvalidInput(), part, version="2015-07-08").format is ErrorFormat.XML
    assert write(InvalidInput(), part, accept=JSON, version="2015-07-08").format is ErrorFormat.JSON_MINIMAL


def test_the_format_option_goes_before_accept():
    found = write(InvalidInput(), format_option="application/json;odata=nometadata", accept=ATOM)
    assert found.format is ErrorFormat.JSON_NONE
    assert write(InvalidInput(), format_option="atom", accept=JSON).format is ErrorFormat.XML
