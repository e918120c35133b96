"""Outcomes of requests: success, client error or server failure."""

from enum import StrEnum
from typing import Final

# features that a client may ask for and this service, or this version of HTTP, does not have; Azure answers so too
_ASKED_FOR: Final = frozenset({501, 505})

_TIMED_OUT: Final = 408  # in a Cosmos account, an operation that took too long


class Outcome(StrEnum):
    """Outcome of a request; a change set answered 202 with a refused part counts as refused."""

    DONE = "done"
    REFUSED = "refused"  # the request was at fault
    FAILED = "failed"  # by the server, or because the client closed the connection


def is_server_failure(status: int) -> bool:
    """Return whether a status is a failure of the server: any 5xx except those for unimplemented features, or 408."""
    return status == _TIMED_OUT or (status >= 500 and status not in _ASKED_FOR)


def outcome_of_status(status: int) -> Outcome:
    """Return the outcome of a status; 0 means that the client disconnected before."""
    if not status or is_server_failure(status):
        return Outcome.FAILED
    return Outcome.REFUSED if status >= 400 else Outcome.DONE
