"""Format detection for columns beyond their guessed types: numbers, dates and Booleans as people write them.

No format is applied automatically, as texts may be ambiguous and identifiers look like numbers.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from itertools import islice
from typing import Final, TypeVar

from storage.domain.values.edm import INT32, INT64, Edm
from storage.editing import guessing, typed_text
from storage.editing.formats.counted_times import CountedTime, CountedTimeFormat
from storage.editing.formats.dates import DateFormat, DateOrder, split_date
from storage.editing.formats.format import Format, NotInFormat
from storage.editing.formats.numbers import Decimals, NumberFormat, Percent, split_number
from storage.editing.formats.reading import read_format
from storage.editing.formats.words import PAIRS, BooleanWords, fold_word
from storage.editing.guessing import Guess, GuessReason
from storage.editing.input_context import InputContext
from storage.editing.typed_text import InvalidText

_EXAMPLES: Final = 3
_FEW: Final = 40  # different values that show whether a format is worth trying on all
_MOST_WORDS: Final = 100  # different texts of a column that may be yes and no


class Certainty(StrEnum):
    """Certainty of a proposal for a column."""

    CERTAIN = "certain"  # all values fit, and nothing else
    POSSIBLE = "possible"  # all values fit, and something else too
    PARTIAL = "partial"  # most values fit
    ALTERNATIVE = "alternative"  # all values fit, which are more probably what they were guessed to be


@dataclass(frozen=True, slots=True)
class FormatProposal:
    """Type and format proposed for a column; ``fitting`` of its ``values`` fit."""

    type: Edm
    format: str
    certainty: Certainty
    values: int
    fitting: int
    samples: tuple[tuple[str, str], ...]
    misfits: tuple[str, ...] = ()

    @property
    def has_more_misfits(self) -> bool:
        """Return whether there may be more misfits than listed."""
        return len(self.misfits) == _EXAMPLES < self.values - self.fitting

    @property
    def plural(self) -> str:
        """Return the plural description of the fitting texts, in English."""
        return read_format(self.format).plural if self.format else _PLAIN[self.type]

    @property
    def shown_samples(self) -> list[tuple[str, str]]:
        """Return the samples for display; times without a zone are in UTC or the mapping's zone."""
        return [(text, _show(to, self.type)) for text, to in self.samples]

    @property
    def sentence(self) -> str:
        """Return the proposal as an English sentence."""
        samples = ", ".join(text if to == text else f"{text} → {to}" for text, to in self.shown_samples)
        match self.certainty:
            case Certainty.PARTIAL:
                left = self.values - self.fitting
                misfits = ", ".join(map(repr, self.misfits)) + (" …" if self.has_more_misfits else "")
                return (
                    f"{self.fitting:,} of {self.values:,} values are {self.plural}: {samples};"
                    f" {left:,} {'is' if left == 1 else 'are'} not: {misfits}."
                )
            case Certainty.CERTAIN:
                return f"All values are {self.plural}: {samples}."
        return f"The values may be {self.plural}: {samples}."


_PLAIN: Final[Mapping[Edm, str]] = {
    Edm.INT32: "whole numbers",
    Edm.INT64: "whole numbers",
    Edm.DOUBLE: "numbers with a decimal point",
    Edm.BOOLEAN: "true or false",
    Edm.DATETIME: "times with a time zone",
    Edm.GUID: "GUIDs",
}


def _show(text: str, type_: Edm) -> str:
    return text.removesuffix("T00:00:00").replace("T", " ") if type_ is Edm.DATETIME else text


@dataclass(frozen=True, slots=True)
class ColumnFormats:
    """Proposed formats of a column."""

    proposals: tuple[FormatProposal, ...] = ()
    is_ambiguous: bool = False  # two types are as probable, so that the column is rather a String


NO_FORMATS: Final = ColumnFormats()


@dataclass(frozen=True, slots=True)
class TextColumn:
    """Values of a column as texts, with their guessed type."""

    name: str
    values: Sequence[str]
    guess: Guess
    is_untyped: bool = False  # the values are texts of JSON, and stay texts unless a user chooses the type


