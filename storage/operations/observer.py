"""Counts every request on the event loop, in memory; writes the counts down in the background."""

from storage.domain.observed import Observed


class Observer:
    """One of a process. ``record`` costs about a microsecond and never fails; the rest is behind it."""

    async def open(self) -> None:
        """Begins to write down what is recorded."""

    async def close(self) -> None:
        """Writes down the rest."""

    def record(self, observed: Observed) -> None:
        """A request that is over; on the event loop."""
