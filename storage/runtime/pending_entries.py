"""New entries of the index of all properties, which PostgreSQL collects in a list and moves to the index together.

The write that finds 4 MB in the list moves them, which takes it a tenth of a second or two. So the lists of tables
that are written to are cleaned earlier, in the background.
"""

import asyncio
import logging
from typing import Final

from storage.domain.errors import StorageError
from storage.sql import indexes
from storage.sql.failures import Canceled
from storage.sql.forms import capabilities
from storage.sql.lanes import Lanes

logger = logging.getLogger(__name__)

# properties written by this process, of 26 bytes each in a list: far fewer than it holds, because other processes write
# too, and writes go on while it is cleaned
CLEANED_FROM: Final = 40_000
_KEPT: Final = 10_000  # tables


class PendingEntries:
    """Entries that a process has added to the lists, by relation."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._added: dict[str, int] = {}
        self._cleaning: dict[str, asyncio.Task[None]] = {}

    def add(self, relation: str, entries: int) -> None:
        """Count entries of a write; clean the list in the background after many."""
        added = self._added.get(relation, 0) + entries
        if (
            added >= CLEANED_FROM
            and relation not in self._cleaning
            and capabilities(relation).is_measured_here
        ):
            added = 0
            self._cleaning[relation] = asyncio.create_task(self._clean(relation))
        if len(self._added) >= _KEPT:
            self._added.clear()
        self._added[relation] = added

    async def close(self) -> None:
        for task in self._cleaning.values():
            task.cancel()
        await asyncio.gather(*self._cleaning.values(), return_exceptions=True)

    async def _clean(self, relation: str) -> None:
        try:
            await self._lanes.run(indexes.clean_pending(relation))
        except (StorageError, Canceled):
            pass  # a later write cleans it
        except Exception:
            logger.exception("New entries of an index could not be moved")
        finally:
            del self._cleaning[relation]