def propose_formats(
    columns: Iterable[TextColumn], delimiter: str, context: InputContext
) -> dict[str, ColumnFormats]:
    """Return the proposed formats of each column; unambiguous columns resolve ambiguous ones."""
    readings = {column.name: _read_column(column, context) for column in columns}
    habits = _Habits.of_file(list(readings.values()), delimiter)
    return {name: _decide(it, habits, delimiter) for name, it in readings.items()}


@dataclass(frozen=True, slots=True)
class _Reading:
    """Possible reading of a column: a type with an optional format; ``rewritten`` maps the texts that fit."""

    type: Edm
    format: Format | None
    fitting: int
    rewritten: Mapping[str, str]
    is_doubtful: bool = False  # identifiers look like it

    @property
    def spelling(self) -> str:
        return "" if self.format is None else self.format.spelling


@dataclass(frozen=True, slots=True)
class _Readings:
    """Possible readings of a column."""

    texts: Counter[str]
    usual: Sequence[_Reading] = ()  # explain the texts of a String column
    others: Sequence[_Reading] = ()  # explain a column that has another type already
    is_decimal: bool = False  # the column's type is Double

    @property
    def number(self) -> int:
        return self.texts.total()

    @property
    def full(self) -> list[_Reading]:
        """Return the readings that fit all values."""
        return [it for it in self.usual if it.fitting == self.number]

    @property
    def decimals(self) -> set[Decimals]:
        found = {it.format.decimals for it in self._found if isinstance(it.format, NumberFormat)}
        return found | {Decimals.POINT} if self.is_decimal else found

    @property
    def orders(self) -> set[DateOrder]:
        return {it.format.order for it in self._found if isinstance(it.format, DateFormat)}

    @property
    def has_dollars(self) -> bool:
        return any(isinstance(it.format, NumberFormat) and it.format.currency == "$" for it in self._found)

    @property
    def _found(self) -> list[_Reading]:
        return [*self.full, *self.others]


def _read_column(column: TextColumn, context: InputContext) -> _Readings:
    texts = Counter(column.values)
    if not texts:
        return _Readings(texts)
    if column.guess.reason is GuessReason.FITS and column.is_untyped:
        return _Readings(texts, others=[_plain(column.guess.type, texts)])
    if column.guess.reason is GuessReason.FITS:
        if column.guess.type not in (Edm.INT32, Edm.INT64, Edm.DOUBLE):
            return _Readings(texts)
        others = list(_read_otherwise(column, texts, context))
        return _Readings(texts, others=others, is_decimal=column.guess.type is Edm.DOUBLE)
    usual = [*_read_numbers(texts, context), *_read_dates(texts), *_read_words(texts)]
    return _Readings(texts, [*usual, *_read_plain(texts, usual, context)])


def _try(
    texts: Counter[str], type_: Edm, format_: Format | None, rewrite: Callable[[str], str | None]
) -> _Reading | None:
    """Return a reading if it fits most texts, giving up early if it fits few of the first ones."""
    rewritten: dict[str, str] = {}
    for number, text in enumerate(texts, 1):
        to = rewrite(text)
        if to is not None:
            rewritten[text] = to
        if number == _FEW and len(rewritten) < _FEW // 4:
            return None
    fitting = sum(texts[text] for text in rewritten)
    if not rewritten or 2 * fitting <= texts.total():
        return None
    return _Reading(type_, format_, fitting, rewritten)


def _plain(type_: Edm, texts: Counter[str]) -> _Reading:
    """Return the reading of texts without a format."""
    return _Reading(type_, None, texts.total(), {text: text for text in texts})


def _in(format_: Format) -> Callable[[str], str | None]:
    def rewrite(text: str) -> str | None:
        try:
            return format_.rewrite(text)
        except NotInFormat:
            return None

    return rewrite


def _as(type_: Edm, context: InputContext) -> Callable[[str], str | None]:
    return lambda text: text if guessing.looks_like(type_, text, context) else None


