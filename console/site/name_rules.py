"""The rules that a new name must keep, shown one by one while it is typed."""

from dataclasses import dataclass

from django.utils.functional import Promise


@dataclass(frozen=True, slots=True)
class NameRule:
    text: str | Promise
    is_kept: bool | None  # None while there is no name to check
