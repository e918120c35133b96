"""Numbers with decimal comma or point, optional thousands, percent, currency, and brackets for negatives."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from storage.domain.values.edm import Edm
from storage.editing.formats.format import Format, NotInFormat


class Decimals(StrEnum):
    """Decimal separator."""

    COMMA = "decimal-comma"
    POINT = "decimal-point"


class Percent(StrEnum):
    """Interpretation of percentages such as 12 %."""

    FRACTION = "percent-as-fraction"  # 0.12
    NUMBER = "percent-as-number"  # 12


# names of currencies besides their codes; a symbol that several currencies share counts as a currency of its own
_ALIASES: Final = {
    name: code
    for code, names in {
        "AUD": "A$ AU$", "AZN": "₼", "BGN": "лв", "BRL": "R$", "CAD": "C$ CA$", "CHF": "Fr SFr", "CNY": "元 RMB",
        "CZK": "Kč", "EUR": "€ eur Eur euro Euro EURO", "GBP": "£", "GEL": "₾", "HKD": "HK$", "HUF": "Ft", "IDR": "Rp",
        "ILS": "₪", "INR": "₹ Rs", "JPY": "円", "KRW": "₩ 원", "KZT": "₸", "MXN": "MX$", "MYR": "RM", "NGN": "₦",
        "NZD": "NZ$", "PHP": "₱", "PLN": "zł", "RON": "lei Lei", "RSD": "din", "RUB": "₽ руб", "SGD": "S$", "THB": "฿",
        "TRY": "₺ TL", "TWD": "NT$", "UAH": "₴ грн", "USD": "US$", "VND": "₫", "kr": "kr Kr",
    }.items()
    for name in names.split()
}  # fmt: skip
_CODES: Final = frozenset(
    code
    for codes in (
        "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF",
        "CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD",
        "HNL HRK HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL",
        "LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR",
        "PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SYP SZL THB TJS TMT TND TOP TRY",
        "TTD TWD TZS UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWG",
    )
    for code in codes.split()
)


@lru_cache(maxsize=1024)
def find_currency(text: str) -> str | None:
    """Return the canonical name of a currency by its symbol, word or code; None if it is unknown."""
    name = unicodedata.normalize("NFKC", text).rstrip(".")
    if name in _ALIASES:
        return _ALIASES[name]
    if name in _CODES:
        return name
    return name if len(name) == 1 and unicodedata.category(name) == "Sc" else None


_SPACES: Final = " \u00a0\u2009\u202f"
_TOKEN: Final = re.compile(
    rf"(?P<space>[{_SPACES}]+)|(?P<minus>[-\u2212])|(?P<plus>\+)|(?P<open>\()|(?P<close>\))"
    r"|(?P<percent>[%\uff05\u066a])"
    r"|(?P<currency>[^\W\d_]{0,3}[$\u00a2-\u00a5\u058f\u060b\u09f2\u09f3\u0e3f\u17db\u20a0-\u20c0\uff04\uffe0-\uffe6]"
    r"|[^\W\d_]{1,4}\.?)"
)
# parts that may stand before and after a number, each once: a sign, a percent sign or a currency
_BEFORE: Final = frozenset(("minus", "plus", "open", "percent", "currency"))
_AFTER: Final = frozenset(("minus", "close", "percent", "currency"))
_DIGIT: Final = re.compile("[0-9]")
_LONGEST: Final = 400  # characters; no number of a type has more


class SpelledNumber(NamedTuple):
    """Parts of a text that may be a number; ``number`` includes separators but not the sign."""

    number: str
    is_negative: bool
    is_percent: bool
    currency: str  # its code, or a symbol without one; empty if there is none
    symbol: str  # as it is written


def split_number(text: str) -> SpelledNumber | None:
    """Split a text that may be a number into its parts; None if it cannot be one."""
    text = text.strip()
    return _split(text) if len(text) <= _LONGEST else None


@lru_cache(maxsize=4096)
def _split(text: str) -> SpelledNumber | None:
    first = _DIGIT.search(text)
    if first is None:
        return None
    start = first.start()
    end = len(text) - next(place for place, it in enumerate(reversed(text)) if it in "0123456789")
    if start and text[start - 1] in ".," and not text[start - 2 : start - 1].isalpha():
        start -= 1  # the point of .5, but not that of Rs.5
    before, after = _read_tokens(text[:start]), _read_tokens(text[end:])
    if before is None or after is None or not before.keys() <= _BEFORE or not after.keys() <= _AFTER:
        return None
    signs = len(before.keys() & {"minus", "plus", "open"}) + len(after.keys() & {"minus"})
    units = len(before.keys() & {"percent", "currency"}) + len(after.keys() & {"percent", "currency"})
    if signs > 1 or units > 1 or ("open" in before) is not ("close" in after):
        return None
    both = before | after
    symbol = both.get("currency", "")
    currency = find_currency(symbol) if symbol else ""
    if currency is None:
        return None
    is_negative = "minus" in both or "open" in both
    return SpelledNumber(text[start:end], is_negative, "percent" in both, currency, symbol)


def _read_tokens(text: str) -> dict[str, str] | None:
    """Parse the tokens beside a number, by kind; None for unknown or repeated ones."""
    tokens: dict[str, str] = {}
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None or token.lastgroup is None or token.lastgroup in tokens:
            return None
        if token.lastgroup != "space":
            tokens[token.lastgroup] = token[0]
        at = token.end()
    return tokens


def _compile(decimal: str, thousands: str) -> re.Pattern[str]:
    """Return the pattern of an unsigned number; leading zeros are excluded, as they mark identifiers."""
    grouped = rf"[1-9]\d{{0,2}}([{_SPACES}'\u2019{thousands}])\d{{3}}(?:\2\d{{3}})*"
    lakhs = r"|[1-9]\d?(?:,\d\d)+,\d{3}" if thousands == "," else ""
    return re.compile(rf"({grouped}{lakhs}|[1-9]\d*|0)?(?:\{decimal}(\d+))?([eE][+-]?\d{{1,3}})?", re.ASCII)


_PATTERNS: Final = {Decimals.COMMA: _compile(",", "."), Decimals.POINT: _compile(".", ",")}
_MARKS: Final = {Decimals.COMMA: "comma", Decimals.POINT: "point"}
_NOT_DIGITS: Final = re.compile("[^0-9]+")
_EXACT: Final = Context(prec=2 * _LONGEST)


@dataclass(frozen=True, slots=True)
class NumberFormat(Format):
    """Format of numbers; ``percent`` makes it percentages, and ``currency`` amounts with an optional symbol."""

    decimals: Decimals
    percent: Percent | None = None
    currency: str = ""

    @property
    def spelling(self) -> str:
        return " ".join(filter(None, (self.decimals, self.percent, self.currency)))

    @property
    def types(self) -> tuple[Edm, ...]:
        return Edm.DOUBLE, Edm.INT32, Edm.INT64

    @property
    def singular(self) -> str:
        match self.percent, self.currency:
            case (None, ""):
                return f"a number with a decimal {_MARKS[self.decimals]}"
            case (None, currency):
                return f"an amount in {currency} with a decimal {_MARKS[self.decimals]}"
        return f"a percentage with a decimal {_MARKS[self.decimals]}"

    @property
    def plural(self) -> str:
        match self.percent, self.currency:
            case (None, ""):
                return f"numbers with a decimal {_MARKS[self.decimals]}"
            case (None, currency):
                return f"amounts in {currency} with a decimal {_MARKS[self.decimals]}"
        kind = "fractions" if self.percent is Percent.FRACTION else "numbers"
        return f"percentages with a decimal {_MARKS[self.decimals]}, as {kind}"

    def includes(self, other: Format) -> bool:
        """Return whether this format covers another one; without a currency, any currency is covered."""
        return (
            isinstance(other, NumberFormat)
            and (self.decimals, self.percent) == (other.decimals, other.percent)
            and (not self.currency or find_currency(self.currency) == find_currency(other.currency))
        )

    def rewrite(self, text: str) -> str:
        parts = split_number(text)
        if parts is None or parts.is_percent is not (self.percent is not None):
            raise NotInFormat
        if parts.currency and (not self.currency or parts.currency != find_currency(self.currency)):
            raise NotInFormat
        number = _PATTERNS[self.decimals].fullmatch(parts.number)
        if number is None or not (number[1] or number[3]):
            raise NotInFormat
        whole, fraction, exponent = number[1] or "0", number[3], number[4] or ""
        plain = _NOT_DIGITS.sub("", whole) + (f".{fraction}" if fraction else "") + exponent
        if self.percent is Percent.FRACTION:
            plain = f"{Decimal(plain).scaleb(-2, _EXACT):f}"
        return f"-{plain}" if parts.is_negative else plain


def read_number_format(words: list[str]) -> NumberFormat | None:
    """Parse the words that name a number format; None if they are unknown."""
    decimals = _DECIMALS.get(words[0].lower()) if words else None
    if decimals is None:
        return None
    match words[1:]:
        case []:
            return NumberFormat(decimals)
        case [word] if word.lower() in list(Percent):
            return NumberFormat(decimals, Percent(word.lower()))
        case [word] if find_currency(word) is not None:
            return NumberFormat(decimals, currency=word)
    return None


_DECIMALS: Final[Mapping[str, Decimals]] = {
    "comma": Decimals.COMMA,
    "point": Decimals.POINT,
    "dot": Decimals.POINT,
    "decimal-dot": Decimals.POINT,
    **{it.value: it for it in Decimals},
}
