"""Calls of the change function of a relation, which storage.sql.batch defines."""

from collections.abc import Sequence
from functools import lru_cache

from storage.sql import arrays
from storage.sql.change_rows import ChangeRow
from storage.sql.failures import ALONE, failure
from storage.sql.history import Recorder
from storage.sql.statement import Lane, Parameters, Result, Statement


@lru_cache(maxsize=1024)
def call(relation: str) -> str:
    """Return the call of a relation's change function."""
    return f"SELECT {relation}_change_set($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"


def recording(recorder: Recorder | None) -> tuple[str | None, str | None]:
    """Return the trailing history parameters of the call."""
    return (None, None) if recorder is None else recorder.parameters


def apply_one(relation: str, row: ChangeRow, recorder: Recorder | None = None) -> Statement[int]:
    """Apply one change by the function; return its Timestamp, for a deletion the entity's last one."""
    parameters = (
        row.key.partition_key,
        *columns([ALONE], [row.operation(relation)], [row]),
        *recording(recorder),
    )
    # an array of one number
    return Statement(call(relation), parameters, Lane.KEY, lambda result: int(applied(result)[1:-1]))


def columns(places: Sequence[int], operations: Sequence[str] | None, rows: Sequence[ChangeRow]) -> Parameters:
    """Return the array parameters of the call, between the partition key and ``recording``."""
    only_inserts = operations is None
    return (
        arrays.integers(places),
        None if operations is None else arrays.texts(operations),
        arrays.texts([row.key.row_key for row in rows]),
        None if only_inserts else arrays.bigints([row.expected for row in rows]),
        arrays.documents([row.fragments.projection for row in rows]),
        None,  # annotations, which older servers give by themselves
        arrays.texts([row.fragments.content for row in rows]),
        None if only_inserts else arrays.texts([row.gone for row in rows]),
    )


def applied(result: Result) -> bytes:
    """Return the array of Timestamps; raises an error that the function returned as a value."""
    value = result.get_value(0, 0)
    assert value is not None
    if value.startswith(b"{TB001,"):
        raise failure("TB001", value[8:-2].decode())
    return value
