"""Check that PostgreSQL has enough connections for all processes of all servers."""

from typing import NamedTuple

from storage.sql import connections as sql
from storage.sql.connections import ConnectionCounts


class ConnectionState(NamedTuple):
    """Open connections to PostgreSQL, and their limits."""

    counts: ConnectionCounts
    most: int  # connections that the running processes may open

    @property
    def others(self) -> int:
        return self.counts.used - self.counts.ours

    @property
    def missing(self) -> int:
        """Return the number of connections that PostgreSQL would refuse if all were opened."""
        return max(0, self.most + self.others - self.counts.allowed)


def state() -> ConnectionState:
    counts = sql.counts()
    return ConnectionState(counts, counts.processes * sql.most_per_process())
