"""Copying of rows from an entity relation, or its past, to another relation."""

from collections.abc import Collection, Generator
from typing import Any, Final

from storage.domain.entities.entity import Entity
from storage.domain.filters.query import EntityQuery
from storage.sql import arrays, moments, walks
from storage.sql.change_rows import written
from storage.sql.content import CONTENT
from storage.sql.failures import ALONE
from storage.sql.long_keys import LONG_KEYS, SHORT_KEYS, is_long
from storage.sql.masking import Masking
from storage.sql.statement import Lane, Parameters, Result, Statement, integer_at
from storage.sql.walks import Binder

_INSERT: Final = """
WITH copied AS (INSERT INTO {target} (pk, rk, ts, props, anns, vals) {rows} RETURNING pk)
SELECT count(*) FROM copied
"""
_MAKE_ROOM: Final = f"""
SELECT count(*) FROM (
    SELECT entity_make_room('{{target}}', pk, rk, {ALONE})
    FROM (SELECT pk, rk FROM {{source}} WHERE {LONG_KEYS} LIMIT 1) AS first
    OFFSET 0
) AS made
"""

_INSERT_GIVEN: Final = """
INSERT INTO {target} (pk, rk, ts, props, anns, vals)
SELECT pk, rk, {now}, props::jsonb, '', vals
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS given (pk, rk, props, vals)
"""
# the function looks for a row with the keys to be moved, which takes long in a relation without an index
_MAKE_ROOM_FOR: Final = f"""
SELECT CASE WHEN to_regclass($1 || '_long') IS NULL THEN entity_make_room($1, $2, $3, {ALONE})::text END
"""


def copy_all(source: str, target: str) -> Statement[int]:
    """Copy all rows to a relation without key length limits; return their number."""
    rows = f"SELECT pk, rk, ts, props, '', {CONTENT} FROM {source}"
    return Statement(_INSERT.format(target=target, rows=rows), (), Lane.FILTER, _count)


def fill(
    source: str, target: str, query: EntityQuery, masking: Masking | None = None
) -> Generator[Statement[Any], Any, int]:
    """Copy matching rows to a new entity relation; return their number."""
    count: int = yield copy(source, target, query, masking)
    if (yield make_room(source, target)):
        count += yield copy(source, target, query, masking, are_long=True)
    return count


def copy(
    source: str, target: str, query: EntityQuery, masking: Masking | None = None, *, are_long: bool = False
) -> Statement[int]:
    """Return the statement that copies matching rows to a new entity relation, with or without long keys.

    Timestamps are kept, so that ETags stay valid and rows older than the copy are known to be unchanged.
    """
    binder = Binder()
    condition = f"({walks.walk(query, binder).condition}) AND {LONG_KEYS if are_long else SHORT_KEYS}"
    parameters: Parameters = tuple(binder.parameters)
    if masking is None:
        rows = f"SELECT pk, rk, ts, props, '', {CONTENT} FROM {source} WHERE {condition}"
    else:
        rows = masking.select(source, condition, len(parameters) + 1)
        parameters = (*parameters, *masking.parameters)
    # hashed keys are short
    child = "_long" if are_long and not (masking is not None and masking.hashes_keys) else ""
    return Statement(_INSERT.format(target=target + child, rows=rows), parameters, Lane.FILTER, _count)


def insert(target: str, entities: Collection[Entity]) -> Generator[Statement[Any], Any, None]:
    """Insert entities with unused keys into a new relation, with present Timestamps."""
    by_length: dict[bool, list[Entity]] = {}
    for entity in entities:
        by_length.setdefault(is_long(entity.key), []).append(entity)
    for are_long, group in by_length.items():
        if are_long:
            yield Statement(_MAKE_ROOM_FOR, (target, *group[0].key), Lane.FILTER, lambda result: None)
        text = _INSERT_GIVEN.format(target=f"{target}_long" if are_long else target, now=moments.PRESENT)
        rows = [(*it.key, *written(it)) for it in group]
        yield Statement(text, arrays.columns(rows), Lane.FILTER, lambda result: None)


def make_room(source: str, target: str) -> Statement[bool]:
    """Create the child relation for long keys if the source needs it; return whether it does."""
    text = _MAKE_ROOM.format(source=source, target=target)
    return Statement(text, (), Lane.FILTER, lambda result: _count(result) > 0)


def summarize(relation: str) -> Statement[tuple[int, int]]:
    """Return the statement that counts the entities of a relation and finds their last Timestamp, 0 for none."""
    text = f"SELECT count(*), coalesce(max(ts), 0) FROM {relation}"
    return Statement(text, (), Lane.FILTER, lambda it: (integer_at(it, 0, 0), integer_at(it, 0, 1)))


def _count(result: Result) -> int:
    return integer_at(result, 0, 0)
