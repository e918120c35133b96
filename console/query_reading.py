"""What there is to say of a filter while it is written: what is wrong with it, how it reaches its entities."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.utils import timezone
from django.utils.translation import gettext as _

from console import access_paths
from console.access_paths import Described
from console.grid_state import ROWS, State
from storage.domain.edm import utf16_length
from storage.domain.errors import StorageError
from storage.domain.filters import Filter, IsSet, Match
from storage.domain.filters.ast import IS_SET, walk
from storage.domain.filters.doubts import Known
from storage.domain.filters.narrowing import narrowed
from storage.domain.filters.repairs import Repair, diagnose
from storage.domain.query import Improvement, access_path
from storage.models import Account, Table
from storage.operations.properties import EMPTY, Catalogue

_LONGEST: Final = 60  # characters of a repair on its button
_REPAIRS: Final = 3
# what would read less, to be completed between its quotes
_CLAUSES: Final = {
    Improvement.ADD_PARTITION_KEY: "PartitionKey eq ''",
    Improvement.ADD_ROW_KEY: "RowKey ge ''",
}


@dataclass(frozen=True, slots=True)
class Offer:
    """Another text for the filter, and where the cursor goes in it; ``address``: of the grid that it gives."""

    label: str
    text: str
    address: str
    at: int


@dataclass(frozen=True, slots=True)
class Problem:
    """``start`` and ``end`` count as browsers do, in UTF-16."""

    message: str
    start: int
    end: int
    repairs: Sequence[Offer] = ()


@dataclass(frozen=True, slots=True)
class Access:
    described: Described
    offer: Offer | None = None  # of what reads less
    estimate: None = None
    marks: Sequence[str] = ()  # what Azure would refuse
    hints: Sequence[Problem] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    as_text: str  # addresses
    as_rows: str
    unsorted: str
    problem: Problem | None
    access: Access | None


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the filter of a state that shows its first page."""

    account: Account
    table: Table
    state: State
    known: Known  # the properties that entities have
    is_sure: bool  # whether there are no others

    @property
    def text(self) -> str:
        return self.state.filter

    def understood(self) -> tuple[Problem | None, Access | None]:
        try:
            root = self.state.wanted.filter
        except StorageError as error:
            return self._problem(error), None
        return None, self._access(root)

    def _problem(self, error: StorageError) -> Problem:
        found = diagnose(self.text, error, timezone.now())
        # what is missing is missing at the end of what is there
        start = max(0, found.start - 1) if found.start == found.end else found.start
        repairs = [self._repair(repair) for repair in found.repairs[:_REPAIRS]]
        return Problem(error.text, self._place(start), self._place(found.end), repairs)

    def _place(self, characters: int) -> int:
        return utf16_length(self.text[:characters])

    def _repair(self, repair: Repair) -> Offer:
        start, end, replacement, _reason = repair
        after = self.text[:start] + replacement
        return self._offer(_label(self.text[start:end], replacement), repair.applied(self.text), after)

    def _offer(self, label: str, text: str, before_cursor: str) -> Offer:
        address = replace(self.state, filter=text).address(self.account, self.table)
        return Offer(label, text, address, utf16_length(before_cursor))

    def _access(self, root: Filter | None) -> Access:
        found = access_path(root)
        described = access_paths.describe(found)
        return Access(described, self._improved(root, found.improvement, described.offer), marks=_marks(root))

    def _improved(self, root: Filter | None, improvement: Improvement | None, label: str) -> Offer | None:
        clause = _CLAUSES.get(improvement) if improvement else None
        if clause is None or not label:
            return None
        text = narrowed(self.text, root, clause)
        return self._offer(label, text, text[:-1])


def read(account: Account, table: Table, state: State, *, known: Catalogue = EMPTY) -> Reading:
    """What is ``known`` of the table is what may be doubted; nothing of an empty one."""
    start = state.at_start()
    types = {it.name: it.types for it in known.properties}
    problem, access = Reader(account, table, start, types, known.is_whole).understood()
    return Reading(
        replace(start, by="").address(account, table),
        replace(start, by=ROWS).address(account, table),
        start.address(account, table),
        problem,
        access,
    )


def _label(replaced: str, replacement: str) -> str:
    short = replacement if len(replacement) <= _LONGEST else f"{replacement[:_LONGEST]}…"
    if not replacement:
        return _("Leave out %(text)s") % {"text": replaced}
    return (_("Write %(text)s") if replaced else _("Add %(text)s")) % {"text": short}


def _marks(root: Filter | None) -> list[str]:
    """The functions in it that Azure does not have."""
    if root is None:
        return []
    found = [
        IS_SET if isinstance(node, IsSet) else node.kind
        for node in walk(root)
        if isinstance(node, IsSet | Match)
    ]
    return list(dict.fromkeys(map(str, found)))
