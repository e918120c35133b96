"""Pasted rows, parsed like a file but at once, with every problem of each row."""

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, NamedTuple

from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.refusals import Reason
from storage.domain.values.edm import Edm
from storage.editing import guessing
from storage.editing.input_context import InputContext
from storage.tabular import layout as layouts
from storage.tabular import proposals
from storage.tabular.entities import RowMapper
from storage.tabular.layout import SAMPLE, FileFormat, FileRefused, Layout, Wishes
from storage.tabular.mapping import has_keys
from storage.tabular.proposals import ProposedColumn, TypeReason
from storage.tabular.rejects import Fault, Reject
from storage.tabular.report import FileReport, ValueChange
from storage.tabular.rows import Reader, Row

_NAME: Final = "clipboard.tsv"  # spreadsheets and the grid put tabs between fields


class TypeSource(StrEnum):
    """Origin of the type of a column."""

    DECLARED = "given in the text"  # a column @type, an annotation
    CHOSEN = "chosen"  # by the user
    KNOWN = "as in the table"
    INFERRED = "what all values look like"
    DIFFERENT = "what all values look like, unlike in the table"


@dataclass(frozen=True, slots=True)
class PasteOptions:
    """Options of a paste: ``columns`` names the fields without a header.

    ``chosen`` and ``known`` are property types.
    """

    columns: Sequence[str] = ()
    chosen: Mapping[str, Edm] = field(default_factory=dict)
    known: Mapping[str, Edm] = field(default_factory=dict)


class PastedColumn(NamedTuple):
    name: str
    type: Edm | None  # None: several types, or no values
    why: TypeSource


class PastedRow(NamedTuple):
    line: int
    entity: Entity


@dataclass(frozen=True, slots=True)
class PastedRows:
    """Parsed pasted rows with their problems."""

    layout: Layout
    columns: Sequence[PastedColumn]
    rows: Sequence[PastedRow]  # rows without a problem
    problems: Sequence[Reject]
    report: FileReport  # fields that do not become properties as they are

    @property
    def format(self) -> str:
        is_tsv = self.has_text_columns and self.layout.delimiter == "\t"
        return "tab-separated" if is_tsv else self.layout.format.name

    @property
    def has_text_columns(self) -> bool:
        """Return whether column types can be chosen, which JSON does not allow."""
        return self.layout.format is FileFormat.CSV

    @property
    def absent(self) -> int:
        """Return the number of empty fields with a declared type that has no empty value."""
        return sum(it.number for it in self.report.values if it.change is ValueChange.EMPTY)


class TooManyRows(Exception):
    """The text exceeds the limit of pasted rows."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


def read(text: str, options: PasteOptions, context: InputContext, most: int) -> PastedRows:
    """Parse pasted rows; raises FileRefused, MappingRefused, or TooManyRows above ``most``."""
    layout = _detect_layout(text, options)
    reader = Reader(io.BytesIO(text.encode(errors="surrogatepass")), layout)
    rows = list(reader)
    if len(rows) > most:
        raise TooManyRows(len(rows))
    if layout.format is FileFormat.JSON:
        rows = [row._replace(line=number) for number, row in enumerate(rows, 1)]
    proposal = proposals.propose(layout, rows, context)
    if layout.format is FileFormat.CSV:
        proposals.require_keys(proposal.mapping, layout.columns)
    types = [_choose_type(it, layout, rows, options, context) for it in proposal.columns]
    mapping = replace(
        proposal.mapping,
        partition_key=proposal.mapping.partition_key or "{PartitionKey}",
        row_key=proposal.mapping.row_key or "{RowKey}",
        columns=tuple(
            replace(it.column, type=type_) for it, (type_, _) in zip(proposal.columns, types, strict=True)
        ),
        zone=str(context.now.tzinfo),
    )
    mapper = RowMapper(mapping, layout, context)
    made, problems = _make_entities(rows, mapper)
    report = reader.report
    report.add(mapper.report)
    columns = [
        PastedColumn(
            column.target,
            next(iter(value_types)) if len(value_types) == 1 else type_ if not value_types else None,
            why,
        )
        for column, (type_, why) in zip(mapping.columns, types, strict=True)
        if (value_types := set(_types_of(column.target, made))) or layout.format is FileFormat.CSV
    ]
    return PastedRows(layout, columns, made, problems, report)


def _detect_layout(text: str, options: PasteOptions) -> Layout:
    beginning = text[:SAMPLE].removeprefix("\ufeff").lstrip()
    if not beginning:
        raise FileRefused(Reason.FILE_ROWS_EMPTY)
    wishes = Wishes(name=_NAME, has_header=None, columns=tuple(options.columns))
    layout = layouts.detect_text(beginning, wishes)
    if layout.format is FileFormat.CSV and beginning[0] in "{[" and not has_keys(layout.columns):
        raise FileRefused(Reason.FILE_ROWS_NOT_JSON, line=1)
    return replace(layout, quote='"')  # a text in apostrophes is one that has them


def _choose_type(
    proposed: ProposedColumn,
    layout: Layout,
    rows: Sequence[Row],
    options: PasteOptions,
    context: InputContext,
) -> tuple[Edm | None, TypeSource]:
    column = proposed.column
    if layout.format is FileFormat.CSV and column.target in options.chosen:
        return options.chosen[column.target], TypeSource.CHOSEN
    if proposed.why is TypeReason.DECLARED:
        return column.type, TypeSource.DECLARED
    known = options.known.get(column.target)
    if known is None or proposed.why is TypeReason.JSON:
        return column.type, TypeSource.INFERRED
    values = (text for row in rows if (text := row.fields.get(column.source)))
    if all(guessing.fits(known, text, context) for text in values):
        return known, TypeSource.KNOWN
    return column.type, TypeSource.DIFFERENT


def _make_entities(rows: Sequence[Row], mapper: RowMapper) -> tuple[list[PastedRow], list[Reject]]:
    """Convert rows to entities; return also the problems of the others."""
    made: dict[EntityKey, PastedRow] = {}
    problems: list[Reject] = []
    for number, row in enumerate(rows, 1):
        entity = mapper.read(row, number)
        if not isinstance(entity, Entity):
            problems += entity
        elif entity.key in made:
            problems.append(Reject(row, Fault.EXISTS))
        else:
            made[entity.key] = PastedRow(row.line, entity)
    return list(made.values()), problems


def _types_of(name: str, rows: Sequence[PastedRow]) -> Iterator[Edm]:
    return (row.entity.properties[name].type for row in rows if name in row.entity.properties)
