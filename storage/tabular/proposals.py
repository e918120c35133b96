"""Mapping proposals for a new file: keys, properties and types from its first rows, with reasons."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from storage.domain.entities.annotations import find_roles, read_type_name
from storage.domain.entities.entity import SYSTEM_PROPERTIES
from storage.domain.refusals import Reason
from storage.domain.values.edm import INT32, INT64, Edm
from storage.editing import exact_json, guessing
from storage.editing.exact_json import InexactNumber
from storage.editing.formats.format import Format
from storage.editing.formats.numbers import NumberFormat
from storage.editing.formats.reading import read_format
from storage.editing.guessing import Guess, GuessReason
from storage.editing.input_context import InputContext
from storage.tabular import rejects
from storage.tabular.format_proposals import (
    NO_FORMATS,
    Certainty,
    ColumnFormats,
    FormatProposal,
    TextColumn,
    propose_formats,
)
from storage.tabular.key_proposals import (
    NO_KEYS,
    NO_SAMPLE,
    KeyColumn,
    KeyProposals,
    KeySample,
    propose_keys,
)
from storage.tabular.layout import FileFormat, Layout, free_name
from storage.tabular.mapping import (
    Column,
    ColumnMapping,
    MappingRefused,
    can_be_in_template,
    find_keys,
    is_property_name,
    property_name,
)
from storage.tabular.rows import Row, text_of

_EXAMPLES: Final = 3
_SURE: Final = 20  # values that look alike
_KINDS: Final = (Edm.DOUBLE, Edm.BOOLEAN, Edm.DATETIME, Edm.GUID)
_JSON_TYPES: Final[Mapping[type, Edm]] = {
    bool: Edm.BOOLEAN,
    int: Edm.INT32,
    float: Edm.DOUBLE,
    str: Edm.STRING,
}


class TypeReason(StrEnum):
    """Origin of the type of a column."""

    DECLARED = "declared in the file"
    JSON = "as in JSON"
    GUESSED = "guessed from its values"
    SERVICE = "set by the service"


@dataclass(frozen=True, slots=True)
class ProposedColumn:
    """A column, with a proposal for it and the reason."""

    column: Column
    why: TypeReason
    reason: GuessReason | None
    values: int  # how many of the sampled rows have a value
    examples: tuple[str, ...]
    formats: tuple[FormatProposal, ...] = ()  # other readings of its values, for people to choose
    file_type: Edm | None = None  # the type that the file gives all values
    # how many values look like each type, if they differ: Double for all numbers, String for other texts
    kinds: tuple[tuple[Edm, int], ...] = ()

    @property
    def likely_type(self) -> Edm:
        """Return the actual or apparent type of the values."""
        if self.formats and self.formats[0].certainty is not Certainty.ALTERNATIVE:
            return self.formats[0].type
        return self.column.type or self.file_type or Edm.STRING

    @property
    def is_sure(self) -> bool:
        return self.why is not TypeReason.GUESSED or self.values >= _SURE


@dataclass(frozen=True, slots=True)
class Proposal:
    """Proposed mapping; a key without a matching column is an empty string."""

    mapping: ColumnMapping
    columns: tuple[ProposedColumn, ...]
    names: tuple[str, ...]  # names of all columns
    rows: int  # that were looked at
    # columns named after the keys and the Timestamp, as they become properties if they are not used as such
    system_columns: tuple[ProposedColumn, ...] = ()
    # proposals for keys that no column is named after
    keys: KeyProposals = field(default=NO_KEYS, kw_only=True)
    # the examined rows, to see how other keys would turn out
    sample: KeySample = field(default=NO_SAMPLE, kw_only=True)

    @property
    def all_columns(self) -> tuple[ProposedColumn, ...]:
        return self.columns + self.system_columns


def propose(layout: Layout, sampled: Iterable[Row], context: InputContext) -> Proposal:
    """Propose a mapping, given the first rows."""
    rows = [row.fields for row in sampled if row.fault is None]
    names = list(layout.columns) or list(dict.fromkeys(name for row in rows for name in row))
    roles = find_roles(names)
    is_text = layout.format is FileFormat.CSV
    shown = tuple(name for name in names if roles.is_value(name))
    # a name that can stay as it is has the first claim to it
    targets = {name for name in shown if is_property_name(name)}
    columns, texts = list[ProposedColumn](), list[TextColumn]()
    system_columns: list[ProposedColumn] = []
    keys = find_keys(shown)
    # the service, and exports of tables, write 1 for an Int32 and 1.0 for a Double
    own = frozenset(SYSTEM_PROPERTIES)
    is_of_service = not is_text and all(row.keys() >= own for row in rows)
    for name in shown:
        values = [value for row in rows if (value := row.get(name)) not in (None, "")]
        if rejects.is_of_rejects(name) or (name in layout.unnamed and not values):
            continue
        propose_column = _propose_text if is_text else _propose_own if is_of_service else _propose_json
        target = name if name in targets else free_name(property_name(name), targets)
        targets.add(target)
        proposed = propose_column(Column(name, target), values, context, is_declared=name in roles.types)
        if name in roles.types:
            proposed = replace(proposed, file_type=_declared_type(rows, name, roles.types[name]))
        if name == "Timestamp" or name in keys:
            if name == "Timestamp":
                proposed = replace(proposed, column=Column(name, ""), why=TypeReason.SERVICE, reason=None)
            system_columns.append(proposed)
            continue
        columns.append(proposed)
        is_declared = name in roles.types
        if not is_declared and (text_column := _as_texts(proposed, values, context)) is not None:
            texts.append(text_column)
    formats = propose_formats(texts, layout.delimiter, context)
    columns = [_with_formats(it, formats.get(it.column.source, NO_FORMATS)) for it in columns]
    partition_key, row_key = ("" if it is None else _template(it) for it in keys)
    mapping = ColumnMapping(partition_key, row_key, tuple(it.column for it in columns))
    proposal = Proposal(
        mapping, tuple(columns), shown, len(rows), tuple(system_columns), sample=KeySample(rows)
    )
    return replace(proposal, keys=propose_missing_keys(proposal))


def propose_missing_keys(proposal: Proposal, partition_key: str = "", row_key: str = "") -> KeyProposals:
    """Propose keys that are neither chosen nor found by name."""
    columns = [
        KeyColumn(it.column.source, it.likely_type)
        for it in proposal.columns
        if can_be_in_template(it.column.source)
    ]
    mapping = proposal.mapping
    return propose_keys(
        columns, proposal.sample, partition_key or mapping.partition_key, row_key or mapping.row_key
    )


def complete(proposal: Proposal, partition_key: str = "", row_key: str = "") -> ColumnMapping:
    """Return the mapping with the chosen keys; raises MappingRefused if one is missing."""
    mapping = replace(
        proposal.mapping,
        partition_key=partition_key or proposal.mapping.partition_key,
        row_key=row_key or proposal.mapping.row_key,
    )
    if not proposal.names:  # without rows, no key is missing
        return replace(mapping, partition_key="{PartitionKey}", row_key="{RowKey}")
    require_keys(mapping, proposal.names, propose_missing_keys(proposal, partition_key, row_key))
    in_keys = mapping.whole_keys()
    columns = (it.column for it in proposal.all_columns if it.column.source not in in_keys)
    return replace(mapping, columns=tuple(it for it in columns if it.target))


def with_others(proposal: Proposal, mapping: ColumnMapping) -> ColumnMapping:
    """Extend a mapping of another file by proposals for the columns that it lacks."""
    others = {column.source for column in mapping.columns} | mapping.whole_keys()
    targets = {column.target for column in mapping.columns}
    for it in proposal.all_columns:
        if it.column.source in others or not it.column.target:
            continue
        target = free_name(it.column.target, targets)
        targets.add(target)
        mapping = mapping.with_column(replace(it.column, target=target))
    return mapping


def in_zone(proposal: Proposal, mapping: ColumnMapping, zone: str) -> ColumnMapping:
    """Set the zone of times without one: their columns become DateTime with a zone and String without."""
    before, after = (Edm.STRING, Edm.DATETIME) if zone else (Edm.DATETIME, Edm.STRING)
    local = {it.column.source for it in proposal.columns if it.reason is GuessReason.NO_ZONE}
    columns = (
        replace(it, type=after) if it.source in local and it.type is before and not it.format else it
        for it in mapping.columns
    )
    return replace(mapping, zone=zone, columns=tuple(columns))


def in_format(proposal: Proposal, column: Column, format_: Format) -> Column:
    """Apply a format to a column, with the type proposed for that format, or else the current type if it fits."""
    proposed = next((it for it in proposal.columns if it.column.source == column.source), None)
    match = None if proposed is None else next((it for it in proposed.formats if _is_in(it, format_)), None)
    if match is not None:
        return replace(column, type=match.type, format=match.format)
    type_ = column.type if column.type in format_.types else format_.types[0]
    return replace(column, type=type_, format=format_.spelling)


def find_columns_in(proposal: Proposal, format_: Format) -> list[Column]:
    """Return the columns whose sampled values all have a format; whole numbers fit any number format."""
    is_of_numbers = isinstance(format_, NumberFormat) and not format_.percent and not format_.currency
    columns = []
    for it in proposal.columns:
        match = next((match for match in it.formats if _is_in(match, format_)), None)
        if match is not None and match.fitting == match.values:
            columns.append(replace(it.column, type=match.type, format=match.format))
        elif is_of_numbers and it.reason is GuessReason.FITS and it.column.type in (Edm.INT32, Edm.INT64):
            columns.append(replace(it.column, format=format_.spelling))
    return columns


def _is_in(found: FormatProposal, format_: Format) -> bool:
    return bool(found.format) and format_.includes(read_format(found.format))


def with_likely_keys(proposal: Proposal) -> ColumnMapping:
    """Return the proposed mapping, adding the best keys if they are unambiguous."""
    if not proposal.keys.is_clear:
        return proposal.mapping
    best = proposal.keys.proposals[0]
    return complete(proposal, best.partition_key, best.row_key)


def require_keys(mapping: ColumnMapping, columns: Sequence[str], proposed: KeyProposals = NO_KEYS) -> None:
    """Raise MappingRefused unless the mapping defines both keys; ``columns`` are the file's."""
    for name, text in (("PartitionKey", mapping.partition_key), ("RowKey", mapping.row_key)):
        if not text:
            for best in proposed.proposals[:1]:
                raise MappingRefused(
                    Reason.FILE_ROWS_KEYS_PROPOSED,
                    property=name,
                    partition_key=best.partition_key,
                    row_key=best.row_key,
                    why=best.reason,
                    columns=", ".join(columns),
                )
            example = (*columns, "id")[0]
            raise MappingRefused(
                Reason.FILE_ROWS_NO_KEY, property=name, example=example, columns=", ".join(columns)
            )


