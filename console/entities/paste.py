"""The effect of pasting rows into a table."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _gettext
from django.utils.translation import gettext_lazy as _

from console.grid.tabular import describe_fault
from console.site.refusals import describe_refusal
from console.site.typed_text import sentence
from storage.domain.entities.changes import Change, Insert, Update
from storage.domain.entities.entity import Entity, StoredEntity, read_stored
from storage.domain.refusals import AnyReason, Reason, Refused
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import Precondition
from storage.editing import merge
from storage.editing.conversions import convert
from storage.editing.input_context import InputContext
from storage.editing.typed_text import InvalidText
from storage.entities import entities
from storage.models import Table
from storage.tabular.pasted import PastedRow, PastedRows, TypeSource
from storage.tabular.rejects import Fault, Reject

LIMIT: Final = 1_000  # rows

Properties = Mapping[str, EdmValue]


class Mode(StrEnum):
    """Action for rows that already exist."""

    INSERT = "insert"
    MERGE = "merge"
    REPLACE = "replace"


MODES: Final[dict[Mode, str | Promise]] = {
    Mode.INSERT: _("Report an error"),
    Mode.MERGE: _("Merge: keep its other properties"),
    Mode.REPLACE: _("Replace: overwrite it"),
}

# in place of sentences about files
_REASONS: Final[Mapping[AnyReason, Promise]] = {
    Reason.FILE_ROWS_EMPTY: _("There is nothing to paste."),
    Reason.FILE_ROWS_NOT_JSON: _("Invalid JSON (line %(line)s)."),
    Reason.FILE_ROWS_NO_KEY: _(
        "The first line must contain the column names, including PartitionKey and RowKey."
    ),
    Reason.FILE_ROWS_COLUMN_TWICE: _("Two columns are named %(column)s."),
}

# these say what to change in the text
_FAULTS: Final[Mapping[Fault, Promise]] = {
    Fault.EXISTS: _("This key appears twice."),
    Fault.INEXACT: _("No type holds all digits of this number. Write it as a String, in quotation marks."),
    Fault.NESTED: _("A property cannot be an object or array. Store it as JSON in a String."),
}

WHYS: Final[dict[TypeSource, Promise]] = {
    TypeSource.DECLARED: _("declared in the text"),
    TypeSource.CHOSEN: _("chosen by you"),
    TypeSource.KNOWN: _("matches the table"),
    TypeSource.INFERRED: _("inferred from the values"),
    TypeSource.DIFFERENT: _("differs from the table"),
}


class Effect(StrEnum):
    INSERT = "insert"
    UPDATE = "update"
    SAME = "same"
    EXISTS = "exists"


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """A pasted row and its effect."""

    row: PastedRow
    effect: Effect
    changed: frozenset[str] = frozenset()  # the properties that will differ
    ticks: int | None = None  # the Timestamp of the existing entity
    change: Change | None = None


@dataclass(frozen=True, slots=True)
class PastePlan:
    rows: tuple[PlannedRow, ...]
    mode: Mode

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of rows by effect."""
        return {effect.value: sum(planned.effect is effect for planned in self.rows) for effect in Effect}

    @property
    def token(self) -> str:
        """Digest of the preview, which ensures that only the previewed effects on unchanged entities are applied."""
        shown = [(*planned.row.entity.key, planned.effect, planned.ticks) for planned in self.rows]
        return blake2b(json.dumps([self.mode, shown]).encode(), digest_size=16).hexdigest()

    @property
    def changes(self) -> Sequence[Change]:
        return [planned.change for planned in self.rows if planned.change is not None]


def plan(table: Table, pasted: PastedRows, mode: Mode, context: InputContext) -> PastePlan:
    stored = {one.key: one for one in entities.get_many(table, [row.entity.key for row in pasted.rows])}
    guessed = frozenset(
        column.name for column in pasted.columns if column.why in (TypeSource.INFERRED, TypeSource.DIFFERENT)
    )
    rows = (_planned(row, stored.get(row.entity.key), guessed, mode, context) for row in pasted.rows)
    return PastePlan(tuple(rows), mode)


def _fitted(row: PastedRow, before: Properties, guessed: frozenset[str], context: InputContext) -> PastedRow:
    """Adapt inferred types to the types of existing values where lossless, as columns may have several types."""
    fitted = {
        name: _as(value, before[name].type, context) if name in guessed and name in before else value
        for name, value in row.entity.properties.items()
    }
    return row._replace(entity=Entity(row.entity.key, fitted, row.entity.kind))


def _as(value: EdmValue, type_: Edm, context: InputContext) -> EdmValue:
    try:
        converted = convert(value, type_, context)
    except InvalidText:
        return value
    return converted.value if converted.is_lossless else value


def _planned(
    row: PastedRow, present: StoredEntity | None, guessed: frozenset[str], mode: Mode, context: InputContext
) -> PlannedRow:
    if present is None:
        names = frozenset(row.entity.properties)
        return PlannedRow(row, Effect.INSERT, names, change=Insert(row.entity))
    before = read_stored(present).properties
    row = _fitted(row, before, guessed, context)
    if mode is Mode.INSERT:
        return PlannedRow(row, Effect.EXISTS)
    after = {**before, **row.entity.properties} if mode is Mode.MERGE else row.entity.properties
    changed = frozenset(merge.changed_names(before, after))
    if not changed:
        return PlannedRow(row, Effect.SAME, ticks=present.timestamp)
    change = Update(row.entity, Precondition(present.timestamp), merge=mode is Mode.MERGE)
    return PlannedRow(row, Effect.UPDATE, changed, present.timestamp, change)


def describe_problem(problem: Reject) -> str:
    """Describe the problem of a row."""
    if (own_text := _FAULTS.get(problem.fault)) is not None:
        return str(own_text)
    if problem.invalid is not None:
        return sentence(problem.invalid, problem.type)
    return describe_fault(problem.fault, problem.column, problem.type, problem.text)


def describe_unreadable(error: Refused) -> str:
    """Describe why a text has no readable rows."""
    refusal = error.refusal
    text = _REASONS.get(refusal.reason)
    return describe_refusal(error) if text is None else str(text) % refusal.facts


def too_many_rows_message(count: int) -> str:
    """Return the error for a text with too many rows."""
    return _gettext("You can paste up to %(limit)s rows at a time, and this text has %(count)s.") % {
        "count": count,
        "limit": LIMIT,
    }
