"""Answers to clients when a statement fails."""

import pytest

from storage.domain.errors import ServerBusy, TableNotFound
from storage.sql.failures import Canceled, NodeLost, RolledBack, UnexpectedFailure, failure


@pytest.mark.parametrize(
    ("sqlstate", "message", "expected"),
    [
        ("42P01", 'relation "entity_1" does not exist', TableNotFound),
        ("42883", "function entity_1_change_set(...) does not exist", TableNotFound),
        ("57014", "canceling statement due to statement timeout", Canceled),
        ("40P01", "deadlock detected", RolledBack),
        (None, "server closed the connection unexpectedly", ServerBusy),
        # without codes of their own in Citus
        ("XX000", "cache lookup failed for function 16623", TableNotFound),
        ("XX000", "failure on connection marked as essential: worker-1:5432", NodeLost),
        ("XX000", "postmaster was shut down, exiting", NodeLost),
        ("XX000", "cache lookup failed for relation 16623", UnexpectedFailure),
    ],
)
def test_errors_of_the_database(sqlstate, message, expected):
    assert type(failure(sqlstate, message)) is expected


@pytest.mark.parametrize("error", [RolledBack, NodeLost])
def test_clients_get_the_code_of_a_busy_server(error):
    assert error().code == "ServerBusy"


def test_a_full_disk_is_named_in_the_log(caplog):
    message = 'could not extend file "base/16384/16399": No space left on device'
    assert type(failure("53100", message)) is ServerBusy
    assert caplog.messages == [f"PostgreSQL has no space left on its disk: {message}"]
