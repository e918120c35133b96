"""Filters by the type of a property."""

from collections.abc import Collection, Mapping
from typing import Final

from storage.domain.values.edm import Edm

_ANY_NUMBER: Final = "({name} ge 0 or {name} lt 0)"
# conditions that every value of a type meets and, except for numbers, no value of another type
_ANY: Final[Mapping[Edm, str]] = {
    Edm.STRING: "{name} ge ''",
    Edm.BOOLEAN: "({name} eq true or {name} eq false)",
    Edm.INT32: _ANY_NUMBER,
    Edm.INT64: "{name} ge -9223372036854775808L",
    Edm.DOUBLE: _ANY_NUMBER,
    Edm.DATETIME: "{name} ge datetime'1601-01-01T00:00:00Z'",
    Edm.GUID: "{name} ge guid'00000000-0000-0000-0000-000000000000'",
    Edm.BINARY: "{name} ge X''",
}
_PLAIN_NUMBERS: Final = frozenset({Edm.INT32, Edm.DOUBLE})


def other_types_filter(name: str, main: Edm, others: Collection[Edm]) -> str:
    """Return a filter for entities in which a property has another type than ``main``.

    The result is empty if no filter can express it, as Int32 and Double cannot be told apart.
    """
    if not name.isidentifier():
        return ""
    if main in _PLAIN_NUMBERS:
        if Edm.INT64 in others and len(others) == 1:
            return _ANY[Edm.INT64].format(name=name)
        if not set(others) - _PLAIN_NUMBERS - {Edm.INT64}:
            return ""
    return f"isset({name}) and not ({_ANY[main].format(name=name)})".replace("((", "(").replace("))", ")")