# numbers

_ADDRESS: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")  # an address of the Internet
_DIGITS_AND_SPACES: Final = re.compile(
    "[0-9 \u00a0\u2009\u202f+]+"
)  # with a plus, they are telephone numbers


def _read_numbers(texts: Counter[str], context: InputContext) -> Iterator[_Reading]:
    if any(guessing.is_identifier(text, context) for text in texts):
        return
    for format_ in _number_formats(texts):
        reading = _try(texts, Edm.DOUBLE, format_, _in(format_))
        if reading is None or all(text == to for text, to in reading.rewritten.items()):
            continue
        type_ = _number_type(format_, reading.rewritten.values(), context)
        if type_ is None or all(map(_ADDRESS.fullmatch, reading.rewritten)):
            continue
        is_doubtful = all(map(_DIGITS_AND_SPACES.fullmatch, reading.rewritten))
        if not is_doubtful or not any("+" in text for text in reading.rewritten):
            yield replace(reading, type=type_, is_doubtful=is_doubtful)


def _number_formats(texts: Counter[str]) -> Iterator[NumberFormat]:
    """Yield number formats that most texts may have, by their signs."""
    percents, numbers = 0, 0
    currencies: Counter[str] = Counter()
    symbols: dict[str, str] = {}
    for place, (text, number) in enumerate(texts.items(), 1):
        parts = split_number(text)
        if place == _FEW and not numbers:
            return
        if parts is None:
            continue
        numbers += number
        percents += number if parts.is_percent else 0
        if parts.currency:
            currencies[parts.currency] += number
            symbols.setdefault(parts.currency, parts.symbol.strip())
    [(currency, of_currency)] = currencies.most_common(1) or [("", 0)]
    for decimals in Decimals:
        if 2 * percents > numbers:
            yield from (NumberFormat(decimals, percent) for percent in Percent)
        else:
            yield NumberFormat(decimals, currency=symbols[currency] if 2 * of_currency > numbers else "")


def _number_type(format_: NumberFormat, numbers: Iterable[str], context: InputContext) -> Edm | None:
    """Return the type that holds numbers exactly, None if there is none; amounts count as fractional."""
    numbers = list(numbers)
    is_whole = format_.percent is None and not format_.currency
    if is_whole and all(guessing.is_whole(number) for number in numbers):
        values = [int(number) for number in numbers]
        if all(value in INT32 for value in values):
            return Edm.INT32
        return Edm.INT64 if all(value in INT64 for value in values) else None
    try:
        values_ = [(typed_text.read(Edm.DOUBLE, number, context), number) for number in numbers]
    except InvalidText:
        return None
    return None if any(typed_text.stored_text(value, number) for value, number in values_) else Edm.DOUBLE


# dates, yes and no


def _read_dates(texts: Counter[str]) -> Iterator[_Reading]:
    readings = []
    for order in DateOrder:
        format_ = DateFormat(order)
        reading = _try(texts, Edm.DATETIME, format_, _in(format_))
        if reading is not None:
            readings.append(reading)
    if len(readings) > 1:
        split = [split_date(text) for text in readings[0].rewritten]
        orders = Counter(it.order for it in split if it is not None)
        if all(it is not None and it.is_known for it in split):
            # with names of months, the order does not matter
            [(usual, _)] = orders.most_common(1)
            readings = [it for it in readings if it.spelling == usual]
    yield from readings


def _read_words(texts: Counter[str]) -> Iterator[_Reading]:
    if len(texts) > _MOST_WORDS:
        return
    words = {text: fold_word(text) for text in texts if len(text) < _FEW}
    seen = set(words.values())
    pairs = {pair: {fold_word(pair[0]), fold_word(pair[1])} & seen for pair in PAIRS}
    both = [pair for pair, known in pairs.items() if len(known) == 2]
    # a single word is yes or no only if it cannot be that of several languages
    one = [pair for pair, known in pairs.items() if len(known) == 1]
    spelled = {word: text.strip() for text, word in reversed(words.items())}
    for pair in both or (one if len(one) == 1 else []):
        format_ = BooleanWords(*(spelled.get(fold_word(word), word) for word in pair))
        reading = _try(texts, Edm.BOOLEAN, format_, _in(format_))
        if reading is not None:
            yield replace(reading, is_doubtful=not both)


