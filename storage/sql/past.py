"""Past states of entities: the current row, or the image that history kept when it was changed later.

A common table expression with the name of the relation replaces it, so that any statement can read the past.
It yields entities in key order, and looks up a row only if it was changed after the moment; unused columns
cost nothing. It cannot use indexes on properties.
"""

import re
from dataclasses import dataclass
from typing import Final, TypeVar

from storage.domain.entities.moments import Moment
from storage.sql.content import content
from storage.sql.forms import OWN
from storage.sql.history import Op
from storage.sql.long_keys import LONG_KEYS, SHORT_KEYS
from storage.sql.record import Record, is_of
from storage.sql.relations import relation_name
from storage.sql.statement import Statement

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Past:
    """Past state of a table at a moment."""

    table_id: int
    source: str
    record: Record
    moment: Moment
    history: str = ""  # the relation's own, whose changes are not in the record

    @property
    def relation(self) -> str:
        """Return the relation that statements name."""
        return self.history.removesuffix(OWN) or relation_name(self.table_id)


_LIVE: Final = """
SELECT e.pk, e.rk, CASE WHEN c.seq IS NULL THEN e.ts ELSE c.was END AS ts,
    CASE WHEN c.seq IS NULL THEN e.props ELSE entity_projection({content}) END AS props,
    CASE WHEN c.seq IS NULL THEN e.anns ELSE c.anns END AS anns,
    CASE WHEN c.seq IS NULL THEN e.vals ELSE c.vals END AS vals
FROM {source} AS e
LEFT JOIN LATERAL ({first}) AS c ON true
WHERE c.seq IS NULL OR c.was IS NOT NULL
ORDER BY e.pk, e.rk
"""
# those with keys too long for an index entry are sorted, all others are read in the order of an index
_GONE: Final = """
SELECT g.pk, g.rk, c.was AS ts, entity_projection({content}) AS props, c.anns, c.vals
FROM (SELECT DISTINCT ON (pk, rk) pk, rk FROM ({deletions}) AS deletion ORDER BY pk, rk) AS g
CROSS JOIN LATERAL ({first}) AS c
WHERE c.was IS NOT NULL AND (SELECT e.ts FROM {source} AS e WHERE e.pk = g.pk AND e.rk = g.rk) IS NULL
ORDER BY g.pk, g.rk
"""
# An entity without a later change is in the source only, another in the history only, so that nothing is joined.
# A deletion in the same moment as an insertion was before it.
_APART: Final = f"""
SELECT pk, rk, ts, props, anns, vals FROM {{source}} WHERE ts <= {{ticks}}
UNION ALL
SELECT c.pk, c.rk, c.was AS ts, entity_projection({content("c.")}) AS props, c.anns, c.vals
FROM (
    SELECT DISTINCT ON (pk, rk) pk, rk, was, anns, vals FROM {{history}} WHERE ts > {{ticks}}
    ORDER BY pk, rk, ts, op <> '{Op.DELETE}'
) AS c
WHERE c.was IS NOT NULL
"""
_BEGINNING: Final = re.compile(r"\s*(EXPLAIN \(.*?\))?\s*(WITH\b)?")


def as_of(statement: Statement[T], past: Past) -> Statement[T]:
    """Make a statement read a table's past instead of its present."""
    parameters = list(statement.parameters)
    rows = _rows(past, parameters) if past.record or past.history else f"SELECT * FROM {past.source}"
    text = with_expressions(statement.text, f"{past.relation} AS NOT MATERIALIZED ({rows})")
    return Statement(text, tuple(parameters), statement.lane, statement.read)


def changed_after(moment: Moment, parameters: list[str | bytes | None]) -> str:
    """Return the condition that a history row ``h`` is after a moment, adding its parameters."""
    parameters.append(str(moment.ticks))
    condition = f"h.ts > ${len(parameters)}::bigint"
    if moment.snapshot is not None:
        parameters.append(moment.snapshot)
        condition += f" AND NOT pg_visible_in_snapshot(h.xid, ${len(parameters)}::pg_snapshot)"
    return condition


def with_expressions(text: str, expressions: str) -> str:
    """Prepend common table expressions to a statement, merging them with its own."""
    beginning = _BEGINNING.match(text)
    assert beginning is not None
    explain, with_ = beginning.groups(default="")
    return f"{explain} WITH {expressions}{',' if with_ else ''} {text[beginning.end() :]}"


def _rows(past: Past, parameters: list[str | bytes | None]) -> str:
    """Return the query of a table's past rows, adding its parameters."""
    parameters.append(str(past.moment.ticks))
    ticks = f"${len(parameters)}::bigint"
    if past.history:
        return _APART.format(source=past.source, history=past.history, ticks=ticks)
    after = changed_after(past.moment, parameters)

    def first(of: str, if_: str = "true") -> str:
        same = is_of(past.table_id, f"{of}.pk", f"{of}.rk")
        return past.record.first("h.was, h.anns, h.vals", f"{same} AND {after}", if_=if_)

    queries = [_LIVE.format(content=content("c."), first=first("e", f"e.ts > {ticks}"), source=past.source)]
    for length in (SHORT_KEYS, LONG_KEYS):
        is_deletion = f"h.tbl = {past.table_id} AND h.op = '{Op.DELETE}' AND {after} AND {length}"
        deletions = past.record.changes("h.pk, h.rk", is_deletion, "ORDER BY h.pk, h.rk")
        queries.append(
            _GONE.format(content=content("c."), first=first("g"), deletions=deletions, source=past.source)
        )
    return " UNION ALL ".join(f"({query})" for query in queries)
