"""Change feed statements: changes not visible in a snapshot, in the order of each entity."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from storage.core.relation_forms import Ability, RelationForm
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.entity import EntityKey, StoredEntity, encode_entity_key
from storage.domain.history.feed import FeedPosition
from storage.domain.history.recorded import Op, RecordedChange
from storage.domain.values.stored import read_member
from storage.sql import arrays
from storage.sql.content import CONTENT, content
from storage.sql.forms import OTHERS, has_other_form, lacking, relation_name
from storage.sql.record import Record, is_of, is_unseen
from storage.sql.relations import source_name
from storage.sql.statement import Lane, Result, Statement, integer_at, text_at

PAGE_BYTES: Final = 4 * 1024 * 1024  # the images before; and the images after that are read from the tables


class Segment(NamedTuple):
    """Segment of an account's history."""

    number: int
    is_open: bool
    is_broken: bool  # it is dropped, changes after it were not recorded, or it was written in another cluster
    started: int  # in ticks


class HistoryState(NamedTuple):
    """Segments of an account's history, and the identity of its database."""

    cluster: str  # identifies a database, and each state that it was restored to; empty on a standby
    segments: Sequence[Segment]
    next_xid: int  # the id of the next transaction
    apart: tuple[RelationForm, str] | None = None  # a table that records its changes apart, with its form


_WITHOUT_FEED: Final = lacking("storage_table", Ability.FEED)
# the number of the timeline changes when a standby is promoted or a backup is restored to a point in time: what a
# reader has seen may be undone then
_STATE: Final = f"""
SELECT CASE WHEN pg_is_in_recovery() THEN ''
    ELSE system_identifier || '.' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END,
    number, ended_at IS NULL,
    dropped_at IS NOT NULL OR ended_at IS NOT NULL AND last_xid IS NULL OR cluster IS DISTINCT FROM system_identifier,
    (extract(epoch FROM started_at) * 10000000)::bigint, pg_snapshot_xmax(pg_current_snapshot()),
    (SELECT min({_WITHOUT_FEED} || ' ' || name) FROM storage_table WHERE account_id = $1::bigint
        AND {has_other_form("storage_table")} AND deleted_at IS NULL
        AND ($2::bigint[] IS NULL OR id = ANY ($2::bigint[])))
FROM pg_control_system() LEFT JOIN storage_historysegment ON account_id = $1::bigint
ORDER BY number
"""


def state(account_id: int, tables: Sequence[int] | None) -> Statement[HistoryState]:
    """Return the statement for the segments of an account's history; ``tables`` limits the feed."""

    def read(result: Result) -> HistoryState:
        rows = range(result.ntuples) if result.get_value(0, 1) is not None else ()
        return HistoryState(
            text_at(result, 0, 0),
            [
                Segment(
                    integer_at(result, row, 1),
                    text_at(result, row, 2) == "t",
                    text_at(result, row, 3) == "t",
                    integer_at(result, row, 4),
                )
                for row in rows
            ],
            integer_at(result, 0, 5),
            None if result.get_value(0, 6) is None else _read_apart(text_at(result, 0, 6)),
        )

    of_feed = None if tables is None else arrays.bigints(tables)
    return Statement(_STATE, (str(account_id), of_feed), Lane.KEY, read)


def _read_apart(text: str) -> tuple[RelationForm, str]:
    place, _, name = text.partition(" ")
    return OTHERS[int(place)], name


class FeedHead(NamedTuple):
    """Head of a feed page, its facts besides changes."""

    unseen: int  # the number of changes, at most one more than were asked for
    snapshot: str  # the snapshot of the statement
    is_flushed: bool  # whether the state that the snapshot sees would survive a crash
    is_ahead: bool  # whether the reader has seen transactions that have not happened
    present: int  # the number of the segment that is written to; 0 if there is none


class RawPage(NamedTuple):
    """Page of changes, before the images in tables are read."""

    head: FeedHead
    changes: list[RecordedChange]
    # the relations with the images after, by the places of changes with no later one recorded
    relations: dict[int, str]


