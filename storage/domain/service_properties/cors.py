"""CORS: access of scripts from other origins, by the rules of the account."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from storage.domain.service_properties.properties import CorsRule

MISSING_CORS_HEADER: Final = (
    "A required CORS header is not present."  # for a request without origin or method
)


@dataclass(frozen=True, slots=True)
class PreflightVerdict:
    """Result of a CORS preflight; ``place`` is the index of the rule that matches origin and method, or None."""

    place: int | None
    refused: tuple[str, ...] = ()  # lower-case headers that the rule does not allow

    @property
    def is_allowed(self) -> bool:
        return self.place is not None and not self.refused


def check_preflight(rules: Sequence[CorsRule], origin: str, method: str, headers: str) -> PreflightVerdict:
    """Check a preflight request; ``headers`` is the value of Access-Control-Request-Headers.

    The first rule that matches origin and method decides, even if a later one would allow the headers.
    """
    place = find_rule(rules, origin, method)
    if place is None:
        return PreflightVerdict(None)
    patterns = [pattern.lower() for pattern in rules[place].allowed_headers]
    names = [name for name in map(str.strip, headers.lower().split(",")) if name]
    return PreflightVerdict(
        place, tuple(name for name in names if not any(matches_header(it, name) for it in patterns))
    )


def find_rule(rules: Sequence[CorsRule], origin: str, method: str) -> int | None:
    """Return the index of the first rule that matches origin and method; None if there is none."""
    for place, rule in enumerate(rules):
        if allows_origin(rule, origin) and method in rule.methods:
            return place
    return None


def allows_origin(rule: CorsRule, origin: str) -> bool:
    return origin in rule.origins or "*" in rule.origins


def matches_header(pattern: str, name: str) -> bool:
    """Return whether a header name matches a rule's pattern, both in lower case."""
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