def _read_plain(texts: Counter[str], others: Sequence[_Reading], context: InputContext) -> Iterator[_Reading]:
    """Yield the type that most texts have without a format, unless a format explains all of them."""
    is_explained = any(it.fitting == texts.total() for it in others)
    if is_explained or any(guessing.is_identifier(text, context) for text in texts):
        return
    for type_ in guessing.GUESSES:
        reading = _try(texts, type_, None, _as(type_, context))
        if reading is not None:
            yield reading
            return


# columns that have a type already

_DATE_NAME: Final = re.compile(
    r"date|datum|tarih|fecha|^data$|^data_|_data$|jour|giorno|дата|日期|日付|날짜|time|zeit|zaman|heure|hora|birth|geburt|doğum"
    r"|expir|created|modified|updated|changed|since|until|(?:_|[a-z](?=[AO]))(?:at|on|At|On)$|^at$|^on$|^ts$|_ts$"
    r"|excel|serial|unix|epoch|millis",
    re.IGNORECASE,
)
# times as numbers, and between which years they are, if the name of a column says that they are times
_TIMES_AS_NUMBERS: Final[Sequence[tuple[Format, tuple[str, str]]]] = (
    (CountedTimeFormat(CountedTime.EXCEL_DAYS), ("1950", "2100")),
    (CountedTimeFormat(CountedTime.EPOCH_SECONDS), ("1990", "2100")),
    (CountedTimeFormat(CountedTime.EPOCH_MILLISECONDS), ("1990", "2100")),
    (DateFormat(DateOrder.YEAR_FIRST), ("1900", "2100")),  # 20261128
)
# if only the values suggest it
_AROUND_NOW: Final = timedelta(days=15 * 365), timedelta(days=5 * 365)


def _read_otherwise(column: TextColumn, texts: Counter[str], context: InputContext) -> Iterator[_Reading]:
    """Yield alternative readings of numbers, such as times, if their values or the column name suggest it."""
    if set(texts) == {"0", "1"}:
        yield _Reading(Edm.BOOLEAN, BooleanWords("1", "0"), texts.total(), {"1": "true", "0": "false"})
        return
    if column.guess.type is Edm.DOUBLE:
        yield from (it for it in _read_numbers(texts, context) if it.fitting == texts.total())
    is_named = _DATE_NAME.search(column.name) is not None
    if not is_named and len(texts) < 2:
        return
    before, after = _AROUND_NOW
    around_now = (context.now - before).isoformat(), (context.now + after).isoformat()
    for format_, plausible in _TIMES_AS_NUMBERS:
        first, last = plausible if is_named else around_now
        reading = _try(texts, Edm.DATETIME, format_, _in(format_))
        if reading is None or reading.fitting < texts.total():
            continue
        if all(first <= time <= last for time in reading.rewritten.values()):
            yield reading


# decisions


@dataclass(frozen=True, slots=True)
class _Habits:
    """Conventions of a file's author, learned from its unambiguous columns.

    ``decimals`` is None if these show nothing; then ``prefers`` holds the more probable convention.
    """

    decimals: Decimals | None
    prefers: Decimals
    order: DateOrder

    @classmethod
    def of_file(cls, columns: Sequence[_Readings], delimiter: str) -> "_Habits":
        decimals = _vote(readings.decimals for readings in columns)
        # where the comma is a decimal sign, spreadsheets divide columns by other characters
        prefers = decimals or (Decimals.COMMA if delimiter == ";" else Decimals.POINT)
        order = _vote(readings.orders for readings in columns)
        if order is None:
            is_of_usa = any(readings.has_dollars for readings in columns)
            order = DateOrder.MONTH_FIRST if is_of_usa else DateOrder.DAY_FIRST
        return cls(decimals, prefers, order)