_TABLES: Final = """
SELECT id FROM storage_table
WHERE account_id = $1::bigint AND ($2::bigint[] IS NULL OR id = ANY ($2::bigint[]))
"""
_UNSEEN: Final = "'{segment}' AS segment, h.tbl, h.xid, h.seq"
_WITHIN: Final = (
    "h.xid < pg_snapshot_xmax($6::pg_snapshot) AND pg_visible_in_snapshot(h.xid, $6::pg_snapshot)"
)
_SAME: Final = "u.segment = '{segment}' AND h.tbl = u.tbl AND h.xid = u.xid AND h.seq = u.seq"


def _following(record: Record) -> str:
    """Return the query for the next change of the entity of ``c``, with the image before it."""
    return record.first("h.was, h.anns, h.vals", f"{is_of('c.tbl', 'c.pk', 'c.rk')} AND h.seq > c.seq")


# The first row is about the page. Whatever was completed before the snapshot is in the log before the position that is
# asked for after it. Sizes are added up before anything large is read.
_PAGE: Final = """
WITH tables AS MATERIALIZED ({tables}),
unseen AS MATERIALIZED (SELECT * FROM ({unseen}) AS u ORDER BY seq LIMIT $5::bigint + 1),
page AS MATERIALIZED (
    SELECT c.*, n.was AS next_was, n.anns AS next_anns, n.vals AS next_vals,
        sum(coalesce(octet_length(c.vals), 0) + coalesce(octet_length(n.vals), 0)) OVER (
            ORDER BY c.seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM (SELECT * FROM unseen ORDER BY seq LIMIT $5::bigint) AS u
    CROSS JOIN LATERAL ({recorded}) AS c
    LEFT JOIN LATERAL ({following}) AS n ON c.op <> 'd'
),
log AS MATERIALIZED (SELECT pg_current_wal_insert_lsn() AS inserted)
SELECT NULL::bigint AS seq, (SELECT count(*) FROM unseen)::text, pg_current_snapshot()::text,
    (SELECT pg_current_wal_flush_lsn() >= inserted FROM log)::text,
    (pg_snapshot_xmax($3::pg_snapshot) > pg_snapshot_xmax(pg_current_snapshot()))::text,
    (SELECT coalesce(min(number), 0) FROM storage_historysegment
        WHERE account_id = $1::bigint AND ended_at IS NULL)::text,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
UNION ALL
SELECT p.seq, p.op::text, t.name, p.tbl::text, (t.deleted_at IS NOT NULL)::text, p.ts::text, p.was::text,
    p.request::text, coalesce(a.kind, 'server'), a.name, a.token, p.pk, p.rk, {content},
    p.next_was::text, {next_content}, (p.next_vals IS NULL)::text, s.label
FROM page AS p
JOIN storage_table AS t ON t.id = p.tbl
LEFT JOIN storage_historyactor AS a ON a.id = p.actor
LEFT JOIN storage_issuedtoken AS s ON s.account_id = $1::bigint AND a.kind = 'sas' AND s.fingerprint = a.name
WHERE coalesce(p.before, 0) < $7::bigint
ORDER BY seq NULLS FIRST
"""


def page(
    account_id: int,
    tables: Sequence[int] | None,
    record: Record,
    position: FeedPosition,
    top: int,
) -> Statement[RawPage]:
    """Return the statement for up to ``top`` changes after a position, with images from the history."""
    parameters = (
        str(account_id),
        None if tables is None else arrays.bigints(tables),
        position.seen,
        str(position.seq),
        str(top),
        position.target or None,
        str(PAGE_BYTES),
    )
    text = _page_text(record, bool(position.target))
    return Statement(text, parameters, Lane.KEY, _read_page)


