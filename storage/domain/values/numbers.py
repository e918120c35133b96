"""Whole numbers in addresses and forms."""

from collections.abc import Iterable
from typing import Final

_MOST_DIGITS: Final = 18  # what fits into 64 bits


def read_number(text: str, *, digits: int = _MOST_DIGITS) -> int | None:
    """Read a whole number without a sign, of up to so many ASCII digits; None for any other text."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= digits else None


def read_numbers(texts: Iterable[str], *, digits: int = _MOST_DIGITS) -> list[int]:
    """Read those of the texts that are such numbers."""
    found = (read_number(text, digits=digits) for text in texts)
    return [number for number in found if number is not None]
