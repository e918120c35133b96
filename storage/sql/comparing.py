"""Compare two tables: which entities differ, and how.

Entities are compared by their stored lines. Most are equal byte by byte or differ in length, which is all that is
looked at; the lines of the others are compared as sets, because the order of properties is no difference.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from storage.domain.entities.entity import EntityKey, StoredEntity, encode_entity_key
from storage.domain.entities.moments import Moment
from storage.domain.filters.query import PAGE_BYTES
from storage.editing.comparison import DifferenceKind
from storage.sql import arrays
from storage.sql.past import Past, as_of, changed_after, with_expressions
from storage.sql.record import Record, is_of, is_unseen
from storage.sql.restoring import Images
from storage.sql.statement import Lane, Result, Statement, integer_at, text_at
from storage.sql.walks import Binder

T = TypeVar("T")

NO_TABLE: Final = "entity_template"  # a relation without rows


@dataclass(frozen=True, slots=True)
class Changed:
    """What was changed in a table from a moment, of which there is history, until a later one; None: until now."""

    earlier: Past
    later: Moment | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two relations of entities to compare.

    ``pasts`` are the tables among them that are read as of a moment. ``with_timestamps``: an entity with another
    Timestamp is a changed one.
    """

    left: str = NO_TABLE
    right: str = NO_TABLE
    pasts: tuple[Past, ...] = ()
    changed: Changed | None = None
    with_timestamps: bool = False


class Image(NamedTuple):
    """An entity on one side: its Timestamp in ticks, and the two texts of its row."""

    timestamp: int
    annotations: str
    values: str


class DifferingEntity(NamedTuple):
    """An entity as it is on both sides; None where it is absent."""

    key: EntityKey
    kind: DifferenceKind
    left: Image | None
    right: Image | None

    def stored(self, image: Image) -> StoredEntity:
        content = (image.annotations + image.values).encode()
        return StoredEntity(encode_entity_key(self.key), b"%d" % image.timestamp, content)


class NewImage(NamedTuple):
    """What an entity becomes: without ``values`` it is deleted. ``expected``: its Timestamp; None if there is none."""

    key: EntityKey
    expected: int | None
    annotations: str | None
    values: str | None


class Counts(NamedTuple):
    """The number of entities by how they differ."""

    only_left: int = 0
    only_right: int = 0
    changed: int = 0
    type_only: int = 0
    identical: int = 0

    @property
    def differing(self) -> int:
        return self.only_left + self.only_right + self.changed + self.type_only


# a Cosmos account writes all digits of a DateTime, the other kind no zeros at the end
_SHORT_TIMES: Final = """
(SELECT pk, rk, ts, anns, CASE WHEN strpos(anns, '"Edm.DateTime"') = 0 THEN vals ELSE (
    SELECT string_agg(CASE
        WHEN strpos(line, '.') > 0
            AND strpos(anns, '"' || split_part(line, '"', 2) || '@odata.type":"Edm.DateTime"') > 0
            THEN rtrim(rtrim(left(line, -2), '0'), '.') || 'Z"'
        ELSE line END, E'\\n')
    FROM string_to_table(vals, E'\\n') AS line) END AS vals
FROM {relation})
"""


def with_short_times(relation: str) -> str:
    """Return the entities of a Cosmos account as one of the other kind writes them, to be compared with such."""
    return _SHORT_TIMES.format(relation=relation)


