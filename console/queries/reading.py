"""What the query bar says about a filter: why it is invalid, how it reaches its entities, and what would be better."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.grid.state import ROWS, GridState
from console.queries.access_paths import explain_access
from console.queries.values import stored_types
from console.site.filter_faults import describe_fault
from storage.domain.errors import StorageError
from storage.domain.filters.access_plan import Improvement, plan_access
from storage.domain.filters.ast import (
    COMPARISONS_ON_AZURE,
    IS_SET,
    Filter,
    IsSet,
    Match,
    all_of,
    conjuncts,
    count_comparisons,
    walk,
)
from storage.domain.filters.writer import write
from storage.domain.values.edm import utf16_length
from storage.domain.values.kinds import AccountKind
from storage.editing.filters import parameters
from storage.editing.filters.lint import lint_filter
from storage.editing.filters.narrowing import add_condition_text
from storage.editing.filters.quick_fixes import diagnose
from storage.editing.filters.suggestions import Finding, LintRule, Suggestion, apply_all
from storage.models import Account, Table
from storage.operations.entities import estimates, properties
from storage.operations.entities.properties import EMPTY, PropertySample
from storage.operations.tables import indexes

_FIX_LENGTH: Final = 60  # characters of a quick fix on its button
_FIX_LIMIT: Final = 3
# clauses that read less, to be completed between their quotes
_IMPROVEMENTS: Final[Mapping[Improvement, tuple[str, Promise]]] = {
    Improvement.ADD_PARTITION_KEY: ("PartitionKey eq ''", gettext_lazy("Add a PartitionKey")),
    Improvement.ADD_ROW_KEY: ("RowKey ge ''", gettext_lazy("Add a RowKey bound")),
}


@dataclass(frozen=True, slots=True)
class OfferedText:
    """Another text for the filter, the address of its grid, and the place of the cursor in UTF-16 units."""

    label: str
    text: str
    address: str
    cursor: int


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A remark on a part of the filter; ``start`` and ``end`` count UTF-16 units, as browsers do.

    Typing on may end a fault that is unfinished.
    """

    message: str
    start: int
    end: int
    quick_fixes: Sequence[OfferedText]
    is_unfinished: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """An invalid filter has a problem, a valid one access and hints; the first three fields are addresses."""

    as_text: str
    as_rows: str
    unsorted: str
    parameters: Sequence[str]
    problem: Diagnostic | None = None
    access: Mapping[str, Any] | None = None
    hints: Sequence[Diagnostic] = ()


def read_filter(table: Table, state: GridState, *, sample: PropertySample | None = None) -> Reading:
    """Without a sample of the table's properties, nothing is estimated and no property is unknown."""
    reader = _Reader(table, state.at_start(), sample or EMPTY)
    reading = Reading(
        reader.address(by=""),
        reader.address(by=ROWS),
        reader.address(sort=None),
        parameters.list_parameters(state.filter),
    )
    try:
        root = state.wanted.filter
    except StorageError as error:
        return replace(reading, problem=reader.diagnose(error))
    access = reader.view_access(root, is_estimated=sample is not None)
    return replace(reading, access=access, hints=reader.lint())


