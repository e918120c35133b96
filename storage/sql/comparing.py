"""Comparison of two tables: differing entities and kinds of difference."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from storage.domain.entities.differences import DifferenceKind
from storage.domain.entities.entity import EntityKey, StoredEntity, encode_entity_key
from storage.domain.entities.moments import Moment
from storage.domain.filters.query import PAGE_BYTES
from storage.sql.content import CONTENT, content
from storage.sql.past import Past, as_of, changed_after, with_expressions
from storage.sql.record import Record, is_of, is_unseen
from storage.sql.restoring import NEWER, Images
from storage.sql.statement import Lane, Result, Statement, integer_at, text_at
from storage.sql.walks import Binder

T = TypeVar("T")

NO_TABLE: Final = "entity_template"  # a relation without rows


@dataclass(frozen=True, slots=True)
class Changed:
    """Period of a table's history to compare; ``later`` is None for the present."""

    earlier: Past
    later: Moment | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """Pair of entity relations to compare."""

    left: str = NO_TABLE
    right: str = NO_TABLE
    pasts: tuple[Past, ...] = ()  # the tables among them that are read as of a moment
    changed: Changed | None = None
    with_timestamps: bool = False  # whether an entity with another Timestamp is a changed one


class Image(NamedTuple):
    """Entity on one side: its Timestamp in ticks, and its row text."""

    timestamp: int
    content: str


class DifferingEntity(NamedTuple):
    """Entity on both sides of a comparison; None where it is absent."""

    key: EntityKey
    kind: DifferenceKind
    left: Image | None
    right: Image | None

    def stored(self, image: Image) -> StoredEntity:
        return StoredEntity(encode_entity_key(self.key), b"%d" % image.timestamp, image.content.encode())


class Counts(NamedTuple):
    """Number of entities by kind of difference."""

    only_left: int = 0
    only_right: int = 0
    changed: int = 0
    type_only: int = 0
    identical: int = 0

    @property
    def differing(self) -> int:
        return sum(self) - self.identical

    def number(self, kind: DifferenceKind | None) -> int:
        """Return the number of entities with this kind of difference, or any."""
        return self.differing if kind is None else self[_IN_ORDER.index(kind)]


# a Cosmos account writes all digits of a DateTime, the other kind no zeros at the end
_SHORT_TIMES: Final = """
(SELECT pk, rk, ts, '' AS anns, CASE WHEN strpos(content, '"Edm.DateTime"') = 0 THEN content ELSE (
    SELECT string_agg(CASE
        WHEN split_part(line, '"', 4) = 'Edm.DateTime' AND strpos(split_part(line, E'\\t', 3), '.') > 0
            THEN rtrim(rtrim(left(line, -2), '0'), '.') || 'Z"'
        ELSE line END, E'\\n')
    FROM string_to_table(content, E'\\n') AS line) END AS vals
FROM (SELECT pk, rk, ts, {content} AS content FROM {relation}) AS entity)
"""


def with_short_times(relation: str) -> str:
    """Return Cosmos entities with DateTimes in Table storage's form, for comparison with such accounts."""
    return _SHORT_TIMES.format(relation=relation, content=CONTENT)


# The entities of a table that were changed between two moments: of each, the first change after a moment has it as it
# was then. Where there is none after the later moment, it is as it is now.
EARLIER: Final = "earlier_entities"
LATER: Final = "later_entities"
_BETWEEN: Final = f"""
changed AS MATERIALIZED ({{first}}),
{EARLIER} AS NOT MATERIALIZED (SELECT pk, rk, was AS ts, anns, vals FROM changed WHERE was IS NOT NULL),
{LATER} AS NOT MATERIALIZED ({{later}})
"""
_FIRST: Final = (
    "SELECT DISTINCT ON (pk, rk) pk, rk, was, anns, vals FROM ({changes}) AS h ORDER BY pk, rk, seq"
)
_NOW: Final = "SELECT e.pk, e.rk, e.ts, e.anns, e.vals FROM {source} AS e JOIN changed USING (pk, rk)"
_THEN: Final = """
SELECT pk, rk, ts, anns, vals FROM (
    SELECT k.pk, k.rk, CASE WHEN c.pk IS NULL THEN e.ts ELSE c.was END AS ts,
        CASE WHEN c.pk IS NULL THEN e.anns ELSE c.anns END AS anns,
        CASE WHEN c.pk IS NULL THEN e.vals ELSE c.vals END AS vals
    FROM changed AS k
    LEFT JOIN ({first}) AS c USING (pk, rk)
    LEFT JOIN {source} AS e ON e.pk = k.pk AND e.rk = k.rk
) AS then_or_now
WHERE ts IS NOT NULL
"""


