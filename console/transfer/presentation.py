"""Texts for imports: guessed types, reject reasons and repairs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from django.utils.functional import Promise
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from console.grid.tabular import describe_fault
from console.site.tags import grouped
from console.transfer.formats import describe_value, describe_values
from storage.domain.entities.entity import EntityKey
from storage.domain.values.edm import Edm, EdmValue
from storage.editing import typed_text
from storage.editing.formats.reading import read_format
from storage.editing.guessing import GuessReason
from storage.entities.writing import WriteMode
from storage.tabular.layout import FileFormat
from storage.tabular.mapping import OnMisfit
from storage.tabular.proposals import ProposedColumn, TypeReason
from storage.tabular.rejects import FORMAT_REPAIRS, Fault, Reject, RejectGroup, Repair
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
    OnMisfit.UNSET.value: _("Skip this value"),
}
FORMATS: Final = {
    FileFormat.CSV: "CSV",
    FileFormat.JSON: "JSON",
    FileFormat.NDJSON: "NDJSON",
    FileFormat.PARQUET: "Parquet",
    FileFormat.EXCEL: "Excel",
}
DELIMITERS: Final[Mapping[str, Promise]] = {
    ",": _("Comma"),
    ";": _("Semicolon"),
    "\t": _("Tab"),
    "|": _("Vertical bar"),
}
_SOURCES: Final[Mapping[TypeReason, Promise]] = {
    TypeReason.DECLARED: _("declared in the file"),
    TypeReason.JSON: _("as in the file"),
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
    GuessReason.MIXED: _("mixed values"),
    GuessReason.TEXT: _("text"),
}
_REPAIRS: Final[Mapping[Repair, Promise]] = {
    Repair.INT64: _("Import the column as Int64"),
    Repair.DOUBLE: _("Import the column as Double"),
    Repair.STRING: _("Import as String"),
    Repair.UNSET: _("Skip this value"),
    Repair.ROUND: _("Round to fit"),
    Repair.KEY_CHARACTERS: _("Replace with -"),
    Repair.SKIP: _("Keep the existing entity"),
    Repair.REPLACE: _("Replace the entity"),
}


_KINDS: Final[Mapping[Edm, Promise]] = {
    Edm.DOUBLE: ngettext_lazy("%(number)s number", "%(number)s numbers", "count"),
    Edm.BOOLEAN: ngettext_lazy("%(number)s true or false", "%(number)s true or false", "count"),
    Edm.DATETIME: ngettext_lazy("%(number)s time", "%(number)s times", "count"),
    Edm.GUID: ngettext_lazy("%(number)s GUID", "%(number)s GUIDs", "count"),
    Edm.STRING: ngettext_lazy("%(number)s text", "%(number)s texts", "count"),
}
_VALUES_NOT_OF_TYPE: Final[Mapping[Edm | None, Promise]] = {
    **dict.fromkeys(
        (Edm.INT32, Edm.INT64),
        ngettext_lazy(
            "%(number)s value of %(column)s isn't a whole number",
            "%(number)s values of %(column)s aren't whole numbers",
            "count",
        ),
    ),
    Edm.DOUBLE: ngettext_lazy(
        "%(number)s value of %(column)s isn't a number",
        "%(number)s values of %(column)s aren't numbers",
        "count",
    ),
    Edm.BOOLEAN: ngettext_lazy(
        "%(number)s value of %(column)s isn't true or false",
        "%(number)s values of %(column)s aren't true or false",
        "count",
    ),
    Edm.DATETIME: ngettext_lazy(
        "%(number)s value of %(column)s isn't a date or time",
        "%(number)s values of %(column)s aren't dates or times",
        "count",
    ),
    Edm.GUID: ngettext_lazy(
        "%(number)s value of %(column)s isn't a GUID", "%(number)s values of %(column)s aren't GUIDs", "count"
    ),
}


_FORMATS_OF_REPAIRS: Final = {it: read_format(it.value) for it in FORMAT_REPAIRS}
_HINTS: Final[Mapping[Repair, Promise]] = {
    Repair.DECIMAL_COMMA: _("(decimal comma?)"),
    Repair.DECIMAL_POINT: _("(thousands separators?)"),
    Repair.DAY_FIRST: _("(day first?)"),
    Repair.MONTH_FIRST: _("(month first?)"),
}


def describe_guess(column: ProposedColumn) -> Promise | str:
    """Explain the proposed type of a column."""
    if column.kinds:
        counts = (str(_KINDS[type_] % _count(number)) for type_, number in column.kinds)
        return str(_("mixed: %(counts)s")) % {"counts": ", ".join(counts)}
    return _SOURCES[column.why] if column.reason is None else _GUESSES[column.reason]


def _count(number: int) -> dict[str, object]:
    return {"count": number, "number": grouped(number)}


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


def _describe_repair(how: Repair) -> Promise | str:
    format_ = _FORMATS_OF_REPAIRS.get(how)
    if format_ is None:
        return _REPAIRS[how]
    return str(_("Read as %(what)s")) % {"what": describe_values(format_.types[0], how.value)}


@dataclass(frozen=True, slots=True)
class GroupView:
    """Group of rejected rows with one reason; ``number`` is its index."""

    number: int
    group: RejectGroup

    @property
    def sentence(self) -> str:
        group = self.group
        if group.fault is Fault.NOT_OF_TYPE and group.column and group.type in _VALUES_NOT_OF_TYPE:
            text = str(_VALUES_NOT_OF_TYPE[group.type] % {**_count(group.rows), "column": group.column})
            hint = next((_HINTS[it] for it in group.repairs if it in _HINTS), None)
            return f"{text}." if hint is None else f"{text} {hint}"
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
    def repairs(self) -> list[tuple[str, Promise | str]]:
        return [(it.value, _describe_repair(it)) for it in self.group.repairs]
