"""Messages for invalid typed texts, and the clock for typed times."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from django.utils import timezone
from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from storage.domain.values.edm import INT32, INT64, Edm, EdmValue
from storage.domain.values.kinds import AccountKind
from storage.editing.conversions import Loss
from storage.editing.input_context import InputContext
from storage.editing.typed_text import InvalidText, TextFault, TextForm, write
from storage.models import Account

FAULTS: Final[Mapping[TextFault, Promise]] = {
    TextFault.NOT_WHOLE: _("Enter a whole number."),
    TextFault.NOT_NUMBER: _("Enter a number such as 1200.5, 1.5e-3, NaN, Infinity or -Infinity."),
    TextFault.TOO_LARGE: _("This number is out of range for the type."),
    TextFault.NOT_BOOLEAN: _("Enter true or false."),
    TextFault.NOT_DATETIME: _("Enter a time such as 2026-11-20T14:03:07Z, now, -2h or today."),
    TextFault.OTHER_PATTERN: _("The text does not match the pattern."),
    TextFault.NO_SUCH_TIME: _("This date, time or offset does not exist."),
    TextFault.OUT_OF_RANGE: _("A DateTime must be between the years %(first)s and 9999."),
    TextFault.TOO_PRECISE: _("A DateTime can have at most seven fractional digits."),
    TextFault.DIGITS_LOST: _("A Double cannot hold all digits of this number."),
    TextFault.NOT_GUID: _("A GUID needs 32 hexadecimal digits in the form 8-4-4-4-12."),
    TextFault.NOT_HEX: _("Character %(position)s is not a hexadecimal digit."),
    TextFault.HALF_BYTE: _("Each byte needs two hexadecimal digits. The last one has only one."),
    TextFault.NOT_BASE64: _("Character %(position)s is not valid base64."),
    TextFault.BASE64_LENGTH: _("The base64 text is incomplete: its last character is missing."),
    TextFault.NOT_UTF8: _("Byte %(position)s is not valid UTF-8, so these bytes cannot be shown as text."),
    TextFault.NOT_ESCAPED: _("This is not a valid JSON string. Check character %(position)s."),
    TextFault.SURROGATE: _("Character %(position)s is half of a surrogate pair. Write it as a JSON escape."),
    TextFault.TOO_LONG: _("A value can have at most 64 KiB. This one has %(size)s bytes."),
    TextFault.NO_MEANING: _("This value cannot be converted to the type."),
}

LOSSES: Final[Mapping[Loss, Promise]] = {
    Loss.SPELLING: _("The original spelling is lost."),
    Loss.FRACTION: _("The digits after the decimal point are lost."),
    Loss.PRECISION: _("Digits beyond the precision of a Double are lost."),
    Loss.SIGN: _("The sign of zero is lost."),
}


_RANGES: Final[Mapping[Edm, range]] = {Edm.INT32: INT32, Edm.INT64: INT64}


def sentence(refusal: InvalidText, type_: Edm | None = None) -> str:
    """Return the message for an invalid text of an expected type, with its limits."""
    if refusal.fault is TextFault.TOO_LARGE and type_ is not None and type_ in _RANGES:
        limits = _RANGES[type_]
        low, high = (number_format(limit, force_grouping=True) for limit in (limits[0], limits[-1]))
        text = gettext("This number is out of range: %(type)s holds %(low)s to %(high)s.")
        return text % {"type": type_.short_name, "low": low.replace("-", "\N{MINUS SIGN}"), "high": high}
    size = number_format(refusal.size, force_grouping=True)
    facts = {"position": refusal.position, "size": size, "first": refusal.first_year}
    return str(FAULTS[refusal.fault]) % facts


def input_context(account: Account) -> InputContext:
    """Return the context of values that the current user enters for an account."""
    return InputContext(local_now(), AccountKind(account.kind))


def local_now() -> datetime:
    """Return the present time in the user's zone."""
    return timezone.localtime()


def edited_text(value: EdmValue, form: TextForm | None = None) -> str:
    """Format a value for editing; times are in the user's zone."""
    return write(value, form, timezone.get_current_timezone())


def field_text(text: str) -> str:
    """Normalize the line ends of a field, which browsers send as CRLF."""
    return text.replace("\r\n", "\n")
