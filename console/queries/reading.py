"""What there is to say of a filter while it is written: what is wrong with it, how it reaches its entities."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, assert_never

from django.utils import timezone
from django.utils.translation import gettext as _

from console.grid.state import ROWS, GridState
from console.queries import access_paths
from console.queries.access_paths import Described
from storage.domain.errors import StorageError
from storage.domain.filters import Filter, IsSet, Match
from storage.domain.filters.access_plan import Improvement, plan_access
from storage.domain.filters.ast import IS_SET, walk
from storage.domain.values.edm import utf16_length
from storage.editing.filters.lint import KnownTypes, LintFinding, LintRule, lint_filter
from storage.editing.filters.narrowing import add_condition_text
from storage.editing.filters.quick_fixes import QuickFix, diagnose
from storage.models import Account, Table
from storage.operations import estimates
from storage.operations.estimates import Estimate
from storage.operations.properties import EMPTY, PropertySample

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
    estimate: Estimate | None = None
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
    state: GridState
    known: KnownTypes  # the properties that entities have
    is_sure: bool  # whether there are no others
    is_estimated: bool

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

    def _repair(self, repair: QuickFix) -> Offer:
        start, end, replacement, _reason = repair
        after = self.text[:start] + replacement
        return self._offer(_label(self.text[start:end], replacement), repair.applied(self.text), after)

    def _offer(self, label: str, text: str, before_cursor: str) -> Offer:
        address = replace(self.state, filter=text).address(self.account, self.table)
        return Offer(label, text, address, utf16_length(before_cursor))

    def _access(self, root: Filter | None) -> Access:
        found = plan_access(root)
        estimate = estimates.estimate(self.table, self.state.wanted) if self.is_estimated else None
        described = access_paths.describe(found, estimate)
        return Access(
            described,
            self._improved(root, found.improvement, described.offer),
            estimate,
            marks=_marks(root),
            hints=[self._hint(doubt) for doubt in lint_filter(self.text, self.known, timezone.now())],
        )

    def _hint(self, doubt: LintFinding) -> Problem:
        repairs = [self._repair(repair) for repair in doubt.repairs[:_REPAIRS]]
        start, end = self._place(doubt.start), self._place(doubt.end)
        return Problem(self._words(doubt), start, end, repairs)

    def _words(self, doubt: LintFinding) -> str:
        match doubt.reason:
            case LintRule.INT64_SUFFIX:
                digits = self.text[doubt.start : doubt.end]
                return _("Azure rejects %(digits)s without the suffix L.") % {"digits": digits}
            case LintRule.UNKNOWN_PROPERTY if self.is_sure:
                return _("“%(name)s” wasn't found in any entity.") % {"name": doubt.name}
            case LintRule.UNKNOWN_PROPERTY:
                return _("“%(name)s” wasn't found in sampled entities.") % {"name": doubt.name}
            case LintRule.OTHER_TYPE:
                types = ", ".join(type_.short_name for type_ in doubt.types)
                asked = doubt.asked.short_name if doubt.asked else ""
                return _("%(name)s is stored as %(types)s, not %(asked)s.") % {
                    "name": doubt.name,
                    "types": types,
                    "asked": asked,
                }
            case _ as unknown:
                assert_never(unknown)

    def _improved(self, root: Filter | None, improvement: Improvement | None, label: str) -> Offer | None:
        clause = _CLAUSES.get(improvement) if improvement else None
        if clause is None or not label:
            return None
        text = add_condition_text(self.text, root, clause)
        return self._offer(label, text, text[:-1])


def read(account: Account, table: Table, state: GridState, *, known: PropertySample | None = None) -> Reading:
    """What is ``known`` of the table is what may be doubted; without it nothing is estimated either."""
    start = state.at_start()
    found = known or EMPTY
    types = {it.name: it.types for it in found.properties}
    reader = Reader(account, table, start, types, found.is_whole, is_estimated=known is not None)
    problem, access = reader.understood()
    return Reading(
        replace(start, by="").address(account, table),
        replace(start, by=ROWS).address(account, table),
        replace(start, sort=None).address(account, table),
        problem,
        access,
    )


def _label(replaced: str, replacement: str) -> str:
    short = replacement if len(replacement) <= _LONGEST else f"{replacement[:_LONGEST]}…"
    if not replacement:
        return _("Remove %(text)s") % {"text": replaced}
    return (_("Use %(text)s") if replaced else _("Add %(text)s")) % {"text": short}


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
