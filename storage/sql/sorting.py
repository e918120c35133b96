"""The rows of a query in the order of a property."""

from typing import Final, NamedTuple

from storage.domain.filters.query import ABSENT_RANK, SORTED_TEXT_LENGTH, EntityQuery, Sort, SortedPosition
from storage.domain.values.encoding import escape
from storage.sql import walks
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
) AS sorted"""
_ASCENDING: Final = "rank, number, text, pk, rk"
_DESCENDING: Final = f"rank = {ABSENT_RANK}, rank DESC, number DESC, text DESC, pk, rk"


class Rows(NamedTuple):
    """A subquery with the columns of a relation and the sort keys ``rank``, ``number``, ``text``; and its order."""

    relation: str
    order: str


def rows(relation: str, query: EntityQuery, sort: Sort, start: SortedPosition | None, binder: Binder) -> Rows:
    walk = walks.walk(query, binder)
    rank, number, text = _expressions(sort.property, binder)
    order = _DESCENDING if sort.descending else _ASCENDING
    found = _ROWS.format(
        rank=rank,
        number=number,
        text=text,
        relation=relation,
        condition=walk.condition,
        from_start="true" if start is None else _from(start, binder, descending=sort.descending),
        order=order,
        limit=f"{binder.bind(str(query.top + 1))}::bigint",
    )
    return Rows(found, order)


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
