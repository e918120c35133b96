"""Mapping of PostgreSQL errors to the service's errors."""

import logging
import random
from typing import Final

from storage.domain import errors
from storage.domain.errors import ChangeSetError, DamagedPage, ServerBusy, StorageError, TableNotFound
from storage.sql.forms import EXTENSIONS

logger = logging.getLogger(__name__)

# instead of the index of a change: it is not part of a change set
ALONE = -1
# raised by storage.sql.moments: an entity would get a Timestamp that is not later than those it had
IN_DISORDER = "TB003"
# raised by the function that applies changes: the second half of a change set needs a later Timestamp than the first
AT_ONCE = "TB004"
# a division by zero, by which that second half says that it has got another Timestamp
OTHER_TIMESTAMP = "22012"
# the statement was rolled back and can be sent again unchanged
TRANSIENT = frozenset({"40P01", "40001", IN_DISORDER})
ATTEMPTS: Final = 5  # for a statement that fails in that way
# the server is a standby, to which nothing can be written
READ_ONLY = "25006"
DISK_FULL = "53100"
_OUT_OF_MEMORY = "53200"
_DAMAGED = ("XX001", "XX002")  # a page, or what an index says
_CANCELED = "57014"
_UNAVAILABLE = ("08", "53", "57", "58", "25")
_NO_PRIVILEGE = "42501"
_READ_ONLY_DISK = "Read-only file system"  # to PostgreSQL it lacks a privilege
# extensions have no codes for failures of other nodes: the beginnings of their messages
_NODE_LOST: Final = tuple(text for extension in EXTENSIONS for text in extension.lost)
_MOVED: Final = tuple(extension.moved for extension in EXTENSIONS)


class RolledBack(ServerBusy):
    """The statement was rolled back because of a concurrent one, and can be retried unchanged."""


class NodeLost(ServerBusy):
    """A node of the cluster was lost before or during the statement."""


class Canceled(Exception):
    """The statement exceeded its time limit and was rolled back."""


def failure(sqlstate: str | None, message: str) -> Exception:
    """Return the error to raise for a failed statement."""
    match sqlstate:
        case "42P01" | "42883":
            return TableNotFound()
        case "23503":  # the account of a new row was deleted meanwhile
            return ServerBusy()
        case "57014":  # _CANCELED
            return Canceled()
        case "TB001":  # raised by the function that applies changes
            index, code = message.split()
            return named(code) if int(index) == ALONE else ChangeSetError(int(index), named(code))
        # the table moved while the call waited to be planned, and a node that ended or was started again
        case "XX000" if message.startswith(_MOVED):
            return TableNotFound()
        case "XX000" if message.startswith(_NODE_LOST):
            return NodeLost()
        case "57P01":  # a session was ended: of a node, as that of this connection would have lost it
            return NodeLost()
    if sqlstate == DISK_FULL:
        logger.error("PostgreSQL has no space left on its disk: %s", message)
    if sqlstate == _OUT_OF_MEMORY:
        logger.error("PostgreSQL has no memory left for a statement: %s", message)
    if sqlstate in _DAMAGED:
        logger.error(
            "PostgreSQL found damaged data: %s. See which, and what to do: tablero doctor --pages", message
        )
        return DamagedPage()
    if sqlstate in TRANSIENT or sqlstate == AT_ONCE:
        return RolledBack()
    if sqlstate == _NO_PRIVILEGE and message.endswith(_READ_ONLY_DISK):
        logger.error("PostgreSQL cannot write to its disk: %s", message)
        return ServerBusy()
    if is_unavailable(sqlstate):
        return ServerBusy()
    return UnexpectedFailure(f"{sqlstate}: {message}")


def is_unavailable(sqlstate: str | None) -> bool:
    """Return whether an SQLSTATE, or its absence, means that PostgreSQL is unavailable."""
    return sqlstate is None or (sqlstate != _CANCELED and sqlstate.startswith(_UNAVAILABLE))


def pause_before_repeat(attempt: int) -> float:
    """Return the seconds to wait before retrying a rolled-back attempt, counted from zero."""
    return random.uniform(0, 0.02) * (attempt + 1)  # noqa: S311


def named(code: str) -> StorageError:
    """Return the error for a code, which is its class name."""
    error: StorageError = getattr(errors, code)()
    return error


class UnexpectedFailure(Exception):
    """A statement failed in an unexpected way, which is a bug."""
