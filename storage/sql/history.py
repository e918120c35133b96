"""History of an account: every change of an entity, with the image before it, in relations called segments.

Writers insert into a view of the current segment, ``history_<account>``, so that statements do not need its
number. Only the image before is kept: an entity's state at a time is the image of the next change after it,
or else its current row; so old segments can be dropped without affecting the others.

``seq`` orders the changes of an entity, because it is taken while its row is locked. Readers that must not
miss changes filter by ``xid``: a change may be committed after one with a greater ``seq``. ``ts`` is the new
Timestamp, or for a deletion the time of it; ``was`` is the old one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from storage.domain.access.actor import Actor
from storage.domain.history.recorded import Op as Op
from storage.sql import moments
from storage.sql.django import fetch, storable_text
from storage.sql.forms import locally, table_id_of
from storage.sql.long_keys import SHORT_KEYS
from storage.sql.record import KEY_HASH, segment_name
from storage.sql.statement import Lane, Result, Statement, integer_at


@dataclass(frozen=True, slots=True)
class Recorder:
    """Target and origin of recorded changes: a view, an actor id, and a request GUID."""

    relation: str
    actor: int
    request: str

    @property
    def parameters(self) -> tuple[str, str]:
        return str(self.actor), self.request


# CACHE 1, as by default: otherwise numbers would not be in the order in which they are taken
SEQUENCE: Final = "CREATE SEQUENCE history_seq"

OLDEST_POSTGRESQL: Final = 18_00_00  # the first whose writes can return the row as it was

# one index for the history of an entity, one for the changes that a reader has not seen, one for times, two for
# entities that are gone: keys that are too long for an index entry are found by their table
_INDEXES: Final = f"""
CREATE INDEX {{segment}}_entity ON {{relation}} (tbl, {KEY_HASH.format(row="")}, seq);
CREATE INDEX {{segment}}_xid ON {{relation}} (tbl, xid, seq);
CREATE INDEX {{segment}}_ts ON {{relation}} (ts, tbl);
CREATE INDEX {{segment}}_gone ON {{relation}} (tbl, pk, rk, seq) WHERE op = 'd' AND {SHORT_KEYS};
CREATE INDEX {{segment}}_gone_long ON {{relation}} (tbl, seq) WHERE op = 'd' AND NOT {SHORT_KEYS};
"""
_SEGMENT: Final = """
CREATE TABLE {segment} (
    seq bigint NOT NULL DEFAULT nextval('history_seq'),
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    tbl bigint NOT NULL,
    ts bigint NOT NULL,
    was bigint,
    actor integer NOT NULL,
    op "char" NOT NULL,
    request uuid NOT NULL,
    pk text COLLATE "C" NOT NULL,
    rk text COLLATE "C" NOT NULL,
    anns text,
    vals text
) WITH (toast_tuple_target = 4080, autovacuum_vacuum_insert_scale_factor = 0.2);
"""


# the columns that writers fill in
RECORDED_COLUMNS: Final = "(tbl, op, ts, was, actor, request, pk, rk, anns, vals)"


def recorded_table(relation: str) -> str:
    """Return the table id with which a relation's changes are recorded."""
    return table_id_of(relation)


def writers_name(account_id: int) -> str:
    """Return the name of the view to which changes are written."""
    return f"history_{account_id}"


def create(account_id: int, number: int) -> str:
    segment = segment_name(account_id, number)
    return _SEGMENT.format(segment=segment) + _INDEXES.format(segment=segment, relation=segment)


def write_to(account_id: int, number: int) -> str:
    """Return SQL that redirects writers to a segment, waiting for running writes to the previous one."""
    segment = segment_name(account_id, number)
    writers = writers_name(account_id)
    return locally(
        f"CREATE OR REPLACE VIEW {writers} AS SELECT * FROM {segment}; {moments.create_in_order(writers)}"
    )


def drop(account_id: int, number: int, *, packed: bool) -> str:
    """Return SQL that drops a segment, and the view of an account without recording."""
    segment = segment_name(account_id, number)
    relations = f"{segment}_rows, {segment}_images" if packed else segment
    return f"DROP TABLE IF EXISTS {relations} CASCADE"


