"""The party at fault for an answer, for everything that counts, shows or warns of failures."""

import re

import pytest
import yaml

from storage.domain import errors
from storage.domain.errors import StorageError
from storage.domain.requests.outcomes import Outcome, is_server_failure, outcome_of_status
from storage.domain.requests.recorded import Fault, outcome_of
from tests.docs.pages import DOCS

OF_SERVER = {500, 503}
CODES = [it for it in vars(errors).values() if isinstance(it, type) and issubclass(it, StorageError)]


@pytest.mark.parametrize("error", CODES, ids=lambda it: it.__name__)
def test_only_transient_errors_are_server_failures(error):
    assert is_server_failure(error.status) == (error.status in OF_SERVER)
    expected = Outcome.FAILED if error.status in OF_SERVER else Outcome.REFUSED
    assert outcome_of_status(error.status) is expected
    assert outcome_of(error.status, Fault("", error.status)) is expected
    assert outcome_of(202, Fault("", error.status)) is expected  # an operation of a change set


def test_a_disconnected_client_differs_from_an_answered_one():
    assert outcome_of_status(0) is Outcome.FAILED
    assert {outcome_of_status(status) for status in (200, 201, 202, 204, 304)} == {Outcome.DONE}


def test_the_alert_about_failures_agrees():
    rules = yaml.safe_load((DOCS / "monitoring" / "alerts.yml").read_text())["groups"][0]["rules"]
    [expression] = [rule["expr"] for rule in rules if rule["alert"] == "TableroFailures"]
    conditions = re.findall(r'status([=!])~"([^"]+)"', expression)
    for status in (200, 400, 404, 412, 429, *(it.status for it in CODES)):
        matches = all(
            (re.fullmatch(pattern, str(status)) is not None) == (sign == "=") for sign, pattern in conditions
        )
        assert matches == is_server_failure(status), status
