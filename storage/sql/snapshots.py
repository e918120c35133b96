"""The moment of a snapshot, the relations with its entities once they are copied, and what a restore has to change."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from storage.domain.entities.entity import EntityKey
from storage.domain.entities.moments import Moment
from storage.sql import arrays
from storage.sql.history import SHORT_KEYS
from storage.sql.past import Past
from storage.sql.record import is_unseen
from storage.sql.restoring import Images
from storage.sql.statement import Lane, Result, Statement, integer_at, text_at

# A change that the snapshot does not have was made by a statement that ran when it was taken, or later: its Timestamp
# is not before the oldest running transaction, apart from differences of clocks and of when a start is published.
SLACK: Final = 10  # seconds
_MOMENT: Final = f"""
SELECT snapshot, ticks, raise_moment_floor(ticks) FROM (
    SELECT pg_current_snapshot()::text AS snapshot, (extract(epoch FROM least(
        statement_timestamp(),
        (SELECT min(xact_start) FROM pg_stat_activity
            WHERE backend_type = 'client backend' AND datname = current_database()),
        (SELECT min(prepared) FROM pg_prepared_xacts WHERE database = current_database())
    ) - interval '{SLACK} seconds') * 10000000)::bigint AS ticks
) AS moment
"""


def take_moment() -> Statement[Moment]:
    """Return the moment before which all committed changes are visible, and after which none is.

    Its time is at least SLACK seconds ago. Later changes get later Timestamps, wherever the clock is set.
    """

    def read(result: Result) -> Moment:
        return Moment(integer_at(result, 0, 1), text_at(result, 0, 0))

    return Statement(_MOMENT, (), Lane.KEY, read)


def relation_name(snapshot_id: int, table_id: int) -> str:
    """Return the name of the relation with the entities of a table as of a snapshot."""
    return f"snapshot_{snapshot_id}_{table_id}"


def create(relation: str) -> str:
    """Return SQL that makes the relation, which is filled before it is indexed."""
    return f"CREATE TABLE {relation} (LIKE entity_template) WITH (toast_tuple_target = 4080)"


def index(relation: str) -> str:
    """Return SQL that adds the indexes: one of keys that fit into it, and one of the others."""
    return (
        f"CREATE INDEX ON {relation} (pk, rk) WHERE {SHORT_KEYS};"
        f"CREATE INDEX ON {relation} (entity_key_hash(pk, rk)) WHERE NOT ({SHORT_KEYS});"
        f"ANALYZE {relation}"
    )


def drop(relation: str) -> str:
    return f"DROP TABLE IF EXISTS {relation}"


# The first change of each entity after the snapshot has its image then. Those that are equal now are left out: they
# need not be written.
_CHANGED: Final = """
SELECT f.pk, f.rk, e.ts AS expected, f.anns, f.vals
FROM (
    SELECT DISTINCT ON (pk, rk) pk, rk, anns, vals FROM ({changes}) AS change
    WHERE {wanted}
    ORDER BY pk, rk, seq
) AS f
LEFT JOIN {relation} AS e ON e.pk = f.pk AND e.rk = f.rk
WHERE (e.vals IS NULL) <> (f.vals IS NULL) OR e.vals <> f.vals OR e.anns <> f.anns
"""
# ts only grows, and copies keep it: a row of the same Timestamp is the same
_DIFFERENT: Final = """
SELECT coalesce(s.pk, e.pk) AS pk, coalesce(s.rk, e.rk) AS rk, e.ts AS expected, s.anns, s.vals
FROM (SELECT pk, rk, ts, anns, vals FROM {source} WHERE {wanted}) AS s
FULL JOIN (SELECT pk, rk, ts, anns, vals FROM {relation} WHERE {wanted}) AS e ON s.pk = e.pk AND s.rk = e.rk
WHERE (e.vals IS NULL) <> (s.vals IS NULL) OR e.vals <> s.vals OR e.anns <> s.anns
"""
_WANTED: Final = "(pk, rk) IN (SELECT * FROM unnest(${first}::text[], ${second}::text[]))"
_COUNT: Final = """
SELECT count(*) FILTER (WHERE expected IS NULL), count(*) FILTER (WHERE expected IS NOT NULL AND vals IS NOT NULL),
    count(*) FILTER (WHERE vals IS NULL)
FROM ({images}) AS images
"""


class ImageCount(NamedTuple):
    """How many entities images insert, change and delete."""

    inserts: int = 0
    changes: int = 0
    deletions: int = 0

    @property
    def total(self) -> int:
        return sum(self)


def changed_images(past: Past, keys: Sequence[EntityKey] | None = None) -> Images:
    """Return the images of the entities of a table that have changed since a snapshot, or of those of some keys."""
    changes = past.record.changes(
        "h.seq, h.pk, h.rk, h.anns, h.vals", f"h.tbl = {past.table_id} AND {is_unseen('$1')}"
    )
    text = _CHANGED.format(changes=changes, wanted=_wanted(keys, 2), relation=past.source)
    assert past.moment.snapshot is not None
    return Images(text, (past.moment.snapshot, *_keys(keys)))


def different_images(source: str, relation: str, keys: Sequence[EntityKey] | None = None) -> Images:
    """Return the images that make a table equal to another relation."""
    return Images(_DIFFERENT.format(source=source, relation=relation, wanted=_wanted(keys, 1)), _keys(keys))


def all_images(source: str, keys: Sequence[EntityKey] | None = None) -> Images:
    """Return the images that insert all rows of a relation."""
    text = f"SELECT pk, rk, NULL::bigint AS expected, anns, vals FROM {source} WHERE {_wanted(keys, 1)}"
    return Images(text, _keys(keys))


def as_statement(images: Images) -> Statement[int]:
    """Return the query of images as a statement, for storage.sql.past.as_of."""
    return Statement(images.text, images.parameters, Lane.FILTER, lambda result: result.ntuples)


def count(images: Images) -> Statement[ImageCount]:
    def read(result: Result) -> ImageCount:
        return ImageCount(*(integer_at(result, 0, column) for column in range(3)))

    return Statement(_COUNT.format(images=images.text), images.parameters, Lane.FILTER, read)


def _wanted(keys: Sequence[EntityKey] | None, first: int) -> str:
    return "true" if keys is None else _WANTED.format(first=first, second=first + 1)


def _keys(keys: Sequence[EntityKey] | None) -> tuple[bytes, ...]:
    return () if keys is None else arrays.columns(keys) or (arrays.texts(()), arrays.texts(()))