# Images of an entity, and of its neighbours, have most of their text in common: PostgreSQL compresses an array of them
# to less than a half of their sizes one by one, or to a fifth if entities changed several times.
_PACKED_IMAGES: Final = 32
_PACK: Final = f"""
CREATE TABLE {{segment}}_rows AS
SELECT seq, xid, tbl, ts, was, actor, op, request, pk, rk,
    CASE WHEN vals IS NOT NULL THEN number / {_PACKED_IMAGES} END::integer AS block,
    (number % {_PACKED_IMAGES} + 1)::smallint AS place
FROM (
    SELECT *, row_number() OVER (PARTITION BY vals IS NULL ORDER BY tbl, pk, rk, seq) - 1 AS number
    FROM {{segment}}
) AS numbered
ORDER BY seq;
CREATE TABLE {{segment}}_images (
    block integer PRIMARY KEY, anns text[] NOT NULL, vals text[] NOT NULL
) WITH (toast_tuple_target = 128);
INSERT INTO {{segment}}_images
SELECT block, array_agg(s.anns ORDER BY place), array_agg(s.vals ORDER BY place)
FROM {{segment}}_rows JOIN {{segment}} AS s USING (seq)
WHERE block IS NOT NULL
GROUP BY block;
DROP TABLE {{segment}};
{_INDEXES.format(segment="{segment}", relation="{segment}_rows")}
CREATE VIEW {{segment}} AS
SELECT seq, xid, tbl, ts, was, actor, op, request, pk, rk, i.anns[place] AS anns, i.vals[place] AS vals
FROM {{segment}}_rows LEFT JOIN {{segment}}_images AS i USING (block);
ANALYZE {{segment}}_rows, {{segment}}_images
"""


def pack(account_id: int, number: int) -> str:
    """Return SQL that packs a closed segment, transparently to readers."""
    return locally(_PACK.format(segment=segment_name(account_id, number)))


def drop_view(account_id: int) -> str:
    writers = writers_name(account_id)
    return locally(f"{moments.drop_in_order(writers)}; DROP VIEW IF EXISTS {writers}")


# an empty one has its indexes only; the size of one that was just dropped is null
_SIZE: Final = """
coalesce(sum(CASE WHEN pg_relation_size(c.oid) = 0 THEN 0 ELSE pg_total_relation_size(c.oid) END), 0)::bigint
""".strip()
_SIZES: Final = f"""
SELECT name, {_SIZE}
FROM unnest(%s::text[]) AS name
CROSS JOIN unnest(ARRAY['', '_rows', '_images']) AS part
-- an equality, so that each name is looked up
JOIN pg_class AS c ON c.relname = name || part AND c.relkind = 'r'
WHERE c.relnamespace = current_schema()::regnamespace
GROUP BY name
"""


# Asking for a size opens the relation, which takes a hundred times as long as asking whether anything was written to
# it; but that is known some seconds late.
_MANY: Final = 200  # segments
_SIZES_OF_USED: Final = f"""
SELECT account_id, number, {_SIZE}
FROM storage_historysegment
CROSS JOIN unnest(CASE WHEN packed THEN ARRAY['_rows', '_images'] ELSE ARRAY[''] END) AS part
JOIN pg_class AS c ON c.relname = 'history_' || account_id || '_' || number || part
WHERE dropped_at IS NULL AND c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace
    AND (ended_at IS NOT NULL OR c.reltuples > 0
        OR (SELECT count(*) FROM storage_historysegment WHERE dropped_at IS NULL) <= %s
        OR pg_stat_get_tuples_inserted(c.oid) + pg_stat_get_xact_tuples_inserted(c.oid) > 0)
GROUP BY account_id, number
"""


def sizes_of_used() -> dict[tuple[int, int], int]:
    """Return the bytes on disk of all segments; empty ones may be missing."""
    return {(account_id, number): size for account_id, number, size in fetch(_SIZES_OF_USED, _MANY)}


def sizes(segments: Sequence[str]) -> dict[str, int]:
    """Return the bytes on disk of segments by name, 0 for empty ones."""
    return dict(fetch(_SIZES, list(segments)))


# adds an actor that is not known yet; no row while another transaction is adding it
_INTERN: Final = """
WITH known AS (
    SELECT id FROM storage_historyactor
    WHERE kind = $1 AND name = $2 AND address = $3 AND agent = $4 AND token = $5
), added AS (
    INSERT INTO storage_historyactor (kind, name, address, agent, token)
    SELECT $1, $2, $3, $4, $5 WHERE NOT EXISTS (SELECT FROM known)
    ON CONFLICT DO NOTHING
    RETURNING id
)
SELECT id FROM known UNION ALL SELECT id FROM added
"""


def intern(actor: Actor) -> Statement[int | None]:
    """Return the statement that finds or adds an actor; a result of None means that it must be run again."""

    def read(result: Result) -> int | None:
        return integer_at(result, 0, 0) if result.ntuples else None

    texts = (
        actor.kind.value,
        storable_text(actor.name, 256),
        storable_text(actor.address, 64),
        storable_text(actor.agent, 256),
        storable_text(actor.token, 64),
    )
    return Statement(_INTERN, texts, Lane.KEY, read)
