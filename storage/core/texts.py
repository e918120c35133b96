"""Mark texts of declarations for translation: the console translates them when it shows them."""

from typing import NamedTuple


class Plural(NamedTuple):
    """A text about one and about several; ``one`` replaces it for exactly one, where that needs no number."""

    singular: str
    plural: str
    one: str = ""


def mark(text: str) -> str:
    """Mark a text; import it as ``_``, the name by which the texts to translate are found."""
    return text


def mark_plural(singular: str, plural: str, one: str = "") -> Plural:
    """Mark a text about a number; import it as ``ngettext``, the name by which it is found."""
    return Plural(singular, plural, one)
