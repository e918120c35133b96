"""Form of the columns page: mapping fields and the pressed button."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from django.http import QueryDict

from console.site.typed_text import field_text
from console.transfer.formats import read_reading, reading_value
from console.transfer.keys import read_keys
from storage.domain.refusals import Reason
from storage.tabular import proposals
from storage.tabular.format_proposals import Certainty
from storage.tabular.mapping import (
    Column,
    ColumnMapping,
    Empty,
    MappingRefused,
    OnMisfit,
)
from storage.tabular.proposals import ProposedColumn
from storage.transfer.import_drafts import DraftFile

_Value = TypeVar("_Value")


def read_mapping(sent: QueryDict, file: DraftFile) -> ColumnMapping:
    """Return the mapping chosen in a form; settings without a field, such as repairs, stay. Raises MappingRefused.

    A field that is as it was rendered is ignored: a concurrent request may have changed its setting.
    """
    base = _read_base(sent.get("base", "")) if "base" in sent else None
    now = file.mapping

    def merge(value: _Value, of: Callable[[ColumnMapping], _Value]) -> _Value:
        return of(now) if base is not None and value == of(base) else value

    mapping = replace(
        read_keys(sent, file.proposal, now, base),
        empty=merge(Empty.STRING if sent.get("empty") == "string" else Empty.UNSET, lambda it: it.empty),
        unescapes_formulas=merge("unescape" in sent, lambda it: it.unescapes_formulas),
    )
    in_keys, columns = mapping.whole_keys(), list[Column]()
    for number, proposed in enumerate(file.proposal.columns):
        if proposed.column.source in in_keys:
            continue
        before = _listed(now, proposed)
        column = _read_column(sent, number, before if base is None else _listed(base, proposed))
        if base is not None:
            was = _listed(base, proposed)
            changed = {
                name: getattr(column, name)
                for name in ("target", "type", "format", "on_misfit")
                if getattr(column, name) != getattr(was, name)
            }
            column = replace(before, **changed)
        columns.append(_press(sent, number, proposed, column))
    mapping = replace(mapping, columns=tuple(columns))
    zone = merge(sent.get("zone", now.zone), lambda it: it.zone)
    return mapping if zone == mapping.zone else proposals.in_zone(file.proposal, mapping, zone)


def _read_base(text: str) -> ColumnMapping:
    try:
        return ColumnMapping.load(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise MappingRefused(Reason.FILE_MAPPING_MALFORMED, why=str(error)) from None


def _listed(mapping: ColumnMapping, proposed: ProposedColumn) -> Column:
    """Return the mapped column, or else the proposed one."""
    source = proposed.column.source
    return next((it for it in mapping.columns if it.source == source), proposed.column)


def _read_column(sent: QueryDict, number: int, before: Column) -> Column:
    target = field_text(sent.get(f"target:{number}", before.target)).strip()
    type_, format_ = read_reading(sent.get(f"type:{number}", reading_value(before.type, before.format)))
    on_misfit = sent.get(f"misfit:{number}", "")
    known = OnMisfit(on_misfit) if on_misfit in list(OnMisfit) else before.on_misfit
    return replace(before, target=target, type=type_, format=format_, on_misfit=known)


def _press(sent: QueryDict, number: int, proposed: ProposedColumn, column: Column) -> Column:
    """Apply a pressed reading to a column; "certain" applies to all unambiguous columns."""
    pressed, _separator, reading = sent.get("read", "").partition(" ")
    if pressed == str(number):
        type_, format_ = read_reading(reading)
        return replace(column, type=type_, format=format_)
    certain = next((it for it in proposed.formats if it.certainty is Certainty.CERTAIN), None)
    if pressed != "certain" or certain is None:
        return column
    before, after = (proposed.column.type, ""), (certain.type, certain.format)
    if reading == "not":
        before, after = after, before
    if (column.type, column.format) != before:  # another one was chosen
        return column
    return replace(column, type=after[0], format=after[1])
