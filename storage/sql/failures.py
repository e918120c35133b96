"""What PostgreSQL's own errors mean to the service."""

from storage.domain import errors
from storage.domain.errors import (
    ChangeSetError,
    KeyValueTooLarge,
    OperationTimedOut,
    ServerBusy,
    StorageError,
    TableNotFound,
)

UNDEFINED_TABLE = "42P01"
UNDEFINED_FUNCTION = "42883"
PROGRAM_LIMIT_EXCEEDED = "54000"
QUERY_CANCELED = "57014"
# raised by the function of a change set; message: '<index> <code of the service>'
CHANGE_FAILED = "TB001"

# the statement was rolled back whole and may be sent again as it is
TRANSIENT = frozenset({"40P01", "40001"})
_UNAVAILABLE = ("08", "53", "57", "58", "25")


class Canceled(Exception):
    """The statement ran into its time limit and did nothing."""


def failure(sqlstate: str | None, message: str) -> Exception:
    """The error to raise for a failed statement."""
    match sqlstate:
        case "42P01" | "42883":
            return TableNotFound()
        case "54000":
            # an index entry holds 2,704 bytes: two keys of 1,024 ASCII characters fit, two of 1,024 CJK characters
            # (3 bytes each in UTF-8) do not, unless they compress
            return KeyValueTooLarge()
        case "57014":
            return Canceled()
        case "TB001":
            index, code = message.split()
            return ChangeSetError(int(index), named(code))
    if sqlstate is None or sqlstate.startswith(_UNAVAILABLE):
        return ServerBusy()
    return UnexpectedFailure(f"{sqlstate}: {message}")


def named(code: str) -> StorageError:
    """The error whose class bears the code."""
    error: StorageError = getattr(errors, code)()
    return error


class UnexpectedFailure(Exception):
    """A statement failed in a way that no input should bring about: a fault of ours."""


__all__ = ["TRANSIENT", "Canceled", "OperationTimedOut", "UnexpectedFailure", "failure", "named"]
