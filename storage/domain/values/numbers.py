"""Parsing of whole numbers in addresses and forms."""

from collections.abc import Iterable
from typing import Final

_MOST_DIGITS: Final = 18  # digits that fit into 64 bits


def read_number(text: str, *, digits: int = _MOST_DIGITS) -> int | None:
    """Parse an unsigned whole number of up to so many ASCII digits; None for any other text."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= digits else None


def read_numbers(texts: Iterable[str], *, digits: int = _MOST_DIGITS) -> list[int]:
    """Parse the texts that are unsigned whole numbers, skipping others."""
    found = (read_number(text, digits=digits) for text in texts)
    return [number for number in found if number is not None]


def counted(number: int, noun: str, nouns: str = "") -> str:
    """Format a number with its English noun, such as 1 entity and 1,200 entities; the default plural adds an s."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def were(number: int) -> str:
    """Return "was" or "were" for a number of things."""
    return "was" if number == 1 else "were"
