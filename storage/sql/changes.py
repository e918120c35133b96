"""Recorded changes of an account: lists, counts over time, and images that undo them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.entity import EntityKey, StoredEntity, encode_entity_key
from storage.domain.history.recorded import (
    ChangeGroup,
    ChangePage,
    Op,
    RecordedChange,
)
from storage.domain.values.edm import TICKS_PER_SECOND
from storage.domain.values.ticks import to_datetime, to_ticks
from storage.sql import arrays
from storage.sql.content import content
from storage.sql.record import KEY_HASH, Record, is_of
from storage.sql.restoring import Images
from storage.sql.statement import Lane, Result, Statement, integer_at, read_numbers, text_at
from storage.sql.walks import Binder

_NEVER: Final = -1  # a Timestamp that no entity has
_LONGEST_REQUEST: Final = 60 * TICKS_PER_SECOND  # a statement of the Table service ends sooner


# the transaction of an edit, and the numbers of its first and last change in the history
Span = tuple[int, int, int]

_SPAN: Final = """
(SELECT jsonb_build_array(min(xid::text)::bigint, min(seq), max(seq)) FROM (
    SELECT xid, seq FROM {history} WHERE tbl = {table_id} AND xid = pg_current_xact_id()
    ORDER BY seq DESC LIMIT {number}
) AS change)
"""


def span_of_last(history: str, table_id: int, number: int) -> str:
    """Return SQL for the JSON span of the changes to a table recorded by this transaction."""
    return _SPAN.format(history=history, table_id=table_id, number=number)


@dataclass(frozen=True, slots=True)
class Selection:
    """Selection of changes; an empty one matches all."""

    tables: tuple[int, ...] | None = None
    since: int | None = None
    until: int | None = None
    actors: tuple[int, ...] | None = None
    ops: tuple[Op, ...] = ()
    requests: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    key: str = ""
    entity: EntityKey | None = None
    span: Span | None = None

    def condition(self, binder: Binder) -> str:
        """Return the SQL condition on a change ``h``."""
        conditions = []
        if self.tables is not None:
            conditions.append(f"h.tbl = ANY ({binder.bind(_array(self.tables))}::bigint[])")
        if self.since is not None:
            conditions.append(f"h.ts >= {binder.bind(str(self.since))}::bigint")
        if self.until is not None:
            conditions.append(f"h.ts < {binder.bind(str(self.until))}::bigint")
        if self.actors is not None:
            conditions.append(f"h.actor = ANY ({binder.bind(_array(self.actors))}::integer[])")
        if self.ops:
            conditions.append(f'h.op = ANY ({binder.bind(_array(self.ops))}::"char"[])')
        if self.requests:
            conditions.append(f"h.request = ANY ({binder.bind(_array(self.requests))}::uuid[])")
        if self.numbers:
            conditions.append(f"h.seq = ANY ({binder.bind(_array(self.numbers))}::bigint[])")
        if self.key:
            key = binder.bind(self.key)
            conditions.append(f"(strpos(h.pk, {key}) > 0 OR strpos(h.rk, {key}) > 0)")
        if self.entity is not None:
            conditions += [
                f"h.{name} = {binder.bind(it)}" for name, it in zip(("pk", "rk"), self.entity, strict=True)
            ]
        if self.span is not None:
            xid, first, last = (binder.bind(str(it)) for it in self.span)
            conditions.append(f"h.xid = {xid}::xid8 AND h.seq BETWEEN {first}::bigint AND {last}::bigint")
        return " AND ".join(conditions) or "true"


def _array(items: Sequence[object]) -> str:
    return "{" + ",".join(map(str, items)) + "}"


MINUTE: Final = 60 * TICKS_PER_SECOND
_FEW: Final = 40  # requests of a client in a minute that are groups of their own
_CLIENTS: Final = (ActorKind.KEY, ActorKind.SAS, ActorKind.BEARER)  # their requests are not activities
_GROUPED: Final = "h.seq, h.tbl, h.ts, h.actor, h.op, h.request, h.pk, h.rk"
_GROUPS: Final = f"""
WITH {{newer}}read AS MATERIALIZED (
    SELECT * FROM ({{members}}) AS member ORDER BY ts {{direction}}, seq {{direction}} LIMIT {{rows}}
), edge AS MATERIALIZED (
    SELECT count(*) AS number, CASE '{{direction}}' WHEN 'DESC' THEN min(ts) ELSE max(ts) END AS moment FROM read
), request AS (
    SELECT request, tbl, actor, max(ts) AS latest, min(ts) AS earliest, max(seq) AS last,
        count(*) FILTER (WHERE op = '{Op.INSERT}') AS inserted, count(*) FILTER (WHERE op = '{Op.UPDATE}') AS changed,
        count(*) FILTER (WHERE op = '{Op.DELETE}') AS deleted
    FROM read GROUP BY request, tbl, actor
), found AS ({{found}})
SELECT coalesce(found.request::text, ''), found.tbl::text, found.actor::text, latest::text, earliest::text,
    inserted::text, changed::text, deleted::text, key.pk, key.rk,
    (edge.number >= {{rows}} AND {{is_cut}})::text, (edge.number < {{rows}})::text, requests::text, edge.moment::text
