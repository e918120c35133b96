"""What a URL or a sent form leaves out of a new SAS token, filled in, and the shortest URL that says the same."""

from collections.abc import Iterable, Mapping
from typing import Final

from django.http import QueryDict

DEFAULTS: Final[Mapping[str, list[str]]] = {
    "kind": ["table"],
    "permissions": ["r"],
    "levels": ["c", "o"],
    "expiry": ["1d"],
    "signer": ["1"],
}

_LISTS: Final = frozenset({"permissions", "levels"})
_LONGEST: Final = 1800  # bytes of a query string


def complete_state(data: QueryDict, *, expiries: Iterable[str], is_secure: bool) -> QueryDict:
    state = data.copy()
    # a sent form without a ticked box has no permissions; a URL without them has the default ones
    if "is_form" not in data:
        for name, values in DEFAULTS.items():
            if name not in data:
                state.setlist(name, values)
    for name in _LISTS:
        # in a URL, an empty value stands for none
        state.setlist(name, [value for value in state.getlist(name) if value])
    choices = {
        "kind": ({"account"}, "table"),
        "protocol": ({"https", "https,http"}, "https" if is_secure else "https,http"),
        "expiry": (set(expiries), "1d"),
        "signer": ({"2"}, "1"),
    }
    for name, (others, default) in choices.items():
        if state.get(name) not in others:
            state[name] = default
    return state


def write_state(state: QueryDict, names: Iterable[str]) -> str:
    """Return the query string of the fields that differ from a new form's."""
    kept = QueryDict(mutable=True)
    for name in names:
        values = state.getlist(name)
        if values != DEFAULTS.get(name, [""]) and (values or name in _LISTS):
            kept.setlist(name, values or [""])
    if len(kept.urlencode()) > _LONGEST:
        kept.pop("purpose", None)
    return kept.urlencode()
