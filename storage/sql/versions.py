"""The changes of an entity in the history of its account, with the entity before and after each."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.entity import EntityKey, StoredEntity, encode_entity_key
from storage.domain.service.versions import Version, VersionKind, VersionPage
from storage.sql.history import Op
from storage.sql.statement import Lane, Result, Statement, integer_at

NEWEST: Final = 2**63 - 1
_BYTES: Final = 4 * 1024 * 1024  # of the entities on a page
_KINDS: Final = {
    Op.INSERT: VersionKind.INSERT,
    Op.UPDATE: VersionKind.UPDATE,
    Op.DELETE: VersionKind.DELETE,
}
_MEMBER: Final = """
(SELECT * FROM {segment} AS h
WHERE h.tbl = {table_id}
    AND hashtextextended(h.pk, hashtextextended(h.rk, 0))
        = hashtextextended($1 COLLATE "C", hashtextextended($2 COLLATE "C", 0))
    AND h.pk = $1 AND h.rk = $2 AND {condition})
"""
# Rows are changes with the entity before them; the row that there is counts as the newest. What an entity was after a
# change is in the row before, from the newest to the oldest; so the one after the page is read as well.
_PAGE: Final = """
WITH older AS (
    SELECT seq, op, ts, was, actor, request, anns || vals AS content
    FROM ({older}) AS h ORDER BY seq DESC LIMIT $4::bigint
), newer AS (
    SELECT seq, op, ts, was, actor, request, anns || vals AS content
    FROM ({newer}) AS h ORDER BY seq LIMIT 1
), row AS (
    SELECT {newest}, NULL::"char", ts, ts, NULL::integer, NULL::uuid, anns || vals
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


def page(
    table_id: int, source: str, segments: Sequence[str], key: EntityKey, first: int, top: int
) -> Statement[VersionPage]:
    """Return up to ``top`` versions from the one with the sequence ``first`` on, from the newest to the oldest."""

    def read(result: Result) -> VersionPage:
        versions: list[Version] = []
        for version, fits in _versions(result, encode_entity_key(key)):
            if version.sequence <= first:
                if len(versions) == top or not fits:
                    return VersionPage(versions, version.sequence)
                versions.append(version)
        return VersionPage(versions, None)

    text = _text(table_id, source, tuple(segments))
    return Statement(text, (*key, str(first), str(top + 1)), Lane.KEY, read)


@lru_cache(maxsize=1024)
def _text(table_id: int, source: str, segments: tuple[str, ...]) -> str:
    def of_segments(condition: str) -> str:
        return " UNION ALL ".join(
            _MEMBER.format(segment=it, table_id=table_id, condition=condition) for it in segments
        )

    return _PAGE.format(
        older=of_segments("h.seq <= $3::bigint ORDER BY h.seq DESC LIMIT $4::bigint"),
        newer=of_segments("h.seq > $3::bigint ORDER BY h.seq LIMIT 1"),
        newest=NEWEST,
        source=source,
        bytes=_BYTES,
        server=ActorKind.SERVER,
    )


def _versions(result: Result, keys: bytes) -> Iterator[tuple[Version, bool]]:
    """Yield the changes of a result, and whether there is room for them on the page."""
    following: StoredEntity | None = None
    for row in range(result.ntuples):
        texts = [
            None if (it := result.get_value(row, column)) is None else it.decode() for column in range(12)
        ]
        was, content = result.get_value(row, 3), result.get_value(row, 4)
        before = None if was is None or content is None else StoredEntity(keys, was, content)
        if texts[1] is not None:
            _, op, _, _, _, fits, request, kind, name, address, agent, token = texts
            actor = Actor(
                ActorKind(kind or ""), name or "", address or "", agent or "", request or "", token or ""
            )
            ticks = integer_at(result, row, 2)
            is_followed = following is not None and following.timestamp == ticks
            after = following if is_followed else None
            yield (
                Version(integer_at(result, row, 0), _KINDS[Op(op or "")], ticks, actor, before, after),
                fits == "true",
            )
        following = before