FROM found CROSS JOIN edge
JOIN (SELECT DISTINCT ON (tbl, seq) * FROM read WHERE seq IN (SELECT last FROM found)) AS key
    ON key.seq = found.last AND key.tbl = found.tbl
ORDER BY CASE '{{direction}}' WHEN 'DESC' THEN -latest ELSE earliest END, last DESC
"""
_NEWER: Final = "newer AS MATERIALIZED (SELECT DISTINCT request, tbl FROM ({members}) AS member), "
_EACH: Final = """
SELECT *, 1 AS requests FROM request
ORDER BY CASE '{direction}' WHEN 'DESC' THEN -latest ELSE earliest END, last DESC LIMIT {top}
"""
_BY_MINUTE: Final = f"""
SELECT request, tbl, actor, max(latest) AS latest, min(earliest) AS earliest, max(last) AS last,
    sum(inserted) AS inserted, sum(changed) AS changed, sum(deleted) AS deleted, count(*) AS requests
FROM (
    SELECT CASE WHEN is_client AND count(*) OVER (PARTITION BY tbl, actor, latest / {MINUTE}) > {_FEW} THEN NULL
        ELSE request END AS request, tbl, actor, latest, earliest, last, inserted, changed, deleted
    FROM request
    LEFT JOIN (SELECT id, kind IN ({", ".join(f"'{it}'" for it in _CLIENTS)}) AS is_client FROM storage_historyactor)
        AS who ON who.id = actor
) AS each
GROUP BY request, tbl, actor, latest / {MINUTE}
"""


def groups(
    record: Record,
    selection: Selection,
    *,
    rows: int,
    top: int,
    before: int | None = None,
    oldest_first: bool = False,
    by_minute: bool = False,
) -> Statement[ChangePage[ChangeGroup[int, int]]]:
    """Group the newest or oldest changes by request and table, reading at most ``rows`` changes."""
    binder, direction, newer = Binder(), "ASC" if oldest_first else "DESC", ""
    condition = selection.condition(binder)
    if before is not None:
        end = f"{binder.bind(str(before))}::bigint"
        shown = f"{condition} AND h.ts >= {end} AND h.ts < {end} + {_LONGEST_REQUEST}"
        newer = _NEWER.format(members=record.changes("h.request, h.tbl", shown))
        condition += f" AND h.ts < {end} AND (h.request, h.tbl) NOT IN (SELECT request, tbl FROM newer)"
    newest = f"ORDER BY h.ts {direction}, h.seq {direction} LIMIT {rows}"
    members = record.changes(_GROUPED, condition, newest)
    selected = _BY_MINUTE if by_minute else _EACH.format(direction=direction, top=top)
    is_cut = (
        f"edge.moment / {MINUTE} = {'earliest' if direction == 'DESC' else 'latest'} / {MINUTE}"
        if by_minute
        else "edge.moment BETWEEN earliest AND latest"
    )

    def read(result: Result) -> ChangePage[ChangeGroup[int, int]]:
        entries = [_read_group(result, row) for row in range(result.ntuples)]
        if not entries or text_at(result, 0, 11) == "true":
            return ChangePage(entries, None)
        if by_minute:
            return _whole_minutes(entries, integer_at(result, 0, 13), oldest_first=oldest_first)
        return ChangePage(entries, to_ticks(entries[-1].latest))

    text = _GROUPS.format(
        newer=newer, members=members, direction=direction, rows=rows, found=selected, is_cut=is_cut
    )
    return binder.statement(text, Lane.FILTER, read)


def _whole_minutes(
    groups: list[ChangeGroup[int, int]], edge: int, *, oldest_first: bool
) -> ChangePage[ChangeGroup[int, int]]:
    """Drop the groups of the last minute, which may be incomplete, unless there are no others."""
    start = edge // MINUTE * MINUTE
    if oldest_first:
        whole, end = [it for it in groups if to_ticks(it.latest) < start], start - 1
    else:
        end = start + MINUTE
        whole = [it for it in groups if to_ticks(it.latest) >= end]
    return ChangePage(whole, end) if whole else ChangePage(groups, edge)


def _read_group(result: Result, row: int) -> ChangeGroup[int, int]:
    latest, earliest = (to_datetime(integer_at(result, row, column)) for column in (3, 4))
    inserted, changed, deleted = (integer_at(result, row, column) for column in (5, 6, 7))
    return ChangeGroup(
        text_at(result, row, 0),
        integer_at(result, row, 1),
        integer_at(result, row, 2),
        latest,
        earliest,
        inserted,
        changed,
        deleted,
        EntityKey(text_at(result, row, 8), text_at(result, row, 9)),
        is_open=text_at(result, row, 10) == "true",
        requests=integer_at(result, row, 12),
        actor_id=integer_at(result, row, 2),
    )


_HISTOGRAM: Final = """
SELECT (ts - {since}) / {width}, count(*) FROM ({members}) AS h GROUP BY 1
"""


def histogram(record: Record, selection: Selection, since: int, width: int) -> Statement[dict[int, int]]:
    """Count the selected changes in buckets of ``width`` ticks."""
    binder = Binder()
    condition = selection.condition(binder)
    text = _HISTOGRAM.format(
        since=f"{binder.bind(str(since))}::bigint",
        width=f"{binder.bind(str(width))}::bigint",
        members=record.changes("h.ts", condition),
    )
    return binder.statement(text, Lane.FILTER, read_numbers)


def count(record: Record, selection: Selection, column: str) -> Statement[dict[int, int]]:
    """Count the selected changes by an id column, ``tbl`` or ``actor``."""
    binder = Binder()
    members = record.changes(f"h.{column}", selection.condition(binder))
    text = f"SELECT {column}, count(*) FROM ({members}) AS h GROUP BY 1 ORDER BY 1"
    return binder.statement(text, Lane.FILTER, read_numbers)


def count_up_to(record: Record, selection: Selection, most: int) -> Statement[int]:
    """Count the selected changes up to a maximum."""
    binder = Binder()
    members = record.changes("h.seq", selection.condition(binder), f"LIMIT {most}")
    text = f"SELECT count(*) FROM (SELECT * FROM ({members}) AS h LIMIT {most}) AS h"
    return binder.statement(text, Lane.FILTER, lambda result: integer_at(result, 0, 0))


_IMAGES: Final = f"""
WITH read AS MATERIALIZED (
    SELECT * FROM ({{members}}) AS member ORDER BY seq LIMIT {{top}}
)
SELECT r.seq, r.op::text, r.ts, r.actor, r.request::text, {{table_id}}, r.pk, r.rk, r.was, {content("r.")},
    CASE WHEN r.op <> 'd' THEN coalesce({content("n.")}, {content("e.")}) END
