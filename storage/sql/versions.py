"""Versions of an entity from the history of its account, with the states before and after."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.entity import EntityKey, StoredEntity, encode_entity_key
from storage.domain.history.recorded import ChangePage, Op, RecordedChange
from storage.domain.values.stored import read_member
from storage.sql.content import CONTENT
from storage.sql.record import Record, has_keys, is_of
from storage.sql.statement import Lane, Result, Statement, integer_at, text_at

NEWEST: Final = 2**63 - 1
_BYTES: Final = 4 * 1024 * 1024  # the entities on a page
# Rows are changes with the entity before them; the present row counts as the newest. The entity after a change is in
# the row before, from the newest to the oldest; so the row after the page is read as well.
_PAGE: Final = """
WITH older AS (
    SELECT seq, op, ts, was, actor, request, {content} AS content
    FROM ({older}) AS h ORDER BY seq DESC LIMIT $4::bigint
), newer AS (
    SELECT seq, op, ts, was, actor, request, {content} AS content
    FROM ({newer}) AS h
), row AS (
    SELECT {newest}, NULL::"char", ts, ts, NULL::integer, NULL::uuid, {content}
    FROM {source} WHERE pk = $1 AND rk = $2
), sized AS (
    SELECT *, coalesce(sum(octet_length(content)) OVER (
        ORDER BY seq DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) < {bytes} AS fits
    FROM older
)
SELECT seq, op::text, ts, was, CASE WHEN fits THEN content END, fits::text, request::text,
    coalesce(a.kind, '{server}'), coalesce(a.name, ''), coalesce(a.address, ''), coalesce(a.agent, ''),
    coalesce(a.token, '')
FROM (
    SELECT * FROM sized UNION ALL SELECT *, true FROM newer UNION ALL SELECT *, true FROM row
) AS h LEFT JOIN storage_historyactor AS a ON a.id = h.actor
ORDER BY seq DESC
"""


class RawVersion(NamedTuple):
    """Change with the entity before it, or (without ``op``) the current row."""

    sequence: int
    op: str | None
    ticks: int
    was: bytes | None
    content: bytes | None
    fits: bool  # there was room for the content
    request: str
    actor: Actor | int  # an id of storage_historyactor


def read_page(
    rows: Sequence[RawVersion], table: tuple[str, int], key: EntityKey, first: int, top: int
) -> ChangePage[RecordedChange]:
    """Return up to ``top`` versions, newest first, starting at the sequence ``first``.

    ``table`` is its name and id.
    """
    versions: list[RecordedChange] = []
    for version, fits in _versions(rows, table, key):
        if version.sequence <= first:
            if len(versions) == top or not fits:
                return ChangePage(versions, version.sequence)
            versions.append(version)
    return ChangePage(versions, None)


def page(
    table_id: int, source: str, record: Record, key: EntityKey, first: int, top: int
) -> Statement[list[RawVersion]]:
    """Return the statement for a page of versions, with the next newer change and current row for read_page."""
    text = _text(table_id, source, record)
    return Statement(text, (*key, str(first), str(top + 1)), Lane.KEY, _read)


@lru_cache(maxsize=1024)
def _text(table_id: int, source: str, record: Record) -> str:
    same = is_of(table_id, "$1", "$2")
    return _PAGE.format(
        older=record.changes("*", f"{same} AND h.seq <= $3::bigint", "ORDER BY h.seq DESC LIMIT $4::bigint"),
        newer=record.first(
            "h.op, h.ts, h.was, h.actor, h.request, h.anns, h.vals", f"{same} AND h.seq > $3::bigint"
        ),
        content=CONTENT,
        newest=NEWEST,
        source=source,
        bytes=_BYTES,
        server=ActorKind.SERVER,
    )


def _read(result: Result) -> list[RawVersion]:
    return [_read_row(result, row) for row in range(result.ntuples)]


def _read_row(result: Result, row: int) -> RawVersion:
    texts = ("" if (it := result.get_value(row, column)) is None else it.decode() for column in range(6, 12))
    request, kind, name, address, agent, token = texts
    return RawVersion(
        integer_at(result, row, 0),
        None if result.get_value(row, 1) is None else text_at(result, row, 1),
        integer_at(result, row, 2),
        result.get_value(row, 3),
        result.get_value(row, 4),
        text_at(result, row, 5) == "true",
        request,
        Actor(read_member(ActorKind, kind), name, address, agent, request, token),
    )


# for a relation with a history of its own: each statement is about one entity, and joins nothing else
_BESIDE: Final = """
SELECT ts, op::text, ts, was, CASE WHEN before < {bytes} THEN content END, (before < {bytes})::text, request::text,
    actor::text
FROM (
    SELECT *, coalesce(sum(octet_length(content)) OVER (
        ORDER BY ts DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
    FROM (
        SELECT ts, op, was, actor, request, {content} AS content FROM {history} AS h
        WHERE {same} AND h.ts {comparison} $3::bigint
        ORDER BY h.ts {direction} LIMIT $4::bigint
    ) AS found
) AS sized
ORDER BY ts DESC
"""
_ROW: Final = """
SELECT {newest}, NULL, ts, ts, {content}, 'true', NULL, NULL FROM {source} WHERE pk = $1 AND rk = $2
"""


def beside(
    source: str, history: str, key: EntityKey, first: int, top: int
) -> Generator[Statement[Any], Any, list[RawVersion]]:
    """Return the same for a relation with its own history; actors are given by id."""

    def changes(comparison: str, direction: str, limit: int) -> Statement[list[RawVersion]]:
        text = _BESIDE.format(
            history=history,
            same=has_keys("$1", "$2"),
            bytes=_BYTES,
            comparison=comparison,
            direction=direction,
            content=CONTENT,
        )
        return Statement(text, (*key, str(first), str(limit)), Lane.KEY, _read_beside)

    older: list[RawVersion] = yield changes("<=", "DESC", top + 1)
    newer: list[RawVersion] = yield changes(">", "ASC", 1)
    text = _ROW.format(newest=NEWEST, source=source, content=CONTENT)
    row: list[RawVersion] = yield Statement(text, tuple(key), Lane.KEY, _read_beside)
    return row + newer + older


def _read_beside(result: Result) -> list[RawVersion]:
    return [
        RawVersion(
            integer_at(result, row, 0),
            None if result.get_value(row, 1) is None else text_at(result, row, 1),
            integer_at(result, row, 2),
            result.get_value(row, 3),
            result.get_value(row, 4),
            text_at(result, row, 5) == "true",
            "" if result.get_value(row, 6) is None else text_at(result, row, 6),
            0 if result.get_value(row, 7) is None else integer_at(result, row, 7),
        )
        for row in range(result.ntuples)
    ]


def _versions(
    rows: Iterable[RawVersion], table: tuple[str, int], key: EntityKey
) -> Iterator[tuple[RecordedChange, bool]]:
    """Yield the changes, each with whether it fits on the page."""
    keys, following = encode_entity_key(key), None
    for row in rows:
        before = None if row.was is None or row.content is None else StoredEntity(keys, row.was, row.content)
        if row.op is not None:
            assert isinstance(row.actor, Actor)
            is_followed = following is not None and following.timestamp == row.ticks
            after = following if is_followed else None
            yield (
                RecordedChange(row.sequence, Op(row.op), *table, key, row.ticks, row.actor, before, after),
                row.fits,
            )
        following = before
