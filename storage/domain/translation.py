"""Markers for translatable texts in the domain; the console translates them when it renders them."""

from typing import NamedTuple


class Plural(NamedTuple):
    """Text with singular and plural; ``one`` replaces the singular where no number is needed."""

    singular: str
    plural: str
    one: str = ""


def mark(text: str) -> str:
    """Mark a text for translation and return it unchanged; imported as ``_`` for ``manage.py messages``."""
    return text


def mark_plural(singular: str, plural: str, one: str = "") -> Plural:
    """Mark a plural text for translation and return it as a value; imported as ``ngettext``."""
    return Plural(singular, plural, one)