FROM read AS r
LEFT JOIN LATERAL ({{following}}) AS n ON true
LEFT JOIN {{source}} AS e ON n.seq IS NULL AND e.pk = r.pk AND e.rk = r.rk
ORDER BY r.seq
"""
# changes with the ids of their actors, whom the changes themselves do not name
Unnamed = list[tuple[int, RecordedChange]]


def with_images(
    source: str, table: tuple[str, int], record: Record, selection: Selection, top: int | None
) -> Statement[Unnamed]:
    """Return the statement for the first selected changes of a table, given by name and id, with images."""
    binder = Binder()
    condition = selection.condition(binder)
    limit, same = "ALL" if top is None else str(top), is_of(table[1], "r.pk", "r.rk")
    text = _IMAGES.format(
        members=record.changes(
            "h.seq, h.ts, h.op, h.actor, h.request, h.pk, h.rk, h.was, h.anns, h.vals",
            f"h.tbl = {table[1]} AND {condition}",
            f"ORDER BY h.ts, h.seq LIMIT {limit}",
        ),
        table_id=table[1],
        following=record.first("h.anns, h.vals", f"{same} AND h.seq > r.seq"),
        source=source,
        top=limit,
    )
    return binder.statement(text, Lane.FILTER, lambda result: _read_changes(result, {table[1]: table[0]}))


def _read_changes(result: Result, tables: Mapping[int, str]) -> Unnamed:
    changes = []
    for row in range(result.ntuples):
        ticks, table_id = integer_at(result, row, 2), integer_at(result, row, 5)
        key = EntityKey(text_at(result, row, 6), text_at(result, row, 7))
        was, before, after = (result.get_value(row, column) for column in (8, 9, 10))
        keys, by = encode_entity_key(key), Actor(ActorKind.SERVER, "", request_id=text_at(result, row, 4))
        change = RecordedChange(
            integer_at(result, row, 0),
            Op(text_at(result, row, 1)),
            tables.get(table_id, ""),
            table_id,
            key,
            ticks,
            by,
            None if before is None else StoredEntity(keys, was or b"0", before),
            None if after is None else StoredEntity(keys, b"%d" % ticks, after),
        )
        changes.append((integer_at(result, row, 3), change))
    return changes


def beside(table_id: int, history: str) -> Record:
    """Return a relation's own history as a record; its Timestamps order the changes of each entity."""
    columns = f"ts AS seq, {table_id}::bigint AS tbl, ts, was, actor, op, request, pk, rk, anns, vals"
    return Record((f"(SELECT {columns} FROM {history})",))


