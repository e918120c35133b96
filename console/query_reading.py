"""What there is to say of a filter while it is written: what is wrong with it, how it reaches its entities."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from console import access_paths
from console.access_paths import Described
from console.grid_state import ROWS, State
from storage.domain.edm import utf16_length
from storage.domain.errors import StorageError
from storage.domain.filters import Filter
from storage.domain.query import access_path
from storage.models import Account, Table


@dataclass(frozen=True, slots=True)
class Offer:
    """Another text for the filter, and where the cursor goes in it; ``address``: of the grid that it gives."""

    label: str
    text: str
    address: str
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """``start`` and ``end`` count as browsers do, in UTF-16."""

    message: str
    start: int
    end: int
    repairs: Sequence[Offer] = ()


@dataclass(frozen=True, slots=True)
class Access:
    described: Described
    offer: Offer | None = None  # of what reads less
    estimate: None = None
    marks: Sequence[str] = ()  # what Azure would refuse
    hints: Sequence[Problem] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    as_text: str  # addresses
    as_rows: str
    unsorted: str
    problem: Problem | None
    access: Access | None


def read(account: Account, table: Table, state: State) -> Reading:
    start = state.at_start()
    problem, access = _understood(account, table, start)
    return Reading(
        replace(start, by="").address(account, table),
        replace(start, by=ROWS).address(account, table),
        start.address(account, table),
        problem,
        access,
    )


def _understood(account: Account, table: Table, state: State) -> tuple[Problem | None, Access | None]:
    try:
        root = state.wanted.filter
    except StorageError as error:
        return _problem(state.filter, error), None
    return None, _access(account, table, state, root)


def _problem(text: str, error: StorageError) -> Problem:
    start, end = error.span or (0, len(text))
    if start == end:  # something is missing there
        start = max(0, start - 1)
    return Problem(error.text, utf16_length(text[:start]), utf16_length(text[:end]))


def _access(account: Account, table: Table, state: State, root: Filter | None) -> Access:
    found = access_path(root)
    return Access(access_paths.describe(found))