# The entities of a table that were changed between two moments: of each, the first change after a moment has it as it
# was then. Where there is none after the later moment, it is as it is now.
EARLIER: Final = "earlier_entities"
LATER: Final = "later_entities"
_BETWEEN: Final = f"""
changed AS MATERIALIZED ({{first_after}}),
{EARLIER} AS NOT MATERIALIZED (SELECT pk, rk, was AS ts, anns, vals FROM changed WHERE was IS NOT NULL),
{LATER} AS NOT MATERIALIZED ({{later}})
"""
_FIRST_AFTER: Final = """
SELECT DISTINCT ON (pk, rk) pk, rk, was, anns, vals FROM ({changes}) AS h ORDER BY pk, rk, seq
"""
_NOW: Final = "SELECT e.pk, e.rk, e.ts, e.anns, e.vals FROM {source} AS e JOIN changed USING (pk, rk)"
_THEN: Final = """
SELECT pk, rk, ts, anns, vals FROM (
    SELECT k.pk, k.rk, CASE WHEN c.pk IS NULL THEN e.ts ELSE c.was END AS ts,
        CASE WHEN c.pk IS NULL THEN e.anns ELSE c.anns END AS anns,
        CASE WHEN c.pk IS NULL THEN e.vals ELSE c.vals END AS vals
    FROM changed AS k
    LEFT JOIN ({first_after}) AS c USING (pk, rk)
    LEFT JOIN {source} AS e ON e.pk = k.pk AND e.rk = k.rk
) AS then_or_now
WHERE ts IS NOT NULL
"""


def _complete(statement: Statement[T], pair: Pair) -> Statement[T]:
    for past in pair.pasts:
        statement = as_of(statement, past)
    return statement if pair.changed is None else _between(statement, pair.changed)


def _between(statement: Statement[T], changed: Changed) -> Statement[T]:
    earlier, parameters = changed.earlier, list(statement.parameters)

    def first(condition: str) -> str:
        of_table = f"h.tbl = {earlier.table_id} AND {condition}"
        return _FIRST_AFTER.format(changes=earlier.record.changes("*", of_table))

    after_earlier = changed_after(earlier.moment, parameters)
    if changed.later is None:
        between, later = after_earlier, _NOW.format(source=earlier.source)
    else:
        after_later = changed_after(changed.later, parameters)
        between = f"{after_earlier} AND NOT ({after_later})"
        later = _THEN.format(first_after=first(after_later), source=earlier.source)
    expressions = _BETWEEN.format(first_after=first(between), later=later)
    text = with_expressions(statement.text, expressions)
    return Statement(text, tuple(parameters), statement.lane, statement.read)


_LINES: Final = "string_to_array({text}, E'\\n')"
# the lines as their values read, whatever their types, as storage.editing.comparison defines it
_READINGS: Final = _LINES.format(text="replace(replace({side}vals || E'\\n', '\"', ''), E'.0\\n', E'\\n')")
_SAME_SET: Final = "({one} @> {other} AND {other} @> {one})"
# Strings that differ although they read the same, as they do without quotation marks
_STRINGS_DIFFER: Final = """
EXISTS (
    SELECT FROM string_to_table(lvals, E'\\n') AS line, split_part(line, '"', 2) AS name
    WHERE line LIKE '%":"%' AND strpos(rvals, '"' || name || '":"') > 0
        AND strpos(lanns, '"' || name || '@') = 0 AND strpos(ranns, '"' || name || '@') = 0
        AND line <> ALL (string_to_array(rvals, E'\\n'))
)
"""


def _same_set(text: str) -> str:
    return _SAME_SET.format(one=text.format(side="l"), other=text.format(side="r"))


def _kind(pair: Pair) -> str:
    """Return SQL of the kind of difference of a row of ``_MERGED`` or ``_COUNT``; null: there is none."""
    timestamps = f"WHEN lts <> rts THEN '{DifferenceKind.CHANGED}'" if pair.with_timestamps else ""
    vals, anns = (_same_set(_LINES.format(text=f"{{side}}{column}")) for column in ("vals", "anns"))
    return f"""CASE
    WHEN rts IS NULL THEN '{DifferenceKind.ONLY_LEFT}'
    WHEN lts IS NULL THEN '{DifferenceKind.ONLY_RIGHT}'
    {timestamps}
    WHEN lvals = rvals AND lanns = ranns THEN NULL
    WHEN NOT {_same_set(_READINGS)} THEN '{DifferenceKind.CHANGED}'
    WHEN {vals} AND {anns} THEN NULL
    WHEN {_STRINGS_DIFFER} THEN '{DifferenceKind.CHANGED}'
    ELSE '{DifferenceKind.TYPE_ONLY}' END"""


