"""Stored enumeration members, which a newer version that runs at the same time may have written."""

from enum import StrEnum
from typing import TypeVar

E = TypeVar("E", bound=StrEnum)


def read_member(kind: type[E], value: str) -> E:
    """Return the member of a stored value, or a stand-in for a value of a newer version.

    A stand-in equals no member and has its value as text. It gets the defaults of its enumeration, so it
    never has more rights than a member. Look-ups by member need a default for it, and a ``match`` needs a
    wildcard case.
    """
    try:
        return kind(value)
    except ValueError:
        return make_stand_in(kind, value, value)


def make_stand_in(kind: type[E], value: str, declared: object) -> E:
    """Return a stand-in for a value; ``declared`` holds the arguments of a member of this enumeration."""
    stand_in: E = kind._new_member_(kind, declared)  # type: ignore[attr-defined]
    stand_in._name_ = stand_in._value_ = value
    return stand_in


def is_known(member: StrEnum) -> bool:
    """Return whether a member is declared, not a stand-in."""
    return member.name in type(member).__members__