def _template(column: str) -> str:
    return "{" + column + "}"


def _declared_type(rows: Sequence[Mapping[str, Any]], name: str, type_field: str) -> Edm | None:
    """Return the type that all values of a column declare; None if they differ."""
    declared = {row.get(type_field) for row in rows if row.get(name) not in (None, "")}
    types = {read_type_name(it) if isinstance(it, str) else None for it in declared}
    return types.pop() if len(types) == 1 else None


def _as_texts(proposed: ProposedColumn, values: Sequence[Any], context: InputContext) -> TextColumn | None:
    """Return a column for format detection; None for values of mixed kinds."""
    name = proposed.column.source
    if proposed.why is TypeReason.GUESSED:
        guess = Guess(proposed.column.type or Edm.STRING, proposed.reason or GuessReason.TEXT)
        return TextColumn(name, values, guess)
    if all(isinstance(value, str) for value in values):
        return TextColumn(name, values, guessing.guess(values, context), is_untyped=True)
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        texts = [exact_json.write(value) for value in values]
        return TextColumn(name, texts, Guess(Edm.INT64, GuessReason.FITS))
    return None


def _with_formats(proposed: ProposedColumn, found: ColumnFormats) -> ProposedColumn:
    if found.is_ambiguous:
        column = replace(proposed.column, type=Edm.STRING)
        proposed = replace(proposed, column=column, reason=GuessReason.TWO_READINGS)
    return replace(proposed, formats=found.proposals)


