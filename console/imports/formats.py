"""How the console words the formats of columns."""

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from storage.editing.formats.counted_times import CountedTime, CountedTimeFormat
from storage.editing.formats.dates import DateFormat, DateOrder
from storage.editing.formats.format import Format
from storage.editing.formats.numbers import Decimals, NumberFormat
from storage.editing.formats.words import BooleanWords

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
    CountedTime.EXCEL_DAYS: _("a number of Excel days"),
    CountedTime.EPOCH_SECONDS: _("a number of seconds since 1970"),
    CountedTime.EPOCH_MILLISECONDS: _("a number of milliseconds since 1970"),
}


def describe_value(format_: Format) -> str:
    """Return what a text in a format is, such as: a date, day first."""
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
