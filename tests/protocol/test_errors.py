"""Every error has a body that parsers can read whatever it holds."""

import json
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.errors import AuthenticationFailed, InvalidInput
from storage.protocol.errors import ErrorOrigin, error_reason, reason_phrase, write_error

REQUEST_ID = "1056d2e8-0002-001e-6603-674cea000000"
NOW = 1504099210_0000120
SUFFIX = f"\nRequestId:{REQUEST_ID}\nTime:2017-08-30T13:20:10.0000120Z"
XML_NAMESPACE = "{http://schemas.microsoft.com/ado/2007/08/dataservices/metadata}"


def write(error, origin=ErrorOrigin.ODATA, **options):
    return write_error(error, origin, REQUEST_ID, now=NOW, **options)


@given(st.text(st.characters(categories=None)), st.text(st.characters(categories=None)))
def test_any_text_makes_a_well_formed_body(message, detail):
    error = InvalidInput(message, HeaderValue=detail)
    for origin in (ErrorOrigin.ODATA, ErrorOrigin.XML_OPERATION):
        parsed = ElementTree.fromstring(write(error, origin).body)
        assert parsed.findtext(f"{XML_NAMESPACE}code") == "InvalidInput"
        assert parsed.findtext(f"{XML_NAMESPACE}message").endswith(SUFFIX)
    body = write(error, accept=b"application/json").body
    assert json.loads(body)["odata.error"]["message"]["value"] == message + SUFFIX


def test_replaces_only_characters_invalid_in_xml():
    body = write(InvalidInput("a\0\ud800\r\n<é\U0001f600&]]>")).body
    message = ElementTree.fromstring(body).findtext(f"{XML_NAMESPACE}message")
    assert message == "a\ufffd\ufffd\r\n<é\U0001f600&]]>" + SUFFIX


@pytest.mark.parametrize(("status", "phrase"), [(204, b"No Content"), (404, b"Not Found"), (599, b"Unknown")])
def test_every_status_has_a_reason(status, phrase):
    assert reason_phrase(status) == phrase


@pytest.mark.parametrize(
    "origin", [ErrorOrigin.FRONT_END, ErrorOrigin.AUTHORIZATION, ErrorOrigin.XML_OPERATION]
)
def test_a_message_is_the_reason_before_odata_if_it_fits_a_line(origin):
    assert error_reason(AuthenticationFailed(), origin) == AuthenticationFailed.message.encode()
    assert error_reason(AuthenticationFailed(), ErrorOrigin.ODATA) is None
    for text in ("", "a\r\nSet-Cookie: b", "a\nb", "a\tb", "é", "\ud800", "a" * 201):
        assert error_reason(InvalidInput(text), origin) is None
