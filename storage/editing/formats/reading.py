"""Parsing of formats by their names, as stored in mappings."""

from functools import lru_cache
from typing import Final

from storage.editing.formats.counted_times import CountedTime, read_counted_time
from storage.editing.formats.dates import DateOrder, read_date_format
from storage.editing.formats.format import Format
from storage.editing.formats.numbers import Decimals, Percent, read_number_format
from storage.editing.formats.words import read_boolean_words

NUMBER_FORMATS: Final = (*Decimals, *(f"'{Decimals.COMMA} {it}'" for it in Percent), f"'{Decimals.COMMA} €'")
DATE_FORMATS: Final = (*DateOrder, *CountedTime)


class UnknownFormat(ValueError):
    """The text does not name a format."""


@lru_cache(maxsize=1024)
def read_format(text: str) -> Format:
    """Return the format that a text names; raises UnknownFormat."""
    format_ = (
        read_number_format(text.split())
        or read_date_format(text)
        or read_counted_time(text)
        or read_boolean_words(text)
    )
    if format_ is None:
        known = ", ".join((*NUMBER_FORMATS, *DATE_FORMATS, "yes/no"))
        raise UnknownFormat(f"{text!r} is not a format such as {known}.")
    return format_
