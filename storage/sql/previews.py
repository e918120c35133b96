"""Pages of previews: for large rows, the beginning and size of each value."""

import json
from dataclasses import replace
from typing import Final

from storage.domain.entities.entity import EntityKey, StoredEntity, read_stored
from storage.domain.entities.previews import STRING_PREVIEW_LENGTH, EntityPreview
from storage.domain.filters.query import EntityQuery, Page, Sort, SortedPage, SortedPosition
from storage.domain.values.encoding import escape, unproject
from storage.sql import sorting, walks
from storage.sql.content import CONTENT
from storage.sql.pages import position_at
from storage.sql.statement import Lane, Result, Statement, integer_at, text_at
from storage.sql.walks import Binder

_LARGE: Final = 16 * 1024  # bytes of a row; smaller ones are read whole, because cutting takes time too
# bytes of a value; longer ones are cut to half of this and the letter of their type
_WHOLE: Final = 4 * STRING_PREVIEW_LENGTH

# The first column after the Timestamp contains a small row. If the row is large, the second contains the values, a long
# one as a pair of its beginning and size, and the third their names in order.
_PAGE: Final = f"""
SELECT pk, rk, ts,
    CASE WHEN octet_length(vals) <= {_LARGE} THEN {CONTENT} END,
    CASE WHEN octet_length(vals) > {_LARGE} THEN (
        SELECT json_object_agg(key, CASE
            WHEN octet_length(value) <= {_WHOLE} THEN to_json(value)
            ELSE json_build_array(left(value, {_WHOLE // 2 + 1}), octet_length(value)) END)
        FROM jsonb_each_text(props)
        WHERE {{asked}}) END,
    CASE WHEN octet_length(vals) > {_LARGE} THEN (
        SELECT string_agg('"' || split_part(split_part(line, '"', 2), '@', 1) || '"', ',')
        FROM string_to_table(substr(vals, 2), E'\\n') AS line) END
    {{beside}}
FROM {{relation}}
WHERE {{condition}}
ORDER BY {{order}}
LIMIT {{limit}}
"""


def page(relation: str, query: EntityQuery) -> Statement[Page[EntityPreview]]:
    """Return the statement for a page of previews.

    ``select`` of the query applies to large rows only, and ``annotations`` is ignored.
    """
    binder = Binder()
    walk = walks.walk(query, binder)
    text = _PAGE.format(
        asked=_asked(query, binder),
        beside="",
        relation=relation,
        condition=walk.condition,
        order=walk.order,
        limit=f"{binder.bind(str(query.top + 1))}::bigint",
    )

    def read(result: Result) -> Page[EntityPreview]:
        count = min(result.ntuples, query.top)
        return Page([_read(result, row) for row in range(count)], position_at(result, count))

    return binder.statement(text, walk.lane, read)


def sorted_page(
    relation: str, query: EntityQuery, sort: Sort, start: SortedPosition | None
) -> Statement[SortedPage]:
    """Return the statement for a page of previews sorted by a property; the query's own ``start`` is ignored."""
    binder = Binder()
    rows = sorting.rows(relation, replace(query, start=None), sort, start, binder)
    text = _PAGE.format(
        asked=_asked(query, binder),
        beside=", rank, number, text",
        relation=rows.relation,
        condition="true",
        order=rows.order,
        limit=f"{binder.bind(str(query.top + 1))}::bigint",
    )
    return binder.statement(text, Lane.FILTER, lambda result: _read_sorted(result, query.top))


def _asked(query: EntityQuery, binder: Binder) -> str:
    if query.select is None:
        return "true"
    names = json.dumps([escape(name) for name in query.select], ensure_ascii=False)
    return f"{binder.bind(names)}::jsonb ? key"


def _read_sorted(result: Result, top: int) -> SortedPage:
    previews = [_read(result, row) for row in range(min(result.ntuples, top))]
    if result.ntuples <= top:
        return SortedPage(previews, None)
    rank, number, text, partition_key, row_key = (text_at(result, top, it) for it in (6, 7, 8, 0, 1))
    return SortedPage(previews, SortedPosition(int(rank), number, text, partition_key, row_key))


def _read(result: Result, row: int) -> EntityPreview:
    key = EntityKey(text_at(result, row, 0), text_at(result, row, 1))
    timestamp = integer_at(result, row, 2)
    content = result.get_value(row, 3)
    if content is not None:
        entity = read_stored(StoredEntity(b'"PartitionKey":"","RowKey":""', b"", content))
        return EntityPreview(key, timestamp, entity.properties, {})
    values = json.loads(result.get_value(row, 4) or b"{}")
    names = json.loads(f"[{text_at(result, row, 5)}]")
    return _cut(key, timestamp, {name: values[escape(name)] for name in names if escape(name) in values})


def _cut(key: EntityKey, timestamp: int, values: dict[str, str | list[str | int]]) -> EntityPreview:
    properties, sizes = {}, {}
    for name, value in values.items():
        if isinstance(value, str):
            properties[name] = unproject(value)
        else:
            beginning, size = str(value[0]), int(value[1]) - 1  # without the letter of its type
            properties[name] = unproject(_unbroken(beginning))
            is_hexadecimal = beginning.startswith("b")
            sizes[name] = size // 2 if is_hexadecimal else size
    return EntityPreview(key, timestamp, properties, sizes)


def _unbroken(beginning: str) -> str:
    """Drop half of an escaped pair at a cut."""
    ones = len(beginning) - len(beginning.rstrip("\x01"))
    return beginning[:-1] if ones % 2 or beginning.endswith("\ue000") else beginning
