"""A file of rows as a whole: how it is read, what is proposed to become of it, and its chunks of entities."""

from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice
from typing import IO, Final

from storage.domain.values.kinds import AccountKind
from storage.transfer import entities, layout, proposals
from storage.transfer.entities import Chunk, RowMapper
from storage.transfer.layout import NO_WISHES, Layout, Wishes
from storage.transfer.mapping import ColumnMapping
from storage.transfer.proposals import Proposal
from storage.transfer.rows import START, Position, Reader, Row

_SAMPLE: Final = 1000  # rows


class RowFile:
    """``opening`` opens the file at its beginning whenever it is called; raises FileRefused if it cannot be read."""

    def __init__(
        self, opening: Callable[[], IO[bytes]], wishes: Wishes = NO_WISHES, known: Layout | None = None
    ) -> None:
        self._opening = opening
        if known is None:
            with opening() as stream:
                known = layout.detect(stream, wishes)
        self.layout = known

    def open(self) -> IO[bytes]:
        """Open the file as it is, at its beginning."""
        return self._opening()

    def sample(self, number: int = _SAMPLE) -> list[Row]:
        """Return the first rows."""
        with self._opening() as stream:
            return list(islice(Reader(stream, self.layout), number))

    def propose(self, now: datetime) -> Proposal:
        return proposals.propose(self.layout, self.sample(), now)

    def chunks(
        self,
        mapping: ColumnMapping,
        kind: AccountKind,
        now: datetime,
        start: Position = START,
        most: Callable[[], int] = lambda: entities.CHUNK,
    ) -> Iterator[Chunk]:
        """Yield the chunks after a position, those that an interrupted import had still to write."""
        with self._opening() as stream:
            reader = Reader(stream, self.layout, start)
            yield from entities.read_chunks(reader, RowMapper(mapping, self.layout, kind, now), most)