def _complete(statement: Statement[T], pair: Pair) -> Statement[T]:
    """Prepend the CTEs of a pair's past states to a statement."""
    for past in pair.pasts:
        statement = as_of(statement, past)
    return statement if pair.changed is None else _between(statement, pair.changed)


def _between(statement: Statement[T], changed: Changed) -> Statement[T]:
    earlier, parameters = changed.earlier, list(statement.parameters)
    after_earlier = changed_after(earlier.moment, parameters)
    if changed.later is None:
        between, later = after_earlier, _NOW.format(source=earlier.source)
    else:
        after_later = changed_after(changed.later, parameters)
        between = f"{after_earlier} AND NOT ({after_later})"
        later = _THEN.format(first=_first(earlier, after_later), source=earlier.source)
    expressions = _BETWEEN.format(first=_first(earlier, between), later=later)
    text = with_expressions(statement.text, expressions)
    return Statement(text, tuple(parameters), statement.lane, statement.read)


def _first(past: Past, condition: str) -> str:
    """Return the query for the first matching change of each entity."""
    columns = "h.seq, h.pk, h.rk, h.was, h.anns, h.vals"
    return _FIRST.format(changes=past.record.changes(columns, f"h.tbl = {past.table_id} AND {condition}"))


_LINES: Final = "string_to_array({text}, E'\\n')"
_VALUES: Final = r"regexp_replace({side}vals, '\t[^\t]*\t', '', 'g')"  # without annotations
# the lines as their values read, whatever their types, as storage.editing.comparison defines it
_READINGS: Final = _LINES.format(text=f"replace(replace({_VALUES} || E'\\n', '\"', ''), E'.0\\n', E'\\n')")
_SAME_SET: Final = "({one} @> {other} AND {other} @> {one})"
# Strings that differ although they read the same, as they do without quotation marks; their lines have no annotation
_STRINGS_DIFFER: Final = """
EXISTS (
    SELECT FROM string_to_table(lvals, E'\\n') AS line, split_part(line, '"', 2) AS name
    WHERE line LIKE ',"%":"%' AND strpos(rvals, E'\\n,"' || name || '":"') > 0
        AND line <> ALL (string_to_array(rvals, E'\\n'))
)
"""


def _same_set(text: str) -> str:
    return _SAME_SET.format(one=text.format(side="l"), other=text.format(side="r"))


def _kind(pair: Pair) -> str:
    """Return SQL for the kind of difference of a row, null if it has none."""
    timestamps = f"WHEN lts <> rts THEN '{DifferenceKind.CHANGED}'" if pair.with_timestamps else ""
    same_lines = _same_set(_LINES.format(text="{side}vals"))
    return f"""CASE
    WHEN rts IS NULL THEN '{DifferenceKind.ONLY_LEFT}'
    WHEN lts IS NULL THEN '{DifferenceKind.ONLY_RIGHT}'
    {timestamps}
    WHEN lvals = rvals THEN NULL
    WHEN NOT {_same_set(_READINGS)} THEN '{DifferenceKind.CHANGED}'
    WHEN {same_lines} THEN NULL
    WHEN {_STRINGS_DIFFER} THEN '{DifferenceKind.CHANGED}'
    ELSE '{DifferenceKind.TYPE_ONLY}' END"""


