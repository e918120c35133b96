"""Errors of accounts of the kind cosmos that no request of a test can cause at will."""

import json

import pytest

from storage.domain.errors import InternalError, ServerBusy, TooManyRequests
from storage.protocol import cosmos
from storage.sql.failures import NodeLost


@pytest.mark.parametrize(
    ("error", "wait"),
    [
        (ServerBusy(), b"1000"),
        (NodeLost(), b"1000"),
        (TooManyRequests(**{"x-ms-retry-after-ms": "250"}), b"250"),
    ],
)
def test_a_throttled_request_says_when_to_try_again(error, wait):
    status, headers, body = cosmos.refuse(error, "id", "GET", {})

    assert (status, dict(headers)[b"x-ms-retry-after-ms"]) == (429, wait)
    assert json.loads(body)["odata.error"]["code"] == "429"
    assert "Request rate is large." in body.decode()


def test_a_failure_of_the_server_names_no_details():
    status, headers, body = cosmos.refuse(InternalError(), "id", "GET", {b"accept": b"application/json"})

    assert (status, headers) == (500, [(b"Content-Type", b"application/json;odata=minimalmetadata")])
    assert json.loads(body)["odata.error"] == {
        "code": "InternalServerError",
        "message": {"lang": "en-us", "value": f"{InternalError.message}\nRequestID:id\n"},
    }
