"""File of rows: its layout, the proposed mapping, and its chunks of entities."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import IO, Final, Self

from storage.domain.refusals import Reason
from storage.editing.input_context import InputContext
from storage.tabular import entities, layout, proposals
from storage.tabular.content import Bounds, FileRefused, count_lines
from storage.tabular.entities import Chunk, RowMapper
from storage.tabular.layout import (
    NO_WISHES,
    FileFormat,
    Layout,
    Wishes,
)
from storage.tabular.mapping import ColumnMapping
from storage.tabular.proposals import Proposal
from storage.tabular.rows import (
    START,
    Position,
    Reader,
    Row,
)

_SAMPLE: Final = 1000  # rows
_SAMPLE_BYTES: Final = 8 << 20  # bytes of content, and of its compressed form; any entity takes less
_SAMPLE_LINES: Final = 100_000
_SAMPLE_VALUES: Final = 2_000_000  # rows times the names that they have
_SAMPLE_SECONDS: Final = 5.0
# the first rows of Parquet are in as many places as there are columns, and Excel keeps texts in a file of their own
_SCATTERED_BYTES: Final = 512 << 20
_SCATTERED_SECONDS: Final = 30.0
_CHUNK_BYTES: Final = 16 << 20  # bytes of content; faulty rows are kept as they are


class _SampleIsFull(Exception):
    """The sample has enough bytes."""


class _SampleBounds(Bounds):
    """Bounds of a sample in bytes, lines and seconds; ``check`` may stop it earlier."""

    def __init__(
        self,
        check: Callable[[], object],
        most_bytes: int = _SAMPLE_BYTES,
        most_lines: int | None = _SAMPLE_LINES,
        seconds: float = _SAMPLE_SECONDS,
    ) -> None:
        super().__init__(check)
        self._packed = 0
        self._lines = 0
        self._most_bytes = most_bytes
        self._most_lines = most_lines
        self._ends = time.monotonic() + seconds

    @classmethod
    def of_scattered(cls, check: Callable[[], object]) -> Self:
        return cls(check, _SCATTERED_BYTES, None, _SCATTERED_SECONDS)

    def count_packed(self, block: memoryview) -> None:
        super().count_packed(block)
        self._packed += len(block)
        self._end_if(self._packed > self._most_bytes)

    def count_content(self, block: memoryview) -> None:
        """Count a block; the one that fills the sample is discarded, as its last row may be truncated."""
        super().count_content(block)
        self._end_if(self.content > self._most_bytes)
        if self._most_lines is not None:
            self._lines += count_lines(block)
            self._end_if(self._lines > self._most_lines)

    def _end_if(self, is_full: bool) -> None:
        if is_full or time.monotonic() > self._ends:
            raise _SampleIsFull


@dataclass(frozen=True, slots=True)
class Sample:
    """First rows of a file with its layout."""

    layout: Layout
    rows: Sequence[Row]

    def propose(self, context: InputContext) -> Proposal:
        return proposals.propose(self.layout, self.rows, context)

    def first(self, number: int, mapping: ColumnMapping, context: InputContext) -> Chunk:
        """Convert the first rows by a mapping; raises MappingRefused."""
        mapper, chunk = RowMapper(mapping, self.layout, context), Chunk(START)
        for place, row in enumerate(self.rows[:number], 1):
            chunk.add(row, mapper.read(row, place))
        return chunk


class RowFile:
    """File of rows; each call of ``opening`` opens it at the beginning, or raises FileRefused.

    ``check`` is called between blocks, and may raise to stop reading.
    """

    def __init__(
        self,
        opening: Callable[[], IO[bytes]],
        wishes: Wishes = NO_WISHES,
        known: Layout | None = None,
        check: Callable[[], object] = lambda: None,
    ) -> None:
        self._opening = opening
        self._check = check
        if known is None:
            try:
                with opening() as stream:
                    known = layout.detect(stream, wishes, _SampleBounds(check, most_lines=None))
            except _SampleIsFull:
                raise FileRefused(Reason.FILE_ROWS_DAMAGED) from None
        self.layout = known

    def open(self) -> IO[bytes]:
        """Open the file as it is, at its beginning."""
        return self._opening()

    def sample(self) -> Sample:
        """Return the first rows, limited by time."""
        rows: list[Row] = []
        names: set[str] = set()
        is_scattered = self.layout.format in (FileFormat.PARQUET, FileFormat.EXCEL)
        bounds = _SampleBounds.of_scattered(self._check) if is_scattered else _SampleBounds(self._check)
        try:
            with self._opening() as stream:
                for row in islice(Reader(stream, self.layout, bounds=bounds), _SAMPLE):
                    rows.append(row)
                    names.update(row.fields)
                    if len(names) * len(rows) > _SAMPLE_VALUES:
                        break
        except _SampleIsFull:
            if not rows:
                raise FileRefused(Reason.FILE_ROWS_ROWLESS, line=0) from None
        return Sample(self.layout, rows)

    def propose(self, context: InputContext) -> Proposal:
        return self.sample().propose(context)

    def chunks(
        self,
        mapping: ColumnMapping,
        context: InputContext,
        start: Position = START,
        most: Callable[[], int] = lambda: entities.CHUNK,
    ) -> Iterator[Chunk]:
        """Yield the chunks after a position, where an interrupted import resumes."""
        bounds, ends = Bounds(self._check), _CHUNK_BYTES

        def rows_at_once() -> int:
            return most() if bounds.content < ends else 1

        with self._opening() as stream:
            reader = Reader(stream, self.layout, start, bounds)
            for chunk in entities.read_chunks(reader, RowMapper(mapping, self.layout, context), rows_at_once):
                yield chunk
                ends = bounds.content + _CHUNK_BYTES
