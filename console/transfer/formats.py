"""Texts for column formats, and their form values."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from console.site.tags import grouped
from storage.domain.values.edm import Edm
from storage.editing.formats.counted_times import CountedTime, CountedTimeFormat
from storage.editing.formats.dates import DateFormat, DateOrder
from storage.editing.formats.format import Format
from storage.editing.formats.numbers import Decimals, NumberFormat, Percent
from storage.editing.formats.reading import UnknownFormat, read_format
from storage.editing.formats.words import BooleanWords
from storage.tabular.format_proposals import Certainty, FormatProposal
from storage.tabular.mapping import Column

_NUMBER: Final[Mapping[Decimals, Promise]] = {
    Decimals.COMMA: _("a number with a decimal comma"),
    Decimals.POINT: _("a number with a decimal point"),
}
_PERCENTAGE: Final[Mapping[Decimals, Promise]] = {
    Decimals.COMMA: _("a percentage with a decimal comma"),
    Decimals.POINT: _("a percentage with a decimal point"),
}
_AMOUNT: Final[Mapping[Decimals, Promise]] = {
    Decimals.COMMA: _("an amount in %(currency)s with a decimal comma"),
    Decimals.POINT: _("an amount in %(currency)s with a decimal point"),
}
_DATE: Final[Mapping[DateOrder, Promise]] = {
    DateOrder.DAY_FIRST: _("a date, day first"),
    DateOrder.MONTH_FIRST: _("a date, month first"),
    DateOrder.YEAR_FIRST: _("a date, year first"),
}
_COUNTED_TIME: Final[Mapping[CountedTime, Promise]] = {
    CountedTime.EXCEL_DAYS: _("an Excel day number"),
    CountedTime.EPOCH_SECONDS: _("a number of seconds since 1970"),
    CountedTime.EPOCH_MILLISECONDS: _("a number of milliseconds since 1970"),
}


_NUMBERS: Final[Mapping[Decimals, Promise]] = {
    Decimals.COMMA: _("numbers with a decimal comma"),
    Decimals.POINT: _("numbers with a decimal point"),
}
_PERCENTAGES: Final[Mapping[tuple[Decimals, Percent | None], Promise]] = {
    (Decimals.COMMA, Percent.FRACTION): _("percentages with a decimal comma, as fractions"),
    (Decimals.POINT, Percent.FRACTION): _("percentages with a decimal point, as fractions"),
    (Decimals.COMMA, Percent.NUMBER): _("percentages with a decimal comma, as numbers"),
    (Decimals.POINT, Percent.NUMBER): _("percentages with a decimal point, as numbers"),
}
_AMOUNTS: Final[Mapping[Decimals, Promise]] = {
    Decimals.COMMA: _("amounts in %(currency)s with a decimal comma"),
    Decimals.POINT: _("amounts in %(currency)s with a decimal point"),
}
_DATES: Final[Mapping[DateOrder, Promise]] = {
    DateOrder.DAY_FIRST: _("dates, day first"),
    DateOrder.MONTH_FIRST: _("dates, month first"),
    DateOrder.YEAR_FIRST: _("dates, year first"),
}
_COUNTED_TIMES: Final[Mapping[CountedTime, Promise]] = {
    CountedTime.EXCEL_DAYS: _("Excel day numbers"),
    CountedTime.EPOCH_SECONDS: _("seconds since 1970"),
    CountedTime.EPOCH_MILLISECONDS: _("milliseconds since 1970"),
}
_PLAIN: Final[Mapping[Edm, Promise]] = {
    Edm.INT32: _("whole numbers"),
    Edm.INT64: _("whole numbers"),
    Edm.DOUBLE: _("numbers with a decimal point"),
    Edm.BOOLEAN: _("true or false"),
    Edm.DATETIME: _("times with a time zone"),
    Edm.GUID: _("GUIDs"),
}


def describe_value(format_: Format) -> str:
    """Describe one text in a format, such as "a date, day first"."""
    match format_:
        case NumberFormat(decimals, None, ""):
            return str(_NUMBER[decimals])
        case NumberFormat(decimals, None, currency):
            return str(_AMOUNT[decimals]) % {"currency": currency}
        case NumberFormat(decimals):
            return str(_PERCENTAGE[decimals])
        case DateFormat(order):
            return str(_DATE[order])
        case CountedTimeFormat(counted):
            return str(_COUNTED_TIME[counted])
        case BooleanWords(true, false):
            return str(_("%(true)s or %(false)s")) % {"true": true, "false": false}
    raise AssertionError(format_)


def describe_values(type_: Edm, format_: str) -> str:
    """Describe texts in a format, or of a type without one, such as "dates, day first"."""
    if not format_:
        return str(_PLAIN.get(type_, type_.short_name))
    match read_format(format_):
        case NumberFormat(decimals, None, ""):
            return str(_NUMBERS[decimals])
        case NumberFormat(decimals, None, currency):
            return str(_AMOUNTS[decimals]) % {"currency": currency}
        case NumberFormat(decimals, percent):
            return str(_PERCENTAGES[decimals, percent])
        case DateFormat(order):
            return str(_DATES[order])
        case CountedTimeFormat(counted):
            return str(_COUNTED_TIMES[counted])
        case other:
            return describe_value(other)


# the readings of columns in forms: a type and a format, such as "Edm.Double decimal-comma"

_USUAL: Final = (
    *((Edm.DOUBLE, decimals.value) for decimals in Decimals),
    *((Edm.DATETIME, order.value) for order in DateOrder),
    *((Edm.DATETIME, counted.value) for counted in CountedTime),
)


def reading_value(type_: Edm | None, format_: str) -> str:
    return f"{type_.value if type_ else ''} {format_}".strip()


def read_reading(text: str) -> tuple[Edm | None, str]:
    """Parse a reading to its type and format; neither if invalid."""
    name, _separator, format_ = text.partition(" ")
    type_ = next((it for it in Edm if it.value == name), None)
    try:
        is_known = type_ is not None and format_ != "" and type_ in read_format(format_).types
    except UnknownFormat:
        is_known = False
    return type_, format_ if is_known else ""


def reading_choices(column: Column, proposed: Sequence[FormatProposal]) -> list[tuple[str, str]]:
    """Return the selectable readings of a column beyond the plain types: proposed and common ones."""
    readings = [(it.type, it.format) for it in proposed if it.format]
    if column.type is not None and column.format:
        readings.append((column.type, column.format))
    return [
        (reading_value(*it), f"{it[0].short_name}: {describe_values(*it)}")
        for it in dict.fromkeys((*readings, *_USUAL))
    ]


_ZONE: Final = re.compile(r":.*(?:Z|[+-]\d\d(?::?\d\d)?)$")


@dataclass(frozen=True, slots=True)
class FormatView:
    """Proposed reading of a column; ``place`` is its index, ``zone`` the zone of times without one."""

    place: int
    proposal: FormatProposal
    _zone: str

    @property
    def value(self) -> str:
        return reading_value(self.proposal.type, self.proposal.format)

    @property
    def label(self) -> str:
        return str(_("Read as %(what)s")) % {
            "what": describe_values(self.proposal.type, self.proposal.format)
        }

    @property
    def samples(self) -> list[tuple[str, str]]:
        return self.proposal.shown_samples

    @property
    def is_rewritten(self) -> bool:
        return any(text != to for text, to in self.samples)

    @property
    def zone(self) -> str:
        """Return the time zone of times without one; empty otherwise."""
        is_local = self.proposal.type is Edm.DATETIME and not all(_ZONE.search(to) for _, to in self.samples)
        return (self._zone or "UTC") if is_local else ""

    @property
    def is_certain(self) -> bool:
        return self.proposal.certainty is Certainty.CERTAIN

    @property
    def is_alternative(self) -> bool:
        return self.proposal.certainty is Certainty.ALTERNATIVE

    @property
    def misfits(self) -> str:
        """Return a sentence about values that do not fit; empty if all do."""
        left = self.proposal.values - self.proposal.fitting
        if not left:
            return ""
        text = ngettext(
            "%(shown)s of %(values)s values does not fit: %(texts)s",
            "%(shown)s of %(values)s values do not fit: %(texts)s",
            left,
        )
        texts = ", ".join(self.proposal.misfits) + (" …" if self.proposal.has_more_misfits else "")
        return text % {"shown": grouped(left), "values": grouped(self.proposal.values), "texts": texts}
