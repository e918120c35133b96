"""Effects on entities, as buttons count them, such as "insert 5, change 1"."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy


class Effect(StrEnum):
    """Effect on an entity."""

    INSERT = "insert"
    CHANGE = "change"
    DELETE = "delete"


# within a sentence, separated by commas; a script fills in numbers too
TEXTS: Final[Mapping[Effect, str | Promise]] = {
    Effect.INSERT: gettext_lazy("insert {}"),
    Effect.CHANGE: gettext_lazy("change {}"),
    Effect.DELETE: gettext_lazy("delete {}"),
}


def list_effects(numbers: Mapping[Effect, int]) -> str:
    """Return a list of the effects on any entities, with their numbers."""
    return ", ".join(
        str(text).format(number_format(numbers[effect], force_grouping=True))
        for effect, text in TEXTS.items()
        if numbers.get(effect)
    )