def with_images_before(
    table: tuple[str, int], record: Record, selection: Selection, top: int | None
) -> Statement[Unnamed]:
    """Return the statement for the first selected changes in a table's own history, without the images after them."""
    binder = Binder()
    columns = (
        f"h.seq, h.op::text, h.ts, h.actor, h.request::text, h.tbl, h.pk, h.rk, h.was, {content('h.')}, NULL"
    )
    limit = "ALL" if top is None else str(top)
    text = record.changes(columns, selection.condition(binder), f"ORDER BY h.ts, h.pk, h.rk LIMIT {limit}")
    return binder.statement(text, Lane.FILTER, lambda result: _read_changes(result, {table[1]: table[0]}))


_LATEST: Final = """
SELECT change.*, k.pk, k.rk, NULL, NULL, NULL
FROM unnest($1::bigint[], $2::text[], $3::text[]) AS k (tbl, pk, rk)
CROSS JOIN LATERAL (SELECT * FROM ({changes}) AS h ORDER BY h.seq DESC LIMIT 1) AS change
"""


def latest(
    record: Record, tables: Mapping[int, str], keys: Sequence[tuple[int, EntityKey]]
) -> Statement[Unnamed]:
    """Return the statement for the latest change of each entity, without images."""
    columns = "h.seq, h.op::text, h.ts, h.actor, h.request::text, h.tbl"
    changes = record.changes(columns, is_of("k.tbl", "k.pk", "k.rk"), "ORDER BY h.seq DESC LIMIT 1")
    given = (
        arrays.bigints(table for table, _ in keys),
        arrays.texts(key.partition_key for _, key in keys),
        arrays.texts(key.row_key for _, key in keys),
    )
    text = _LATEST.format(changes=changes)
    return Statement(text, given, Lane.KEY, lambda result: _read_changes(result, tables))