# both sides are read in the order of their keys, so that no more is read than a page needs
_MERGED: Final = """
SELECT pk, rk,
    max(ts) FILTER (WHERE side = 'l') AS lts, max(anns) FILTER (WHERE side = 'l') AS lanns,
    max(vals) FILTER (WHERE side = 'l') AS lvals,
    max(ts) FILTER (WHERE side = 'r') AS rts, max(anns) FILTER (WHERE side = 'r') AS ranns,
    max(vals) FILTER (WHERE side = 'r') AS rvals
FROM (
    SELECT 'l' AS side, pk, rk, ts, anns, vals FROM {left} AS one
    UNION ALL
    SELECT 'r', pk, rk, ts, anns, vals FROM {right} AS other
) AS merged
WHERE {condition}
GROUP BY pk, rk
"""
_COUNT: Final = """
SELECT kind, count(*) FROM (
    SELECT {kind} AS kind FROM (
        SELECT l.ts AS lts, l.anns AS lanns, l.vals AS lvals, r.ts AS rts, r.anns AS ranns, r.vals AS rvals
        FROM {left} AS l FULL JOIN {right} AS r ON l.pk = r.pk AND l.rk = r.rk
    ) AS row
) AS compared
GROUP BY kind
"""
# The first entity of a page may be of any size. The condition says what is not wanted: for one on what is wanted, the
# planner would expect so few rows that it would read everything for them.
_PAGE: Final = """
SELECT pk, rk, kind, lts, lanns, lvals, rts, ranns, rvals FROM (
    SELECT *, sum(octet_length(coalesce(lvals, '')) + octet_length(coalesce(rvals, '')))
        OVER (ORDER BY pk, rk ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
    FROM (SELECT *, {kind} AS kind FROM ({rows}) AS row) AS compared
    WHERE kind IS NOT NULL AND kind <> ALL ({unwanted}::text[])
    ORDER BY pk, rk
    LIMIT {limit}
) AS page
WHERE coalesce(bytes_before, 0) < {bytes}
ORDER BY pk, rk
"""


# For a page, the planner must neither hash nor sort what the primary keys have in order. It must not look at the key
# that the page begins after, either: beyond it, it would expect no more rows in the last partition.
PAGE_SETTINGS: Final = (
    "SET jit = off; SET plan_cache_mode = force_generic_plan;"
    " SET enable_hashagg = off; SET enable_sort = off;"
    " SET enable_seqscan = off; SET max_parallel_workers_per_gather = 0"
)


def count(pair: Pair) -> Statement[Counts]:
    """Count all entities."""
    text = _COUNT.format(kind=_kind(pair), left=pair.left, right=pair.right)
    return _complete(Statement(text, (), Lane.FILTER, _read_counts), pair)


def page(
    pair: Pair,
    kinds: Collection[DifferenceKind],
    *,
    after: EntityKey | None = None,
    keys: Collection[EntityKey] | None = None,
    top: int,
) -> Statement[list[DifferingEntity]]:
    """Return up to ``top`` differing entities in the order of their keys, fewer if they are large.

    ``keys``: only these. Run it with PAGE_SETTINGS.
    """
    binder = Binder()
    conditions = []
    if after is not None:
        conditions.append(f"(pk, rk) > ({binder.bind(after.partition_key)}, {binder.bind(after.row_key)})")
    if keys is not None:
        wanted = json.dumps([{"pk": key.partition_key, "rk": key.row_key} for key in keys])
        record = f"jsonb_to_recordset({binder.bind(wanted)}::jsonb) AS wanted (pk text, rk text)"
        conditions.append(f"(pk, rk) IN (SELECT pk, rk FROM {record})")
    condition = " AND ".join(conditions) or "true"
    text = _PAGE.format(
        kind=_kind(pair),
        rows=_MERGED.format(left=pair.left, right=pair.right, condition=condition),
        unwanted=binder.bind("{" + ",".join(sorted(set(DifferenceKind) - set(kinds))) + "}"),
        limit=top,
        bytes=PAGE_BYTES,
    )
    return _complete(binder.statement(text, Lane.FILTER, _read_entities), pair)


def _read_counts(result: Result) -> Counts:
    found = {
        kind.decode() if (kind := result.get_value(row, 0)) is not None else None: integer_at(result, row, 1)
        for row in range(result.ntuples)
    }
    return Counts(*(found.get(kind, 0) for kind in _IN_ORDER))


