"""What PostgreSQL's own errors mean to the service."""

from storage.domain import errors
from storage.domain.errors import ChangeSetError, KeyValueTooLarge, ServerBusy, StorageError, TableNotFound

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
            # an index entry holds 2,704 bytes: keys of together 2,685 bytes in UTF-8 always fit, longer ones if they
            # compress. So two of 1,024 ASCII characters do, two of 1,024 CJK characters mostly do not
            return KeyValueTooLarge()
        case "57014":
            return Canceled()
        case "TB001":  # by the function of a change set
            index, code = message.split()
            return ChangeSetError(int(index), named(code))
    if sqlstate is None or sqlstate in TRANSIENT or sqlstate.startswith(_UNAVAILABLE):
        return ServerBusy()
    return UnexpectedFailure(f"{sqlstate}: {message}")


def named(code: str) -> StorageError:
    """The error whose class bears the code."""
    error: StorageError = getattr(errors, code)()
    return error


class UnexpectedFailure(Exception):
    """A statement failed in a way that no input should bring about: a fault of ours."""