# An entity goes back to what it was before the last run of selected changes, unless a change that was not selected came
# after it. Everything that happened to the entity since the first selected change is looked at.
_UNDOING: Final = f"""
WITH selected AS (
    SELECT pk, rk, min(seq) AS first FROM ({{selected}}) AS h GROUP BY pk, rk
), chain AS (
    SELECT s.pk, s.rk, c.*, coalesce(max(c.seq) FILTER (WHERE NOT c.is_selected) OVER of_entity, 0) AS newer
    FROM selected AS s CROSS JOIN LATERAL ({{chain}}) AS c
    WINDOW of_entity AS (
        PARTITION BY s.pk, s.rk ORDER BY c.seq ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    )
)
SELECT pk, rk,
    CASE
        WHEN max(seq) = max(newer) THEN {_NEVER}
        ELSE (array_agg(CASE WHEN op <> '{Op.DELETE}' THEN ts END ORDER BY seq DESC))[1]
    END,
    (array_agg(vals ORDER BY seq) FILTER (WHERE seq > newer))[1]
FROM chain GROUP BY pk, rk
"""


# Changes in a relation's own history that an undo has to look at: the selected ones and what came after them, and all
# changes of an entity that has selected ones in the record of the account.
_OWN: Final = "pg_temp.own_changes"
_COLUMNS: Final = "seq, tbl, ts, was, actor, op, request, pk, rk, anns, vals"
_CREATE_OWN: Final = """
CREATE TEMPORARY TABLE own_changes (
    seq bigint, xid xid8, tbl bigint, ts bigint, was bigint, actor integer, op "char", request uuid,
    pk text COLLATE "C", rk text COLLATE "C", anns text, vals text
)
"""
_FILL_OWN: Final = f"""
INSERT INTO {_OWN} ({_COLUMNS})
SELECT h.{_COLUMNS.replace(", ", ", h.")} FROM {{own}} AS h
JOIN ({{selected}}) AS s ON h.pk = s.pk AND h.rk = s.rk AND h.seq >= s.first
"""
_SELECTED: Final = "SELECT pk, rk, min(seq) AS first FROM {own} AS h WHERE {condition} GROUP BY pk, rk"
_FORMER: Final = "SELECT DISTINCT pk, rk, 0::bigint AS first FROM ({former}) AS h OFFSET 0"
_INDEX_OWN: Final = f"CREATE INDEX ON {_OWN} ({KEY_HASH.format(row='')}, seq)"


def undoing_apart(table_id: int, record: Record, own: Record, selection: Selection) -> Images:
    """Return the images of ``undoing`` for a table with its own history, which is read after the record."""
    binder = Binder()
    condition = f"h.tbl = {table_id} AND {selection.condition(binder)}"

    def statement(text: str) -> Statement[object]:
        parameters = tuple(binder.parameters) if "$" in text else ()
        return Statement(text, parameters, Lane.FILTER, lambda _: None)

    (history,) = own.segments
    before = [f"DROP TABLE IF EXISTS {_OWN}", _CREATE_OWN]
    if selection.span is None:  # else it has changes of before only
        before.append(
            _FILL_OWN.format(own=history, selected=_SELECTED.format(own=history, condition=condition))
        )
    if record:
        former = record.changes("h.pk, h.rk", condition)
        before += [
            f"DELETE FROM {_OWN} WHERE (pk, rk) IN ({former})",
            _FILL_OWN.format(own=history, selected=_FORMER.format(former=former)),
        ]
    statements = [statement(text) for text in (*before, _INDEX_OWN, f"ANALYZE {_OWN}")]
    images = undoing(table_id, Record((*record.segments, _OWN)), selection)
    return replace(images, before=statements)


def undoing(table_id: int, record: Record, selection: Selection) -> Images:
    """Return images that undo the selected changes of a table, except for entities changed since."""
    binder = Binder()
    condition = selection.condition(binder)
    selected = record.changes("h.pk, h.rk, h.seq", f"h.tbl = {table_id} AND {condition}")
    chain = record.changes(
        f"h.seq, h.ts, h.op, {content('h.')} AS vals, {condition} AS is_selected",
        f"{is_of(table_id, 's.pk', 's.rk')} AND h.seq >= s.first",
    )
    return Images(_UNDOING.format(selected=selected, chain=chain), tuple(binder.parameters))
