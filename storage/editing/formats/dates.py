"""Date formats with or without a time, by the order of day, month and year; months may be spelled out."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from storage.domain.values.edm import Edm
from storage.editing.formats.format import Format, NotInFormat
from storage.editing.formats.words import fold_word


class DateOrder(StrEnum):
    """Order of day, month and year in a date."""

    DAY_FIRST = "day-first"
    MONTH_FIRST = "month-first"
    YEAR_FIRST = "year-first"


# English, German, French, Spanish, Italian, Portuguese, Dutch and Turkish, without accents
_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "jan january januar janvier janv jän jaenner janner ene enero gen gennaio janeiro januari oca ocak",
            "feb february februar fevrier fevr fev febrero febbraio fevereiro februari sub subat",
            "mar march marz mrz maerz mars marzo marco maart mrt mart",
            "apr april avril avr abr abril aprile nis nisan",
            "may mai mayo mag maggio maio mei mayis",
            "jun june juni juin junio giu giugno junho haz haziran",
            "jul july juli juillet juil julio lug luglio julho tem temmuz",
            "aug august aout agosto ago augustus agu agustos",
            "sep sept september septembre septiembre set setiembre settembre setembro eyl eylul",
            "oct october okt oktober octobre octubre ott ottobre out outubro eki ekim",
            "nov november novembre noviembre novembro kas kasim",
            "dec december dez dezember decembre dic diciembre dicembre dezembro ara aralik",
        ),
        1,
    )
    for name in names.split()
}
_WEEKDAYS: Final = frozenset(
    name
    for names in (
        "mon tue tues wed thu thur thurs fri sat sun monday tuesday wednesday thursday friday saturday sunday",
        "mo di mi do fr sa so montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag",
        "lun mar mer jeu ven sam dim lundi mardi mercredi jeudi vendredi samedi dimanche",
        "mie jue vie sab dom lunes martes miercoles jueves viernes sabado domingo",
        "gio lunedi martedi mercoledi giovedi venerdi sabato domenica",
        "seg ter qua qui sex segunda terca quarta quinta sexta",
        "ma wo vr za zo maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
        "pzt pazartesi sal sali car carsamba per persembe cum cuma cmt cumartesi paz pazar",
    )
    for name in names.split()
)
_MORNING: Final = frozenset(("am", "oo", "上午", "午前", "오전"))

_SPACES: Final = str.maketrans("\u00a0\u2009\u202f", "   ")
_WORD: Final = r"[^\W\d_]{2,}"
_WEEKDAY: Final = re.compile(rf"({_WORD})\.?,?\s+")
_NUMERIC: Final = re.compile(
    r"([0-9]{4}|[0-9]{1,2})\s?([./-])\s?([0-9]{1,2})\s?\2\s?([0-9]{4}|[0-9]{1,2})\.?(?![0-9])"
)
_COMPACT: Final = re.compile("([0-9]{4})([0-9]{2})([0-9]{2})(?![0-9])")
_EAST_ASIAN: Final = re.compile(r"([0-9]{4})\s?[年년]\s?([0-9]{1,2})\s?[月월]\s?([0-9]{1,2})\s?[日일]")
_DAY_NAME: Final = re.compile(
    rf"([0-9]{{1,2}})(?:st|nd|rd|th|er|\.|º)?[\s/-]*(?:(?:de|of)\s+)?({_WORD})\.?,?[\s/-]*(?:de\s+)?"
    r"([0-9]{4}|[0-9]{2})(?![0-9])"
)
_NAME_DAY: Final = re.compile(
    rf"({_WORD})\.?[\s/-]*([0-9]{{1,2}})(?:st|nd|rd|th)?,?[\s/-]+([0-9]{{4}}|[0-9]{{2}})(?![0-9])"
)
_YEAR_NAME: Final = re.compile(rf"([0-9]{{4}})[\s/-]+({_WORD})\.?[\s/-]+([0-9]{{1,2}})(?![0-9])")
_CLOCK: Final = re.compile(
    r"""
    (?:[T,]\s*|\s+) (?:(?:at|um|à|saat)\s+)?
    (?:(?P<before>上午|下午|午前|午後|오전|오후)\s?)?
    (?P<hour>[0-9]{1,2})
    (?:[:.h](?P<minute>[0-9]{2})(?:[:.](?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,7}))?)?)?
    (?:\s?Uhr)?
    (?:\s?(?P<after>[ap]\.?\s?m\.?|Ö[ÖS]))?
    (?:\s?(?P<zone>Z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?))?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_LONGEST: Final = 80  # characters
# two digits up to this are years from 2000 on; 69 to 99 are before 2000, as in POSIX
_LAST_TWO_DIGITS: Final = 68


class SpelledDate(NamedTuple):
    """Parts of a text that may be a date; ``order`` is set if a month's name or the year determines it.

    ``first``, ``second`` and ``third`` are as written, or year, month and day if the month is known. ``clock`` is as
    in ISO 8601, with a zone if there is one.
    """

    first: str
    second: str
    third: str
    is_known: bool
    order: DateOrder | None
    clock: str


