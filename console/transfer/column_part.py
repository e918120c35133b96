"""Columns of a file that its page shows at once: all, or of a very wide file a part with a search by name."""

from dataclasses import dataclass, replace
from typing import Final, Self

from django.http import QueryDict

from console.site.typed_text import field_text
from storage.domain.values.numbers import read_number
from storage.tabular.format_proposals import Certainty
from storage.tabular.mapping import ColumnMapping
from storage.tabular.proposals import ProposedColumn
from storage.transfer.import_drafts import DraftFile

MOST_COLUMNS: Final = 100  # a form for each of thousands takes seconds to draw


@dataclass(frozen=True, slots=True)
class ColumnPart:
    """Columns that are shown, each with its number in the file, out of ``total`` that the search found.

    ``start`` is the index of the first one among those.
    """

    columns: tuple[tuple[int, ProposedColumn], ...]
    start: int
    total: int
    find: str
    is_wide: bool

    @classmethod
    def of_form(cls, sent: QueryDict, file: DraftFile) -> Self:
        """Find the columns that a form asks for by its button; without one, the same columns as before."""
        every = list(enumerate(file.proposal.columns))
        find = field_text(sent.get("find", "")).strip()
        folded = find.casefold()
        matching = [it for it in every if folded in it[1].column.source.casefold()]
        start = read_number(sent.get("show", sent.get("start", ""))) or 0
        if start >= len(matching) or find != sent.get("found", ""):
            start = 0
        columns = matching[start : start + MOST_COLUMNS]
        return cls(tuple(columns), start, len(matching), find, len(every) > MOST_COLUMNS)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(proposed.column.source for _, proposed in self.columns)

    @property
    def first(self) -> int:
        return self.start + 1

    @property
    def last(self) -> int:
        return self.start + len(self.columns)

    @property
    def previous(self) -> int | None:
        """Return the index at which the part before begins, None if this is the first."""
        return max(0, self.start - MOST_COLUMNS) if self.start else None

    @property
    def next(self) -> int | None:
        return self.last if self.last < self.total else None

    def mapping(self, file: DraftFile) -> ColumnMapping:
        """Return the mapping of a file without columns that are not shown."""
        names = self.names
        return replace(file.mapping, columns=tuple(it for it in file.mapping.columns if it.source in names))


def count_certain(file: DraftFile) -> tuple[int, int]:
    """Return how many columns of a file can be read in one other way only, and how many are read so."""
    listed = {it.source: it for it in file.mapping.columns}
    certain = certain_read = 0
    for proposed in file.proposal.columns:
        ways = [(it.type, it.format) for it in proposed.formats if it.certainty is Certainty.CERTAIN]
        column = listed.get(proposed.column.source, proposed.column)
        chosen = column.type, column.format
        if chosen == (proposed.column.type, ""):
            certain += bool(ways)
        else:
            certain_read += chosen in ways
    return certain, certain_read