@lru_cache(maxsize=1024)
def _page_text(record: Record, is_within: bool) -> str:
    # a parameter must have a type even if nothing asks for it
    within = _WITHIN if is_within else "$6::pg_snapshot IS NULL"
    of_tables = "h.tbl = ANY (ARRAY(SELECT id FROM tables))"
    unseen = f"{of_tables} AND {is_unseen('$3')} AND h.seq > $4::bigint AND {within}"
    return _PAGE.format(
        tables=_TABLES,
        unseen=record.changes(_UNSEEN, unseen),
        recorded=record.changes("h.*", _SAME),
        following=_following(record),
        content=content("p."),
        next_content=content("p.next_"),
    )


def _read_page(result: Result) -> RawPage:
    head = FeedHead(
        integer_at(result, 0, 1),
        text_at(result, 0, 2),
        text_at(result, 0, 3) == "true",
        text_at(result, 0, 4) == "true",
        integer_at(result, 0, 5),
    )
    changes = [_read_change(result, row) for row in range(1, result.ntuples)]
    relations = {
        row - 1: source_name(relation_name(change.table_id), is_deleted=text_at(result, row, 4) == "true")
        for row, change in enumerate(changes, start=1)
        if change.op is not Op.DELETE and text_at(result, row, 16) == "true"
    }
    return RawPage(head, changes, relations)


def _read_change(result: Result, row: int) -> RecordedChange:
    def optional(column: int) -> str:
        value = result.get_value(row, column)
        return "" if value is None else value.decode()

    key = EntityKey(text_at(result, row, 11), text_at(result, row, 12))
    keys = encode_entity_key(key)
    ticks, was, following = integer_at(result, row, 5), result.get_value(row, 6), result.get_value(row, 14)
    before, after = result.get_value(row, 13), result.get_value(row, 15)
    is_followed = after is not None and following is not None and int(following) == ticks
    return RecordedChange(
        sequence=integer_at(result, row, 0),
        op=Op(text_at(result, row, 1)),
        table=text_at(result, row, 2),
        table_id=integer_at(result, row, 3),
        key=key,
        ticks=ticks,
        actor=Actor(
            read_member(ActorKind, text_at(result, row, 8)),
            optional(9),
            request_id=text_at(result, row, 7),
            token=optional(10),
            label=optional(17),
        ),
        before=StoredEntity(keys, was, before) if was is not None and before is not None else None,
        after=StoredEntity(keys, b"%d" % ticks, after or b"") if is_followed else None,
    )


# images after, by the places of changes in a page; None: there is no room for it in the page
Images = dict[int, bytes | None]

_WANTED: Final = """
WITH wanted AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[])
        AS wanted (place, tbl, seq, ts, pk, rk)
)
"""
_ROW: Final = """
SELECT c.place, e.anns, e.vals FROM wanted AS c JOIN {relation} AS e
    ON c.tbl = {table_id} AND e.pk = c.pk AND e.rk = c.rk AND e.ts = c.ts
"""
_MEASURED: Final = """
, found AS MATERIALIZED ({rows})
SELECT place, CASE WHEN coalesce(before, 0) < {bytes} THEN {content} END FROM (
    SELECT *, sum(octet_length(vals)) OVER (ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM found
) AS measured
"""
_REPLACED: Final = """
SELECT c.place, n.anns, n.vals FROM wanted AS c
CROSS JOIN LATERAL ({following}) AS n
WHERE n.was = c.ts
"""


def rows(page: RawPage) -> Statement[Images]:
    """Return the statement that reads the current rows of changed entities, unless they have changed since."""
    relations = {(relation, page.changes[place].table_id) for place, relation in page.relations.items()}
    row_queries = " UNION ALL ".join(
        _ROW.format(relation=relation, table_id=table_id) for relation, table_id in sorted(relations)
    )
    return _images(row_queries, {place: page.changes[place] for place in page.relations})


def replaced(record: Record, wanted: Mapping[int, RecordedChange]) -> Statement[Images]:
    """Return the statement for images replaced by newer changes while others were read."""
    return _images(_REPLACED.format(following=_following(record)), wanted)


