"""Texts for reading files and pasted text: reject reasons and omitted parts."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from storage.domain.values.edm import Edm
from storage.tabular.rejects import Fault
from storage.tabular.report import ColumnReport, ColumnUse, FileReport, ValueChange, ValueReport

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
    Fault.NOT_COMPUTED: _(
        "%(column)s is a formula without a stored value. Save the file in Excel, which computes it."
    ),
    Fault.NAME_TWICE: _("%(column)s would become a property that another column becomes."),
    Fault.VALUE_LARGE: _("%(column)s is larger than a property may be."),
    Fault.MANY_PROPERTIES: _("The entity would have too many properties."),
    Fault.LARGE: _("The entity would be too large."),
    Fault.EXISTS: _("An entity with its keys exists."),
    Fault.OTHER: "%(text)s",
}
_NOT_OF_TYPE: Final[Mapping[Edm | None, Promise]] = {
    Edm.INT32: _("%(column)s isn't a whole number."),
    Edm.INT64: _("%(column)s isn't a whole number."),
    Edm.DOUBLE: _("%(column)s isn't a number."),
    Edm.BOOLEAN: _("%(column)s isn't true or false."),
    Edm.DATETIME: _("%(column)s isn't a date or time."),
    Edm.GUID: _("%(column)s isn't a GUID."),
    Edm.BINARY: _("%(column)s isn't Base64."),
}
# groups about several columns have these, because there may be very many columns
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
    Fault.NOT_COMPUTED: _("Formulas have no stored values. Save the file in Excel, which computes them."),
    Fault.NAME_TWICE: _("Columns would become properties that other columns become."),
    Fault.VALUE_LARGE: _("Values are larger than a property may be."),
}
_USES: Final[Mapping[ColumnUse, Promise]] = {
    ColumnUse.KEY: _("Used as a key"),
    ColumnUse.RENAMED: _("Renamed"),
    ColumnUse.UNNAMED: _("Named by position: the column has no name"),
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
    ValueChange.OTHER_TYPE: _("Of another type than the first number: give the column a type"),
    ValueChange.EMPTY: _("Left out: empty, and not a String"),
}


def describe_fault(fault: Fault, column: str, type_: Edm | None, text: str, format_: str = "") -> str:
    """Describe why one or several rows are rejected; ``format_`` is the expected format of the column."""
    if not column and fault in _FAULTS_IN_GENERAL:
        return str(_FAULTS_IN_GENERAL[fault])
    if fault is Fault.OUT_OF_RANGE and type_ is Edm.DOUBLE:
        return str(_("%(column)s: the number is too large for any type.")) % {"column": column}
    if fault is Fault.NOT_OF_TYPE and type_ in _NOT_OF_TYPE:
        return str(_NOT_OF_TYPE[type_]) % {"column": column}
    type_name = "" if type_ is None else type_.short_name
    return str(_FAULTS[fault]) % {"column": column, "type": type_name, "text": text, "format": format_}


@dataclass(frozen=True, slots=True)
class ReportView:
    """Report on parts of a file that were not imported unchanged."""

    report: FileReport

    def __bool__(self) -> bool:
        return bool(self.report)

    @property
    def blank_rows(self) -> int:
        return self.report.blank_rows

    @property
    def uses(self) -> list[tuple[Promise, list[ColumnReport]]]:
        """Return the first columns of each use."""
        return [(_USES[use], list(its)) for use, its in groupby(self.report.columns, lambda it: it.use)]

    @property
    def values(self) -> list[tuple[Promise, ValueReport]]:
        return [(_CHANGES[it.change], it) for it in self.report.values]
