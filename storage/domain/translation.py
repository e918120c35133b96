"""Mark texts of the domain for the catalogues of the console, which translates them when it shows them."""

from typing import NamedTuple


class Plural(NamedTuple):
    """A text about one and about several; ``one`` replaces it for exactly one, where that needs no number."""

    singular: str
    plural: str
    one: str = ""


def mark(text: str) -> str:
    """Return the English text as it is; imported as ``_``, this is where ``manage.py messages`` finds it."""
    return text


def mark_plural(singular: str, plural: str, one: str = "") -> Plural:
    """Return the English texts about a number; imported as ``ngettext``, for the same reason."""
    return Plural(singular, plural, one)