@dataclass(frozen=True, slots=True)
class _Reader:
    table: Table
    state: GridState
    sample: PropertySample

    def address(self, **changes: Any) -> str:
        return replace(self.state, **changes).address(self.table)

    def diagnose(self, error: StorageError) -> Diagnostic:
        found = diagnose(self.state.filter, error, timezone.now())
        # at the end of the text there is nothing to mark but its last character
        start = max(0, found.start - 1) if found.start == found.end else found.start
        return self._diagnostic(describe_fault(found), found._replace(start=start))

    def lint(self) -> list[Diagnostic]:
        found = lint_filter(self.state.filter, stored_types(self.sample), timezone.now())
        return [self._diagnostic(self._message(finding), finding) for finding in found]

    def view_access(self, root: Filter | None, *, is_estimated: bool) -> dict[str, Any]:
        access = plan_access(root)
        estimate = estimates.estimate(self.table, self.state.wanted) if is_estimated else None
        use = indexes.explain(self.table, access, self.state.sort, estimate.read if estimate else None)
        clause = _IMPROVEMENTS.get(access.improvement) if access.improvement and root else None
        improvement = self._improve(root, *clause) if clause else None
        return {
            "explanation": explain_access(access, use, estimate, is_sorted=self.state.sort is not None),
            "improvement": improvement,
            "estimate": estimate,
            "console_functions": _console_functions(root),  # those that Azure refuses
            "many_comparisons": comparisons_beyond_azure(root, self.table.account),
        }

    def _diagnostic(self, message: str, found: Finding) -> Diagnostic:
        text = self.state.filter
        fixes = [self._offer_fix(fix) for fix in found.fixes[:_FIX_LIMIT]]
        start, end = (utf16_length(text[:place]) for place in (found.start, found.end))
        return Diagnostic(message, start, end, fixes, bool(found.fault and found.fault.is_unfinished))

    def _offer_fix(self, fix: Suggestion) -> OfferedText:
        text = self.state.filter
        label = _label(text[fix.start : fix.end], fix.replacement)
        return self._offer(label, fix.apply(text), text[: fix.start] + fix.replacement)

    def _improve(self, root: Filter | None, clause: str, label: Promise) -> OfferedText:
        text = add_condition_text(self.state.filter, root, clause)
        return self._offer(str(label), text, text[:-1])

    def _offer(self, label: str, text: str, before_cursor: str) -> OfferedText:
        return OfferedText(label, text, self.address(filter=text), utf16_length(before_cursor))

    def _message(self, finding: Finding) -> str:
        match finding.reason:
            case LintRule.INT64_SUFFIX:
                digits = self.state.filter[finding.start : finding.end]
                return _("Azure rejects %(digits)s without the suffix L.") % {"digits": digits}
            case LintRule.UNKNOWN_PROPERTY if self.sample.is_whole:
                return _("“%(name)s” wasn't found in any entity.") % {"name": finding.name}
            case LintRule.UNKNOWN_PROPERTY:
                return _("“%(name)s” wasn't found in sampled entities.") % {"name": finding.name}
            case _:
                asked = finding.asked.short_name if finding.asked else ""
                names = {"name": finding.name, "types": finding.type_names, "asked": asked}
                return _("%(name)s is stored as %(types)s, not %(asked)s.") % names


def _label(replaced: str, replacement: str) -> str:
    short = replacement if len(replacement) <= _FIX_LENGTH else f"{replacement[:_FIX_LENGTH]}…"
    if not replacement:
        return _("Remove %(text)s") % {"text": replaced}
    return (_("Use %(text)s") if replaced else _("Add %(text)s")) % {"text": short}


def comparisons_beyond_azure(root: Filter | None, account: Account) -> int:
    """Return the number of comparisons in a filter, 0 if it is not more than the Table service of Azure takes."""
    number = count_comparisons(root) if root is not None else 0
    is_beyond = number > COMPARISONS_ON_AZURE and account.kind == AccountKind.STORAGE
    return number if is_beyond else 0


def _console_functions(root: Filter | None) -> list[str]:
    nodes = walk(root) if root is not None else ()
    names = [
        IS_SET if isinstance(node, IsSet) else str(node.kind)
        for node in nodes
        if isinstance(node, IsSet | Match)
    ]
    return list(dict.fromkeys(names))


# when nothing is found


@dataclass(frozen=True, slots=True)
class Suggestions:
    """``repaired`` has the quick fix of each mismatch; ``looser`` lacks the last condition, which is ``dropped``."""

    mismatches: Sequence[Finding]
    repaired: GridState | None
    looser: GridState | None = None
    dropped: str = ""


def suggest_looser(table: Table, state: GridState) -> Suggestions | None:
    """Explain why the filter found nothing, and what would find more; None without a filter."""
    root = state.wanted.filter
    if root is None:
        return None
    findings = _mismatches(state.filter, properties.sample(table))
    mismatches = list({finding.name: finding for finding in findings}.values())
    repaired = apply_all(state.filter, [finding.fixes[0] for finding in findings if finding.fixes])
    start = state.at_start()
    better = replace(start, filter=repaired) if repaired != state.filter else None
    *rest, last = conjuncts(root)
    if not rest:
        return Suggestions(mismatches, better)
    return Suggestions(mismatches, better, replace(start, filter=write(all_of(rest))), write(last))


def _mismatches(text: str, sample: PropertySample) -> list[Finding]:
    """The comparisons that no entity can meet: of an unknown property, or with a literal of another type."""
    if not sample.is_whole:
        return []
    found = lint_filter(text, stored_types(sample), timezone.now())
    return [finding for finding in found if finding.reason is not LintRule.INT64_SUFFIX]