_IN_ORDER: Final[Sequence[DifferenceKind | None]] = (
    DifferenceKind.ONLY_LEFT,
    DifferenceKind.ONLY_RIGHT,
    DifferenceKind.CHANGED,
    DifferenceKind.TYPE_ONLY,
    None,
)


def _read_entities(result: Result) -> list[DifferingEntity]:
    return [_read_entity(result, row) for row in range(result.ntuples)]


def _read_entity(result: Result, row: int) -> DifferingEntity:
    key = EntityKey(text_at(result, row, 0), text_at(result, row, 1))
    kind = DifferenceKind(text_at(result, row, 2))
    return DifferingEntity(key, kind, _read_image(result, row, 3), _read_image(result, row, 6))


def _read_image(result: Result, row: int, column: int) -> Image | None:
    if result.get_value(row, column) is None:
        return None
    annotations, values = (text_at(result, row, column + it) for it in (1, 2))
    return Image(integer_at(result, row, column), annotations, values)


_IMAGES: Final = """
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[])
    AS image (pk, rk, expected, anns, vals)
"""


def images(new: Sequence[NewImage]) -> Images:
    """Return images as restoring applies them."""
    parameters = (
        arrays.texts(it.key.partition_key for it in new),
        arrays.texts(it.key.row_key for it in new),
        arrays.bigints(it.expected for it in new),
        arrays.texts(it.annotations for it in new),
        arrays.texts(it.values for it in new),
    )
    return Images(_IMAGES, parameters)


def changed_since(
    table_id: int, record: Record, snapshot: str, keys: Sequence[EntityKey]
) -> Statement[set[EntityKey]]:
    """Return those of the keys whose entities were changed or deleted by what a snapshot does not see."""
    parameters = (
        arrays.texts(key.partition_key for key in keys),
        arrays.texts(key.row_key for key in keys),
        snapshot,
    )
    is_changed = f"{is_of(table_id, 'wanted.pk', 'wanted.rk')} AND {is_unseen('$3')}"
    text = (
        "SELECT pk, rk FROM unnest($1::text[], $2::text[]) AS wanted (pk, rk)"
        f" WHERE EXISTS ({record.changes('', is_changed)})"
    )

    def read(result: Result) -> set[EntityKey]:
        return {EntityKey(text_at(result, row, 0), text_at(result, row, 1)) for row in range(result.ntuples)}

    return Statement(text, parameters, Lane.KEY, read)


_ANY_NEWER: Final = "SELECT FROM {source} WHERE ts > $1::bigint"
# The time of the moment is earlier than its snapshot, which tells exactly whether a table existed: by the transaction
# that created the first column of its relation, which a deletion does not rewrite. The upper half of its xid is taken
# from the present one; that is right because only tables created after the time of the moment are asked for.
_IS_CREATED: Final = """
SELECT FROM storage_table AS t
JOIN pg_attribute AS a ON a.attrelid = '{source}'::regclass AND a.attnum = 1,
(SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS xid) AS next
WHERE t.id = {table_id} AND t.created_at > to_timestamp($1::bigint / 10000000.0) AND NOT coalesce(
    pg_visible_in_snapshot((next.xid - (next.xid - a.xmin::text::bigint) % 4294967296)::text::xid8, $2::pg_snapshot),
    false
)
"""


def is_table_changed_since(
    table_id: int, source: str, record: Record | None, moment: Moment
) -> Statement[bool]:
    """Return the statement that tells whether a table was created, or any entity of it changed, after a moment.

    Without a ``record``, the Timestamps in the ``source`` tell.
    """
    created = _IS_CREATED.format(table_id=table_id, source=source)
    changes = (
        _ANY_NEWER.format(source=source)
        if record is None
        else record.changes("", f"h.tbl = {table_id} AND {is_unseen('$2')}")
    )
    each = " OR ".join(f"EXISTS ({it})" for it in (created, changes) if it)
    parameters = (str(moment.ticks), moment.snapshot)
    return Statement(f"SELECT {each}", parameters, Lane.KEY, lambda result: text_at(result, 0, 0) == "t")
