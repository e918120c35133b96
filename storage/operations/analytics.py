"""The metrics tables of an account: found by their names, written by a job."""

from storage.domain.changes import Change, Delete
from storage.domain.errors import InsufficientAccountPermissions
from storage.domain.names import is_analytics_name


def check_change(table: str, change: Change) -> None:
    """Raises InsufficientAccountPermissions for what only the service itself may write [inferred]; ``table`` folded."""
    if is_analytics_name(table) and not isinstance(change, Delete):
        raise InsufficientAccountPermissions
