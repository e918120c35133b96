"""Why a filter may have found nothing, and what would find more."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from console.grid_state import State
from storage.domain.edm import Edm
from storage.domain.filters import And, Comparison, Filter, conjuncts, write
from storage.domain.filters.ast import walk
from storage.models import Table
from storage.operations import properties
from storage.operations.properties import Property

_NUMBERS = frozenset({Edm.INT32, Edm.INT64, Edm.DOUBLE})


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A comparison that no entity can meet: its property is unknown, or of other types than the literal."""

    name: str
    asked: str
    types: tuple[str, ...] = ()
    similar: str = ""


@dataclass(frozen=True, slots=True)
class Hints:
    looser: State | None  # the same without the last clause
    dropped: str  # that clause
    mismatches: Sequence[Mismatch]


def of(table: Table, state: State) -> Hints | None:
    wanted = state.wanted.filter
    if wanted is None:
        return None
    found = properties.catalogue(table)
    mismatches = _mismatches(wanted, {it.name: it for it in found.properties}) if found.is_whole else []
    clauses = conjuncts(wanted)
    if len(clauses) < 2:
        return Hints(None, "", mismatches)
    rest: Filter = clauses[0] if len(clauses) == 2 else And(tuple(clauses[:-1]))
    return Hints(replace(state.at_start(), filter=write(rest)), write(clauses[-1]), mismatches)


def _mismatches(wanted: Filter, known: dict[str, Property]) -> list[Mismatch]:
    compared = {node.property: node for node in walk(wanted) if isinstance(node, Comparison)}
    found = [_mismatch(node, known) for node in compared.values()]
    return [mismatch for mismatch in found if mismatch is not None]


def _mismatch(node: Comparison, known: dict[str, Property]) -> Mismatch | None:
    name, asked = node.property, node.literal.type
    if name in ("PartitionKey", "RowKey", "Timestamp"):
        return None
    if name not in known:
        similar = get_close_matches(name, known, 1) or [it for it in known if it.lower() == name.lower()]
        return Mismatch(name, _short(asked), similar=similar[0] if similar else "")
    types = known[name].types
    if asked in types or (asked is Edm.INT32 and _NUMBERS.intersection(types)):
        return None
    return Mismatch(name, _short(asked), tuple(map(_short, types)))


def _short(type_: Edm) -> str:
    return type_.value.removeprefix("Edm.")