# both sides are read in the order of their keys, so that no more is read than a page needs
_MERGED: Final = f"""
SELECT pk, rk,
    max(ts) FILTER (WHERE side = 'l') AS lts, max(vals) FILTER (WHERE side = 'l') AS lvals,
    max(ts) FILTER (WHERE side = 'r') AS rts, max(vals) FILTER (WHERE side = 'r') AS rvals
FROM (
    SELECT 'l' AS side, pk, rk, ts, {CONTENT} AS vals FROM {{left}} AS one
    UNION ALL
    SELECT 'r', pk, rk, ts, {CONTENT} FROM {{right}} AS other
) AS merged
WHERE {{condition}}
GROUP BY pk, rk
"""
# Both sides as wholes, in no order. If one is the present, each change is looked up in it: the planner expects so few
# of them that it would compare every entity with each.
_JOINED: Final = f"""
SELECT coalesce(l.pk, r.pk) AS pk, coalesce(l.rk, r.rk) AS rk, l.ts AS lts, l.vals AS lvals,
    r.ts AS rts, r.vals AS rvals
FROM (SELECT pk, rk, ts, {CONTENT} AS vals FROM {{left}} AS one WHERE {{wanted}}) AS l
FULL JOIN (SELECT pk, rk, ts, {CONTENT} AS vals FROM {{right}} AS other WHERE {{wanted}}) AS r
    ON l.pk = r.pk AND l.rk = r.rk
"""
_CHANGED: Final = f"""
SELECT c.pk, c.rk, c.was AS {{then}}ts, {content("c.")} AS {{then}}vals, e.ts AS {{now}}ts,
    {content("e.")} AS {{now}}vals
FROM ({{first}}) AS c LEFT JOIN {{source}} AS e ON e.pk = c.pk AND e.rk = c.rk
WHERE c.was IS NOT NULL OR e.ts IS NOT NULL
"""
_COUNT: Final = (
    "SELECT kind, count(*) FROM (SELECT {kind} AS kind FROM ({rows}) AS row) AS compared GROUP BY kind"
)
# Whether there is any difference, which is faster than to find its kind. Two texts are equal if they are of the same
# length and one has all lines of the other, in any order.
_DIFFERS: Final = """CASE
    WHEN lts IS NULL OR rts IS NULL THEN true
    {timestamps}
    WHEN lvals = rvals THEN false
    WHEN octet_length(lvals) <> octet_length(rvals) THEN true
    ELSE NOT string_to_array(lvals, E'\\n') @> string_to_array(rvals, E'\\n') END"""
