"""Why a filter may have found nothing, and what would find more."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.utils import timezone

from console.grid.state import GridState
from storage.domain.filters import all_of, conjuncts, write
from storage.editing.filters.lint import LintFinding, LintRule, lint_filter
from storage.models import Table
from storage.operations import properties
from storage.operations.properties import PropertySample


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A comparison that no entity can meet: its property is unknown, or of other types than the literal."""

    name: str
    asked: str
    types: tuple[str, ...] = ()
    similar: str = ""


@dataclass(frozen=True, slots=True)
class Hints:
    looser: GridState | None  # the same without the last clause
    dropped: str  # that clause
    mismatches: Sequence[Mismatch]


def of(table: Table, state: GridState) -> Hints | None:
    wanted = state.wanted.filter
    if wanted is None:
        return None
    found = properties.sample(table)
    mismatches = _mismatches(state.filter, found) if found.is_whole else []
    clauses = conjuncts(wanted)
    if len(clauses) < 2:
        return Hints(None, "", mismatches)
    rest = all_of(clauses[:-1])
    return Hints(replace(state.at_start(), filter=write(rest)), write(clauses[-1]), mismatches)


def _mismatches(text: str, found: PropertySample) -> list[Mismatch]:
    known = {it.name: it.types for it in found.properties}
    doubtful = [
        doubt
        for doubt in lint_filter(text, known, timezone.now())
        if doubt.reason is not LintRule.INT64_SUFFIX
    ]
    return list({doubt.name: _mismatch(doubt) for doubt in doubtful}.values())


def _mismatch(doubt: LintFinding) -> Mismatch:
    if doubt.asked is not None:
        return Mismatch(doubt.name, doubt.asked.short_name, tuple(type_.short_name for type_ in doubt.types))
    return Mismatch(doubt.name, "", similar=doubt.repairs[0].replacement if doubt.repairs else "")
