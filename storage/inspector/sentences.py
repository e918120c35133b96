"""English sentences that explain a refusal; the console translates them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from storage.domain.refusals import Reason
from storage.domain.translation import mark as _
from storage.inspector.mistakes import Mistake
from storage.inspector.reports import Finding

MISSING: Final = "…"  # for a detail that another version of the server did not keep

_POLICY_PERMISSION: Final = _(
    "The policy %(policy)s has no %(needed)s, which %(operation)s needs. Its permissions are %(permissions)s."
)
_NO_FUNCTIONS: Final = _(
    "Filters compare properties with values and join conditions with and, or, not. Do the rest in the client."
)
_VALID_FILTER: Final = _("This filter works: %(filter)s")
_SIMILAR: Final = _("Did you mean %(similar)s?")


@dataclass(frozen=True, slots=True)
class Sentence:
    """Translatable sentence with its details, and those that follow it; ``seconds`` are shown as a duration."""

    text: str
    details: Mapping[str, str] = field(default_factory=dict)
    more: tuple["Sentence", ...] = ()

    def __str__(self) -> str:
        text = self.text % Details(
            (name, describe_duration(int(value)) if name == "seconds" else value)
            for name, value in self.details.items()
        )
        return " ".join((text, *map(str, self.more)))


class Details(dict[str, str]):
    """Details for placeholders; some may be missing."""

    def __missing__(self, name: str) -> str:
        return MISSING


def describe(finding: Finding) -> Sentence:
    details = {name: value or "–" for name, value in finding.details}
    if finding.mistake is Mistake.FILTER:
        return Sentence(finding.mistake.value, details, tuple(_explain_filter(details)))
    if finding.mistake is Mistake.TABLE_MISSING and "similar" in details:
        return Sentence(finding.mistake.value, details, (Sentence(_SIMILAR, details),))
    is_by_policy = finding.mistake is Mistake.PERMISSION and "policy" in details
    return Sentence(_POLICY_PERMISSION if is_by_policy else finding.mistake.value, details)


def _explain_filter(details: Mapping[str, str]) -> Iterator[Sentence]:
    """Yield the sentence of the console's filter line, and what works instead."""
    reason = Reason.__members__.get(details.get("reason", ""))
    if reason is not None:  # else of a newer version
        yield Sentence(reason.value, details)
    if "filter" in details:
        yield Sentence(_VALID_FILTER, details)
    elif reason is Reason.FILTER_UNSUPPORTED:
        yield Sentence(_NO_FUNCTIONS)


def describe_duration(seconds: int) -> str:
    """Format a duration in days, hours, minutes or seconds, using the largest unit with at least two."""
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}s"
    return f"{seconds} seconds" if seconds != 1 else "1 second"