_IMAGES: Final = """
SELECT pk, rk, CASE WHEN {newer} THEN {NEWER} ELSE {target}ts END AS expected, {source}vals AS vals
FROM ({rows}) AS entity
WHERE {condition}
"""
# The first entity of a page may be of any size. The condition names the unwanted kinds: with a condition on the wanted
# kinds, the planner would expect so few rows that it would read everything to find them.
_PAGE: Final = """
SELECT pk, rk, kind, lts, lvals, rts, rvals FROM (
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
    """Count all entities by kind of difference."""
    return _join(_COUNT, pair, "true", Binder(), _read_counts, kind=_kind(pair))


def _join(
    text: str, pair: Pair, key_condition: str, binder: Binder, read: Callable[[Result], T], **parts: str
) -> Statement[T]:
    """Return a statement over both sides, or over the entities that meet ``key_condition``."""
    changed = pair.changed
    if changed is None or changed.later is not None:
        rows = _JOINED.format(left=pair.left, right=pair.right, wanted=key_condition)
        return _complete(binder.statement(text.format(rows=rows, **parts), Lane.FILTER, read), pair)
    then, now = ("l", "r") if pair.left == EARLIER else ("r", "l")
    is_after = changed_after(changed.earlier.moment, binder.parameters)
    first = _first(changed.earlier, f"{is_after} AND {key_condition}")
    rows = _CHANGED.format(then=then, now=now, first=first, source=changed.earlier.source)
    return binder.statement(text.format(rows=rows, **parts), Lane.FILTER, read)


def page(
    pair: Pair,
    kinds: Collection[DifferenceKind],
    *,
    after: EntityKey | None = None,
    top: int,
) -> Statement[list[DifferingEntity]]:
    """Return the statement for up to ``top`` differing entities in key order, fewer if they are large."""
    binder = Binder()
    condition = "true"
    if after is not None:
        condition = f"(pk, rk) > ({binder.bind(after.partition_key)}, {binder.bind(after.row_key)})"
    text = _PAGE.format(
        kind=_kind(pair),
        rows=_MERGED.format(left=pair.left, right=pair.right, condition=condition),
        unwanted=binder.bind(_unwanted(kinds)),
        limit=top,
        bytes=PAGE_BYTES,
    )
    return _complete(binder.statement(text, Lane.FILTER, _read_entities), pair)


def _unwanted(kinds: Collection[DifferenceKind]) -> str:
    return "{" + ",".join(sorted(set(DifferenceKind) - set(kinds))) + "}"


def _read_counts(result: Result) -> Counts:
    numbers = {
        kind.decode() if (kind := result.get_value(row, 0)) is not None else None: integer_at(result, row, 1)
        for row in range(result.ntuples)
    }
    return Counts(*(numbers.get(kind, 0) for kind in _IN_ORDER))


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
    return DifferingEntity(key, kind, _read_image(result, row, 3), _read_image(result, row, 5))


def _read_image(result: Result, row: int, column: int) -> Image | None:
    if result.get_value(row, column) is None:
        return None
    return Image(integer_at(result, row, column), text_at(result, row, column + 1))


@dataclass(frozen=True, slots=True)
class Since:
    """Entities changed after a moment, by recorded changes or else Timestamps."""

    table_id: int
    is_left: bool
    moment: Moment
    record: Record | None


def images(
    pair: Pair,
    kinds: Collection[DifferenceKind],
    *,
    to_left: bool,
    keys: Collection[EntityKey] | None = None,
    newer: Collection[Since] = (),
) -> Images:
    """Return the images that make one side equal to the other; ``keys`` limits them to these entities."""
    binder = Binder()
    key_condition = "true"
    if keys is not None:
        partition_keys = binder.bind_texts(key.partition_key for key in keys)
        row_keys = binder.bind_texts(key.row_key for key in keys)
        key_condition = f"(pk, rk) IN (SELECT * FROM unnest({partition_keys}::text[], {row_keys}::text[]))"
    timestamps = "WHEN lts <> rts THEN true" if pair.with_timestamps else ""
    condition = _DIFFERS.format(timestamps=timestamps)
    if set(kinds) != set(DifferenceKind):
        condition = f"coalesce({_kind(pair)} <> ALL ({binder.bind(_unwanted(kinds))}::text[]), false)"
    statement = _join(
        _IMAGES,
        pair,
        key_condition,
        binder,
        lambda result: result.ntuples,
        newer=" OR ".join(_is_newer(it, binder) for it in newer) or "false",
        NEWER=str(NEWER),
        target="l" if to_left else "r",
        source="r" if to_left else "l",
        condition=condition,
    )
    return Images(statement.text, statement.parameters)


def _is_newer(since: Since, binder: Binder) -> str:
    if since.record is None or since.moment.snapshot is None:
        side = "l" if since.is_left else "r"
        return f"coalesce({side}ts > {binder.bind(str(since.moment.ticks))}::bigint, false)"
    snapshot = binder.bind(since.moment.snapshot)
    is_changed = f"{is_of(since.table_id, 'entity.pk', 'entity.rk')} AND {is_unseen(snapshot)}"
    return f"EXISTS ({since.record.changes('', is_changed)})"


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
    """Return a statement: was a table created, or any of its entities changed, after a moment?

    Without a ``record``, Timestamps in the ``source`` decide.
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
