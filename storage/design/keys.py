"""Patterns of keys: numbers that are not padded, dates, inverted ticks, and others that matter for their order."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple

from storage.domain.entities.entity import EntityKey


class KeyName(StrEnum):
    """Property of a key."""

    PARTITION = "PartitionKey"
    ROW = "RowKey"


class KeyPattern(StrEnum):
    """Pattern of the values of a key."""

    UNPADDED = "unpadded-numbers"
    DATE = "unsorted-dates"
    INVERTED_TICKS = "inverted-ticks"
    TICKS = "ticks"
    MIXED_CASE = "mixed-case"
    GUID = "guids"
    LONG = "long-keys"
    DIFFICULT = "difficult-characters"


@dataclass(frozen=True, slots=True)
class KeyFinding:
    """Pattern in some of the examined keys, with examples; ``width`` and ``format`` are those that mend it."""

    key: KeyName
    pattern: KeyPattern
    entities: int
    examples: tuple[str, ...]
    moments: tuple[datetime, ...] = ()  # times that the examples mean, if they are ticks
    width: int = 0  # digits of the longest number
    prefix: str = ""  # before the number, where all keys have the same
    format: str = ""  # of dates, as in expressions of bulk edits


_EXAMPLES: Final = 3
_LONG: Final = 900  # UTF-16 code units, of the 1,024 that a key may have
_FEWEST: Final = 2  # keys of a pattern
_SHARE: Final = 0.5  # share of the keys from which they count as dates, ticks or GUIDs
_UNPADDED_SHARE: Final = 0.2  # share of the keys in a wrong order; a few are so by chance

_NUMBER: Final = re.compile(r"(?P<prefix>(?:.*[^0-9])?)(?P<digits>[0-9]+)", re.DOTALL)
_GUID: Final = re.compile(
    r"\{?[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\}?", re.IGNORECASE
)
# dates whose order as texts is not that of time, by their pattern in expressions of bulk edits
_DATES: Final = (
    ("dd.MM.yyyy", re.compile(r"(?P<d>[0-9]{2})\.(?P<M>[0-9]{2})\.(?P<y>[0-9]{4})")),
    ("d.M.yyyy", re.compile(r"(?P<d>[0-9]{1,2})\.(?P<M>[0-9]{1,2})\.(?P<y>[0-9]{4})")),
    ("dd-MM-yyyy", re.compile(r"(?P<d>[0-9]{2})-(?P<M>[0-9]{2})-(?P<y>[0-9]{4})")),
    ("MM-dd-yyyy", re.compile(r"(?P<M>[0-9]{2})-(?P<d>[0-9]{2})-(?P<y>[0-9]{4})")),
    ("d-M-yyyy", re.compile(r"(?P<d>[0-9]{1,2})-(?P<M>[0-9]{1,2})-(?P<y>[0-9]{4})")),
    ("M-d-yyyy", re.compile(r"(?P<M>[0-9]{1,2})-(?P<d>[0-9]{1,2})-(?P<y>[0-9]{4})")),
    ("yyyy-M-d", re.compile(r"(?P<y>[0-9]{4})-(?P<M>[0-9]{1,2})-(?P<d>[0-9]{1,2})")),
)
_LENGTHS_OF_DATES: Final = range(8, 11)
_SORTED_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# characters that clients have to encode in addresses or double in filters; the service refuses others itself
_DIFFICULT: Final = re.compile(r"[%'+&\s]|[^\x20-\x7e]")
# ticks, perhaps with more after a separator so that keys of the same time differ
_TICKS: Final = re.compile(r"([0-9]{18,19})(?:[^0-9A-Za-z].*)?", re.DOTALL)
_TICKS_DIGITS: Final = 19
_MOST_TICKS: Final = 3_155_378_975_999_999_999  # ticks of DateTime.MaxValue in .NET
_EPOCH: Final = datetime(1, 1, 1, tzinfo=UTC)
_FIRST_YEAR, _LAST_YEAR = 1990, 2100


def find_patterns(keys: Sequence[EntityKey], neighbours: Sequence[EntityKey] = ()) -> list[KeyFinding]:
    """Return the patterns of the PartitionKeys and of the RowKeys.

    ``neighbours`` are more keys of some of the partitions, to see how they are sorted; they are not counted.
    """
    partitions = Counter(key.partition_key for key in keys)
    in_partitions = _find(KeyName.PARTITION, partitions, [list(partitions)])
    rows: defaultdict[str, list[str]] = defaultdict(list)
    for key in dict.fromkeys([*keys, *neighbours]):
        rows[key.partition_key].append(key.row_key)
    return [*in_partitions, *_find(KeyName.ROW, Counter(key.row_key for key in keys), list(rows.values()))]


def _find(name: KeyName, counted: Counter[str], groups: Sequence[Sequence[str]]) -> Iterator[KeyFinding]:
    """Yield the patterns of a key; ``groups`` are values that are sorted among each other."""
    total = counted.total()

    def finding(pattern: KeyPattern, values: Sequence[str], **facts: object) -> KeyFinding:
        entities = sum(counted[value] for value in values)
        return KeyFinding(name, pattern, entities, tuple(values[:_EXAMPLES]), **facts)  # type: ignore[arg-type]

    inverted = [value for value in counted if read_inverted_ticks(value) is not None]
    ticks = [value for value in counted if read_ticks(value) is not None]
    guids = [value for value in counted if _GUID.fullmatch(value)]
    for pattern, values, read in (
        (KeyPattern.INVERTED_TICKS, inverted, read_inverted_ticks),
        (KeyPattern.TICKS, ticks, read_ticks),
    ):
        if _are_most(values, counted, total):
            moments = [moment for value in values[:_EXAMPLES] if (moment := read(value)) is not None]
            yield finding(pattern, values, moments=tuple(moments))
    if _are_most(guids, counted, total):
        yield finding(KeyPattern.GUID, guids)
    possible = [value for value in counted if len(value) in _LENGTHS_OF_DATES]
    for form, expression in _DATES:
        dates = [value for value in possible if _is_date(expression, value)]
        if _are_most(dates, counted, total) and not all(map(_SORTED_DATE.fullmatch, dates)):
            yield finding(KeyPattern.DATE, sorted(dates), format=form)
            break
    else:
        others = {value for values in groups for value in values}.difference(inverted, ticks, guids)
        unpadded = _find_unpadded(groups, others)
        if unpadded is not None and unpadded.wrong >= _UNPADDED_SHARE * len(others | counted.keys()):
            yield finding(KeyPattern.UNPADDED, unpadded.values, width=unpadded.width, prefix=unpadded.prefix)
    cased = _find_mixed_case(groups)
    if cased:
        yield finding(KeyPattern.MIXED_CASE, cased)
    long = [value for value in counted if len(value.encode("utf-16-le")) // 2 >= _LONG]
    if long:
        yield finding(KeyPattern.LONG, long)
    difficult = [value for value in counted if _DIFFICULT.search(value)]
    if difficult:
        yield finding(KeyPattern.DIFFICULT, sorted(difficult))


def _are_most(values: Sequence[str], counted: Counter[str], total: int) -> bool:
    return len(values) >= _FEWEST and sum(counted[value] for value in values) >= _SHARE * total


def _is_date(expression: re.Pattern[str], text: str) -> bool:
    match = expression.fullmatch(text)
    if match is None:
        return False
    try:
        datetime(int(match["y"]), int(match["M"]), int(match["d"]), tzinfo=UTC)
    except ValueError:
        return False
    return _FIRST_YEAR <= int(match["y"]) <= _LAST_YEAR


def read_inverted_ticks(text: str) -> datetime | None:
    """Return the time of a key such as 2516789012345678901: DateTime.MaxValue minus the time, in ticks of 100 ns."""
    match = _TICKS.fullmatch(text)
    is_long = match is not None and len(match[1]) == _TICKS_DIGITS
    return _read_time(_MOST_TICKS - int(match[1])) if match and is_long else None


def read_ticks(text: str) -> datetime | None:
    """Return the time of a key of .NET's ticks, of 100 ns since the year 1, padded or not."""
    match = _TICKS.fullmatch(text)
    return _read_time(int(match[1])) if match else None