def _propose_text(
    column: Column, values: Sequence[str], context: InputContext, *, is_declared: bool
) -> ProposedColumn:
    examples = tuple(dict.fromkeys(value[:80] for value in values[:50]))[:_EXAMPLES]
    if is_declared:
        return ProposedColumn(column, TypeReason.DECLARED, None, len(values), examples)
    guess = guessing.guess(values, context)
    example = (guess.example[:80],) if guess.example and guess.reason is not GuessReason.FITS else ()
    examples = tuple(dict.fromkeys((*example, *examples)))[:_EXAMPLES]
    column = replace(column, type=guess.type)
    kinds = _count_kinds(values, context) if guess.reason is GuessReason.MIXED else ()
    return ProposedColumn(column, TypeReason.GUESSED, guess.reason, len(values), examples, kinds=kinds)


def _count_kinds(values: Sequence[str], context: InputContext) -> tuple[tuple[Edm, int], ...]:
    """Count values by the type that they look like, most frequent first."""
    kinds = Counter(
        next((it for it in _KINDS if guessing.looks_like(it, value, context)), Edm.STRING) for value in values
    )
    return tuple(kinds.most_common())


def _propose_json(
    column: Column, values: Sequence[Any], context: InputContext, *, is_declared: bool
) -> ProposedColumn:
    texts = map(text_of, values[:50])
    examples = tuple(dict.fromkeys(text[:80] for text in texts))[:_EXAMPLES]
    why = TypeReason.DECLARED if is_declared else TypeReason.JSON
    type_ = None if is_declared else _numeric_type(values)
    of_file = {_JSON_TYPES.get(type(value)) for value in values}
    file_type = of_file.pop() if type_ is None and len(of_file) == 1 else None
    column = replace(column, type=type_)
    return ProposedColumn(column, why, None, len(values), examples, file_type=file_type)


def _propose_own(
    column: Column, values: Sequence[Any], context: InputContext, *, is_declared: bool
) -> ProposedColumn:
    """Propose a column of JSON that a table service has written: its numbers have the types that they show."""
    proposed = _propose_json(column, values, context, is_declared=is_declared)
    is_mixed = proposed.column.type is Edm.DOUBLE and any(type(value) is int for value in values)
    return replace(proposed, column=replace(proposed.column, type=None)) if is_mixed else proposed


def _numeric_type(values: Sequence[Any]) -> Edm | None:
    """Return the common type of numbers: Int64 or Double if needed; None if no type holds all of them."""
    kinds = {float if isinstance(value, float | InexactNumber) else type(value) for value in values}
    if kinds == {int} and any(value not in INT32 for value in values):
        return Edm.INT64 if all(value in INT64 for value in values) else None
    whole = [value for value in values if type(value) is int]
    if kinds == {int, float} and all(value == float(value) for value in whole if abs(value) < 2**1000):
        return Edm.DOUBLE
    return None