def _images(query: str, changes_by_place: Mapping[int, RecordedChange]) -> Statement[Images]:
    changes = changes_by_place.values()
    parameters = (
        arrays.bigints(changes_by_place),
        arrays.bigints(it.table_id for it in changes),
        arrays.bigints(it.sequence for it in changes),
        arrays.bigints(it.ticks for it in changes),
        arrays.texts(it.key.partition_key for it in changes),
        arrays.texts(it.key.row_key for it in changes),
    )
    read: Callable[[Result], Images] = lambda result: {  # noqa: E731
        integer_at(result, row, 0): result.get_value(row, 1) for row in range(result.ntuples)
    }
    return Statement(
        _WANTED + _MEASURED.format(rows=query, bytes=PAGE_BYTES, content=CONTENT), parameters, Lane.KEY, read
    )


# forces a local flush of the log, regardless of the session's synchronous_commit
_FLUSH: Final = """
SELECT set_config('synchronous_commit', 'local', true), pg_logical_emit_message(true, 'tablero feed', '')
"""


def flush() -> Statement[None]:
    """Return the statement that makes everything visible before it durable."""
    return Statement(_FLUSH, (), Lane.KEY, lambda _: None)


def first_at(record: Record, ticks: int) -> Statement[tuple[int | None, str]]:
    """Return the statement that reads the lowest sequence from a time on, and a snapshot."""
    first = record.changes("min(h.seq) AS seq", "h.ts >= $1::bigint")
    text = f"SELECT pg_current_snapshot()::text, min(seq) FROM ({first}) AS first"

    def read(result: Result) -> tuple[int | None, str]:
        seq = result.get_value(0, 1)
        return None if seq is None else int(seq), text_at(result, 0, 0)

    return Statement(text, (str(ticks),), Lane.FILTER, read)


_MARK: Final = """
SELECT snapshot, pg_current_wal_flush_lsn() >= inserted
FROM (SELECT pg_current_snapshot()::text AS snapshot, pg_current_wal_insert_lsn() AS inserted OFFSET 0) AS mark
"""


def mark() -> Statement[tuple[str, bool]]:
    """Return the statement that reads the current snapshot and whether its state would survive a crash."""
    return Statement(
        _MARK, (), Lane.KEY, lambda result: (text_at(result, 0, 0), text_at(result, 0, 1) == "t")
    )


MARK_EVERY: Final = 2000  # changes
_KEEP_MARK: Final = """
INSERT INTO storage_feedmark (snapshot, next_xid, changes, at)
SELECT pg_current_snapshot()::text, pg_snapshot_xmax(pg_current_snapshot())::text::bigint, last_value, $1::bigint
FROM history_seq
WHERE last_value >= coalesce((SELECT max(changes) FROM storage_feedmark), 0) + $2::bigint
"""


def keep_mark(at: int) -> Statement[None]:
    """Return the statement that stores the present snapshot as a mark, if enough has changed since the last."""
    return Statement(_KEEP_MARK, (str(at), str(MARK_EVERY)), Lane.KEY, lambda _: None)


class FeedMark(NamedTuple):
    """Mark: a snapshot taken after ``at``, in ticks."""

    snapshot: str
    at: int


_MARKS: Final = """
SELECT snapshot, at FROM storage_feedmark
WHERE next_xid > pg_snapshot_xmax($1::pg_snapshot)::text::bigint AND at >= $2::bigint
ORDER BY next_xid, at LIMIT $3::bigint
"""


def marks(seen: str, since: int, number: int) -> Statement[list[FeedMark]]:
    """Return the statement for the next marks after a snapshot and a time in ticks."""
    read: Callable[[Result], list[FeedMark]] = lambda result: [  # noqa: E731
        FeedMark(text_at(result, row, 0), integer_at(result, row, 1)) for row in range(result.ntuples)
    ]
    return Statement(_MARKS, (seen, str(since), str(number)), Lane.KEY, read)
