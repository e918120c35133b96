"""Queries sorted by a property."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from storage.domain.filters.query import ABSENT_RANK, SORTED_TEXT_LENGTH, EntityQuery, Sort, SortedPosition
from storage.domain.values.encoding import escape
from storage.sql import walks
from storage.sql.filters import INDEXED_NUMBER, INDEXED_TEXT, INDEXED_TIME
from storage.sql.walks import Binder

# types by the letters of domain.values.encoding; NaN is a number greater than all others
_RANK: Final = f"""CASE jsonb_typeof(props->{{name}})
    WHEN 'boolean' THEN 0 WHEN 'number' THEN 1
    WHEN 'string' THEN CASE left(props->>{{name}}, 1)
        WHEN 'n' THEN 1 WHEN 's' THEN 2 WHEN 't' THEN 3 WHEN 'g' THEN 4 ELSE 5 END
    ELSE {ABSENT_RANK} END"""
_NUMBER: Final = """CASE jsonb_typeof(props->{name})
    WHEN 'number' THEN (props->{name})::numeric
    WHEN 'boolean' THEN (props->{name})::boolean::int::numeric
    ELSE CASE props->>{name} WHEN 'n' THEN 'NaN'::numeric ELSE 0 END END"""
_TEXT: Final = f"""CASE jsonb_typeof(props->{{name}})
    WHEN 'string' THEN left(props->>{{name}}, {SORTED_TEXT_LENGTH}) ELSE '' END"""

_ROWS: Final = """(
    SELECT * FROM (
        SELECT *, {rank} AS rank, {number} AS number, ({text}) COLLATE "C" AS text
        FROM {relation} WHERE {condition}
    ) AS ranked
    WHERE {from_start}
    ORDER BY {order}
    LIMIT {limit}
)"""
_TICKS_LENGTH: Final = 19  # digits that may exceed a bigint
_ASCENDING: Final = "rank, number, text, pk, rk"
_DESCENDING: Final = f"rank = {ABSENT_RANK}, rank DESC, number DESC, text DESC, pk, rk"


class _Section(NamedTuple):
    """Section of a property's index with the order of its rank; ``column`` varies within it."""

    rank: int
    condition: str
    column: str = ""


_SECTIONS: Final = (
    _Section(0, "{number} IS NULL AND {text} IN ('false', 'true')"),
    _Section(1, "{number} > '-1e401'", "number"),
    _Section(1, "{number} IS NULL AND {text} = 'n'"),
    _Section(2, "{number} IS NULL AND {text} >= 's' AND {text} < 't'", "text"),
    _Section(3, "{number} IS NULL AND {text} >= 't' AND {text} < 't:'", "text"),
    _Section(4, "{number} IS NULL AND {text} >= 'g' AND {text} < 'h'", "text"),
    _Section(5, "{number} IS NULL AND {text} >= 'b' AND {text} < 'c'", "text"),
    _Section(ABSENT_RANK, "{number} IS NULL AND {text} IS NULL"),
)


class Rows(NamedTuple):
    """Subquery with a relation's columns and the sort keys ``rank``, ``number`` and ``text``, with its order."""

    relation: str
    order: str


def rows(relation: str, query: EntityQuery, sort: Sort, start: SortedPosition | None, binder: Binder) -> Rows:
    """Return the first rows in sort order; with an index, from the first rows of each section.

    PostgreSQL could not walk the index in the order of ranks, nor backwards with absent values last.
    """
    walk = walks.walk(query, binder)
    rank, number, text = _expressions(sort.property, binder)
    order = _DESCENDING if sort.descending else _ASCENDING
    words = {
        "rank": rank,
        "number": number,
        "text": text,
        "relation": relation,
        "from_start": "true" if start is None else _from(start, binder, descending=sort.descending),
        "limit": f"{binder.bind(str(query.top + 1))}::bigint",
    }
    if sort.property not in query.indexed:
        return Rows(f"{_ROWS.format(condition=walk.condition, order=order, **words)} AS sorted", order)
    columns = _columns(sort.property, binder)
    direction = "DESC" if sort.descending else "ASC"
    by_index = f"{columns['number']} {direction}, {columns['text']} {direction}, pk, rk"
    sections = [
        _ROWS.format(condition=f"({walk.condition}) AND {condition}", order=by_index, **words)
        for condition in _sections(sort, columns, start, binder)
    ]
    return Rows(f"({' UNION ALL '.join(sections)}) AS sorted", order)


def _columns(name: str, binder: Binder) -> dict[str, str]:
    """Return the columns of a property's index."""
    if name == "Timestamp":
        return {"number": INDEXED_TIME, "text": "NULL::text"}
    bound = f"{binder.bind(escape(name))}::text"
    return {"number": INDEXED_NUMBER.format(name=bound), "text": INDEXED_TEXT.format(name=bound)}


def _sections(
    sort: Sort, columns: Mapping[str, str], start: SortedPosition | None, binder: Binder
) -> Iterator[str]:
    """Yield the conditions of the index sections with rows after the start."""
    descending = sort.descending
    operator = "<=" if descending else ">="
    if sort.property == "Timestamp":
        is_bound = start is not None and start.number.isdigit() and len(start.number) < _TICKS_LENGTH
        yield (
            f"{INDEXED_TIME} {operator} {binder.bind(start.number)}::bigint" if start and is_bound else "true"
        )
        return
    for rank, condition, column in _SECTIONS:
        whole = condition.format(**columns)
        if start is None or _follows(rank, start.rank, descending=descending):
            yield whole
        elif rank != start.rank or (column == "number" and start.number == "NaN" and not descending):
            continue  # NaN, which has a section of its own, is greater than all numbers
        elif not column or (column == "number" and start.number == "NaN"):
            yield whole
        else:
            value, cast = (start.number, "numeric") if column == "number" else (start.text, "text")
            yield f"{whole} AND {columns[column]} {operator} {binder.bind(value)}::{cast}"


def _follows(rank: int, first: int, *, descending: bool) -> bool:
    """Return whether a rank sorts entirely after another."""
    if ABSENT_RANK in (rank, first):
        return rank > first
    return rank < first if descending else rank > first


def _expressions(name: str, binder: Binder) -> tuple[str, str, str]:
    match name:
        case "PartitionKey":
            return "2", "0::numeric", f"left(pk, {SORTED_TEXT_LENGTH})"
        case "RowKey":
            return "2", "0::numeric", f"left(rk, {SORTED_TEXT_LENGTH})"
        case "Timestamp":
            return "3", "ts::numeric", "''::text"
    bound = f"{binder.bind(escape(name))}::text"
    return _RANK.format(name=bound), _NUMBER.format(name=bound), _TEXT.format(name=bound)


def _from(start: SortedPosition, binder: Binder, *, descending: bool) -> str:
    rank = f"{binder.bind(str(start.rank))}::int"
    number = f"{binder.bind(start.number)}::numeric"
    text = f'{binder.bind(start.text)}::text COLLATE "C"'
    keys = f"(pk, rk) >= ({binder.bind(start.partition_key)}, {binder.bind(start.row_key)})"
    after = f"(rank, number, text) {'<' if descending else '>'} ({rank}, {number}, {text})"
    same = f"(rank, number, text) = ({rank}, {number}, {text}) AND {keys}"
    if not descending:
        return f"({after} OR ({same}))"
    if start.rank == ABSENT_RANK:
        return f"(rank = {ABSENT_RANK} AND {same})"
    return f"(rank = {ABSENT_RANK} OR {after} OR ({same}))"