def _read_time(ticks: int) -> datetime | None:
    if not 0 <= ticks <= _MOST_TICKS:
        return None
    moment = _EPOCH + timedelta(microseconds=ticks // 10)
    return moment if _FIRST_YEAR <= moment.year <= _LAST_YEAR else None


class _Unpadded(NamedTuple):
    """Keys that end in numbers; ``wrong`` of them are in partitions where their order as texts is wrong.

    The first two are such a pair: the smaller number, then the larger one, which comes before it.
    """

    values: list[str]
    wrong: int
    width: int  # digits of the longest number
    prefix: str  # before the number, where all have the same


def _find_unpadded(groups: Iterable[Sequence[str]], candidates: Iterable[str]) -> _Unpadded | None:
    """Return the keys with the prefixes of numbers whose order is wrong."""
    numbers = {value: match for value in candidates if (match := _NUMBER.fullmatch(value)) is not None}
    wrong: set[str] = set()
    pair: tuple[str, str] | None = None
    prefixes: set[str] = set()
    for values in groups:
        by_prefix: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for value in numbers.keys() & values:
            by_prefix[numbers[value]["prefix"]].append((numbers[value]["digits"], value))
        for prefix, own in by_prefix.items():
            ordered = sorted(own)
            if len(own) < _FEWEST or [it for it, _ in ordered] == _by_value(it for it, _ in own):
                continue
            prefixes.add(prefix)
            pair = pair or _wrong_pair(ordered)
            wrong.update(value for _, value in own)
    if pair is None:
        return None
    # the examined keys of a partition may be in order by chance
    alike = [value for value, match in numbers.items() if match["prefix"] in prefixes]
    width = max(len(numbers[value]["digits"]) for value in alike)
    others = sorted(set(alike).difference(pair), key=lambda it: (len(it), it))
    return _Unpadded([*pair, *others], len(wrong), width, prefixes.pop() if len(prefixes) == 1 else "")


def _wrong_pair(ordered: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Return two values that are neighbours in the order of texts but not of numbers, the smaller number first."""
    for (digits, value), (following, other) in pairwise(ordered):
        if int(digits) > int(following):
            return other, value
    raise AssertionError


def _by_value(digits: Iterable[str]) -> list[str]:
    return sorted(digits, key=lambda it: (int(it), it))


def _find_mixed_case(groups: Iterable[Sequence[str]]) -> list[str]:
    """Return keys that differ from others only in the case of letters."""
    alike: list[str] = []
    for values in groups:
        folded: defaultdict[str, set[str]] = defaultdict(set)
        for value in values:
            folded[value.casefold()].add(value)
        # short random keys differ only in case by chance, and are seldom in one case throughout
        several = (same for same in folded.values() if len(same) > 1 and any(map(_is_in_one_case, same)))
        alike += sorted(value for same in several for value in same)
    return alike


def _is_in_one_case(value: str) -> bool:
    return value in (value.lower(), value.upper())
