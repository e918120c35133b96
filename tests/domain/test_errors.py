"""The catalogue of errors: the codes are the service's, and every one has its sentence."""

import re

import pytest

from storage.domain import errors
from storage.domain.errors import StorageError

ERRORS = [
    error
    for error in vars(errors).values()
    if isinstance(error, type)
    and issubclass(error, StorageError)
    and error is not StorageError
    and error is not errors.RequestMemoryFull  # a cause of ServerBusy, and to clients the same
]
REASONS = {errors.DamagedPage: errors.InternalError}  # a sentence of its own, with the code of another


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_the_class_is_the_code_and_has_a_sentence_of_its_own(error):
    assert error().code == REASONS.get(error, error).__name__
    assert re.fullmatch("[A-Z][A-Za-z0-9]+", error().code)
    assert error().text == error.message
    assert "message" in vars(error)
    # the service itself leaves the full stop out in this one sentence
    assert error.message.endswith(".") or error is errors.MediaTypeNotSupported
