"""Texts for imports: guessed types, reject reasons and repairs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from django.utils.functional import Promise
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy as _

from console.grid.tabular import describe_fault
from console.site.tags import grouped
from console.transfer.formats import describe_value
from storage.domain.entities.entity import EntityKey
from storage.domain.values.edm import EdmValue
from storage.editing import typed_text
from storage.editing.formats.reading import read_format
from storage.editing.guessing import GuessReason
from storage.entities.writing import WriteMode
from storage.tabular.layout import FileFormat
from storage.tabular.mapping import OnMisfit
from storage.tabular.proposals import ProposedColumn, TypeReason
from storage.tabular.rejects import Fault, Reject, RejectGroup, Repair
from storage.transfer.import_drafts import SampleChange

_PROPERTIES: Final = 12  # shown properties of an entity
_LONGEST: Final = 80  # characters of a value
MODES: Final[Mapping[WriteMode, tuple[Promise, Promise]]] = {
    WriteMode.MERGE: (_("Merge"), _("Change the properties in the file, keep others")),
    WriteMode.REPLACE: (_("Replace"), _("Remove properties that are not in the file")),
    WriteMode.SKIP: (_("Keep the existing entity"), _("Import new keys only")),
    WriteMode.INSERT: (_("Reject the row"), _("List it with the rejected rows")),
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
_REPAIRS: Final[Mapping[Repair, Promise]] = {
    Repair.STRING: _("Import as String"),
    Repair.UNSET: _("Leave the value out"),
    Repair.ROUND: _("Round to fit"),
    Repair.KEY_CHARACTERS: _("Replace with -"),
    Repair.SKIP: _("Keep the existing entity"),
    Repair.REPLACE: _("Replace the entity"),
}


def describe_guess(column: ProposedColumn) -> Promise:
    """Explain the proposed type of a column."""
    return _SOURCES[column.why] if column.reason is None else _GUESSES[column.reason]


def describe_reject(reject: Reject | RejectGroup, text: str) -> str:
    """Explain why rows are rejected; ``text`` is a value at fault."""
    format_ = describe_value(read_format(reject.format)) if reject.format else ""
    return describe_fault(reject.fault, reject.column, reject.type, text, format_)


class ChangedProperty(NamedTuple):
    """Property before and after an import, as texts; None where it is absent."""

    name: str
    before: str | None
    after: str | None
    type: str


@dataclass(frozen=True, slots=True)
class ChangeView:
    """Entity of the first rows with its changed properties."""

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
class GroupView:
    """Group of rejected rows with one reason; ``number`` is its index."""

    number: int
    group: RejectGroup

    @property
    def sentence(self) -> str:
        return describe_reject(self.group, next(iter(self.group.texts), ""))

    @property
    def texts(self) -> list[str]:
        return [] if self.group.fault is Fault.OTHER else [it for it, _n in self.group.texts.most_common(3)]

    @property
    def lines(self) -> list[str]:
        return [grouped(line) for line in self.group.lines]

    @property
    def others(self) -> int:
        """Return the number of unlisted lines."""
        return self.group.rows - len(self.group.lines)

    @property
    def repairs(self) -> list[tuple[str, Promise]]:
        return [(it.value, _REPAIRS[it]) for it in self.group.repairs]
