"""English sentences that explain a refusal; the console translates them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from storage.domain.translation import mark as _
from storage.inspector.mistakes import Mistake
from storage.inspector.reports import Finding

MISSING: Final = "…"  # for a detail that another version of the server did not keep

_POLICY_PERMISSION: Final = _(
    "The policy %(policy)s has no %(needed)s, which %(operation)s needs. Its permissions are %(permissions)s."
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """Translatable sentence with its details; ``seconds`` are shown as a duration."""

    text: str
    details: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text % Details(
            (name, describe_duration(int(value)) if name == "seconds" else value)
            for name, value in self.details.items()
        )


class Details(dict[str, str]):
    """Details for placeholders; some may be missing."""

    def __missing__(self, name: str) -> str:
        return MISSING


def describe(found: Finding) -> Sentence:
    details = {name: value or "–" for name, value in found.details}
    is_by_policy = found.mistake is Mistake.PERMISSION and "policy" in details
    return Sentence(_POLICY_PERMISSION if is_by_policy else found.mistake.value, details)


def describe_duration(seconds: int) -> str:
    """Format a duration in days, hours, minutes or seconds, using the largest unit with at least two."""
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}s"
    return f"{seconds} seconds" if seconds != 1 else "1 second"
