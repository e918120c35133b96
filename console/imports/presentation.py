"""How the console words imports: why a type was guessed, why rows are rejected, and what would bring them in."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple

from django.utils.functional import Promise
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy as _

from console.imports.formats import describe_value
from console.site.tags import grouped
from storage.domain.entities.entity import EntityKey
from storage.domain.values.edm import EdmValue
from storage.editing import typed_text
from storage.editing.formats.reading import read_format
from storage.editing.guessing import GuessReason
from storage.tabular.layout import FileFormat
from storage.tabular.mapping import OnMisfit
from storage.tabular.proposals import ProposedColumn, TypeReason
from storage.tabular.rejects import Fault, RejectGroup, Repair
from storage.tabular.report import (
    ColumnReport,
    ColumnUse,
    FileReport,
    ValueChange,
    ValueReport,
)
from storage.transfer.import_drafts import SampleChange
from storage.transfer.imports import ImportMode

_PROPERTIES: Final = 12  # of an entity that are shown
_LONGEST: Final = 80  # characters of a value
MODES: Final[Mapping[ImportMode, tuple[Promise, Promise]]] = {
    ImportMode.MERGE: (_("Merge"), _("Change the properties in the file, keep others")),
    ImportMode.REPLACE: (_("Replace"), _("Remove properties that are not in the file")),
    ImportMode.SKIP: (_("Keep the existing entity"), _("Import new keys only")),
    ImportMode.INSERT: (_("Reject the row"), _("List it with the rejected rows")),
}
MISFITS: Final[Mapping[str, Promise]] = {
    OnMisfit.REJECT.value: _("Reject the row"),
    OnMisfit.STRING.value: _("Import as String"),
    OnMisfit.UNSET.value: _("Leave the value out"),
}
FORMATS: Final = {
    FileFormat.CSV: "CSV",
    FileFormat.JSON: "JSON",
    FileFormat.NDJSON: "NDJSON",
    FileFormat.PARQUET: "Parquet",
}
DELIMITERS: Final[Mapping[str, Promise]] = {
    ",": _("Comma"),
    ";": _("Semicolon"),
    "\t": _("Tab"),
    "|": _("Vertical bar"),
}
_SOURCES: Final[Mapping[TypeReason, Promise]] = {
    TypeReason.DECLARED: _("declared in the file"),
    TypeReason.JSON: _("as in JSON"),
    TypeReason.GUESSED: _("guessed from its values"),
    TypeReason.SERVICE: _("set by the service"),
}
_GUESSES: Final[Mapping[GuessReason, Promise]] = {
    GuessReason.FITS: _("all values look like it"),
    GuessReason.EMPTY: _("no values"),
    GuessReason.LEADING_ZEROS: _("numbers with leading zeros"),
    GuessReason.TOO_MANY_DIGITS: _("numbers that no numeric type holds exactly"),
    GuessReason.NO_ZONE: _("dates or times without a time zone"),
    GuessReason.TWO_READINGS: _("numbers that can be read in two ways"),
    GuessReason.MIXED: _("values of several types"),
    GuessReason.TEXT: _("text"),
}
_FAULTS: Final[Mapping[Fault, Promise | str]] = {
    Fault.BAD_CSV: _("The quotation marks of the row do not match."),
    Fault.BAD_JSON: _("The row is not JSON."),
    Fault.NO_OBJECT: _("The row is not a JSON object."),
    Fault.ENCODING: _("The row has bytes that are not text in the encoding of the file."),
    Fault.TOO_MANY_FIELDS: _("This row has more fields than columns."),
    Fault.MEMBER_TWICE: _("The row has %(column)s twice."),
    Fault.NO_KEY: _("%(column)s is missing."),
    Fault.KEY_CHARACTERS: _(
        "%(column)s has a character that keys cannot have: / \\ # ? or a control character."
    ),
    Fault.KEY_LONG: _("%(column)s is too long."),
    Fault.KEY_EMPTY: _("%(column)s is empty."),
    Fault.NAME: _("%(column)s cannot be the name of a property."),
    Fault.UNKNOWN_TYPE: _("The type of %(column)s is not one of the service."),
    Fault.NESTED: _("%(column)s is an object or an array."),
    Fault.NOT_OF_TYPE: _("%(column)s is not of the type %(type)s."),
    Fault.NOT_IN_FORMAT: _("%(column)s is not %(format)s."),
    Fault.OUT_OF_RANGE: _("%(column)s is beyond the range of %(type)s."),
    Fault.TOO_MANY_DIGITS: _("%(column)s has more digits than %(type)s holds."),
    Fault.INEXACT: _("%(column)s is a number with more digits than any type holds exactly."),
    Fault.NAME_TWICE: _("%(column)s would become a property that another column becomes."),
    Fault.VALUE_LARGE: _("%(column)s is larger than a property may be."),
    Fault.MANY_PROPERTIES: _("The entity would have too many properties."),
    Fault.LARGE: _("The entity would be too large."),
    Fault.EXISTS: _("An entity with its keys exists."),
    Fault.OTHER: "%(text)s",
}
# of groups that are about several columns, because there are very many
_FAULTS_IN_GENERAL: Final[Mapping[Fault, Promise]] = {
    Fault.MEMBER_TWICE: _("Objects have members twice."),
    Fault.NO_KEY: _("Keys are missing."),
    Fault.KEY_CHARACTERS: _("Keys have characters that keys cannot have."),
    Fault.KEY_LONG: _("Keys are too long."),
    Fault.KEY_EMPTY: _("Keys are empty."),
    Fault.NAME: _("Columns cannot be the names of properties."),
    Fault.UNKNOWN_TYPE: _("Declared types are not types of the service."),
    Fault.NESTED: _("Values are objects or arrays."),
    Fault.NOT_OF_TYPE: _("Values are not of the types of their columns."),
    Fault.NOT_IN_FORMAT: _("Values are not in the formats of their columns."),
    Fault.OUT_OF_RANGE: _("Values are beyond the ranges of their types."),
    Fault.TOO_MANY_DIGITS: _("Values have more digits than their types hold."),
    Fault.INEXACT: _("Numbers have more digits than any type holds exactly."),
    Fault.NAME_TWICE: _("Columns would become properties that other columns become."),
    Fault.VALUE_LARGE: _("Values are larger than a property may be."),
}
_REPAIRS: Final[Mapping[Repair, Promise]] = {
    Repair.STRING: _("Import as String"),
    Repair.UNSET: _("Leave the value out"),
    Repair.ROUND: _("Round to fit"),
    Repair.KEY_CHARACTERS: _("Replace with -"),
    Repair.SKIP: _("Keep the existing entity"),
    Repair.REPLACE: _("Replace the entity"),
}


_USES: Final[Mapping[ColumnUse, Promise]] = {
    ColumnUse.KEY: _("Used as a key"),
    ColumnUse.RENAMED: _("Renamed"),
    ColumnUse.UNNAMED: _("Named by position: no name in the file"),
    ColumnUse.TYPES: _("Used as the types of other columns"),
    ColumnUse.TIMESTAMP: _("Left out: set by the service"),
    ColumnUse.CONTROL: _("Left out: control information of a service"),
    ColumnUse.EMPTY: _("Left out: no name and no values"),
    ColumnUse.IGNORED: _("Left out: ignored by you"),
    ColumnUse.NOT_MAPPED: _("Left out: not in the mapping"),
    ColumnUse.BESIDE_ROWS: _("Left out: beside the rows, not in them"),
    ColumnUse.REJECTS: _("Left out: added by a file of rejected rows"),
}
_CHANGES: Final[Mapping[ValueChange, Promise]] = {
    ValueChange.UNSET: _("Left out: stands for no value"),
    ValueChange.DROPPED: _("Left out: does not fit the type"),
    ValueChange.STRING: _("Kept as String: does not fit the type"),
    ValueChange.ROUNDED: _("Rounded to fit the type"),
    ValueChange.KEY_REPLACED: _("Characters replaced that keys cannot have"),
}


def describe_guess(column: ProposedColumn) -> Promise:
    """Return why a column has its proposed type."""
    return _SOURCES[column.why] if column.reason is None else _GUESSES[column.reason]


def describe_fault(fault: Fault, column: str, type_name: str, text: str, format_: str = "") -> str:
    if not column and fault in _FAULTS_IN_GENERAL:
        return str(_FAULTS_IN_GENERAL[fault])
    values = {"column": column, "type": type_name, "text": text}
    return str(_FAULTS[fault]) % (
        values | {"format": describe_value(read_format(format_)) if format_ else ""}
    )


class ChangedProperty(NamedTuple):
    """A property before and after an import, as texts; None where the entity does not have it."""

    name: str
    before: str | None
    after: str | None
    type: str


@dataclass(frozen=True, slots=True)
class ChangeView:
    """An entity of the first rows, with the properties that the import changes."""

    change: SampleChange

    @property
    def key(self) -> EntityKey:
        return self.change.key

    @property
    def lines(self) -> list[ChangedProperty]:
        before, after = self.change.before, self.change.after
        changed = [name for name in {**after, **before} if before.get(name) != after.get(name)]
        return [
            ChangedProperty(
                name,
                _show(before.get(name)),
                _show(after.get(name)),
                after[name].type.value if name in after else "",
            )
            for name in changed[:_PROPERTIES]
        ]


def _show(value: EdmValue | None) -> str | None:
    return None if value is None else Truncator(typed_text.write(value)).chars(_LONGEST)


@dataclass(frozen=True, slots=True)
class ReportView:
    """What of a file is not in the table as it stands there."""

    report: FileReport

    def __bool__(self) -> bool:
        return bool(self.report)

    @property
    def blank_rows(self) -> int:
        return self.report.blank_rows

    @property
    def uses(self) -> list[tuple[Promise, list[ColumnReport]]]:
        """The columns of each use, the first of them."""
        return [(_USES[use], list(its)) for use, its in groupby(self.report.columns, lambda it: it.use)]

    @property
    def values(self) -> list[tuple[Promise, ValueReport]]:
        return [(_CHANGES[it.change], it) for it in self.report.values]


@dataclass(frozen=True, slots=True)
class GroupView:
    """Rejected rows of a reason; ``number`` is its place among the groups."""

    number: int
    group: RejectGroup

    @property
    def sentence(self) -> str:
        group = self.group
        type_name = "" if group.type is None else group.type.short_name
        return describe_fault(group.fault, group.column, type_name, next(iter(group.texts), ""), group.format)

    @property
    def texts(self) -> list[str]:
        return [] if self.group.fault is Fault.OTHER else [it for it, _n in self.group.texts.most_common(3)]

    @property
    def lines(self) -> list[str]:
        return [grouped(line) for line in self.group.lines]

    @property
    def others(self) -> int:
        """How many lines are not listed."""
        return self.group.rows - len(self.group.lines)

    @property
    def repairs(self) -> list[tuple[str, Promise]]:
        return [(it.value, _REPAIRS[it]) for it in self.group.repairs]
