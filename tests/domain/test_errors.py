"""The catalogue of errors: the codes are the service's, and every one has its sentence."""

import json
import re

import pytest

from storage.domain import errors
from storage.domain.errors import StorageError
from tests.live_server import ROOT
from tests.wire import cases

ERRORS = [
    error
    for error in vars(errors).values()
    if isinstance(error, type)
    and issubclass(error, StorageError)
    and error is not StorageError
    and error is not errors.RequestMemoryFull  # a cause of ServerBusy, and to clients the same
]
REASONS = {errors.DamagedPage: errors.InternalError}  # a sentence of its own, with the code of another
# codes that no wire case can cause, and a test that does
ELSEWHERE = {
    "AccountIsDisabled": "tests/clients/python/test_bearer.py",
    "HttpVersionNotSupported": "tests/protocol/test_http_connection.py",
    "KeyBasedAuthenticationNotPermitted": "tests/clients/python/test_bearer.py",
    "RequestUrlFailedToParse": "tests/protocol/test_http_connection.py",
    "TooManyRequests": "tests/protocol/test_cosmos.py",
}


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_the_class_is_the_code_and_has_a_sentence_of_its_own(error):
    assert error().code == REASONS.get(error, error).__name__
    assert re.fullmatch("[A-Z][A-Za-z0-9]+", error().code)
    assert error().text == error.message
    assert "message" in vars(error)
    # the service itself leaves the full stop out in this one sentence
    assert error.message.endswith(".") or error is errors.MediaTypeNotSupported


def test_each_code_is_answered_in_a_test():
    answered = {
        word
        for case in cases.load()
        for word in re.findall(
            r"\w+", json.dumps([case.variables, *(step["response"] for step in case.steps)])
        )
    }
    codes = {error().code for error in ERRORS}
    lacking = sorted(codes - answered - ELSEWHERE.keys())
    assert not lacking, (
        f"{lacking}: add a case to the file of the operation in tests/wire, or a test to ELSEWHERE"
    )
    assert ELSEWHERE.keys() <= codes - answered
    for code, path in ELSEWHERE.items():
        assert re.search(rf"\b{code}\b", (ROOT / path).read_text()), f"{path} no longer has {code}"
