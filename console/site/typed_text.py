"""What to tell somebody whose text is not a value of its type, and the clock by which they type times."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.site.access import user_of
from storage.editing.conversions import Loss
from storage.editing.typed_text import InvalidText, TextFault

FAULTS: Final[Mapping[TextFault, Promise]] = {
    TextFault.NOT_WHOLE: _("This is not a whole number."),
    TextFault.NOT_NUMBER: _("This is not a number. Write 1200.5, 1.5e-3, NaN, Infinity or -Infinity."),
    TextFault.TOO_LARGE: _("This number is beyond the range of the type."),
    TextFault.NOT_BOOLEAN: _("Only true and false are Booleans."),
    TextFault.NOT_DATETIME: _("This is not a time. Write 2026-11-20T14:03:07Z, now, -2h or today."),
    TextFault.NO_SUCH_TIME: _("There is no such date, time or offset."),
    TextFault.OUT_OF_RANGE: _("A DateTime lies between the years 1601 and 9999."),
    TextFault.TOO_PRECISE: _("A DateTime has at most seven digits after the second."),
    TextFault.NOT_GUID: _("A GUID has 32 hexadecimal digits, as 8-4-4-4-12."),
    TextFault.NOT_HEX: _("Character %(position)s is not a hexadecimal digit."),
    TextFault.HALF_BYTE: _("A byte has two hexadecimal digits, and the last one here has one."),
    TextFault.NOT_BASE64: _("Character %(position)s is not base64."),
    TextFault.BASE64_LENGTH: _("This base64 ends too early: its last character is missing."),
    TextFault.NOT_UTF8: _("Byte %(position)s is not UTF-8, so that these bytes are not a text."),
    TextFault.NOT_ESCAPED: _("This is not a JSON string; see character %(position)s."),
    TextFault.SURROGATE: _(
        "Character %(position)s is half of a surrogate pair. Write it escaped, as JSON does."
    ),
    TextFault.TOO_LONG: _("A value holds at most 64 KiB; this one has %(size)s bytes."),
    TextFault.NO_MEANING: _("No value of this type means the same."),
}

LOSSES: Final[Mapping[Loss, Promise]] = {
    Loss.SPELLING: _("How it is written is lost."),
    Loss.FRACTION: _("The digits after the point are lost."),
    Loss.PRECISION: _("Digits that a Double cannot hold are lost."),
    Loss.SIGN: _("The sign of zero is lost."),
}


def sentence(refusal: InvalidText) -> str:
    size = number_format(refusal.size, force_grouping=True)
    return str(FAULTS[refusal.fault]) % {"position": refusal.position, "size": size}


def now_of(request: HttpRequest) -> datetime:
    """Now, in the zone of the reader."""
    return timezone.now().astimezone(ZoneInfo(user_of(request).time_zone))


def field_text(text: str) -> str:
    """What was typed into a field: browsers send every line end as two characters."""
    return text.replace("\r\n", "\n")