def split_date(text: str) -> SpelledDate | None:
    """Split a text that may be a date into its parts; None if it is not a date in any order."""
    text = text.strip()
    return _split(text) if len(text) <= _LONGEST else None


@lru_cache(maxsize=4096)
def _split(text: str) -> SpelledDate | None:
    text = text.translate(_SPACES)
    weekday = _WEEKDAY.match(text)
    if weekday is not None and fold_word(weekday[1]) in _WEEKDAYS:
        text = text[weekday.end() :]
    if (match := _NUMERIC.match(text)) is not None:
        numbers, order = (match[1], match[3], match[4]), DateOrder.YEAR_FIRST if len(match[1]) == 4 else None
        is_known = False
    elif (match := _COMPACT.match(text) or _EAST_ASIAN.match(text)) is not None:
        numbers, order, is_known = (match[1], match[2], match[3]), DateOrder.YEAR_FIRST, False
    else:
        named = _split_named(text)
        if named is None:
            return None
        match, numbers, order = named
        is_known = True
    clock = _read_clock(text[match.end() :])
    return None if clock is None else SpelledDate(*numbers, is_known, order, clock)


def _split_named(text: str) -> tuple[re.Match[str], tuple[str, str, str], DateOrder] | None:
    """Parse a date with a named month into year, month and day, with their order."""
    for pattern, order, (year, month, day) in _NAMED:
        match = pattern.match(text)
        number = None if match is None else _MONTHS.get(fold_word(match[month]))
        if match is not None and number is not None:
            return match, (match[year], str(number), match[day]), order
    return None


_NAMED: Final = (
    (_DAY_NAME, DateOrder.DAY_FIRST, (3, 2, 1)),
    (_NAME_DAY, DateOrder.MONTH_FIRST, (3, 1, 2)),
    (_YEAR_NAME, DateOrder.YEAR_FIRST, (1, 2, 3)),
)


def _read_clock(text: str) -> str | None:
    """Parse the time after a date to ISO 8601; midnight if empty, None if it is malformed."""
    if not text.strip():
        return "00:00:00"
    match = _CLOCK.fullmatch(text.rstrip())
    if match is None:
        return None
    half = fold_word(match["before"] or match["after"] or "").replace(".", "").replace(" ", "")
    hour = int(match["hour"])
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (0 if half in _MORNING else 12)
    elif match["minute"] is None:
        return None
    minute, second = int(match["minute"] or 0), int(match["second"] or 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    fraction = f".{match['fraction']}" if match["fraction"] else ""
    zone = (match["zone"] or "").upper()
    return f"{hour:02}:{minute:02}:{second:02}{fraction}{'Z' if zone in ('UTC', 'GMT') else zone}"


@dataclass(frozen=True, slots=True)
class DateFormat(Format):
    """Dates in one order; the default time is midnight, the default zone that of the mapping."""

    order: DateOrder

    @property
    def spelling(self) -> str:
        return self.order.value

    @property
    def types(self) -> tuple[Edm, ...]:
        return (Edm.DATETIME,)

    @property
    def singular(self) -> str:
        return f"a date, {_WORDS[self.order]}"

    @property
    def plural(self) -> str:
        return f"dates, {_WORDS[self.order]}"

    def rewrite(self, text: str) -> str:
        split = split_date(text)
        if split is None:
            raise NotInFormat
        parts = (split.first, split.second, split.third)
        if split.is_known:
            year, month, day = parts
        elif split.order not in (None, self.order):
            raise NotInFormat
        else:
            year, month, day = (parts[place] for place in _PLACES[self.order])
        if len(day) > 2 or len(year) not in (2, 4):
            raise NotInFormat
        number = int(year)
        if len(year) == 2:
            number += 2000 if number <= _LAST_TWO_DIGITS else 1900
        try:
            return f"{date(number, int(month), int(day)).isoformat()}T{split.clock}"
        except ValueError:
            raise NotInFormat from None


_PLACES: Final = {
    DateOrder.DAY_FIRST: (2, 1, 0),
    DateOrder.MONTH_FIRST: (2, 0, 1),
    DateOrder.YEAR_FIRST: (0, 1, 2),
}
_WORDS: Final = {
    DateOrder.DAY_FIRST: "day first",
    DateOrder.MONTH_FIRST: "month first",
    DateOrder.YEAR_FIRST: "year first",
}
_NAMES: Final[Mapping[str, DateOrder]] = {
    "dmy": DateOrder.DAY_FIRST,
    "mdy": DateOrder.MONTH_FIRST,
    "ymd": DateOrder.YEAR_FIRST,
    **{it.value: it for it in DateOrder},
}


def read_date_format(text: str) -> DateFormat | None:
    """Parse the name of a date format, or a pattern such as dd.MM.yyyy or %d/%m/%Y; None if it is neither."""
    name = text.strip().lower()
    # in their order; only the first three matter
    letters = dict.fromkeys(it for it in name if it in "dmyhis")
    order = _NAMES.get(name) or (_NAMES.get("".join(letters)[:3]) if _PATTERN.fullmatch(name) else None)
    return None if order is None else DateFormat(order)


_PATTERN: Final = re.compile(r"[dmyhisaptz%\s./:,'-]+")
