"""One-minute cache for expensive facts about accounts with thousands of tables.

PostgreSQL's statistics, which these facts come from, lag behind about as long.
"""

from time import monotonic
from typing import Final, Generic, TypeVar

T = TypeVar("T")

MANY_TABLES: Final = 2000  # in an account, from which on something is remembered
_SECONDS: Final = 60.0


class Remembered(Generic[T]):
    """Cached values by account, per process."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[float, T]] = {}

    def get(self, account_id: int) -> T | None:
        until, found = self._found.get(account_id, (0.0, None))
        return found if monotonic() < until else None

    def put(self, account_id: int, found: T) -> None:
        self._found[account_id] = (monotonic() + _SECONDS, found)
