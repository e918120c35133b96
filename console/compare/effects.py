"""Effects of applying a comparison to the right side, for buttons and rows."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from console.site.effects import TEXTS, Effect, list_effects
from storage.compare.comparing import Counts
from storage.domain.entities.differences import DifferenceKind

EFFECTS: Final = {
    DifferenceKind.ONLY_LEFT: Effect.INSERT,
    DifferenceKind.CHANGED: Effect.CHANGE,
    DifferenceKind.TYPE_ONLY: Effect.CHANGE,
    DifferenceKind.ONLY_RIGHT: Effect.DELETE,
}


@dataclass(frozen=True, slots=True)
class ApplyButton:
    """Button that applies the entities of one kind, or of all."""

    account: str
    kind: DifferenceKind | None
    counts: Counts | None  # None if they are unknown
    deleted_table: str = ""  # the table that is deleted as a whole, if any

    @property
    def texts(self) -> Mapping[Effect, str | Promise]:
        return TEXTS

    @property
    def frame(self) -> str:
        """Return the text with a placeholder for the action."""
        return _("{} in %(account)s") % {"account": self.account}

    @property
    def generic_text(self) -> str:
        return _("Apply to %(name)s") % {"name": self.account}

    @property
    def text(self) -> str:
        if self.deleted_table:
            values = {"table": self.deleted_table, "account": self.account}
            return _("Delete the table %(table)s in %(account)s") % values
        if self.counts is None:
            return self.generic_text
        return capfirst(self.frame.format(list_effects(self._numbers(self.counts))))

    @property
    def deletes(self) -> bool:
        if self.kind not in (None, DifferenceKind.ONLY_RIGHT):
            return False
        return bool(self.deleted_table) or self.counts is None or self.counts.only_right > 0

    def _numbers(self, counts: Counts) -> Counter[Effect]:
        numbers: Counter[Effect] = Counter()
        for kind, effect in EFFECTS.items():
            if self.kind in (None, kind):
                numbers[effect] += counts.number(kind)
        return numbers
