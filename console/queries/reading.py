"""Explanations in the query bar: errors of a filter, its access path, and suggestions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.grid.state import ROWS, GridState
from console.queries.access_paths import explain_access
from console.site.refusals import describe_refusal, mark_characters
from storage.domain.filters.access_plan import Improvement, plan_access
from storage.domain.filters.ast import (
    COMPARISONS_ON_AZURE,
    IS_SET,
    Filter,
    IsSet,
    Match,
    count_comparisons,
    walk,
)
from storage.domain.values.edm import utf16_length
from storage.domain.values.kinds import AccountKind
from storage.editing.filters import parameters
from storage.editing.filters.diagnosis import diagnose
from storage.editing.filters.diagnostics import Diagnostic, Severity, Suggestion
from storage.editing.filters.narrowing import add_condition_text
from storage.entities import estimates
from storage.entities.properties import EMPTY, PropertySample
from storage.models import Account, Table
from storage.tables import indexes

_FIX_LENGTH: Final = 60  # characters of a quick fix on its button
_FIX_LIMIT: Final = 3
# clauses that read less, to be completed between their quotes
_IMPROVEMENTS: Final[Mapping[Improvement, tuple[str, Promise]]] = {
    Improvement.ADD_PARTITION_KEY: ("PartitionKey eq ''", gettext_lazy("Add a PartitionKey")),
    Improvement.ADD_ROW_KEY: ("RowKey ge ''", gettext_lazy("Add a RowKey bound")),
}


@dataclass(frozen=True, slots=True)
class OfferedText:
    """Alternative filter text, with the address of its grid and the cursor position in UTF-16 units."""

    label: str
    text: str
    address: str
    cursor: int


@dataclass(frozen=True, slots=True)
class DiagnosticView:
    """Diagnostic for display, with ``start`` and ``end`` in UTF-16 units."""

    message: str
    start: int
    end: int
    quick_fixes: Sequence[OfferedText]
    is_unfinished: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """Explained filter: a problem if invalid, otherwise access path and hints."""

    as_text: str
    as_rows: str
    unsorted: str
    parameters: Sequence[str]
    problem: DiagnosticView | None = None
    access: Mapping[str, Any] | None = None
    hints: Sequence[DiagnosticView] = ()


def read_filter(table: Table, state: GridState, *, sample: PropertySample | None = None) -> Reading:
    """Explain the filter; without a sample of properties, nothing is estimated or reported as unknown."""
    reader = _Reader(table, state.at_start(), sample or EMPTY)
    reading = Reading(
        reader.address(by=""),
        reader.address(by=ROWS),
        reader.address(sort=None),
        parameters.list_parameters(state.filter),
    )
    diagnostics = diagnose(state.filter, reader.sample.schema, timezone.now())
    views = [reader.view_diagnostic(it) for it in diagnostics]
    if any(it.severity is not Severity.WARNING for it in diagnostics):
        return replace(reading, problem=views[0])
    access = reader.view_access(state.wanted.filter, is_estimated=sample is not None)
    return replace(reading, access=access, hints=views)


@dataclass(frozen=True, slots=True)
class _Reader:
    table: Table
    state: GridState
    sample: PropertySample

    def address(self, **changes: Any) -> str:
        return replace(self.state, **changes).address(self.table)

    def view_diagnostic(self, diagnostic: Diagnostic) -> DiagnosticView:
        return DiagnosticView(
            describe_refusal(diagnostic),
            *mark_characters(self.state.filter, diagnostic.start, diagnostic.end),
            [self._offer_fix(fix) for fix in diagnostic.fixes[:_FIX_LIMIT]],
            diagnostic.severity is Severity.UNFINISHED,
        )

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

    def _offer_fix(self, fix: Suggestion) -> OfferedText:
        text = self.state.filter
        label = _label(text[fix.start : fix.end], fix.replacement)
        return self._offer(label, fix.apply(text), text[: fix.start] + fix.replacement)

    def _improve(self, root: Filter | None, clause: str, label: Promise) -> OfferedText:
        text = add_condition_text(self.state.filter, root, clause)
        return self._offer(str(label), text, text[:-1])

    def _offer(self, label: str, text: str, before_cursor: str) -> OfferedText:
        return OfferedText(label, text, self.address(filter=text), utf16_length(before_cursor))


def _label(replaced: str, replacement: str) -> str:
    short = replacement if len(replacement) <= _FIX_LENGTH else f"{replacement[:_FIX_LENGTH]}…"
    if not replacement:
        return _("Remove %(text)s") % {"text": replaced}
    return (_("Use %(text)s") if replaced else _("Add %(text)s")) % {"text": short}


def comparisons_beyond_azure(root: Filter | None, account: Account) -> int:
    """Return the number of comparisons in a filter if it exceeds Azure's limit, otherwise 0."""
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
