"""Calls of the function of a relation that applies changes; storage.sql.batch has its text."""

from functools import lru_cache

from storage.domain.entities.entity import EntityKey, Fragments
from storage.sql import arrays
from storage.sql.failures import ALONE, failure
from storage.sql.history import Recorder
from storage.sql.statement import Lane, Result, Statement


@lru_cache(maxsize=1024)
def call(relation: str) -> str:
    """Return the call of the function of a relation that applies changes."""
    return f"SELECT {relation}_change_set($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"


def recording(recorder: Recorder | None) -> tuple[str | None, str | None]:
    """Return the last parameters of the call."""
    return (None, None) if recorder is None else recorder.parameters


def apply_one(
    relation: str,
    name: str,
    key: EntityKey,
    row: Fragments,
    recorder: Recorder | None = None,
    *,
    expected: int | None = None,
    gone: str | None = None,
) -> Statement[int]:
    """Change one entity with that function; return its Timestamp (the last one of a deleted entity).

    ``expected`` is the Timestamp that it must have, and ``gone`` the properties that a merge sets.
    """
    projection, annotations, values = row
    parameters = (
        key.partition_key,
        arrays.integers([ALONE]),
        arrays.texts([name]),
        arrays.texts([key.row_key]),
        arrays.bigints([expected]),
        arrays.documents([projection]),
        arrays.texts([annotations]),
        arrays.texts([values]),
        arrays.texts([gone]),
        *recording(recorder),
    )
    # an array of one number
    return Statement(call(relation), parameters, Lane.KEY, lambda result: int(applied(result)[1:-1]))


def applied(result: Result) -> bytes:
    """Return the array of Timestamps; raises the refusal that the function of a distributed relation returns."""
    value = result.get_value(0, 0)
    assert value is not None
    if value.startswith(b"{TB001,"):
        raise failure("TB001", value[8:-2].decode())
    return value