_Choice = TypeVar("_Choice", Decimals, DateOrder)


def _vote(columns: Iterable[Set[_Choice]]) -> _Choice | None:
    """Return the choice of most unambiguous columns; None without a majority."""
    votes = Counter(next(iter(choices)) for choices in columns if len(choices) == 1)
    match votes.most_common(2):
        case [(choice, _)]:
            return choice
        case [(choice, number), (_, other)] if number > other:
            return choice
    return None


def _decide(readings: _Readings, habits: _Habits, delimiter: str) -> ColumnFormats:
    def propose(several: Sequence[_Reading], certainty: Certainty) -> list[FormatProposal]:
        ordered = sorted(_without_twins(several, habits), key=lambda it: not _is_usual(it, habits))
        return [_propose(it, readings.texts, certainty) for it in ordered]

    if readings.others:
        numbers = [it for it in readings.others if isinstance(it.format, NumberFormat)]
        others = propose([it for it in readings.others if it not in numbers], Certainty.ALTERNATIVE)
        decides = habits.decimals or (Decimals.COMMA if delimiter in _NOT_OF_COMMAS else Decimals.POINT)
        if not numbers or decides is Decimals.POINT:
            return ColumnFormats((*propose(numbers, Certainty.ALTERNATIVE), *others))
        numbers.append(_plain(Edm.DOUBLE, readings.texts))
        return ColumnFormats((*propose(numbers, Certainty.POSSIBLE), *others), is_ambiguous=True)
    full = readings.full
    if full:
        is_certain = len(full) == 1 and not full[0].is_doubtful
        return ColumnFormats(tuple(propose(full, Certainty.CERTAIN if is_certain else Certainty.POSSIBLE)))
    best = max((it.fitting for it in readings.usual), default=0)
    if best < _FEWEST:
        return NO_FORMATS
    partial = [it for it in readings.usual if it.fitting == best and not it.is_doubtful]
    return ColumnFormats(tuple(propose(partial, Certainty.PARTIAL)))


def _without_twins(readings: Sequence[_Reading], habits: _Habits) -> list[_Reading]:
    """Drop readings with the other decimal sign if the values do not differ."""

    def is_twin(one: _Reading, other: _Reading) -> bool:
        match one.format, other.format:
            case NumberFormat(decimals, percent), NumberFormat(other_decimals, other_percent):
                is_other = habits.decimals is other_decimals is not decimals and percent is other_percent
                return is_other and one.rewritten == other.rewritten
        return False

    return [it for it in readings if not any(is_twin(it, other) for other in readings)]


_NOT_OF_COMMAS: Final = ";\t"  # delimiters of files in which a comma may be a decimal sign
_FEWEST: Final = 2  # values that fit where others do not


def _is_usual(reading: _Reading, habits: _Habits) -> bool:
    match reading.format:
        case NumberFormat(decimals):
            return decimals is habits.prefers
        case DateFormat(order):
            return order is habits.order
    return reading.type is not Edm.DOUBLE or habits.prefers is Decimals.POINT


def _propose(reading: _Reading, texts: Counter[str], certainty: Certainty) -> FormatProposal:
    changed = [text for text, to in reading.rewritten.items() if text != to] or list(reading.rewritten)
    telling = dict.fromkeys((changed[0], max(changed, key=len), min(changed, key=len), *changed[:_EXAMPLES]))
    samples = [(text[:_LONGEST], reading.rewritten[text][:_LONGEST]) for text in telling][:_EXAMPLES]
    misfits = (text[:_LONGEST] for text, _ in texts.most_common() if text not in reading.rewritten)
    return FormatProposal(
        reading.type,
        reading.spelling,
        certainty,
        texts.total(),
        reading.fitting,
        tuple(samples),
        tuple(islice(misfits, _EXAMPLES)),
    )


_LONGEST: Final = 80  # characters of an example
